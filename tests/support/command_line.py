"""The command line as a program of its own: with pipes, and on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "constrain", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)


def run_on_terminal(*arguments: str | Path) -> tuple[int, str]:
    """The exit status and all that a terminal shows."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "constrain", *map(str, arguments)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as program:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # Linux says so when the other side is closed.
                break
            if not piece:
                break
            shown += piece
        status = program.wait()
    os.close(ours)
    return status, shown.decode()
