"""Parts of GBNF rules as their text has them, for names of terminals."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from constrain.gbnf.reading import Characters, rule_of
from constrain.language.tree import Alternation, Concatenation, Expression, Repetition, inside
from constrain.lark.reading.syntax import Symbol

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_NAME = 60
"""Characters of a part that a name shows; longer parts are cut."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]', re.DOTALL)
_OPERATORS = {(0, 1): "?", (0, None): "*", (1, None): "+"}


def written(text: str, node: Expression) -> str:
    """Returns a part as the text has it, on one line, cut if it is long."""
    found = " ".join(_written(text, node).split())
    return found if len(found) <= LONGEST_NAME else f"{found[:LONGEST_NAME]}..."


def first_leaf(node: Expression) -> int:
    """Returns the place of the first word of a part; 0 if it has none."""
    return next((at for each in inside(node) if (at := getattr(each, "at", 0))), 0)


def _written(text: str, node: Expression) -> str:
    match node:
        case Characters(at=0):
            return "."
        case Characters(at=at):
            token = _TOKEN.match(text, at)
            assert token
            return token[0]
        case Concatenation(parts):
            return " ".join(_grouped(text, each) for each in _once(parts)) or '""'
        case Alternation(parts):
            return " | ".join(_written(text, part) for part in parts)
        case Repetition(part, minimum, maximum):
            group = _grouped(text, part)
            return (f"({group})" if " " in group and group[0] not in '("[' else group) + count_text(minimum, maximum)
    assert isinstance(node, Symbol), node
    return rule_of(node.name)


def _once(parts: tuple[Expression, ...]) -> Iterator[Expression]:
    """Yields the parts of a sequence; those of one string have one place, and count as one part."""
    for is_characters, group in groupby(parts, lambda part: isinstance(part, Characters) and part.at > 0):
        found: list[Any] = list(group)
        yield from {each.at: each for each in found}.values() if is_characters else found


def _grouped(text: str, node: Expression) -> str:
    found = _written(text, node)
    return f"({found})" if isinstance(node, Alternation) else found


def count_text(minimum: int, maximum: int | None) -> str:
    """Returns an operator that counts, as GBNF, Lark and regular expressions have it."""
    if minimum == maximum:
        return f"{{{minimum}}}"
    return _OPERATORS.get((minimum, maximum)) or f"{{{minimum},{'' if maximum is None else maximum}}}"
