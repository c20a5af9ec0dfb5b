"""Readers of tables: SQLite, databases that SQLAlchemy knows, CSV and Parquet files. Each reads as often as asked."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from constrain.errors import ConstrainError, SchemaError
from constrain.suggestions import did_you_mean
from constrain.tables.columns import Column, read_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Columns: TypeAlias = "dict[str, Column | ConstrainError]"
"""Columns by name; in place of one that cannot be used, the reason."""

_TEXT, _PARQUET = (".csv",), (".parquet",)


class Reader(Protocol):
    """Where a table comes from."""

    def read(self) -> Columns:
        """Reads all columns. Raises SchemaError and LimitError with the name of the source."""
        ...


@dataclass(frozen=True)
class SqliteReader:
    """A table or view of an SQLite database, of which one transaction reads all columns."""

    path: str
    table: str
    columns: tuple[str, ...] | None

    def read(self) -> Columns:
        """Reads all columns."""
        if not Path(self.path).is_file():  # SQLite would make an empty database
            raise SchemaError(f"there is no database {self.path}")
        place = f"the table {self.table!r} of {self.path}"
        with _errors_of(place, sqlite3.Error), closing(sqlite3.connect(self.path)) as database:
            database.execute("BEGIN")
            named = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            _require("table", self.table, [name for (name,) in named], self.path)
            about = database.execute(f"SELECT * FROM {_quoted(self.table)} LIMIT 0").description  # noqa: S608 - a name that was found

            def values(column: str) -> Iterator[object]:
                query = f"SELECT {_quoted(column)} FROM {_quoted(self.table)}"  # noqa: S608 - names that were found
                return chain.from_iterable(database.execute(query))

            return _read_all(place, [name for name, *_ in about], self.columns, values)


@dataclass(frozen=True)
class SqlReader:
    """A table or view of a database that SQLAlchemy knows, of which one transaction reads all columns."""

    url: str
    table: str
    columns: tuple[str, ...] | None

    def read(self) -> Columns:
        """Reads all columns."""
        try:
            import sqlalchemy as sql
        except ImportError as error:
            raise ImportError("Table.sql needs SQLAlchemy: pip install 'constrain-llm[sql]'") from error
        with _errors_of(f"the table {self.table!r}", sql.exc.SQLAlchemyError):
            engine = sql.create_engine(self.url)
            shown = engine.url.render_as_string(hide_password=True)
        place = f"the table {self.table!r} of {shown}"
        try:
            with _errors_of(place, sql.exc.SQLAlchemyError), engine.connect() as connection:
                inspector = sql.inspect(connection)
                _require("table", self.table, [*inspector.get_table_names(), *inspector.get_view_names()], shown)
                named = [each["name"] for each in inspector.get_columns(self.table)]

                def values(column: str) -> Iterator[object]:
                    query: Any = sql.select(sql.column(column)).select_from(sql.table(self.table))
                    return iter(connection.execution_options(stream_results=True).execute(query).scalars())

                return _read_all(place, named, self.columns, values)
        finally:
            engine.dispose()


@dataclass(frozen=True)
class FileReader:
    """A CSV file with a header, or a Parquet file."""

    path: str
    columns: tuple[str, ...] | None

    def read(self) -> Columns:
        """Reads all columns."""
        end = Path(self.path).suffix.lower()
        if end in _PARQUET:
            return self._read_parquet()
        if end not in _TEXT:
            raise SchemaError(f"the name of {self.path} does not say what it is; it must end in .csv or .parquet")
        with _errors_of(self.path, csv.Error, OSError, UnicodeError):
            with Path(self.path).open(encoding="utf-8-sig", newline="") as file:
                header = next(csv.reader(file), [])

            def values(column: str) -> Iterator[object]:
                at = header.index(column)
                with Path(self.path).open(encoding="utf-8-sig", newline="") as file:
                    rows = csv.reader(file, strict=True)
                    next(rows, None)
                    yield from (row[at] for row in rows if len(row) > at and row[at])

            return _read_all(self.path, header, self.columns, values, is_text=True)

    def _read_parquet(self) -> Columns:
        try:
            import pyarrow as pa
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError("Table.file needs pyarrow for Parquet: pip install 'constrain-llm[tables]'") from error
        with _errors_of(self.path, pa.ArrowException, OSError), ParquetFile(self.path) as file:

            def values(column: str) -> Iterator[object]:
                batches = file.iter_batches(columns=[column])
                return chain.from_iterable(batch.column(0).to_pylist() for batch in batches)

            return _read_all(self.path, file.schema_arrow.names, self.columns, values)


def _read_all(
    place: str,
    there: list[str],
    wanted: tuple[str, ...] | None,
    values: Callable[[str], Iterable[object]],
    *,
    is_text: bool = False,
) -> Columns:
    """Reads columns one after the other. One that was not asked for may have values that cannot be used."""
    read: Columns = {}
    for name in there if wanted is None else wanted:
        _require("column", name, there, place)
        try:
            read[name] = read_column(values(name), f"the column {name!r} of {place}", is_text=is_text)
        except ConstrainError as error:
            if wanted is not None:
                raise
            read[name] = error
    return read


def _require(kind: str, name: str, there: list[str], place: str) -> None:
    if name not in there:
        hint = did_you_mean(name, there) or f"; there are {', '.join(map(repr, there)) or 'none'}"
        raise SchemaError(f"{place} has no {kind} {name!r:.80}{hint}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _errors_of(place: str, *kinds: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        raise SchemaError(f"{place} cannot be read: {error}") from error
