"""What the user types: lines with an editor and a history, and texts of several lines between triple quotes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from constrain.private_folders import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROMPT, _CONTINUED = ">>> ", "... "

_QUOTES = '"""'

_HISTORY_LINES = 1000
"""Lines of the history that are kept for the next conversation; older ones are dropped."""


def read_entry(*, is_terminal: bool) -> str | None:
    """Returns the next question or command; None at the end of the input.

    A text that begins with three double quotes goes on until a line ends with them.
    """
    line = _read_line(_PROMPT, is_terminal=is_terminal)
    if line is None or not line.lstrip().startswith(_QUOTES):
        return line
    text = line.lstrip().removeprefix(_QUOTES)
    while not text.rstrip().endswith(_QUOTES):
        further = _read_line(_CONTINUED, is_terminal=is_terminal)
        if further is None:
            return text
        text += "\n" + further
    return text.rstrip().removesuffix(_QUOTES).strip("\n")


def _read_line(prompt: str, *, is_terminal: bool) -> str | None:
    if is_terminal:
        try:
            return input(prompt)
        except EOFError:
            return None
    line = sys.stdin.readline()
    return line.removesuffix("\n") if line else None


@contextlib.contextmanager
def kept_history(*, is_kept: bool) -> Iterator[None]:
    """Gives ``input`` an editor, with the lines of former conversations unless ``is_kept`` is false.

    The history is a file that only the user can read. A system without ``readline`` has neither.
    """
    try:
        import readline
    except ImportError:
        yield
        return
    if not is_kept:
        yield
        return
    path = make_private(Path(platformdirs.user_state_dir("constrain-llm", appauthor=False))) / "chat_history"
    with contextlib.suppress(FileNotFoundError):
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LINES)
    try:
        yield
    finally:
        path.touch(mode=0o600)
        readline.write_history_file(path)
