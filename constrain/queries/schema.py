"""Tables, columns and foreign keys of a database, and the part of them that a caller permits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from constrain.errors import GrammarError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from constrain.queries.kinds import Kind


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``values``: the texts of its type, where it lists them."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key: columns of its table and, of the table ``table``, those that they refer to."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view.

    Attributes:
        name: its name.
        columns: the columns that queries may have.
        hidden: names of its other columns; a name without a table may mean them, too.
        primary: names of the columns of its primary key.
        foreign: its foreign keys.
    """

    name: str
    columns: tuple[Column, ...]
    hidden: tuple[str, ...] = ()
    primary: tuple[str, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the columns that queries may have."""
        return tuple(column.name for column in self.columns)

    def without(self, names: Collection[str]) -> Table:
        """Returns the table with these columns hidden."""
        left = tuple(column for column in self.columns if column.name not in names)
        return replace(self, columns=left, hidden=(*self.hidden, *names))


def permitted(
    tables: Iterable[Table],
    only: Collection[str] | None,
    columns: Mapping[str, Collection[str]] | None,
    deny: Collection[str],
) -> tuple[Table, ...]:
    """Returns the tables that queries may read. Raises ``GrammarError`` for names that the database does not have.

    Those that they may not read anyway need no columns.
    """
    known = {table.name: table for table in tables}
    if not known:
        raise GrammarError("the database has no tables; name one that has some, or pass CREATE TABLE statements")
    kept = dict(known) if only is None else {_known(name, known, "tables"): known[name] for name in only}
    for name, listed in (columns or {}).items():
        if _known(name, known, "columns") in kept:
            names = [_known(column, known[name].names, f"columns[{name!r}]") for column in listed]
            kept[name] = known[name].without([each for each in known[name].names if each not in names])
    for name in deny:
        owner, _, column = (name, "", "") if name in known else name.rpartition(".")
        _known(owner or name, known, "deny")
        if not column:
            kept.pop(owner, None)
        elif owner in kept:
            kept[owner] = kept[owner].without([_known(column, known[owner].names, f"deny, {owner},")])
    left = {name: kept[name] for name in known if name in kept and kept[name].columns}
    if not left:
        raise GrammarError("no table is left that a query may read: permit one in tables, columns and deny")
    return tuple(
        replace(table, foreign=tuple(key for key in table.foreign if _joins(key, table, left)))
        for table in left.values()
    )


def _known(name: str, names: Collection[str], option: str) -> str:
    if name not in names:
        raise GrammarError(f"{option} names {name!r}, which does not exist; there are {', '.join(names)}")
    return name


def _joins(key: ForeignKey, table: Table, tables: Mapping[str, Table]) -> bool:
    """Returns whether all columns of a foreign key may be read."""
    other = tables.get(key.table)
    return other is not None and {*key.columns} <= {*table.names} and {*key.referred} <= {*other.names}
