"""``sql``: queries over a database, as a language for answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from constrain.language.source import Source
from constrain.queries.kinds import Dialect
from constrain.queries.schema import Table, permitted

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from constrain.language.grammar import Grammar

MAX_SHOWN = 6_000
"""Characters, about 1,500 tokens, that the tables of a database take in a prompt. Of more tables, it shows those that
the question names, and those joined to them."""

_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


def sql(
    source: str | Path | sqlite3.Connection | Any,
    dialect: Dialect | None = None,
    statements: Collection[str] = ("select",),
    tables: Collection[str] | None = None,
    columns: Mapping[str, Collection[str]] | None = None,
    deny: Collection[str] = (),
    limit: int | None = None,
) -> Sql:
    """Returns the language of queries that run on a database; ``generate`` and ``compile`` take it as a schema.

    Every table and column of a query exists, a column belongs to a table of its FROM, types fit, tables are joined over
    foreign keys, and what is not grouped is aggregated. Queries only read.

    Args:
        source: a connection of ``sqlite3``, the path or URL of a database of SQLite, the text of ``CREATE TABLE`` and
            ``CREATE VIEW`` statements, or a URL, engine or connection of SQLAlchemy (``constrain-llm[sql]``).
        dialect: ``"sqlite"`` or ``"postgresql"``; by default that of the database, and SQLite's for a text.
        statements: kinds of statements; there is ``"select"`` alone.
        tables: tables that queries may read; by default, all.
        columns: columns that they may read, for some tables.
        deny: tables, and columns as ``table.column``, that they may not read.
        limit: the most rows; every query then has a LIMIT of at most so many.

    Raises ``GrammarError`` for a database that cannot be read, and for names that it does not have.

    >>> from constrain import Vocabulary, compile, sql
    >>> vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
    >>> queries = compile(sql("CREATE TABLE books (title TEXT, pages INTEGER)"), vocabulary)
    >>> queries.accepts("SELECT title FROM books WHERE pages > 300")
    True
    >>> queries.accepts("SELECT author FROM books"), queries.accepts("SELECT title FROM books WHERE pages > 'x'")
    (False, False)
    """
    from constrain.queries.reading import read_tables

    if dialect is not None and dialect not in get_args(Dialect):
        raise ValueError(f"dialect is {dialect!r}; it must be 'sqlite' or 'postgresql'")
    if tuple(statements) != ("select",):
        raise ValueError(f"statements is {statements!r}; it must be ('select',): queries only read")
    for name, given in {"tables": tables, "deny": deny, **(columns or {})}.items():
        if isinstance(given, str):
            raise TypeError(f"{name} must be a list of names, not {given!r}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ValueError(f"limit is {limit!r}; it must be a whole number from 1")
    dialect, found = read_tables(
        source, dialect, lambda name: name in deny or (tables is not None and name not in tables)
    )
    return Sql(permitted(found, tables, columns, deny), dialect, limit)


@dataclass(frozen=True, slots=True, repr=False)
class Sql(Source):
    """Queries over tables; ``sql`` makes it.

    ``version``: number of the language that equal fields stand for. ``shown``: the tables that a prompt shows; ``None``
    for all.
    """

    tables: tuple[Table, ...]
    dialect: Dialect
    limit: int | None = None
    version: int = 1
    shown: frozenset[str] | None = field(default=None, compare=False)

    def grammar(self) -> Grammar:
        """Returns the grammar of the queries."""
        from constrain.queries.statements import query_grammar

        return query_grammar(self.tables, self.dialect, self.limit)

    @property
    def may_capture(self) -> bool:
        """Returns False: no part of a query has a name."""
        return False

    def render(self) -> str:
        """Returns the tables, one a line, with the columns to which foreign keys refer."""
        return "\n".join(
            self._render_table(table) for table in self.tables if self.shown is None or table.name in self.shown
        )

    def for_question(self, question: str) -> Sql:
        """Returns the queries with only the tables in the prompt that a question needs, if there are many."""
        if sum(len(self._render_table(table)) for table in self.tables) <= MAX_SHOWN:
            return self
        from constrain.queries.needed import needed_tables

        shown = needed_tables(self.tables, question, lambda table: 1 + len(self._render_table(table)), MAX_SHOWN)
        return replace(self, shown=shown)

    def _render_table(self, table: Table) -> str:
        from constrain.queries.names import spell

        def name(*names: str) -> str:
            return ".".join(spell(each, self.dialect) for each in names)

        refers = {
            own: name(key.table, theirs)
            for key in table.foreign
            for own, theirs in zip(key.columns, key.referred, strict=True)
        }
        columns = [name(each) + (f" -> {refers[each]}" if each in refers else "") for each in table.names]
        return f"{name(table.name)}({', '.join(columns)})"

    def describe(self) -> str:
        """Returns the instruction that is added to the prompt."""
        query = f"Answer with one {_NAMES[self.dialect]} query"
        if self.shown is None:
            return f"{query} over these tables, and nothing else:\n{self.render()}"
        about = f"The database has {len(self.tables)} tables. The question may be about these:"
        return f"{query}, and nothing else. {about}\n{self.render()}"
