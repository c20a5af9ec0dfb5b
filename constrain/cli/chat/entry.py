"""What the user types: lines with an editor and a history, and texts of several lines between triple quotes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from constrain.private_folders import make_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def ask_user(question: str) -> str:
    """Returns the answer to a question that does not enter the history. Raises ``EOFError`` at the end of the input."""
    readline = _readline()
    if readline is not None:
        readline.set_auto_history(False)
    try:
        return _input(question)
    finally:
        if readline is not None:
            readline.set_auto_history(True)


def _read_line(prompt: str, *, is_terminal: bool) -> str | None:
    if is_terminal:
        try:
            return _input(prompt)
        except EOFError:
            return None
    line = sys.stdin.readline()
    return line.removesuffix("\n") if line else None


def _input(prompt: str) -> str:
    """Reads a line at the terminal; the prompt goes to standard error if standard output is a file."""
    if sys.stdout.isatty():
        return input(prompt)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()


def _readline() -> Any:
    """Returns the module ``readline``; None on systems without it."""
    try:
        import readline
    except ImportError:
        return None
    return readline


@contextlib.contextmanager
def kept_history(say: Callable[[str], None], *, is_kept: bool) -> Iterator[None]:
    """Gives ``input`` an editor, with the lines of former conversations unless ``is_kept`` is false.

    The history is a file that only the user can read. If it cannot be read or written, ``say`` is told why. A system
    without ``readline`` has neither an editor nor a history.
    """
    readline = _readline()
    if readline is None or not is_kept:
        yield
        return
    try:
        path = make_private(Path(platformdirs.user_state_dir("constrain-llm", appauthor=False))) / "chat_history"
        path.touch(mode=0o600)
        if path.stat().st_size:
            readline.read_history_file(path)
        readline.set_history_length(_HISTORY_LINES)
    except OSError as error:
        say(f"(without a history: {error})")
        yield
        return
    try:
        yield
    finally:
        try:
            readline.write_history_file(path)
        except OSError as error:
            say(f"(the history was not kept: {error})")
