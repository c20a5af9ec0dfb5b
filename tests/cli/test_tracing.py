"""``generate --explain`` and ``--trace``, and ``constrain play``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.support.command_line import run
from tests.support.server.asking import SECONDS

if TYPE_CHECKING:
    from pathlib import Path

ASKED = ("generate", "Who is Ada?", "--schema", "name, level: low|high", "--max-tokens", "40", "--temperature", "0")


@pytest.mark.slow
def test_explain_prints_a_row_for_each_token() -> None:
    done = run(*ASKED, "--explain")
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"name", "level"}
    assert "unlikely" in done.stderr
    rows = [line for line in done.stderr.splitlines() if re.search(r"│ (chosen|forced|healed) ", line)]
    assert len(rows) > 5
    assert any("✗" in row for row in rows)


@pytest.mark.slow
def test_trace_writes_a_page_with_the_run(tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    done = run(*ASKED, "--trace", file)
    assert done.returncode == 0, done.stderr
    (data,) = re.findall(r'<script type="application/json" id="run">\s*(.*?)\s*</script>', file.read_text(), re.DOTALL)
    found = json.loads(data)
    assert found["done"]["value"] == json.loads(done.stdout)
    assert found["request"]["language"] == {"kind": "short", "text": "name, level: low|high"}
    assert "".join(token["text"] for token in found["tokens"]) == found["done"]["text"]
    assert "Who is Ada?" in found["prompt"]["text"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trace", "."), "is a folder"),
        (("--trace", "no/such/folder/file.html"), "no file can be written in"),
        (("--explain", "--vote", "3"), "leave --vote out"),
    ],
)
def test_what_cannot_be_traced_is_refused_before_anything_is_written(options: tuple[str, ...], message: str) -> None:
    done = run(*ASKED[:-2], *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""


@pytest.mark.slow
def test_play_prints_the_address_of_its_page() -> None:
    command = [sys.executable, "-m", "constrain", "play", "--no-browser", "--ctx", "256", "--threads", "1"]
    environment = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url), url
        assert "<html" in httpx.get(url, timeout=SECONDS).text
        assert httpx.get(f"{url}playground/api/v1", timeout=SECONDS).json()["version"] == 1
        program.send_signal(signal.SIGTERM)
        program.communicate(timeout=SECONDS)
        assert program.returncode == 0
