"""Arguments of the wrong type: a ``TypeError`` that names the argument and what it must be."""

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
