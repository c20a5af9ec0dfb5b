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
)
from constrain.regex.classes import encodable

if TYPE_CHECKING:
    from constrain.language.tree import Expression


def has_text_by_structure(expression: Expression) -> bool | None:
    """Returns whether an expression has a text; ``None`` if its parts do not decide.

    Patterns are nested at most ``constrain.regex.parsing.parser.MAX_GROUP_NESTING`` deep.
    """
    return _has_text(expression, {})


def _has_text(expression: Expression, known: dict[int, bool | None]) -> bool | None:
    """The same; ``known``: answers, by id."""
    if id(expression) in known:
        return known[id(expression)]
    has_text: bool | None
    if isinstance(expression, Literal):
        has_text = True
    elif isinstance(expression, LiteralSet):
        has_text = bool(expression.texts)
    elif isinstance(expression, ByteClass):
        has_text = bool(expression.ranges)
    elif isinstance(expression, CharClass):
        has_text = encodable(expression.ranges)
    elif isinstance(expression, Concatenation):
        parts = [_has_text(part, known) for part in expression.parts]
        has_text = False if False in parts else None if None in parts else True
    elif isinstance(expression, Alternation):
        parts = [_has_text(part, known) for part in expression.parts]
        has_text = True if True in parts else None if None in parts else False
    elif isinstance(expression, Repetition):
        has_text = expression.minimum == 0 or _has_text(expression.part, known)
    else:
        has_text = None
    known[id(expression)] = has_text
    return has_text
