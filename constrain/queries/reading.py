"""Reads the tables of a database: a connection of SQLite, a file, CREATE statements, or what SQLAlchemy connects to."""

from __future__ import annotations

import re
import sqlite3
import warnings
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from constrain.arguments import needs_extra
from constrain.errors import GrammarError
from constrain.queries.kinds import Dialect, kind_of, kind_of_class
from constrain.queries.schema import Column, ForeignKey, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CREATE = re.compile(r"\bCREATE\s", re.IGNORECASE)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+._]*://")

_MAY_CREATE = frozenset(
    (
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_REINDEX,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_TRANSACTION,
    )
)
"""What statements that describe a database may do: nothing that opens a file, and nothing that takes long."""


def read_tables(
    source: Any, dialect: Dialect | None, is_left_out: Callable[[str], bool]
) -> tuple[Dialect, list[Table]]:
    """Returns the dialect and the tables of a database. Raises ``GrammarError`` where it cannot be read.

    ``is_left_out``: whether the columns of a table need not be read, by its name.
    """
    if isinstance(source, sqlite3.Connection):
        return dialect or "sqlite", list(_of_sqlite(source, dialect or "sqlite", is_left_out))
    if isinstance(source, str | Path):
        text = str(source)
        if isinstance(source, str) and _CREATE.search(text):
            with closing(sqlite3.connect(":memory:")) as made:
                _execute(made, text)
                return read_tables(made, dialect, is_left_out)
        if not (is_url := _SCHEME.match(text)) or text.startswith("sqlite://"):
            with closing(_open(unquote(text.removeprefix("sqlite:///")) if is_url else text)) as opened:
                return read_tables(opened, dialect, is_left_out)
    elif not hasattr(source, "dialect"):
        raise TypeError(
            "source must be a connection of sqlite3, a file or URL of a database, an engine of SQLAlchemy, or CREATE "
            f"TABLE statements, not {source!r}"
        )
    return _of_sqlalchemy(source, dialect, is_left_out)


def _execute(connection: sqlite3.Connection, text: str) -> None:
    """Executes CREATE statements. Raises ``GrammarError`` with the line of the first one that SQLite refuses."""

    def judge(action: int, first: str | None, *_: object) -> int:
        is_own = action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE) and first in (
            "sqlite_master",
            "sqlite_schema",
        )
        return sqlite3.SQLITE_OK if action in _MAY_CREATE or is_own else sqlite3.SQLITE_DENY

    connection.set_authorizer(judge)
    begin = line = 0
    lines = text.splitlines(keepends=True)
    for line in range(1, len(lines) + 1):
        statement = "".join(lines[begin:line])
        if line < len(lines) and not sqlite3.complete_statement(statement):
            continue
        try:
            connection.executescript(statement)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            about = "only CREATE statements are read" if "not authorized" in str(error) else str(error)
            message = f"SQLite cannot read this statement: {about}; correct it, or pass the database itself"
            raise GrammarError(message, line=begin + 1, column=1) from error
        begin = line
    connection.set_authorizer(lambda *_: sqlite3.SQLITE_OK)  # None takes it away from Python 3.11 on


def _open(path: str) -> sqlite3.Connection:
    """Opens a file for reading. Raises ``GrammarError`` if it is no database."""
    if not Path(path).is_file():
        raise GrammarError(f"there is no file {path!r}; pass a file of SQLite, a URL, or CREATE TABLE statements")
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    try:
        connection.execute("SELECT name FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise GrammarError(f"the file {path!r} cannot be read as a database of SQLite: {error}") from error
    return connection


def _of_sqlite(connection: sqlite3.Connection, dialect: Dialect, is_left_out: Callable[[str], bool]) -> Iterator[Table]:
    cursor = connection.cursor()
    cursor.row_factory = None

    def ask(pragma: str, name: str) -> list[tuple[Any, ...]]:
        quoted = name.replace('"', '""')
        try:
            return cursor.execute(f'PRAGMA main.{pragma}("{quoted}")').fetchall()
        except sqlite3.Error as error:
            raise GrammarError(f"the table {name!r} cannot be read: {error}; leave it out with deny") from error

    query = (
        "SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    names = [name for (name,) in cursor.execute(query).fetchall()]
    by_name = {name.casefold(): name for name in names}
    columns = {name: [] if is_left_out(name) else ask("table_xinfo", name) for name in names}
    primary = {
        name: tuple(row[1] for row in sorted(rows, key=lambda row: row[5]) if row[5]) for name, rows in columns.items()
    }
    for name, rows in columns.items():
        spelled = {row[1].casefold(): row[1] for row in rows}
        keys: dict[int, list[tuple[Any, ...]]] = {}
        for row in sorted(ask("foreign_key_list", name) if rows else ()):
            keys.setdefault(row[0], []).append(row)
        foreign = []
        for parts in keys.values():
            other = by_name.get(parts[0][2].casefold(), "")
            theirs = {row[1].casefold(): row[1] for row in columns.get(other, ())}
            referred = primary.get(other, ()) if parts[0][4] is None else [part[4] for part in parts]
            if len(referred) == len(parts) and all(each.casefold() in theirs for each in referred):
                own = tuple(spelled[part[3].casefold()] for part in parts)
                foreign.append(ForeignKey(own, other, tuple(theirs[each.casefold()] for each in referred)))
        found = tuple(Column(row[1], kind_of(row[2], dialect)) for row in rows if row[6] != 1)
        hidden = tuple(row[1] for row in rows if row[6] == 1)
        yield Table(name, found, hidden, primary[name], tuple(foreign))


def _of_sqlalchemy(
    source: Any, dialect: Dialect | None, is_left_out: Callable[[str], bool]
) -> tuple[Dialect, list[Table]]:
    """Reads a database by a URL, or an engine or connection of SQLAlchemy."""
    with needs_extra("sql"):
        import sqlalchemy
    try:
        if isinstance(source, str):
            source = sqlalchemy.create_engine(source, poolclass=sqlalchemy.NullPool)
        with source.connect() if hasattr(source, "connect") else nullcontext(source) as connection:
            own: Dialect = connection.dialect.name
            if own == "sqlite":
                return read_tables(connection.connection.driver_connection, dialect, is_left_out)
            if own != "postgresql" or dialect not in (None, own):
                cure = "pass dialect='postgresql'" if own == "postgresql" else "queries are for SQLite and PostgreSQL"
                raise GrammarError(f"the database is one of {own}; {cure}")
            inspector = sqlalchemy.inspect(connection)
            views = [*inspector.get_view_names(), *inspector.get_materialized_view_names()]
            names = [*inspector.get_table_names(), *views]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sqlalchemy.exc.SAWarning)  # of types that it does not know
                return own, [Table(name, ()) if is_left_out(name) else _inspected(inspector, name) for name in names]
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:  # a driver is missing
        raise GrammarError(f"the database cannot be read: {str(error).splitlines()[0]}") from error


def _inspected(inspector: Any, name: str) -> Table:
    columns = tuple(
        Column(each["name"], kind_of_class(each["type"]), tuple(getattr(each["type"], "enums", None) or ()))
        for each in inspector.get_columns(name)
    )
    keys = tuple(
        ForeignKey(tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]))
        for key in inspector.get_foreign_keys(name)
        if key["referred_schema"] is None
    )
    return Table(name, columns, (), tuple(inspector.get_pk_constraint(name)["constrained_columns"]), keys)
