"""Checks of arguments: integers, encodable texts, and the ``TypeError`` for a wrong type."""

from __future__ import annotations

from operator import index
from typing import Any


def integer(name: str, value: Any) -> int:
    """Returns an integer argument as an ``int``; NumPy's integers count, ``bool`` does not. Raises TypeError.

    >>> integer("max_tokens", 7)
    7
    """
    if isinstance(value, bool):
        raise wrong_type(name, "an integer", value)
    try:
        return index(value)
    except TypeError as error:
        raise wrong_type(name, "an integer", value) from error


def wrong_type(name: str, wanted: str, value: object) -> TypeError:
    """Returns the ``TypeError`` for an argument of the wrong type."""
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def without_mark(text: str) -> str:
    """Returns a text without the byte order mark that some editors write at its beginning."""
    return text.removeprefix("\ufeff")


def lone_surrogate(text: str) -> tuple[int, str] | None:
    r"""Returns index and description of the first character that UTF-8 cannot encode; ``None`` if all can be.

    >>> lone_surrogate("a\ud800")
    (1, 'half of a surrogate pair (U+D800)')
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start, f"half of a surrogate pair (U+{ord(text[error.start]):04X})"
    return None
