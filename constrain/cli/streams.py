"""Standard input and output, which may be closed, and in any encoding."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from typing import NoReturn, TextIO

from constrain.cli import shared


def settle_streams() -> None:
    """Makes standard output take every text, and warnings one line each.

    A terminal keeps its encoding and shows what that lacks as escapes. Files and programs get UTF-8, as JSON demands.
    """
    if sys.stdout is None:
        sys.stdout = _Closed()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    warnings.showwarning = _show_warning


def read_prompt(given: str) -> str:
    """The text of an argument, or of standard input where that is ``-``. Raises ``OSError`` and ``ValueError``."""
    if given != "-":
        shared.decoded(os.fsencode(given), "the prompt")  # raises for what is not UTF-8
        return given
    return shared.decoded(read_input(), "standard input")


def read_input() -> bytes:
    """All of standard input. Raises ``OSError``."""
    if sys.stdin is None:
        raise _closed("standard input")
    return sys.stdin.buffer.read()


class _Closed(io.TextIOBase):
    """Stands for a standard output that is closed: a command that writes to it fails."""

    def isatty(self) -> bool:
        """See ``io.IOBase``; asked before anything is written."""
        raise _closed("standard output")

    def write(self, _: str) -> NoReturn:
        """See ``io.TextIOBase``."""
        raise _closed("standard output")


def _closed(name: str) -> OSError:
    return OSError(errno.EBADF, "it is closed", name)


def _show_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001 - see warnings.showwarning
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    shared.show_warnings([str(message)])
