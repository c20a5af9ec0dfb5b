"""``constrain serve`` as a program of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from constrain.cli.serve import _make_greeting
from constrain.llama.model import Model, default_model_path
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings
from tests.support.server.asking import SECONDS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_serve_says_where_it_listens_and_ends_at_a_signal(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("secret-of-mine\n")
    options = ["--port", "0", "--alias", "small", "--ctx", "256", "--threads", "1", "--api-key-file", str(keys)]
    environment = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "constrain", "serve", *options], stderr=subprocess.PIPE, text=True, env=environment
    ) as program:
        assert program.stderr is not None
        said = ""
        while "curl" not in said:
            line = program.stderr.readline()
            assert line, said
            said += line
        url = re.findall(r"small at (http://127\.0\.0\.1:\d+)/v1", said)[0]
        assert httpx.get(f"{url}/health", timeout=SECONDS).json() == {"status": "ok"}
        assert httpx.get(f"{url}/v1/models", timeout=SECONDS).status_code == 401
        listed = httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer secret-of-mine"}, timeout=SECONDS)
        assert [model["id"] for model in listed.json()["data"]] == ["small"]
        program.send_signal(signal.SIGTERM)
        said += program.stderr.read()
        assert program.wait(SECONDS) == 0
    assert "secret-of-mine" not in said


@pytest.mark.slow
def test_an_unknown_subset_is_a_usage_error() -> None:
    command = [sys.executable, "-m", "constrain", "serve", "--strict-subset", "some"]
    wide = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=wide)
    assert done.returncode == 2
    assert "structural, openai, off" in done.stderr


def serve(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "constrain", "serve", "--port", "0", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})


@pytest.mark.slow
def test_a_port_in_use_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serve("--port", str(port))
    assert done.returncode == 1
    assert done.stderr == f"error: cannot listen on 127.0.0.1, port {port}: Address already in use\n"


@pytest.mark.slow
def test_a_model_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    for given in (["--model"], []):
        done = serve(*given, str(tmp_path / "none.gguf"))
        assert done.returncode == 1
        assert done.stderr == f"error: {tmp_path / 'none.gguf'}: there is no such file or folder\n"


@pytest.mark.slow
def test_a_model_that_is_named_twice_is_a_usage_error() -> None:
    done = serve("a.gguf", "--model", "b.gguf")
    assert done.returncode == 2
    assert "the model is a.gguf already" in done.stderr


@pytest.mark.slow
def test_models_of_a_file_wait_until_they_are_asked_for_and_json_is_logged(tmp_path: Path) -> None:
    path = default_model_path()
    config = tmp_path / "server.toml"
    models = "".join(f'[[models]]\npath = "{path}"\nname = "{name}"\n' for name in ("one", "two"))
    config.write_text('log_format = "json"\nport = 1\n' + models)
    command = [sys.executable, "-m", "constrain", "serve", "--config", str(config), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        logged = []
        while not logged or logged[-1]["event"] != "started":
            logged.append(json.loads(program.stderr.readline()))
        assert logged[-1]["models"] == ["one", "two"]
        url = logged[-1]["url"]
        listed = httpx.get(f"{url}/v1/models", timeout=SECONDS)
        assert [model["id"] for model in listed.json()["data"]] == ["one", "two"]
        metrics = httpx.get(f"{url}/metrics", timeout=SECONDS).text
        assert 'constrain_model_loaded{model="two"} 0.0' in metrics
        program.send_signal(signal.SIGTERM)
        rest = [json.loads(line) for line in program.stderr]
        assert program.wait(SECONDS) == 0
    [first, _] = [line for line in rest if line["event"] == "request"]
    assert first["request_id"] == listed.headers["x-request-id"]


def test_the_curl_line_works_as_it_is_printed() -> None:
    models = Models([ModelSource(('it\'s "mine"',), 0, 1, 0, Model)])
    line = _make_greeting("http://127.0.0.1:1", models, Settings(("k",))).split("\n\n")[1]
    words = shlex.split(line)
    assert words[:2] == ["curl", "http://127.0.0.1:1/v1/chat/completions"]
    assert "Authorization: Bearer YOUR_KEY" in words
    assert json.loads(words[words.index("-d") + 1])["model"] == 'it\'s "mine"'
