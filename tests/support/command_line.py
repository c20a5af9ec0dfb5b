"""The command line: within this process, which is quick; as a program of its own, with pipes or on a terminal."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import warnings
from functools import cache
from select import select
from typing import TYPE_CHECKING

import pytest
import typer.main

from constrain.cli.program import main

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self


_command_of = cache(typer.main.get_command)
"""The program of an application, made once: that takes longer than most commands."""


class _Stream(io.TextIOWrapper):
    """A standard stream of a command within this process."""

    def __init__(self, encoding: str = "utf-8", content: bytes = b"", *, is_terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content), encoding, newline="\n", write_through=True)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def written(self) -> str:
        content: bytes = self.buffer.getvalue()  # type: ignore[attr-defined]
        return content.decode()


def call(
    *arguments: str | Path, text: str = "", on_terminal: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """What a command writes, and its exit status, within this process; a terminal shows both of its streams."""
    # a pipe is opened with the encoding of the locale, whatever that is
    output = _Stream("utf-8" if on_terminal else "ascii", is_terminal=on_terminal)
    errors = _Stream(is_terminal=on_terminal)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in (UserWarning, RuntimeWarning):
            warnings.simplefilter("default", kind)
        for name, value in {"COLUMNS": "200", "NO_COLOR": "1", **variables}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["constrain", *map(str, arguments)])
        patch.setattr(typer.main, "get_command", _command_of)
        patch.setattr(sys, "stdin", _Stream(content=text.encode(errors="surrogateescape")))
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", errors)
        try:
            main()
            status = 0
        except SystemExit as ended:
            if isinstance(ended.code, str):
                errors.write(f"{ended.code}\n")
            status = 1 if isinstance(ended.code, str) else ended.code or 0
        for thread in threading.enumerate():  # a program ends when its evaluated prompts are written
            if thread.name == "constrain-prompts":
                thread.join()
    return subprocess.CompletedProcess(sys.argv, status, output.written(), errors.written())


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
