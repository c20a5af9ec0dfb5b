"""One keyword whose value is another field of the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.json_schema.formats.moments import FORMAT_BOUNDS, read_moment
from constrain.json_schema.numbers.shape import exact
from constrain.json_schema.stages.pointers import data_pointer
from constrain.language.stages import REFERS
from constrain.tables.keyword import ONE_OF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.json_schema.stages.places import Place
    from constrain.tables.columns import Column
    from constrain.tables.dependent import Dependent
    from constrain.tables.keyword import OneOfKeyword

NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
FORMATS = FORMAT_BOUNDS
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
REPEATS = ("const", "enum")

SUPPORTED = frozenset(NUMBERS + FORMATS + COUNTS + REPEATS)
"""The keywords that may have ``{"$data": ...}`` as their value."""

DIGITS = 15
"""Digits that a number has at most which bounds a later one, or is repeated: they are exact in a double."""

WHOLE_DIGITS = 9
"""Of them, digits before the point of a number with a fraction whose schema has no bounds."""

MAX_COUNTED = 100_000
"""Greatest number of characters, items or members that another field of the answer may ask for (`$data`). Beyond:
`UnsupportedSchemaError`."""

Known = tuple[tuple[int, tuple[int, ...], bytes], ...]
"""Values that are known: number of the source, indices of the items that it lies in, and its JSON text."""


_COSTLY_TEXT = "\U000f1234"
"""A character for private use, each byte of which is a token of its own in the usual vocabularies."""


def costly_text(size: int) -> dict[str, Any]:
    """Returns the schema of a string that costs at least as many tokens as any text of so many bytes."""
    return {"const": _COSTLY_TEXT * -(-size // len(_COSTLY_TEXT.encode()))}


_COSTLY_DIGITS, _DIGITS_IN_TOKEN = "7391", 3
"""Digits, and how many of them the usual vocabularies have at most in one token."""


class _Values(dict[str, Any]):
    """A value of ``x-one-of``, which keeps its values in use."""

    def __init__(self, keyword: OneOfKeyword, column: Column) -> None:
        super().__init__(keyword._replace(digest=column.digest, size=len(column)).value())
        self.column = column


class Rows(NamedTuple):
    """Rows of a table: ``keyword`` names the column of the target, ``others`` those of its sources."""

    keyword: OneOfKeyword
    others: tuple[str, ...]
    dependent: Dependent

    def known(self, texts: Sequence[bytes]) -> dict[str, Any]:
        """Returns the schema of the target for values of the sources, by their JSON texts."""
        values = dict(zip(self.others, map(read_value, texts), strict=True))
        if not all(isinstance(value, str | int | Decimal) for value in values.values()):
            return {"not": {}}
        return self._schema_of(values)

    def _schema_of(self, values: dict[str, Any]) -> dict[str, Any]:
        return self._one_of(self.keyword.column, self.dependent.given(values))

    def sources(self, other: str) -> dict[str, Any]:
        """Returns the schema of the values of a source that have rows."""
        return self._one_of(other, self.dependent.sources(other))

    def hardest(self) -> dict[str, Any]:
        """Returns a schema of the target that costs at least as many tokens as for any value of the source.

        Which value costs most depends on the vocabulary. A stand-in for it has as many bytes as the shortest value for
        the worst value of the source, none of which share a token. No text has it, as the source is written first.
        """
        values = self.dependent.hardest()
        if values is None:
            return {"not": {}}
        column = self.dependent.given(values)
        size = self.dependent.worst_bytes
        if column.strings:
            return costly_text(size)
        if column.listed:
            return {"const": int((_COSTLY_DIGITS * size)[: _DIGITS_IN_TOKEN * size])}
        return self._schema_of(values)

    def _one_of(self, name: str | None, column: Column) -> dict[str, Any]:
        if not len(column):
            return {"not": {}}
        return {ONE_OF: _Values(self.keyword._replace(column=name), column)}


@dataclass(eq=False)
class Bound:
    """A keyword of ``target`` whose value is that of ``source``, another field that comes earlier in the text.

    With ``x-refers``, the source has a value in each item of an array, and the target repeats one of them.

    ``pointer``: of the keyword in the schema. ``top``: the place of the innermost object or array with both fields.
    ``number``: that of the source. ``items``: arrays around the source, whose items are those around the target.
    ``skippable``: whether the target may be absent, or may satisfy another schema instead; ``absent``: the former.
    ``times``: how many of its targets, the items of an array, there are at least.
    ``worst``: the schema of the target while the source is not known: it holds for every value of the source, or costs
    as much as the shortest one. ``may_refuse``: whether it has values that some value of the source excludes.
    ``rows``: of a table, for ``x-one-of`` with ``given``. ``further``: one for each further column that it names, with
    its source. ``tied``: whether a source has such rows itself, of which each leaves a value.
    """

    keyword: str
    pointer: str
    target: Place
    source: Place
    top: Place
    number: int = 0
    items: int = 0
    skippable: bool = False
    absent: bool = False
    times: int = 1
    worst: dict[str, Any] | None = None
    may_refuse: bool = False
    rows: Rows | None = None
    further: tuple[Bound, ...] = ()
    tied: bool = False

    @property
    def all(self) -> tuple[Bound, ...]:
        """Returns this bound and the further ones."""
        return (self, *self.further)

    @property
    def is_lower(self) -> bool:
        """Returns whether the target is at least as great as the source."""
        return self.keyword.endswith("inimum") or self.keyword.startswith("min")

    @property
    def is_open(self) -> bool:
        """Returns whether the target differs from the source."""
        return "xclusive" in self.keyword

    @property
    def format(self) -> str:
        """The format of the target."""
        return str(format_of(self.target))

    @property
    def repeats(self) -> bool:
        """Returns whether the target repeats the text of the source, or of a part of it."""
        return self.keyword in REPEATS or self.keyword == REFERS

    def keyword_for(self, *, lower: bool, open_: bool) -> str:
        """Returns the keyword of a bound on this keyword's kind of value."""
        side = "Minimum" if lower else "Maximum"
        name = f"Exclusive{side}" if open_ else side
        return f"format{name}" if self.keyword in FORMATS else name[0].lower() + name[1:]

    def schema_of(self, value: Any) -> dict[str, Any]:
        """Returns the schema of the target for a value of the source."""
        if self.keyword in ("enum", REFERS):
            value = list({json.dumps(each): each for each in value}.values())
            return {"enum": value} if value else {"not": {}}
        if self.keyword in FORMATS:
            return {"format": self.format, self.keyword: value}
        return {self.keyword: value}

    def known(self, known: Known, items: tuple[int | None, ...]) -> dict[str, Any] | None:
        """Returns the schema of the target inside of some items; ``None`` if the source is not known there."""
        if self.keyword == REFERS:  # the end of an array without items has no text
            texts = [text for number, _, text in known if number == self.number]
            return self.schema_of([read_value(text) for text in texts if text]) if texts else None
        found = [text for each in self.all if (text := each._text(known, items)) is not None]
        if len(found) < len(self.all):
            return None
        if self.rows is not None:
            return self.rows.known(found)
        value = read_value(found[0])
        return self.schema_of(value) if self._is_fit(value) else None

    def _text(self, known: Known, items: tuple[int | None, ...]) -> bytes | None:
        """Returns the JSON text of the source inside of some items; ``None`` if it is not known there."""
        for number, indices, text in known:
            if number == self.number and indices == items[: self.items]:
                return text
        return None

    def _is_fit(self, value: Any) -> bool:
        """Returns whether the source may have a value; another alternative of ``anyOf`` may have others there."""
        if self.keyword == "enum":
            return isinstance(value, list)
        if self.keyword in FORMATS:
            return read_moment(self.format, value) is not None
        if self.keyword in NUMBERS:
            if isinstance(value, Decimal):  # 15 digits, as all sources have: other bounds may be refused
                return abs(value) < 10**DIGITS and len(value.as_tuple().digits) <= DIGITS
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**DIGITS
        if self.keyword in COUNTS:
            return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNTED
        return isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < 10**DIGITS)


