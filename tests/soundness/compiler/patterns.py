"""Samples of regular expressions, read with Python's own parser: matches, and texts near them.

It is independent of ``constrain.regex``, whose work its samples check. A sample need not match: the judges decide.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice, product
from typing import Any

_PARSER: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

MOST_SAMPLES = 12
"""Samples of one part of a pattern; the rest of its combinations is left out."""

_LONGEST = 40
"""Repetitions of a part in a sample; greater counts of a pattern are not drawn."""

_CATEGORIES = {
    "CATEGORY_DIGIT": "07\u0663",
    "CATEGORY_NOT_DIGIT": "x-",
    "CATEGORY_SPACE": " \u00a0",
    "CATEGORY_NOT_SPACE": "x.",
    "CATEGORY_WORD": "a_\u00e9",
    "CATEGORY_NOT_WORD": "-.",
}
"""Characters of each class, and some on which dialects do not agree."""


def samples(pattern: str) -> list[str]:
    """Returns texts that match a pattern, or nearly do. Raises ``re.error`` if Python cannot read the pattern."""
    tree = _PARSER.parse(pattern)
    found = dict.fromkeys(islice(_of_sequence(list(tree)), MOST_SAMPLES))
    for text in list(found)[:3]:
        near = (text[:-1], text[1:], text + "x", "x" + text, text + "\n", text.swapcase(), text + text)
        found.update(dict.fromkeys(near))
    return list(found)


def _of_sequence(nodes: list[Any]) -> Iterator[str]:
    parts = [list(islice(_of_node(node), MOST_SAMPLES)) for node in nodes]
    return ("".join(texts) for texts in _diagonal(parts))


def _diagonal(parts: list[list[str]]) -> Iterator[tuple[str, ...]]:
    """Yields combinations: the first of all, then those with one other part, then all."""
    if not all(parts):
        return
    first = tuple(part[0] for part in parts)
    yield first
    for index, part in enumerate(parts):
        for other in part[1:]:
            yield (*first[:index], other, *first[index + 1 :])
    yield from product(*parts)


def _of_node(node: Any) -> Iterable[str]:
    kind, value = str(node[0]), node[1]
    if kind == "LITERAL":
        return [chr(value)]
    if kind == "NOT_LITERAL":
        return [chr(value + 1), "x"]
    if kind == "ANY":
        return ["x", "\u00e9", "\n"]
    if kind == "IN":
        return _of_class(value)
    if kind == "BRANCH":
        return (text for choice in value[1] for text in islice(_of_sequence(list(choice)), MOST_SAMPLES))
    if kind.endswith("_REPEAT"):
        return _of_repetition(*value)
    if kind == "SUBPATTERN":
        return _of_sequence(list(value[3]))
    if kind == "ATOMIC_GROUP":
        return _of_sequence(list(value))
    return [""]  # a place, or what only looks


def _of_class(members: list[Any]) -> list[str]:
    found: list[str] = []
    is_negated = False
    for kind, value in ((str(kind), value) for kind, value in members):
        if kind == "NEGATE":
            is_negated = True
        elif kind == "LITERAL":
            found.append(chr(value))
        elif kind == "RANGE":
            found += [chr(value[0]), chr(value[1]), chr(max(0, value[0] - 1)), chr(min(0xFFFF, value[1] + 1))]
        else:
            found += _CATEGORIES[str(value)]
    found = [char for char in found if not 0xD800 <= ord(char) < 0xE000]
    return ["x", "0", "-", "\u00e9", *found] if is_negated else found


def _of_repetition(least: int, most: int, part: Any) -> Iterator[str]:
    texts = list(islice(_of_sequence(list(part)), MOST_SAMPLES)) or [""]
    counts = dict.fromkeys((least, least + 1, int(most), int(most) + 1, least - 1, 0))
    for count in counts:
        if 0 <= count <= _LONGEST:
            yield texts[0] * count
            if count:
                yield from (texts[0] * (count - 1) + text for text in texts[1:])


def can_read(pattern: str) -> bool:
    """Returns whether Python can read a pattern."""
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
