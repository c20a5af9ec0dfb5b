"""The command line as a program of its own: with pipes, and on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from select import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self


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


class Terminal:
    """A program on a terminal, to which a test types."""

    def __init__(self, *arguments: str | Path, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "constrain", *map(str, arguments)]
        settings = {**os.environ, "COLUMNS": "100", "TERM": "xterm", **environment}
        self._program = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=settings, start_new_session=True
        )
        os.close(theirs)
        self._shown = b""
        self.all = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._ours)

    def expect(self, text: str, seconds: float = 60) -> str:
        """Waits until a text is shown; returns what stood before it."""
        wanted, until = text.encode(), time.monotonic() + seconds
        while wanted not in self._shown:
            assert time.monotonic() < until, (text, self._shown)
            if select([self._ours], [], [], 0.1)[0]:
                piece = os.read(self._ours, 4096)
                self._shown += piece
                self.all += piece
        before, _, self._shown = self._shown.partition(wanted)
        return before.decode()

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        """Sends what Ctrl-C sends."""
        self._program.send_signal(signal.SIGINT)

    def status(self, seconds: float = 20) -> int:
        return self._program.wait(seconds)
