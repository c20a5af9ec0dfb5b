"""The rows of Parquet and CSV files, read a few at a time."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from constrain.batch.lines import FIELDS, LineError, read_fields
from constrain.batch.locations import StoreError, open_read
from constrain.batch.prompts import check_names
from constrain.batch.scanning import OWN_LANGUAGE, Scan, Survey
from constrain.batch.tables.cells import drop_nulls, line_fields, read_rows
from constrain.batch.tables.csv_text import CsvText, QuoteError
from constrain.suggestions import unknown_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from constrain.batch.lines import Task
    from constrain.batch.locations import Location
    from constrain.batch.prompts import NamedColumns
    from constrain.batch.tables.cells import RawRow
    from constrain.generation.options import Options
    from constrain.language.source import Source

ROWS = 256
"""Rows of a Parquet file that are in memory at once."""

MAX_CSV_BLOCK_BYTES = 4 << 20
"""Bytes of one row of a CSV file, and of what is read of it at once. Beyond: the command ends, with status 1."""

_PARQUET_BUFFER_BYTES = 1 << 20
"""Bytes of a column of a Parquet file that are read at once."""

MAX_CSV_COLUMNS = 1_000
"""Columns of a CSV file. Beyond: the command ends, with status 1."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose rows are tasks. Rows count from 1, without the header of a CSV file.

    Attributes:
        location: file.
        is_csv: whether it is CSV; otherwise it is Parquet.
        named: columns that the command names.
    """

    location: Location
    is_csv: bool
    named: NamedColumns

    def scan(self, *, find_languages: bool) -> Scan:  # noqa: ARG002 - columns tell it at once
        """Returns facts about the whole file. Raises ``ValueError`` if it is no table or lacks a column."""
        survey = Survey()
        schema, unfinished = self._scan_csv(survey) if self.is_csv else (self._scan_parquet(survey), 0)
        own = self.named.prompt is None and not OWN_LANGUAGE.isdisjoint(schema.names)
        sha256 = survey.digest(unfinished)
        return Scan(sha256, survey.rows, own, survey.repeated_ids, self._id_type(schema), unfinished)

    def read(self) -> Iterator[tuple[int, RawRow]]:
        """Yields the rows with their numbers. Raises ``ValueError`` where the file is broken."""
        if not self.is_csv:
            with self._name_errors(), open_parquet(self.location) as source, pq.ParquetFile(source, **_LAZY) as parquet:
                yield from self._number(self._batches(parquet), self.named.needed(parquet.schema_arrow.names))
            return
        with open_read(self.location) as file, self._name_errors():
            header, batches = _open_csv(CsvText(file))
            yield from self._number(batches, self.named.needed(header))

    def task(self, number: int, row: RawRow, schema: str | Source | None, options: Options, voters: int | None) -> Task:
        """Returns the task of a row, as ``read_task``. Raises ``LineError``."""
        if isinstance(row, LineError):
            raise row
        plain = _without_nulls(row)
        if self.named.prompt is None:
            fields = line_fields(self.named.fields(plain), as_text=self.is_csv)
            if unknown := fields.keys() - FIELDS:
                told = unknown_names("columns", unknown, FIELDS)
                raise LineError(f"{told}; with --prompt, other columns are ignored", id=fields.get("id"))
        else:
            fields = line_fields(self.named.fields(plain), as_text=False)
        return read_fields(number, fields, schema, options, voters)

    def _check(self, names: list[str]) -> None:
        try:
            check_names(names)
            self.named.check(names)
        except ValueError as error:
            raise ValueError(f"{self.location}: {error}") from error

    def _id_type(self, schema: pa.Schema) -> pa.DataType | None:
        """Returns the type of the names of rows. Raises ``ValueError`` for one that JSON does not have."""
        column = self.named.name_column
        if column not in schema.names:
            return None
        if self.is_csv:
            return pa.string()
        kind = schema.field(column).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return kind
        if str(kind) in ("large_string", "string_view", "null"):
            return pa.string()
        raise ValueError(f"{self.location}: the column {column!r} has the type {kind}; an id is a text or a number")

    def _scan_csv(self, survey: Survey) -> tuple[pa.Schema, int]:
        """Returns the schema, and the number of unfinished rows as in ``Scan``.

        A last row without the end of its line is unfinished if it has no prompt yet, and so gets no answer.
        """
        with self._name_errors():
            with open_read(self.location) as file:
                text = CsvText(file)
                while text.read(MAX_CSV_BLOCK_BYTES):  # wrong quotes are found before Arrow begins to read ahead
                    pass
            with open_read(self.location) as file:
                header, batches = _open_csv(CsvText(file))
                self._check(header)
                last = self._survey(survey, batches, header)
            unfinished = int(text.is_cut and last is not None and not self._has_prompt(last))
            return pa.schema([(name, pa.string()) for name in header]), unfinished

    def _scan_parquet(self, survey: Survey) -> pa.Schema:
        """Returns the schema. All columns that are needed are decoded once."""
        with self._name_errors(), open_parquet(self.location) as source, pq.ParquetFile(source, **_LAZY) as parquet:
            schema = parquet.schema_arrow
            self._check(schema.names)
            try:
                self._survey(survey, self._batches(parquet), schema.names)
            except (pa.ArrowException, OSError) as error:
                if isinstance(error, StoreError) or getattr(error, "errno", None) is not None:
                    raise  # the file is not there any more, or the disk cannot be read
                raise pa.ArrowInvalid(f"the rows behind row {survey.rows} are broken: {error}") from error
            return schema

    def _has_prompt(self, row: RawRow) -> bool:
        try:
            fields = {} if isinstance(row, LineError) else self.named.fields(_without_nulls(row))
        except LineError:
            return False
        return fields.get("prompt") is not None or fields.get("messages") is not None

    def _survey(self, survey: Survey, batches: Any, columns: list[str]) -> RawRow | None:
        """Adds the rows to a survey. Returns the last one; ``None`` if there is none."""
        row = None
        for number, row in self._number(batches, self.named.needed(columns)):
            survey.add(number, row, self.named.id_of(row))
        return row

    def _batches(self, parquet: Any) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a Parquet file, with at least the columns that are needed."""
        columns = self.named.needed(parquet.schema_arrow.names)
        # A dot in a name also stands for a part of a struct.
        only = None if any("." in name for name in columns) else columns
        yield from parquet.iter_batches(ROWS, columns=only)

    def _number(self, batches: Any, columns: list[str]) -> Iterator[tuple[int, RawRow]]:
        number = 0
        for batch in batches:
            for row in _rows(batch.select(columns), as_text=self.is_csv):
                number += 1
                yield number, row

    @contextlib.contextmanager
    def _name_errors(self) -> Iterator[None]:
        """Names the file in the errors of pyarrow."""
        kind = "CSV" if self.is_csv else "Parquet"
        try:
            yield
        except StoreError:
            raise
        except (pa.ArrowException, UnicodeDecodeError, QuoteError) as error:
            raise ValueError(f"{self.location}: this cannot be read as {kind}: {_explain(error)}") from error
        except OSError as error:
            raise OSError(f"{self.location}: it could not be read: {' '.join(str(error).split())}") from error


