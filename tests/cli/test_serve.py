"""``constrain serve`` as a program of its own."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from constrain.cli.serve import _make_greeting
from constrain.llama.model import Model, default_model_path
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings
from tests.support.command_line import call
from tests.support.server.asking import SECONDS

pytestmark = pytest.mark.usefixtures("tiny_model")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--strict-subset", "some"), "structural, openai, off"),
        (("a.gguf", "--model", "b.gguf"), "the model is a.gguf already"),
    ],
)
def test_wrong_usage_is_told(given: tuple[str, ...], message: str) -> None:
    done = call("serve", *given)
    assert (done.returncode, message in done.stderr) == (2, True)


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    done = call("serve")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "constrain: starlette is missing; pip install 'constrain-llm[server]'\n"


def test_a_port_in_use_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = call("serve", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr == f"error: cannot listen on 127.0.0.1, port {port}: Address already in use\n"


def test_a_model_that_is_not_there_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.server.http.listening.listen", lambda *_: [])
    done = call("serve", "none.gguf")
    assert (done.returncode, done.stderr) == (1, "error: none.gguf: there is no such file or folder\n")


@pytest.mark.slow
def test_models_of_a_file_wait_until_they_are_asked_for_and_a_signal_ends_the_server(tmp_path: Path) -> None:
    path = default_model_path()
    config, keys = tmp_path / "server.toml", tmp_path / "keys"
    models = "".join(f'[[models]]\npath = "{path}"\nname = "{name}"\n' for name in ("one", "two"))
    config.write_text('log_format = "json"\nport = 1\n' + models)
    keys.write_text("secret-of-mine\n")
    options = ["--config", str(config), "--port", "0", "--api-key-file", str(keys)]
    with subprocess.Popen(
        [sys.executable, "-m", "constrain", "serve", *options], stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stderr is not None
        logged = []
        while not logged or logged[-1]["event"] != "started":
            logged.append(json.loads(program.stderr.readline()))
        assert logged[-1]["models"] == ["one", "two"]
        with httpx.Client(base_url=logged[-1]["url"], timeout=SECONDS) as client:
            assert client.get("/health").json() == {"status": "ok"}
            assert client.get("/v1/models").status_code == 401
            client.headers["Authorization"] = "Bearer secret-of-mine"
            listed = client.get("/v1/models")
            assert [model["id"] for model in listed.json()["data"]] == ["one", "two"]
            assert 'constrain_model_loaded{model="two"} 0.0' in client.get("/metrics").text
        program.send_signal(signal.SIGTERM)
        rest = program.stderr.read()
        assert program.wait(SECONDS) == 0
    requests = [line for line in map(json.loads, rest.splitlines()) if line["event"] == "request"]
    assert listed.headers["x-request-id"] in {line["request_id"] for line in requests}
    assert "secret-of-mine" not in rest


def test_the_curl_line_works_as_it_is_printed() -> None:
    models = Models([ModelSource(('it\'s "mine"',), 0, 1, 0, Model)])
    line = _make_greeting("http://127.0.0.1:1", models, Settings(api_keys=("k",))).split("\n\n")[1]
    words = shlex.split(line)
    assert words[:2] == ["curl", "http://127.0.0.1:1/v1/chat/completions"]
    assert "Authorization: Bearer YOUR_KEY" in words
    assert json.loads(words[words.index("-d") + 1])["model"] == 'it\'s "mine"'
