"""JSON values of samples, with numbers as they are spelled."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Number:
    """A number: its value counts for votes, and its spelling is kept."""

    value: Decimal
    spelled: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Deep:
    """An object or array that is nested too deeply to be voted on by its parts."""

    spelled: str


Ballot: TypeAlias = "dict[str, Ballot] | list[Ballot] | str | bool | Number | Deep | None"
"""The value of one sample, or a part of it."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of characters, which UTF-8 cannot encode: JSON spells them as escapes."""

Path = tuple[str | int, ...]


def read_ballot(text: str) -> Ballot:
    """Returns the value of a JSON text."""
    value: Any = read_answer(text, decimal=_number, integer=_number)
    level = [value]
    for _ in range(50):  # parts nested deeper are voted on as a whole
        level = [item for each in level for item in _items(each) if isinstance(item, dict | list)]
    for each in level:
        for key, item in list(each.items() if isinstance(each, dict) else enumerate(each)):
            if isinstance(item, dict | list):
                each[key] = Deep(write_ballot(item))
    ballot: Ballot = value
    return ballot


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _number(spelled: str) -> Number:
    return Number(Decimal(spelled), spelled)


def write_ballot(value: Ballot, *, compact: bool = False) -> str:
    """Returns a value as JSON text, as ``json.dumps`` spells it (``compact``: without white space)."""
    comma, colon = (",", ":") if compact else (", ", ": ")
    pieces: list[str] = []
    pending: list[Any] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, _Piece):
            pieces.append(each.text)
        elif isinstance(each, dict):
            pending += _reversed("{", "}", comma, [(f"{_string(key)}{colon}", item) for key, item in each.items()])
        elif isinstance(each, list):
            pending += _reversed("[", "]", comma, [("", item) for item in each])
        elif isinstance(each, Number | Deep):
            pieces.append(each.spelled)
        else:
            pieces.append(_string(each) if isinstance(each, str) else json.dumps(each))
    return "".join(pieces)


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str


def _string(text: str) -> str:
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _reversed(opening: str, closing: str, comma: str, items: list[tuple[str, Any]]) -> Iterator[Any]:
    """Yields the parts of an object or array, last first."""
    yield _Piece(closing)
    for number, (before, item) in reversed(list(enumerate(items))):
        yield item
        yield _Piece((comma if number else "") + before)
    yield _Piece(opening)
