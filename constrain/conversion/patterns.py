"""Characters and repeated characters as literals of Lark: in a terminal, neighbours become one pattern."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from constrain.conversion.parts import Characters
from constrain.conversion.spelling import character_class, operator, pattern, quoted
from constrain.lark.reading.syntax import Literal, Repeat, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_COUNT = 1_000
"""A count that a pattern may hold; a greater one stands behind the pattern."""


def character_literal(node: Characters) -> Literal:
    """Returns one character as a string, several as a pattern."""
    (low, high), *others = node.ranges
    if low == high and not others:
        return Literal(quoted(chr(low)), node.at)
    return Literal(pattern(character_class(node)), node.at)


def repeated_pattern(node: Repeat) -> Literal | None:
    """Returns repeated characters as a pattern; None for other parts, for optional ones and for great counts."""
    written = _inside_pattern(node)
    if written is None or (node.minimum, node.maximum) == (0, 1):
        return None
    return Literal(pattern(written), _place(node))


def joined_patterns(parts: tuple[Any, ...]) -> Iterator[Any]:
    """Yields the parts of a sequence in a terminal; neighbours that are patterns become one."""
    for is_pattern, group in groupby(parts, _may_be_joined):
        run = list(group)
        if is_pattern and len(run) > 1:
            yield Literal(pattern("".join(_inside_pattern(part) or "" for part in run)), _place(run[0]))
        else:
            yield from run


def plain_sequence(parts: list[Any]) -> Sequence:
    """Returns a sequence without the empty strings and sequences inside it."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, Sequence):
            found.extend(part.parts)
        elif not (isinstance(part, Literal) and part.written == '""'):
            found.append(part)
    return Sequence(tuple(found))


def _may_be_joined(node: Any) -> bool:
    """Returns whether a pattern may have this next to others; a dot may not, as it needs a flag."""
    written = _inside_pattern(node)
    return written is not None and not written.startswith(".")


def _inside_pattern(node: Any) -> str | None:
    """Returns characters or repeated characters as a pattern has them, None for any other node."""
    part: Any = node.part if isinstance(node, Repeat) else node
    if not isinstance(part, Characters):
        return None
    if not isinstance(node, Repeat):
        return character_class(part)
    if max(node.minimum, node.maximum or 0) > _LONGEST_COUNT:
        return None
    return character_class(part) + operator(node.minimum, node.maximum)


def _place(node: Any) -> int:
    part: Any = node.part if isinstance(node, Repeat) else node
    return int(part.at)
