"""Scopes: which tables a query may join, and over which columns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, count
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from constrain.queries.schema import Table

MAX_JOINED = 4
"""Tables that one FROM joins. Beyond: subqueries look into further tables."""

MAX_SCOPES = 300
"""Sets of tables that queries over one database may join. Beyond: larger sets are left out, and then the last."""

MAX_NAME_BYTES = 60
"""Bytes of a name that may get a number at its end: 60. PostgreSQL cuts names after 63."""

Names: TypeAlias = tuple[str, ...]

Scope: TypeAlias = frozenset[int]
"""Tables of one FROM, by their positions among the relations."""


@dataclass(frozen=True, slots=True)
class Link:
    """A way to join two relations: the columns ``own`` of ``left`` equal the columns ``theirs`` of ``right``."""

    left: int
    own: Names
    right: int
    theirs: Names


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as FROM names it. ``alias``: its other name, for a table that is joined with itself."""

    table: Table
    alias: str = ""

    @property
    def name(self) -> str:
        """Returns the name before its columns."""
        return self.alias or self.table.name


def relations_of(tables: Sequence[Table]) -> list[Relation]:
    """Returns all tables, and once more those that refer to themselves, under a second name."""
    taken = {table.name.casefold() for table in tables}
    found = [Relation(table) for table in tables]
    for table in tables:
        if any(key.table == table.name for key in table.foreign):
            short = table.name if len(table.name.encode()) <= MAX_NAME_BYTES else "other"
            alias = next(name for n in count(2) if (name := f"{short}_{n}").casefold() not in taken)
            taken.add(alias.casefold())
            found.append(Relation(table, alias))
    return found


def links_of(relations: Sequence[Relation]) -> list[Link]:
    """Returns the ways to join two relations: over foreign keys, or else over a key of equal name and kind."""
    numbers = {relation.table.name: number for number, relation in enumerate(relations) if not relation.alias}
    seconds = {relation.table.name: number for number, relation in enumerate(relations) if relation.alias}
    links = [
        Link(number, key.columns, (seconds if key.table == name else numbers)[key.table], key.referred)
        for name, number in numbers.items()
        for key in relations[number].table.foreign
    ]
    joined = {frozenset((link.left, link.right)) for link in links}
    for left, right in combinations(numbers.values(), 2):
        if frozenset((left, right)) not in joined:
            links += (Link(left, (a,), right, (b,)) for a, b in _alike(relations[left].table, relations[right].table))
    return links


def _alike(left: Table, right: Table) -> Iterator[tuple[str, str]]:
    """Yields columns of two tables without a foreign key that seem to mean the same thing.

    One of them is the primary key of its table, and the other one has its name, or that of the table and of the key.
    """
    for table, other in ((left, right), (right, left)):
        for key in table.columns:
            if table.primary == (key.name,):
                named = (key.name, f"{table.name}_{key.name}", f"{table.name.removesuffix('s')}_{key.name}")
                names = {*map(str.casefold, named)}
                for column in other.columns:
                    if column.name.casefold() in names and column.kind == key.kind and other.primary != (column.name,):
                        yield (key.name, column.name) if table is left else (column.name, key.name)


def scopes_of(relations: Sequence[Relation], links: Iterable[Link]) -> list[Scope]:
    """Returns the sets of two and more relations that links connect, smaller ones first."""
    near: dict[int, set[int]] = defaultdict(set)
    for link in links:
        near[link.left].add(link.right)
        near[link.right].add(link.left)
    found: dict[Scope, None] = {}
    layer: dict[Scope, None] = {frozenset((n,)): None for n, relation in enumerate(relations) if not relation.alias}
    for _ in range(MAX_JOINED - 1):
        layer = {scope | {other}: None for scope in layer for n in sorted(scope) for other in sorted(near[n] - scope)}
        found.update(layer)
        if len(found) >= MAX_SCOPES:
            break
    return list(found)[:MAX_SCOPES]
