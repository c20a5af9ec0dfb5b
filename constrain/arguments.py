"""Checks of arguments: whole numbers, texts that can be encoded, and the ``TypeError`` for a wrong type."""

from __future__ import annotations

from operator import index
from typing import Any


def integer(name: str, value: Any) -> int:
    """An argument as an ``int``, also of another type with ``__index__``, such as NumPy's integers; but no ``bool``.

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
    """The error for a value that is not what an argument must be."""
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def lone_surrogate(text: str) -> tuple[int, str] | None:
    """The first character of a ``str`` that no encoding has: its index, and a phrase for an error message.

    >>> lone_surrogate("a\ud800")
    (1, 'half of a surrogate pair (U+D800)')
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start, f"half of a surrogate pair (U+{ord(text[error.start]):04X})"
    return None