def read_value(text: bytes) -> Any:
    """Returns the value of a source by its JSON text, with exact numbers."""
    return json.loads(text, parse_float=lambda number: exact(Decimal(number)))


def conjunction(chain: list[Place]) -> list[Place]:
    """Returns all schemas that apply to a value in any case, given some that do."""
    return [*{id(each): each for one in chain for each in one.together()}.values()]


def array_around(place: Place) -> Place:
    """Returns the innermost place whose items have a value."""
    while place.key[0] not in ("items", "additionalItems") or place.key[1] != -1:
        assert place.parent is not None
        place = place.parent
    assert place.parent is not None
    return place.parent


def format_of(place: Place) -> object:
    """Returns the format of a string, which may stand in a schema around."""
    return next((each.schema["format"] for each in conjunction(place.around()) if "format" in each.schema), None)


def types_of(place: Place) -> tuple[str, ...]:
    """Returns the types of a value that a schema names, or those of its listed values; empty if it has neither."""
    for each in conjunction(place.around()):
        kinds = each.schema.get("type")
        if kinds is not None:
            return tuple(map(str, kinds)) if isinstance(kinds, list) else (str(kinds),)
    for each in conjunction(place.around()):
        values = [each.schema["const"]] if "const" in each.schema else each.schema.get("enum", [])
        if isinstance(values, list) and values and data_pointer(each.schema.get("const")) is None:
            return tuple(dict.fromkeys(map(_type_of, values)))
    return ()


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = ((str, "string"), (int, "integer"), (Decimal | float, "number"), (list, "array"), (dict, "object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")
