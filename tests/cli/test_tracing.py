"""``generate --explain`` and ``--trace``, and ``constrain play``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from constrain.server.config import ServerConfig
from tests.support.command_line import call

pytestmark = pytest.mark.usefixtures("tiny_model")

ASKED = (
    *("generate", "Who is Ada?", "--schema", "kind: cat|dog, level: low|high", "--max-tokens", "60", "--temperature"),
    "0",
)


@pytest.mark.slow
def test_explain_prints_a_row_for_each_token() -> None:
    done = call(*ASKED, "--explain")
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"kind", "level"}
    assert "unlikely" in done.stderr
    rows = [line for line in done.stderr.splitlines() if re.search(r"│ (chosen|forced|healed) ", line)]
    assert len(rows) > 5
    assert any("✗" in row for row in rows)


@pytest.mark.slow
def test_trace_writes_a_page_with_the_run(tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    done = call(*ASKED, "--trace", file)
    assert done.returncode == 0, done.stderr
    (data,) = re.findall(r'<script type="application/json" id="run">\s*(.*?)\s*</script>', file.read_text(), re.DOTALL)
    found = json.loads(data)
    assert found["done"]["value"] == json.loads(done.stdout)
    assert found["request"]["language"] == {"kind": "short", "text": "kind: cat|dog, level: low|high"}
    assert "".join(token["text"] for token in found["tokens"]) == found["done"]["text"]
    assert "Who is Ada?" in found["prompt"]["text"].replace("\u2581", " ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trace", "."), "is a folder"),
        (("--trace", "no/such/folder/file.html"), "no file can be written in"),
        (("--explain", "--vote", "3"), "leave --vote out"),
    ],
)
def test_what_cannot_be_traced_is_refused_before_anything_is_written(options: tuple[str, ...], message: str) -> None:
    done = call(*ASKED[:-2], *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""


@pytest.mark.slow
def test_play_prints_the_address_of_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_server(config: ServerConfig, *_: object, started: Callable[[str], None]) -> None:
        assert (config.ctx, config.port) == (256, 0)
        started("http://127.0.0.1:1")

    monkeypatch.setattr("constrain.cli.play.run_server", run_server)
    monkeypatch.setattr("constrain.server.http.listening.listen", lambda *_: [])
    done = call("play", "--no-browser", "--ctx", "256", "--threads", "1")
    assert (done.returncode, done.stdout) == (0, "http://127.0.0.1:1/\n")