def open_parquet(location: Location) -> Any:
    """Returns a file of Arrow in which one can seek. Raises ``OSError``."""
    if isinstance(location, Path):
        return pa.OSFile(str(location))
    with location.name_failures("read"):
        return location.store.open_input_file(location.path)


_LAZY: Any = {"buffer_size": _PARQUET_BUFFER_BYTES, "pre_buffer": False}


def _open_csv(text: CsvText) -> tuple[list[str], Any]:
    """Returns the names in the header of a CSV file, and an iterator of batches of its other rows.

    Cells are bytes, so that one that is not UTF-8 costs its own row only.
    """
    buffered = io.BufferedReader(text, MAX_CSV_BLOCK_BYTES)
    if buffered.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise pa.ArrowInvalid("it is UTF-16; write it as UTF-8")
    reader = pa_csv.open_csv(
        buffered,
        pa_csv.ReadOptions(use_threads=False, block_size=MAX_CSV_BLOCK_BYTES, autogenerate_column_names=True),
        pa_csv.ParseOptions(newlines_in_values=True),
        pa_csv.ConvertOptions(
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types={f"f{index}": pa.binary() for index in range(MAX_CSV_COLUMNS)},
        ),
    )
    if len(reader.schema) > MAX_CSV_COLUMNS:
        raise pa.ArrowInvalid(f"it has more than {MAX_CSV_COLUMNS} columns (MAX_CSV_COLUMNS)")
    first = next(iter(reader))
    header = [(name or b"").decode() for (name,) in (column[:1].to_pylist() for column in first.columns)]

    def batches() -> Iterator[Any]:
        for batch in itertools.chain([first[1:]], reader):
            yield pa.RecordBatch.from_arrays(batch.columns, header)

    return header, batches()


def _rows(batch: Any, *, as_text: bool) -> Iterator[RawRow]:
    """Yields the rows of a batch; in place of one that Python cannot hold, an error."""
    if not as_text:
        yield from read_rows(batch)
        return
    names = batch.schema.names
    for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield _decode_row(names, cells)


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: drop_nulls(value) for name, value in row.items()}


def _decode_row(names: list[str], cells: tuple[bytes | None, ...]) -> RawRow:
    try:
        return {name: _decode(name, cell) for name, cell in zip(names, cells, strict=True)}
    except LineError as error:
        return error


def _decode(name: str, cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError as error:
        raise LineError(f"the column {name!r} is not UTF-8: {error}; save the file as UTF-8") from error


def _explain(error: Exception) -> str:
    """Returns the reason of an error of pyarrow, with rows numbered as those of a batch."""
    if isinstance(error, UnicodeDecodeError):
        return f"the names of its columns are not UTF-8 ({error}); save it as UTF-8"
    if "straddl" in str(error):
        return f"a row has more than {MAX_CSV_BLOCK_BYTES} bytes (MAX_CSV_BLOCK_BYTES)"
    said = " ".join(str(error).removeprefix("CSV parse error: ").split())
    return re.sub(r"^Row #(\d+): Expected", lambda found: f"row {int(found[1]) - 1}: expected", said)[:_LONGEST_REASON]


_LONGEST_REASON = 300
"""Characters of an error of pyarrow that are shown; it may have a whole row."""
