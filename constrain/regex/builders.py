"""Short functions for expressions of the content of JSON strings; a ``str`` part is an ECMA-262 pattern."""

from __future__ import annotations

from constrain.language.tree import Expression, Repetition
from constrain.regex.anchors import sequence as _sequence
from constrain.regex.anchors import union
from constrain.regex.parsing.parser import parse_pattern

Part = str | Expression


def tree(part: Part) -> Expression:
    """Returns the part as an expression."""
    return parse_pattern(part, "ecma", json=True, anchored=True) if isinstance(part, str) else part


def sequence(*parts: Part) -> Expression:
    """Returns all parts, one after the other."""
    return _sequence(*map(tree, parts))


def either(*parts: Part) -> Expression:
    """Returns any one of the parts."""
    return union(list(map(tree, parts)))


def optional(*parts: Part) -> Expression:
    """Returns all parts or none."""
    return Repetition(sequence(*parts), 0, 1)


def many(part: Part, minimum: int = 0, maximum: int | None = None) -> Expression:
    """Returns the part ``minimum`` to ``maximum`` times."""
    return Repetition(tree(part), minimum, maximum)
