"""Whether an expression has a text, as far as its parts tell: most questions need no automaton."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.language.tree import (
    Alternation,
    ByteClass,
    CharClass,
    Concatenation,
    Literal,
    LiteralSet,
    Repetition,
    parts_first,
)
from constrain.regex.classes import encodable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.tree import Expression


def has_text_by_structure(expression: Expression) -> bool | None:
    """Returns whether an expression has a text; ``None`` if its parts do not decide."""
    known: dict[int, bool | None] = {}
    for node in parts_first(expression, known):
        known[id(node)] = _has_text(node, known)
    return known[id(expression)]


def _has_text(node: Expression, known: Mapping[int, bool | None]) -> bool | None:
    """The same; ``known``: the answers for its parts, by their ids."""
    match node:
        case Literal():
            return True
        case LiteralSet(texts):
            return bool(texts)
        case ByteClass(ranges):
            return bool(ranges)
        case CharClass(ranges):
            return encodable(ranges)
        case Concatenation(parts):
            found = {known[id(part)] for part in parts}
            return False if False in found else None if None in found else True
        case Alternation(parts):
            found = {known[id(part)] for part in parts}
            return True if True in found else None if None in found else False
        case Repetition(part, minimum, _):
            return minimum == 0 or known[id(part)]
    return None
