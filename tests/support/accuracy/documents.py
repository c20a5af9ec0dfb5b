"""Values that were read from a document, judged leaf by leaf.

The leaves of the truth are its texts, numbers, constants and empty objects and arrays. One is right if the answer has
an equal one in its place: texts are compared in lower case with single blanks, numbers by value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


def count_right(answer: Any, truth: Any) -> tuple[int, int]:
    """How many leaves of the truth the answer has, and how many there are."""
    found, expected = dict(leaves(answer)), dict(leaves(truth))
    return sum(path in found and equal(found[path], value) for path, value in expected.items()), len(expected)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The leaves of a value, with their paths."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path, value


def equal(one: Any, other: Any) -> bool:
    """Whether two leaves say the same."""
    if isinstance(one, str) and isinstance(other, str):
        return " ".join(one.lower().split()) == " ".join(other.lower().split())
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other)
    return type(one) is type(other) and one == other
