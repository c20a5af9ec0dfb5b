"""``Table``: columns of values, from Python, a database or a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from constrain.errors import ConstrainError, SchemaError
from constrain.tables.columns import Column, read_column
from constrain.tables.dependent import Dependent, keep_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from constrain.tables.readers import Columns, Reader

_KEPT_DEPENDENT = 16
"""Columns by other columns that a table keeps; each takes as much memory as the columns."""


class Table:
    """Columns of values for strings, numbers and booleans of a schema. Tables with equal values share their memory.

    Give tables to ``compile`` or ``generate`` by name, as in ``tables={"customers": table}``; a schema names them with
    ``constrain.OneOf(table="customers", column="name")``, or with the keyword ``x-one-of``. All values are read at
    once. ``None``, the null of databases, is no value.

    Args:
        values: values of the only column, which has no name; or rows, each a mapping from columns to values; or a
            mapping from columns to their values. Values are strings, numbers, booleans, dates, times and UUIDs.

    Raises TypeError, SchemaError and LimitError.

    >>> Table([{"name": "Ada", "born": 1815}, {"name": "Grace", "born": 1906}]).columns
    ('name', 'born')
    """

    def __init__(self, values: Iterable[Any] | Mapping[str, Iterable[Any]]) -> None:
        self._reader: Reader | None = None
        self._dependent: dict[tuple[str, ...], Dependent] = {}
        self._columns, self._rows = _read_values(values)

    @classmethod
    def sqlite(cls, path: str | PathLike[str], table: str, columns: Sequence[str] | None = None) -> Table:
        """Returns a table or view of an SQLite database. ``columns``: those to read; all by default."""
        from constrain.tables.readers import SqliteReader

        return cls._read(SqliteReader(str(path), table, _names(columns)))

    @classmethod
    def sql(cls, url: str, table: str, columns: Sequence[str] | None = None) -> Table:
        """Returns a table or view of any database that SQLAlchemy knows (extra ``sql``), by the URL of the database."""
        from constrain.tables.readers import SqlReader

        return cls._read(SqlReader(url, table, _names(columns)))

    @classmethod
    def file(cls, path: str | PathLike[str], columns: Sequence[str] | None = None) -> Table:
        """Returns a CSV file with a header, or a Parquet file (extra ``tables``), by the end of its name.

        CSV has only texts. In a field of numbers or booleans, those count that are numbers, ``true`` or ``false``.
        """
        from constrain.tables.readers import FileReader

        return cls._read(FileReader(str(path), _names(columns)))

    @classmethod
    def _read(cls, reader: Reader) -> Table:
        from constrain.tables.readers import read_columns

        table = cls.__new__(cls)
        table._reader, table._columns, table._rows, table._dependent = reader, read_columns(reader), None, {}
        return table

    def refresh(self) -> None:
        """Reads the database or file again. Answers that are being written keep the former values.

        If that fails, the former values stay. Raises SchemaError, LimitError, and TypeError for a table of values.
        """
        if self._reader is None:
            raise TypeError("this table was made of values, not of a database or file; make a new one to change them")
        from constrain.tables.readers import read_columns

        self._columns, self._dependent = read_columns(self._reader), {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; ``""`` is the name of the only column of a list of values."""
        return tuple(self._columns)

    def __repr__(self) -> str:
        """Returns the names of the columns."""
        return f"Table({', '.join(map(repr, self._columns))})"

    def column(self, name: str | None) -> Column:
        """Returns a column, or the only one for ``None``. Raises SchemaError for one that cannot be used."""
        if name is None and len(self._columns) == 1:
            name = self.columns[0]
        if name not in self._columns:
            there = ", ".join(map(repr, self._columns))
            raise SchemaError(
                f"it has several columns: name one of {there}"
                if name is None
                else f"it has no column {name!r:.80}; there are {there}"
            )
        found = self._columns[name]
        if isinstance(found, Column):
            return found
        raise type(found)(found.message)

    def all_columns(self) -> list[tuple[str, Column | ConstrainError]]:
        """Returns the columns of one version by name; in place of one that cannot be used, the reason."""
        return [*self._columns.items()]

    def dependent(self, column: str, others: Sequence[str]) -> Dependent:
        """Returns the values of a column by those of others. The first call reads them again, and takes longest.

        Raises SchemaError, also for a database or file that has changed since the table was read.
        """
        names, made = (*others, column), self._dependent
        if (known := made.get(names)) is not None:
            return known
        wanted = [self.column(name).digest for name in names]
        if self._reader is None:
            assert self._rows is not None
            rows: Iterable[Sequence[object]] = zip(*(self._rows[name] for name in names), strict=True)
        else:
            from constrain.tables.readers import read_rows

            is_text = self.column(column).is_text
            rows = read_rows(self._reader, names)
            columns = zip(*rows, strict=True) if rows else [()] * len(names)
            found = [read_column(each, "the table", is_text=is_text).digest for each in columns]
            if found != wanted:
                raise SchemaError(f"the source of {self!r} has changed since it was read: call refresh")
        while len(made) >= _KEPT_DEPENDENT:
            made.pop(next(iter(made)), None)
        return made.setdefault(names, keep_rows(Dependent(rows, tuple(others), f"the column {column!r}")))

    def given(self, column: str, values: Mapping[str, object]) -> Column:
        """Returns the values of a column in rows with given values of others: of cities, those of a country."""
        return self.dependent(column, sorted(values)).given(values)


def split_names(given: Iterable[str]) -> dict[str, str]:
    """Returns sources by name, as a flag that may be repeated gives them: ``NAME=SOURCE``. Raises ValueError."""
    found: dict[str, str] = {}
    for each in given:
        name, _, source = each.partition("=")
        if not (name and source):
            raise ValueError(
                f"{each!r} must be NAME=SOURCE, such as customers=crm.db:customers or customers=customers.csv"
            )
        if name in found:
            raise ValueError(f"{name!r} is the name of two sources: {found[name]} and {source}")
        found[name] = source
    return found


def table_at(source: str) -> Table:
    """Returns a table as the command line names it: a file, or a database and a table behind ``:``.

    Raises SchemaError and LimitError.
    """
    if source.lower().endswith((".csv", ".parquet")):
        return Table.file(source)
    database, _, table = source.rpartition(":")
    if not database:
        raise SchemaError(f"{source} is neither a file that ends in .csv or .parquet, nor a DATABASE:TABLE")
    return Table.sql(database, table) if "://" in database else Table.sqlite(database, table)


def _names(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, not {columns!r:.80}")
    return None if columns is None else tuple(columns)


def _read_values(values: Any) -> tuple[Columns, dict[str, list[object]] | None]:
    """Returns the columns of some values; and, if there are several, their values row by row."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"the values of a table are an iterable, not {type(values).__name__}")
    if isinstance(values, Mapping):
        columns = {name: list(column) for name, column in values.items()}
    else:
        rows = iter(values)
        first = next(rows, None)
        if not hasattr(first, "keys"):
            return {"": read_column(chain([first], rows), "the list of values")}, None
        found = [_read_row(row) for row in chain([first], rows)]
        columns = {name: [row.get(name) for row in found] for name in dict.fromkeys(chain.from_iterable(found))}
    read: Columns = {name: read_column(column, f"the column {name!r}") for name, column in columns.items()}
    return read, columns if len(columns) > 1 else None


def _read_row(row: Any) -> dict[str, object]:
    if not hasattr(row, "keys"):  # as mappings and the rows of sqlite3 have it
        raise TypeError(f"the rows of a table are mappings, but one is {row!r:.80}")
    return dict(row)
