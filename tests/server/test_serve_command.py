"""``constrain serve`` as a program of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx

from tests.server.support import SECONDS

if TYPE_CHECKING:
    from pathlib import Path


def test_it_says_where_it_is_and_ends_at_a_signal(tmp_path: Path) -> None:
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


def test_an_unknown_subset_is_a_usage_error() -> None:
    command = [sys.executable, "-m", "constrain", "serve", "--strict-subset", "some"]
    wide = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=wide)
    assert done.returncode == 2
    assert "structural, openai, off" in done.stderr
