"""Standard input and output, which may be closed or have any encoding."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn, TextIO

from constrain.cli import shared
from constrain.errors import SchemaWarning

if TYPE_CHECKING:
    from collections.abc import Iterator


def settle_streams() -> None:
    """Makes standard output accept every text, and prints each warning as one line.

    A terminal keeps its encoding; characters that the encoding lacks appear as escapes. Files and programs receive
    UTF-8, as JSON demands.
    """
    if sys.stdout is None:
        sys.stdout = _Closed()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    warnings.showwarning = _show_warning


def write_out() -> None:
    """Writes the rest of standard output; ends the program if nobody reads it. Raises ``OSError``."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with Path(os.devnull).open("wb") as nowhere:  # Python writes the rest again when it ends
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(shared.FAILED)
        raise


def read_prompt(given: str) -> str:
    """Returns the prompt: the argument, or standard input for ``-``. Raises ``OSError`` and ``ValueError``."""
    if given != "-":
        shared.decode_text(os.fsencode(given), "the prompt")  # raises ValueError for text that is not UTF-8
        return given
    return shared.decode_text(read_input(), "standard input")


def read_input() -> bytes:
    """Reads all of standard input. Raises ``OSError``."""
    return _open_input().read()


@contextlib.contextmanager
def keep_input() -> Iterator[str]:
    """Yields the path of a temporary file with all of standard input, which can be read twice. Raises ``OSError``."""
    with tempfile.NamedTemporaryFile() as file:
        shutil.copyfileobj(_open_input(), file)
        file.flush()
        yield file.name


def _open_input() -> BinaryIO:
    if sys.stdin is None:
        raise _make_closed_error("standard input")
    return sys.stdin.buffer


class _Closed(io.TextIOBase):
    """A standard output that is closed: writing to it raises ``OSError``."""

    def isatty(self) -> bool:
        """Raises ``OSError``; asked before anything is written."""
        raise _make_closed_error("standard output")

    def write(self, _: str) -> NoReturn:
        """Raises ``OSError``."""
        raise _make_closed_error("standard output")


def _make_closed_error(name: str) -> OSError:
    return OSError(errno.EBADF, "it is closed", name)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,  # noqa: ARG001 - see warnings.showwarning
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    if not issubclass(category, SchemaWarning):  # commands print all notes on a schema themselves
        shared.show_warnings([str(message)])
