"""A judge of schemas with ``$data`` that knows nothing of stages: it reads the values of a whole answer."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

Schema = dict[str, Any]

_TYPES: dict[str, Any] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value == int(value),
    "number": lambda value: _is_number(value),  # noqa: PLW0108 - defined below
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_READERS: dict[str, Any] = {
    "date": date.fromisoformat,
    "time": lambda text: time.fromisoformat(text.upper().replace("Z", "+00:00")),
    "date-time": lambda text: datetime.fromisoformat(text.upper().replace("Z", "+00:00")),
}


def read(text: str) -> Any:
    """Returns the value of a text, with exact numbers."""
    return json.loads(text, parse_float=Decimal)


def is_valid(schema: Schema, value: Any, tables: dict[str, list[dict[str, Any]]] | None = None) -> bool:
    """Returns whether a value is valid; objects have only keys that the schema names.

    ``tables``: the rows of tables that ``x-one-of`` names; the only column of a list of values is named "".
    """
    return _fits({**schema, "tables": tables}, schema, ((), [value]))


Place = tuple[tuple[Any, ...], list[Any]]
"""The steps to a value, and the values on the way, from the whole answer to the value itself."""


def _fits(root: Schema, schema: Schema, at: Place) -> bool:
    value = at[1][-1]
    if "$ref" in schema:
        definitions = root.get("$defs") or root["definitions"]
        fits = _fits(root, definitions[schema["$ref"].rpartition("/")[2]], at)
        if not fits or "draft-07" in root.get("$schema", ""):  # where keywords beside it do not count
            return fits
    kinds = schema.get("type", [])
    if kinds and not any(_TYPES[kind](value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    for keyword, given in schema.items():
        known = _resolve(given["$data"], at) if isinstance(given, dict) and "$data" in given else given
        if keyword == "x-refers":
            known = _all_at(at[1][0], given.split("/")[1:])
        if keyword in _CHECKS and not _CHECKS[keyword](value, known, schema.get("format")):
            return False
    if "x-one-of" in schema and not _is_there(root["tables"], schema["x-one-of"], at):
        return False
    if not all(_fits(root, each, at) for each in schema.get("allOf", ())):
        return False
    if "not" in schema and _fits(root, schema["not"], at):
        return False
    if "anyOf" in schema and not any(_fits(root, each, at) for each in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(_fits(root, each, at) for each in schema["oneOf"]) != 1:
        return False
    if isinstance(value, dict):
        declared = schema.get("properties", {})
        if any(key not in value for key in schema.get("required", ())):
            return False
        return all(_fits(root, declared[key], _below(at, key)) for key in value if key in declared)
    if isinstance(value, list):
        prefix = schema.get("prefixItems", [])
        rest = schema.get("items", {})
        return all(
            _fits(root, prefix[index] if index < len(prefix) else rest, _below(at, index))
            for index in range(len(value))
        )
    return True


def _below(at: Place, step: Any) -> Place:
    return (*at[0], step), [*at[1], at[1][-1][step]]


def _resolve(pointer: str, at: Place) -> Any:
    levels, _, rest = pointer.partition("/")
    found = at[1][0] if not levels else at[1][len(at[1]) - 1 - int(levels)]
    for step in rest.split("/"):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def _is_there(tables: Any, keyword: Schema, at: Place) -> bool:
    """Returns whether a table has a row with the value, and with those that ``given`` points at."""
    wanted = {keyword.get("column", ""): at[1][-1]}
    wanted |= {column: _resolve(pointer, at) for column, pointer in keyword.get("given", {}).items()}
    return any(all(_equal(row[column], value) for column, value in wanted.items()) for row in tables[keyword["table"]])


def _equal(one: Any, other: Any) -> bool:
    """Returns whether a value of a row is that of a text."""
    return _same(Decimal(str(one)) if isinstance(one, float) else one, other)


def _all_at(value: Any, steps: list[str]) -> list[Any]:
    if not steps:
        return [value]
    inside = value if steps[0] == "*" else [value[steps[0]]]
    return [found for each in inside for found in _all_at(each, steps[1:])]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _of_number(compare: Any) -> Any:
    return lambda value, bound, _: not _is_number(value) or compare(Fraction(value), Fraction(Decimal(str(bound))))


def _of_moment(compare: Any) -> Any:
    def check(value: Any, bound: str, name: str) -> bool:
        return not isinstance(value, str) or compare(_READERS[name](value), _READERS[name](bound))

    return check


def _of_size(kind: Any, compare: Any) -> Any:
    return lambda value, bound, _: not isinstance(value, kind) or compare(len(value), int(bound))


def _is_format(value: Any, name: str, _: object) -> bool:
    try:
        return not isinstance(value, str) or name not in _READERS or bool(_READERS[name](value) or True)
    except ValueError:
        return False


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


_ORDERS = {
    "inimum": lambda one, other: one >= other,
    "aximum": lambda one, other: one <= other,
    "xclusiveMinimum": lambda one, other: one > other,
    "xclusiveMaximum": lambda one, other: one < other,
}


def _all_differ(value: Any, pointer: str, _: object) -> bool:
    seen: list[Any] = []
    for each in value if isinstance(value, list) else ():
        for step in pointer[1:].split("/"):
            each = each[step]  # noqa: PLW2901
        if any(_same(each, other) for other in seen):
            return False
        seen.append(each)
    return True


_CHECKS: dict[str, Any] = {
    "x-unique-by": _all_differ,
    "const": lambda value, known, _: _same(value, known),
    "enum": lambda value, known, _: any(_same(value, each) for each in known),
    "x-refers": lambda value, known, _: any(_same(value, each) for each in known),
    "format": _is_format,
    "multipleOf": lambda value, step, _: not _is_number(value) or Fraction(value) % Fraction(str(step)) == 0,
    "pattern": lambda value, pattern, _: not isinstance(value, str) or bool(re.search(pattern, value)),
}
for _end, _order in _ORDERS.items():
    _letter = "e" if _end[0] == "x" else "m"
    _CHECKS[_letter + _end] = _of_number(_order)
    _CHECKS[f"format{_letter.upper()}{_end}"] = _of_moment(_order)
for _noun, _kind in (("Length", str), ("Items", list), ("Properties", dict)):
    _CHECKS[f"min{_noun}"] = _of_size(_kind, _ORDERS["inimum"])
    _CHECKS[f"max{_noun}"] = _of_size(_kind, _ORDERS["aximum"])
