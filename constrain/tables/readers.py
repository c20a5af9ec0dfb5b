"""Readers of tables: SQLite, databases that SQLAlchemy knows, CSV and Parquet files. Each reads as often as asked."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from constrain.errors import ConstrainError, SchemaError
from constrain.suggestions import did_you_mean
from constrain.tables.columns import Column, read_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Columns: TypeAlias = "dict[str, Column | ConstrainError]"
"""Columns by name; in place of one that cannot be used, the reason."""

_TEXT, _PARQUET = (".csv",), (".parquet",)


class Opened(NamedTuple):
    """A source that is open.

    Attributes:
        place: its name in messages.
        columns: names of the columns that there are.
        rows: function that yields the values of some columns, row by row.
        is_text: whether all values are texts.
    """

    place: str
    columns: list[str]
    rows: Callable[[Sequence[str]], Iterable[Sequence[object]]]
    is_text: bool = False


class Reader(Protocol):
    """Where a table comes from."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns to read; ``None`` for all."""
        ...

    def open(self) -> AbstractContextManager[Opened]:
        """Opens the source. Its own errors become SchemaErrors with its name."""
        ...


def read_columns(reader: Reader) -> Columns:
    """Reads columns one after the other. Raises SchemaError and LimitError with the name of the source.

    One that was not asked for may have values that cannot be used.
    """
    read: Columns = {}
    with reader.open() as source:
        for name in source.columns if reader.columns is None else reader.columns:
            _require("column", name, source.columns, source.place)
            values = chain.from_iterable(source.rows([name]))
            try:
                read[name] = read_column(values, f"the column {name!r} of {source.place}", is_text=source.is_text)
            except ConstrainError as error:
                if reader.columns is not None:
                    raise
                read[name] = error
    return read


def read_rows(reader: Reader, columns: Sequence[str]) -> list[Sequence[object]]:
    """Returns the values of columns, which there are, row by row. Raises SchemaError."""
    with reader.open() as source:
        return list(source.rows(columns))


@dataclass(frozen=True)
class SqliteReader:
    """A table or view of an SQLite database, of which one transaction reads all columns."""

    path: str
    table: str
    columns: tuple[str, ...] | None

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Opens the database."""
        if not Path(self.path).is_file():  # SQLite would make an empty database
            raise SchemaError(f"there is no database {self.path}")
        place = f"the table {self.table!r} of {self.path}"
        with _errors_of(place, sqlite3.Error), closing(sqlite3.connect(self.path)) as database:
            database.execute("BEGIN")
            named = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            _require("table", self.table, [name for (name,) in named], self.path)

            def rows(columns: Sequence[str]) -> sqlite3.Cursor:
                wanted = ", ".join(map(_quoted, columns))
                return database.execute(f"SELECT {wanted} FROM {_quoted(self.table)}")  # noqa: S608 - names that are there

            about = database.execute(f"SELECT * FROM {_quoted(self.table)} LIMIT 0")  # noqa: S608 - a name that is there
            yield Opened(place, [name for name, *_ in about.description], rows)


@dataclass(frozen=True)
class SqlReader:
    """A table or view of a database that SQLAlchemy knows, of which one transaction reads all columns."""

    url: str
    table: str
    columns: tuple[str, ...] | None

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Opens the database."""
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

                def rows(columns: Sequence[str]) -> Iterable[Sequence[object]]:
                    query: Any = sql.select(*map(sql.column, columns)).select_from(sql.table(self.table))
                    return connection.execution_options(stream_results=True).execute(query)

                yield Opened(place, [each["name"] for each in inspector.get_columns(self.table)], rows)
        finally:
            engine.dispose()


@dataclass(frozen=True)
class FileReader:
    """A CSV file with a header, or a Parquet file."""

    path: str
    columns: tuple[str, ...] | None

    def open(self) -> AbstractContextManager[Opened]:
        """Opens the file."""
        end = Path(self.path).suffix.lower()
        if end not in (".csv", ".parquet"):
            raise SchemaError(f"the name of {self.path} does not say what it is; it must end in .csv or .parquet")
        return self._open_csv() if end == ".csv" else self._open_parquet()

    @contextmanager
    def _open_csv(self) -> Iterator[Opened]:
        with _errors_of(self.path, csv.Error, OSError, UnicodeError):
            with Path(self.path).open(encoding="utf-8-sig", newline="") as file:
                header = next(csv.reader(file), [])

            def rows(columns: Sequence[str]) -> Iterator[Sequence[object]]:
                places = [header.index(column) for column in columns]
                with Path(self.path).open(encoding="utf-8-sig", newline="") as file:
                    read = csv.reader(file, strict=True)
                    next(read, None)
                    for row in read:
                        yield [(row[at] if at < len(row) else "") or None for at in places]

            yield Opened(self.path, header, rows, is_text=True)

    @contextmanager
    def _open_parquet(self) -> Iterator[Opened]:
        try:
            import pyarrow as pa
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError("Table.file needs pyarrow for Parquet: pip install 'constrain-llm[tables]'") from error
        with _errors_of(self.path, pa.ArrowException, OSError), ParquetFile(self.path) as file:

            def rows(columns: Sequence[str]) -> Iterator[Sequence[object]]:
                for batch in file.iter_batches(columns=list(columns)):
                    yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)

            yield Opened(self.path, file.schema_arrow.names, rows)


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
