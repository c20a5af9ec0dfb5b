"""The grammar of queries: the list of results, FROM with its joins, and all that follows."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

from constrain.json_schema.numbers.decimals import natural_range
from constrain.language.grammar import Action, Condition
from constrain.queries.automata import Automaton, Many, Part, Writer, optional
from constrain.queries.conditions import MAX_CONDITIONS, Conditions
from constrain.queries.expressions import Literals, RelationRules, literals
from constrain.queries.kinds import COMPARABLE, NUMBERS, Dialect
from constrain.queries.scopes import Link, Scope, links_of, relations_of, scopes_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from constrain.language.grammar import Grammar
    from constrain.queries.schema import Table

MAX_COLUMNS = 16
"""Columns of one result that are no aggregates."""

MAX_AGGREGATES = 8
"""Aggregates of one result."""

MAX_GROUPED = 5
"""Columns after one GROUP BY."""

MAX_ORDERED = 4
"""Columns after one ORDER BY."""

MAX_ROWS = 999_999
"""Rows that LIMIT may name."""

_COLUMNS, _DISTINCT, _OTHER, _AGGREGATES = range(4)
"""Slots of a query: columns that are no aggregates, whether it has DISTINCT or an incomparable column, aggregates."""


def query_grammar(tables: Sequence[Table], dialect: Dialect, limit: int | None) -> Grammar:
    """Returns the grammar of the queries over some tables."""
    return _Queries(tables, dialect, limit).grammar()


class _Queries:
    def __init__(self, tables: Sequence[Table], dialect: Dialect, limit: int | None) -> None:
        self._writer = Writer()
        self._start = self._writer.declare("start")
        self._limit = limit
        self._relations = relations_of(tables)
        self._links = links_of(self._relations)
        self._scopes = scopes_of(self._relations, self._links)
        names = [name for relation in self._relations for name in (*relation.table.names, *relation.table.hidden)]
        self._shared: Literals = literals(self._writer, names)
        count = Counter(map(str.casefold, names))
        unique = {name for name in names if count[name.casefold()] == 1}
        alone = [
            RelationRules(self._writer, self._shared, dialect, relation, relation.table.names)
            for relation in self._relations
            if not relation.alias
        ]
        joined = [RelationRules(self._writer, self._shared, dialect, relation, unique) for relation in self._relations]
        self._conditions = Conditions(self._writer, self._shared, alone, joined, self._links)
        self._between: dict[Scope, list[Link]] = defaultdict(list)
        for link in self._links:
            self._between[frozenset((link.left, link.right))].append(link)
        self._known = set(self._scopes)
        self._joins: dict[object, int] = {}
        self._end = self._rows()

    def grammar(self) -> Grammar:
        """Returns the grammar."""
        alone = [self._select({frozenset((n,)): [rules]}, {n: rules}) for n, rules in enumerate(self._conditions.alone)]
        together = []
        if self._scopes:
            joined = self._conditions.joined
            scopes = {scope: [joined[n] for n in sorted(scope)] for scope in self._scopes}
            together = [self._select(scopes, dict(enumerate(joined)))]
        self._writer.define(self._start, *alone, *together)
        # no byte that continues a terminal may follow it: names, numbers and texts end before a space, comma or bracket
        return self._writer.build(self_delimiting=True)

    def _rows(self) -> Part:
        """Returns LIMIT. There is no OFFSET: small models write one that leaves out every row."""
        most = self._writer.terminal("rows", natural_range("1", str(min(self._limit or MAX_ROWS, MAX_ROWS))))
        return (" LIMIT ", most) if self._limit is not None else optional(" LIMIT ", most)

    def _select(self, scopes: Mapping[Scope, Sequence[RelationRules]], rules: Mapping[int, RelationRules]) -> int:
        """Returns a query over any one of the scopes.

        A state between SELECT and FROM knows the set of tables that the list of results has used, so that FROM names
        these tables, and maybe others that are joined with them.
        """
        query = Automaton(self._writer)
        query.slots += [MAX_COLUMNS, 1, 1, MAX_AGGREGATES]
        within: dict[Scope, list[Scope]] = defaultdict(list)
        for scope in scopes:
            for used in _subsets(scope):
                within[used].append(scope)
        plain, distinct = _condition(_DISTINCT, 0, 0), _condition(_DISTINCT, 1, 1)
        query.add(Automaton.START, "SELECT ", "first")
        if any(each.item is not None for each in rules.values()):
            query.add("first", "DISTINCT ", ("item", frozenset()), (), _increment(_DISTINCT))
        query.add("first", (), ("item", frozenset()))
        whole = [scope for scope, inside in scopes.items() if not any(each.relation.table.hidden for each in inside)]
        if whole:
            query.add("first", "* FROM ", "*")
        for scope in whole:
            query.add("*", self._from(scope), ("tail", scope))
        for used, around in within.items():
            item, items, aggregate, aggregates = ((name, used) for name in ("item", "items", "aggregate", "aggregates"))
            for n in sorted(frozenset().union(*around)):
                if (more := used | {n}) in within:
                    self._add_items(query, item, rules[n], ("items", more), plain)
                    query.add(aggregate, rules[n].aggregate_item, ("aggregates", more))
            pairs = {frozenset(pair): None for scope in around for pair in combinations(sorted(scope), 2)}
            for pair in pairs:
                if (more := used | pair) in within and (product := self._product(pair, rules)) is not None:
                    query.add(aggregate, product, ("aggregates", more))
            grouped = (*_condition(_COLUMNS, 0, MAX_GROUPED), *_condition(_OTHER, 0, 0), *plain)
            query.add(item, (), aggregate, grouped)
            query.add(items, ", ", item, _condition(_COLUMNS, 0, MAX_COLUMNS - 1))
            query.add(items, " FROM ", ("from", used))
            query.add(aggregate, (self._count(),), aggregates)
            query.add(
                aggregates, ", ", aggregate, _condition(_AGGREGATES, 0, MAX_AGGREGATES - 2), _increment(_AGGREGATES)
            )
            query.add(aggregates, " FROM ", ("from aggregates", used))
            for scope in around:
                if used:
                    query.add(("from", used), self._from(scope), ("tail", scope))
                query.add(("from aggregates", used), self._from(scope), ("group", scope))
        for scope, inside in scopes.items():
            self._add_tail(query, scope, inside, plain, distinct)
            self._add_group(query, scope, inside)
        query.add("last", self._end, Automaton.END)
        symbol = self._writer.declare("query")
        self._writer.finish(symbol, query)
        return symbol

    @staticmethod
    def _add_items(
        query: Automaton, item: Hashable, rules: RelationRules, behind: Hashable, plain: tuple[Condition, ...]
    ) -> None:
        """Adds the results that are no aggregates, of one table."""
        if rules.item is not None:
            query.add(item, rules.item, behind, (), _increment(_COLUMNS))
        if rules.other is not None:
            query.add(item, rules.other, behind, plain, (*_increment(_COLUMNS), *_increment(_OTHER)))

    def _add_tail(
        self,
        query: Automaton,
        scope: Scope,
        inside: Sequence[RelationRules],
        plain: tuple[Condition, ...],
        distinct: tuple[Condition, ...],
    ) -> None:
        """Adds WHERE and ORDER BY of a query without aggregates."""
        query.add(("tail", scope), self._where(inside), ("order", scope))
        query.add(("order", scope), (), "last")
        keys = [key for each in inside if (key := each.column(*COMPARABLE, in_order=True)) is not None]
        if keys:
            order: Part = Many((list(keys), self._direction()), ", ", MAX_ORDERED)
            rule = self._once(("order", scope, id(inside[0])), order, "order")
            query.add(("order", scope), (" ORDER BY ", rule), "last", plain)
        query.add(("order", scope), (" ORDER BY ", "1", self._direction()), "last", distinct)

    def _add_group(self, query: Automaton, scope: Scope, inside: Sequence[RelationRules]) -> None:
        """Adds WHERE, GROUP BY, HAVING and ORDER BY of a query with aggregates.

        The columns of GROUP BY are the first results, by their positions, so that all others are aggregates.
        """
        query.add(("group", scope), self._where(inside), ("by", scope))
        query.add(("by", scope), (), "last", _condition(_COLUMNS, 0, 0))
        for number in range(1, MAX_GROUPED + 1):
            positions = ", ".join(map(str, range(1, number + 1)))
            query.add(("by", scope), f" GROUP BY {positions}", ("having", scope), _condition(_COLUMNS, number, number))
        count: Part = ("COUNT(*)", self._shared.compare, self._shared.number)
        having: Part = Many([count, *(each.having for each in inside)], self._shared.logic, MAX_CONDITIONS)
        rule = self._once(("having", scope, id(inside[0])), having, "conditions of aggregates")
        query.add(("having", scope), optional(" HAVING ", rule), ("sort", scope))
        keys: list[Part] = ["1", "2", "COUNT(*)", *(each.aggregate for each in inside)]
        order = self._once(("sort", scope, id(inside[0])), Many((keys, self._direction()), ", ", MAX_ORDERED), "order")
        query.add(("sort", scope), optional(" ORDER BY ", order), "last")

    def _where(self, inside: Sequence[RelationRules]) -> Part:
        return optional(" WHERE ", self._conditions.all_of(inside))

    def _direction(self) -> Part:
        return optional(self._writer.words(" ASC", " DESC"))

    def _count(self) -> int:
        return self._once("count", ("COUNT(*)", optional(" AS ", self._shared.alias)), "count")

    def _product(self, pair: Scope, rules: Mapping[int, RelationRules]) -> int | None:
        """Returns the sum or average of a product of two numbers, of two tables that are joined with each other."""
        first, second = (rules[n].column(*NUMBERS) for n in sorted(pair))
        if pair not in self._between or first is None or second is None:
            return None
        factors: list[Part] = [(first, " * ", second), (second, " * ", first)]
        made: Part = (self._writer.words("SUM(", "AVG("), factors, ")", optional(" AS ", self._shared.alias))
        return self._once(("product", pair), made, "product")

    def _from(self, scope: Scope) -> int:
        """Returns the tables of a scope, each joined with one before it."""
        joined = self._conditions.joined
        if len(scope) == 1:
            (n,) = scope
            return self._once(("from", scope), joined[n].table, "table")
        if ("from", scope) in self._joins:
            return self._joins["from", scope]
        ways: list[Part] = []
        for n in sorted(scope):
            others = scope - {n}
            on = [self._on(link) for other in sorted(others) for link in self._between.get(frozenset((n, other)), ())]
            if on and self._is_joined(others):
                join = self._writer.words(" JOIN ", " LEFT JOIN ")
                ways.append((self._from(others), join, joined[n].table, " ON ", list(on)))
        return self._once(("from", scope), ways, "joined tables")

    def _is_joined(self, scope: Scope) -> bool:
        return len(scope) == 1 or scope in self._known

    def _on(self, link: Link) -> int:
        """Returns the condition of a join."""
        left, right = self._conditions.joined[link.left], self._conditions.joined[link.right]
        pairs = [(left.qualified([a]), right.qualified([b])) for a, b in zip(link.own, link.theirs, strict=True)]
        ways = [tuple(part for pair in pairs for part in (" AND ", *_equal(pair, side)))[1:] for side in (1, -1)]
        return self._once(("on", link), list(ways), "condition of a join")

    def _once(self, key: object, part: Part, name: str) -> int:
        """Returns the rule with this key, made when it is first asked for."""
        if key not in self._joins:
            self._joins[key] = self._writer.rule(name, part)
        return self._joins[key]


def _subsets(scope: Scope) -> list[Scope]:
    """Returns all sets of some tables of a scope, the empty one included."""
    return [frozenset(each) for size in range(len(scope) + 1) for each in combinations(sorted(scope), size)]


def _equal(pair: tuple[Part, Part], side: int) -> tuple[Part, Part, Part]:
    first, second = pair[::side]
    return first, " = ", second


def _condition(slot: int, least: int, most: int) -> tuple[Condition, ...]:
    return (Condition(slot, least, most),)


def _increment(slot: int) -> tuple[tuple[Action, int], ...]:
    return ((Action.INCREMENT, slot),)
