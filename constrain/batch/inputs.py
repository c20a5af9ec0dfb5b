"""Inputs of a batch: JSON Lines, and tables in Parquet or CSV, each in a file of this machine or of a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from constrain.batch.lines import LineError, parse_json, read_fields, read_task, split_lines
from constrain.batch.locations import open_read, require_pyarrow
from constrain.batch.prompts import NamedColumns, template_columns
from constrain.batch.scanning import OWN_LANGUAGE, Scan, Survey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.batch.lines import Task
    from constrain.batch.locations import Location
    from constrain.generation.options import Options
    from constrain.language.source import Source

TABLES = {".parquet": "parquet", ".csv": "csv"}
"""Kinds of tables, by the suffix of a name in lower case. Any other file is JSON Lines."""


class Input(Protocol):
    """Rows that become tasks. A row is of any type: only ``task`` of the same input reads it."""

    def scan(self, *, find_languages: bool) -> Scan:
        """Returns facts about the whole input. Raises ``ValueError`` if it cannot be answered at all."""

    def read(self) -> Iterator[tuple[int, Any]]:
        """Yields the rows with their numbers, from 1."""

    def task(self, number: int, row: Any, schema: str | Source | None, options: Options, voters: int | None) -> Task:
        """Returns the task of a row. Raises ``LineError``. Any thread may call it."""


def table_kind(location: Location) -> str | None:
    """Returns ``"parquet"`` or ``"csv"`` for the name of a table; ``None`` for JSON Lines."""
    return TABLES.get(location.suffix.lower())


def open_input(location: Location, named: NamedColumns) -> Input:
    """Returns the input in a file. Raises ``ValueError`` for a wrong template, and ``MissingExtraError``."""
    kind = table_kind(location)
    if kind is None:
        if named.prompt is not None:
            template_columns(named.prompt)
        return JsonLines(location, named)
    require_pyarrow(str(location))
    from constrain.batch.tables.reading import Table

    return Table(location, kind == "csv", named)


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A file with a task in each line that is not blank. With named columns, each line is an object: a row."""

    location: Location
    named: NamedColumns = field(default_factory=NamedColumns)

    def scan(self, *, find_languages: bool) -> Scan:
        """Returns facts about the whole file."""
        survey, own, unfinished = Survey(), False, 0
        for number, line in self.read():
            fields = _try_parse(line)
            unfinished = int(fields is None)
            survey.add(number, line, self.named.id_of(fields))
            own = own or (isinstance(fields, dict) and not OWN_LANGUAGE.isdisjoint(fields))
        own = own and find_languages and self.named.prompt is None
        return Scan(survey.digest(unfinished), survey.rows, own, survey.repeated_ids, unfinished=unfinished)

    def read(self) -> Iterator[tuple[int, bytes]]:
        """Yields the lines with their numbers."""
        with open_read(self.location) as file:
            yield from split_lines(file)

    def task(self, number: int, row: bytes, schema: str | Source | None, options: Options, voters: int | None) -> Task:
        """Returns the task of a line. Raises ``LineError``."""
        if self.named == NamedColumns():
            return read_task(number, row, schema, options, voters)
        found = parse_json(row)
        if not isinstance(found, dict):
            raise LineError("with --prompt or --id-column, a line must be a JSON object")
        return read_fields(number, self.named.fields(found), schema, options, voters)


def _try_parse(line: bytes) -> object:
    """Returns the value of a line; ``None`` if it is not JSON, and gets no answer."""
    try:
        return parse_json(line)
    except LineError:
        return None
