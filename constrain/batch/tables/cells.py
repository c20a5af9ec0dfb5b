"""The cells of a row become the fields of a line, as JSON has them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.batch.lines import FIELDS, LineError, parse_json
from constrain.generation.options import OPTIONS
from constrain.given import GIVEN
from constrain.language.policies import CHOICES
from constrain.llama.decoding.sampling import LISTS

if TYPE_CHECKING:
    from collections.abc import Mapping

RawRow: TypeAlias = "dict[str, Any] | LineError"
"""The cells of a row by the names of their columns, or the reason why Python cannot hold one of them."""

_UNREADABLE = (ValueError, OverflowError, LookupError, NotImplementedError)
"""Errors of pyarrow for cells that Python cannot hold, such as the year 10000 or a text that is not UTF-8."""

_JSON = frozenset(("messages", "schema", "tools", "logit_bias", "registry", *GIVEN, "template_variables", *LISTS))
"""Fields whose texts are JSON."""

_TEXTS = {*CHOICES, "prompt", "id", "stop", "prefix", "tool_choice", "tool_format", "tools_shown", "reasoning_effort"}
"""Fields that stay texts in CSV."""

_DECIMALS = {name for name, option in OPTIONS.items() if option.is_number and not option.is_whole}

_WHOLE_NUMBERS = FIELDS - _JSON - _TEXTS - _DECIMALS
"""Fields in which 60.0 stands for 60: programs write so where a column has both whole numbers and gaps."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,9})?")
_FLAGS = {"true": True, "false": False}


def line_fields(row: Mapping[str, Any], *, as_text: bool) -> dict[str, Any]:
    """Returns the fields of a line for the cells of a row; a cell that is null is no field. Raises ``LineError``.

    ``as_text``: whether all cells are texts, as in CSV. Numbers and booleans are then read from them.
    """
    fields: dict[str, Any] = {}
    for name, value in row.items():
        given = _read_text(name, value) if as_text and isinstance(value, str) else value
        if given is None:
            continue
        if name in _JSON and isinstance(given, str):
            try:
                fields[name] = parse_json(given.encode())
            except LineError as error:
                raise LineError(f"the column {name!r}: {error}") from error
        else:
            fields[name] = _plain(name, given)
    return fields


def drop_nulls(value: Any) -> Any:
    """Removes members that are null from objects, and makes objects of maps: Arrow cannot leave out a member."""
    whole = [value]
    waiting: list[Any] = [whole]
    while waiting:
        outer = waiting.pop()
        for key, inner in list(outer.items() if isinstance(outer, dict) else enumerate(outer)):
            if inner is None and isinstance(outer, dict):
                del outer[key]
            elif isinstance(inner, list) and inner and all(isinstance(each, tuple) for each in inner):
                outer[key] = dict(inner)
                waiting.append(outer[key])
            elif isinstance(inner, dict | list):
                waiting.append(inner)
    return whole[0]


def read_rows(batch: Any) -> list[RawRow]:
    """Returns the rows of an Arrow table or batch; in place of one that Python cannot hold, an error."""
    import pyarrow as pa

    try:
        rows: list[RawRow] = batch.to_pylist()
    except _UNREADABLE:  # one of the rows: which?
        names = batch.schema.names
        rows = [_read_row(names, [column[index] for column in batch.columns]) for index in range(len(batch))]
    maps = [field.name for field in batch.schema if pa.types.is_map(field.type)]
    for row in rows if maps else ():
        if isinstance(row, dict):
            row.update({name: {} for name in maps if row[name] == []})  # pairs of a map are a list, also none of them
    return rows


def _read_row(names: list[str], cells: list[Any]) -> RawRow:
    try:
        return {name: _read_cell(name, cell) for name, cell in zip(names, cells, strict=True)}
    except LineError as error:
        return error


def _read_cell(name: str, cell: Any) -> Any:
    try:
        return cell.as_py()
    except _UNREADABLE as error:
        raise LineError(f"the column {name!r} cannot be read: {error}") from error


def _read_text(name: str, text: str) -> Any:
    """Returns the value of a text in CSV: a number or a boolean, except in fields of texts."""
    if name in _TEXTS or name not in FIELDS:
        return text
    if not text:
        return None
    if name in _JSON:
        return text
    if (flag := _FLAGS.get(text.lower())) is not None:
        return flag
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise LineError(f"the column {name!r} has {value}, which is no number")
        if name in _WHOLE_NUMBERS and value.is_integer():
            return int(value)
    return value
