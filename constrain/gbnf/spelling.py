"""Parts of GBNF rules as their text has them, for names of terminals."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from constrain.gbnf.reading import Characters, rule_of
from constrain.lark.reading.syntax import Choice, Repeat, Sequence, Symbol

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_NAME = 60
"""Characters of a part that a name shows; longer parts are cut."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]', re.DOTALL)
_OPERATORS = {(0, 1): "?", (0, None): "*", (1, None): "+"}


def written(text: str, node: Any) -> str:
    """Returns a part as the text has it, on one line, cut if it is long."""
    found = " ".join(_written(text, node).split())
    return found if len(found) <= LONGEST_NAME else f"{found[:LONGEST_NAME]}..."


def first_leaf(node: Any) -> int:
    """Returns the place of the first word of a part; 0 if it has none."""
    match node:
        case Sequence(parts) | Choice(parts):
            return next((at for at in map(first_leaf, parts) if at), 0)
        case Repeat(part, _, _):
            return first_leaf(part)
    at: int = node.at
    return at


def _written(text: str, node: Any) -> str:
    match node:
        case Characters(_, 0):
            return "."
        case Characters(_, at):
            token = _TOKEN.match(text, at)
            assert token
            return token[0]
        case Sequence(parts):
            return " ".join(_grouped(text, each) for each in _once(parts)) or '""'
        case Choice(parts):
            return " | ".join(_written(text, part) for part in parts)
        case Repeat(part, minimum, maximum):
            inside = _grouped(text, part)
            return (f"({inside})" if " " in inside and inside[0] not in '("[' else inside) + _operator(minimum, maximum)
    assert isinstance(node, Symbol), node
    return rule_of(node.name)


def _once(parts: tuple[Any, ...]) -> Iterator[Any]:
    """Yields the parts of a sequence; those of one string have one place, and count as one part."""
    for is_characters, group in groupby(parts, lambda part: isinstance(part, Characters) and part.at > 0):
        found = list(group)
        yield from {each.at: each for each in found}.values() if is_characters else found


def _grouped(text: str, node: Any) -> str:
    found = _written(text, node)
    return f"({found})" if isinstance(node, Choice) else found


def _operator(minimum: int, maximum: int | None) -> str:
    if minimum == maximum:
        return f"{{{minimum}}}"
    return _OPERATORS.get((minimum, maximum)) or f"{{{minimum},{'' if maximum is None else maximum}}}"
