"""Tables made of lines of answers or errors: Parquet with types of the schema, or CSV with JSON in its cells."""

from __future__ import annotations

import contextlib
import csv
import json
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from constrain.batch.locations import open_read, write_whole
from constrain.batch.records import json_text
from constrain.batch.tables.columns import AnswerColumns, answer_columns
from constrain.batch.tables.reading import open_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from constrain.batch.locations import Location
    from constrain.batch.scanning import Scan
    from constrain.language.source import Source

ROWS_AT_ONCE = 4_096
"""Rows that are written at once, and rows of a group in Parquet."""

_INT64 = range(-(2**63), 2**63)
_EXACT = range(-(2**53), 2**53 + 1)
"""Integers that a 64-bit float holds exactly."""

_CSV = {name: pa.string() for name in ("value", "text", "finish_reason", "usage", "confidence", "details")}
"""Columns of answers in CSV. Values, usage and details are JSON."""

_LONGEST_HEADER = 10_000
"""Bytes of a header that are read to see whether a table has errors."""

_ERRORS = {name: pa.string() for name in ("error", "message", "pointer", "text")}


def write_answers(
    lines: BinaryIO, target: Location, kind: str, schema: str | Source | None, *, own: bool, scan: Scan
) -> int:
    """Writes the table of answers, sorted by line; returns their number. Raises ``OSError``.

    Args:
        lines: lines of answers, each with another number.
        target: file of the table.
        kind: ``"parquet"`` or ``"csv"``.
        schema: schema or grammar of all answers.
        own: whether answers may have other schemas, or tools; their values are JSON then.
        scan: facts about the input, with the type of its names.
    """
    has_certificates = _have_certificates(lines)
    if kind == "csv":
        cells = {**_CSV, "certificate": pa.string()} if has_certificates else _CSV
        return _write(lines, target, kind, pa.schema(list(cells.items())), scan.id_type, _csv_record)
    columns = (
        AnswerColumns(None, is_json=False, has_certificates=has_certificates)
        if own
        else answer_columns(schema, has_tools=False, has_samples=False, has_certificates=has_certificates)
    )
    return _write(lines, target, kind, columns.schema(), scan.id_type, lambda answer: columns.fill(answer, mixed=own))


def _have_certificates(lines: BinaryIO) -> bool:
    """Returns whether an answer has a certificate."""
    lines.seek(0)
    return any("certificate" in json.loads(line) for line in lines if b'"certificate"' in line)


def write_errors(lines: BinaryIO, target: Location, kind: str) -> int:
    """Writes the table of errors, sorted by line; returns their number. Raises ``OSError``."""
    return _write(lines, target, kind, pa.schema(list(_ERRORS.items())), None, lambda error: error)


def has_errors(location: Location, kind: str) -> bool:
    """Returns whether a table has the columns of errors. Raises ``OSError``."""
    try:
        if kind == "parquet":
            with open_parquet(location) as source:
                names = pq.read_schema(source).names
        else:
            with open_read(location) as file:
                names = next(csv.reader([file.readline(_LONGEST_HEADER).decode()]), [])
    except (pa.ArrowException, UnicodeDecodeError, csv.Error):
        return False
    return bool(names == ["line", "id", *_ERRORS])


def _write(
    lines: BinaryIO,
    target: Location,
    kind: str,
    columns: pa.Schema,
    id_type: pa.DataType | None,
    read: Callable[[dict[str, Any]], dict[str, Any]],
) -> int:
    offsets, found_type = _index(lines)
    names = found_type if id_type is None else id_type
    schema = pa.schema([("line", pa.int64()), ("id", names), *columns])
    with write_whole(target) as file, _open_writer(file, kind, schema) as writer:
        for begin in range(0, len(offsets), ROWS_AT_ONCE):
            records = [_record_at(lines, int(offset), read, names) for offset in offsets[begin : begin + ROWS_AT_ONCE]]
            writer.write_batch(pa.RecordBatch.from_pylist(records, schema))
    return len(offsets)


@contextlib.contextmanager
def _open_writer(file: BinaryIO, kind: str, schema: pa.Schema) -> Iterator[Any]:
    if kind == "csv":
        with pa_csv.CSVWriter(file, schema, write_options=pa_csv.WriteOptions(quoting_style="needed")) as writer:
            yield writer
    else:
        with pq.ParquetWriter(file, schema) as writer:
            yield writer


def _index(lines: BinaryIO) -> tuple[Any, pa.DataType]:
    """Returns where the records begin, in the order of their lines, and the type of their names."""
    numbers, offsets = array("q"), array("q")
    ids = _IdType()
    lines.seek(0)
    offset = 0
    for line in lines:
        record = json.loads(line)
        numbers.append(record["line"])
        offsets.append(offset)
        ids.add(record.get("id"))
        offset += len(line)
    return np.array(offsets, np.int64)[np.argsort(np.array(numbers, np.int64))], ids.find()


class _IdType:
    """Finds a type that all names have: integers, decimals, or else texts."""

    def __init__(self) -> None:
        self._texts = self._decimals = self._integers = self._wide = self._inexact = False

    def add(self, name: object) -> None:
        if isinstance(name, int):
            self._integers = True
            self._wide = self._wide or name not in _INT64
            self._inexact = self._inexact or name not in _EXACT
        self._texts = self._texts or isinstance(name, str)
        self._decimals = self._decimals or isinstance(name, float)

    def find(self) -> pa.DataType:
        if self._texts or self._wide or (self._decimals and self._inexact):
            return pa.string()
        if self._decimals:
            return pa.float64()
        return pa.int64() if self._integers else pa.string()


def _record_at(
    lines: BinaryIO, offset: int, read: Callable[[dict[str, Any]], dict[str, Any]], names: pa.DataType
) -> dict[str, Any]:
    lines.seek(offset)
    found = json.loads(lines.readline())
    name = found.get("id")
    if names == pa.string() and name is not None:
        name = _unicode(name) if isinstance(name, str) else json_text(name)
    return {**{key: _unicode(value) for key, value in read(found).items()}, "line": found["line"], "id": name}


def _unicode(value: Any) -> Any:
    """Returns a text with escapes in place of single surrogates, which UTF-8 does not have; or another value."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _csv_record(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns the cells of an answer."""
    found = AnswerColumns(None, is_json=False, has_certificates=True).fill(answer, mixed=True)
    del found["error"]
    confidence = found["confidence"]
    return {
        **found,
        "usage": json_text(found["usage"]),
        "confidence": None if confidence is None else json_text(confidence),
    }
