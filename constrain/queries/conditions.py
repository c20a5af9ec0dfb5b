"""Conditions of WHERE: those of single tables, joined by AND and OR, and subqueries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.queries.automata import Many, Part, Writer, optional
from constrain.queries.kinds import NUMBERS, TEXTS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.queries.expressions import Literals, RelationRules
    from constrain.queries.scopes import Link

DEPTH = 2
"""Levels of subqueries inside one another."""

MAX_CONDITIONS = 6
"""Conditions after one WHERE or HAVING, or in one pair of brackets."""

_COMPARED: tuple[tuple[Kind, ...], ...] = (NUMBERS, TEXTS, ("date",), ("datetime",))
"""Kinds of columns that IN looks for in a subquery."""


class Conditions:
    """Rules of conditions.

    Attributes:
        alone: rules of the tables, each alone in its FROM.
        joined: rules of the tables in a FROM with several; the tables come first.
    """

    def __init__(
        self,
        writer: Writer,
        shared: Literals,
        alone: Sequence[RelationRules],
        joined: Sequence[RelationRules],
        links: Sequence[Link],
    ) -> None:
        self._writer = writer
        self._shared = shared
        self.alone = alone
        self.joined = joined
        self._links = links
        self._made: dict[object, int] = {}

    def _once(self, key: object, make: Callable[[], Part], name: str) -> int:
        """Returns the rule with this key, made when it is first asked for."""
        if key not in self._made:
            self._made[key] = self._writer.rule(name, make())
        return self._made[key]

    def all_of(self, inside: Sequence[RelationRules], depth: int = DEPTH) -> int:
        """Returns conditions of some tables, with so many levels of subqueries."""
        key = tuple(map(id, inside))
        single: list[Part] = [self._single(rules, depth) for rules in inside]
        inner = self._once((key, depth, "("), lambda: Many(single, self._shared.logic, MAX_CONDITIONS), "conditions")
        several: Part = ("(", inner, ")")
        outer: list[Part] = [*single, several, ("NOT ", [*single, several])]
        return self._once((key, depth), lambda: Many(outer, self._shared.logic, MAX_CONDITIONS), "conditions")

    def _single(self, rules: RelationRules, depth: int) -> int:
        return self._once((id(rules), depth, "1"), lambda: self._alternatives(rules, depth), "condition")

    def _alternatives(self, rules: RelationRules, depth: int) -> list[Part]:
        found: list[Part] = [rules.condition]
        if depth == 0:
            return found
        membership = self._writer.words(" IN (", " NOT IN (")
        for kinds in _COMPARED:
            left = {NUMBERS: rules.number, TEXTS: rules.text}.get(kinds) or rules.column(*kinds)
            if left is not None:
                found.append((left, membership, self._values(kinds, depth - 1), ")"))
        if rules.number is not None:
            found.append((rules.number, self._shared.compare, "(", self._measure(depth - 1), ")"))
        return found + [self._existence(rules, link) for link in self._links if rules.relation in self._ends(link)]

    def _ends(self, link: Link) -> tuple[object, object]:
        return self.joined[link.left].relation, self.joined[link.right].relation

    def _existence(self, rules: RelationRules, link: Link) -> Part:
        """Returns the condition that a row of the other end of a link exists."""
        is_left = self._ends(link)[0] == rules.relation
        own, theirs = (link.own, link.theirs) if is_left else (link.theirs, link.own)
        n = link.right if is_left else link.left
        other = self.joined[n] if self.joined[n].relation.alias else self.alone[n]
        equal = [(" AND ", other.qualified([theirs[n]]), " = ", rules.qualified([own[n]])) for n in range(1, len(own))]
        first: Part = (other.qualified(theirs[:1]), " = ", rules.qualified(own[:1]))
        more = optional(Many((" AND ", other.condition), (), MAX_CONDITIONS))
        return ("EXISTS (SELECT 1 FROM ", other.table, " WHERE ", first, *equal, more, ")")

    def _values(self, kinds: tuple[Kind, ...], depth: int) -> int:
        """Returns a subquery of one column of these kinds."""

        def make() -> Part:
            columns = [(rules, rules.column(*kinds)) for rules in self.alone]
            found = [self._of(rules, column, depth) for rules, column in columns if column is not None]
            return ("SELECT ", found)

        return self._once((kinds, depth), make, f"subquery of {'/'.join(kinds)}")

    def _measure(self, depth: int) -> int:
        """Returns a subquery of one number in one row."""

        def make() -> Part:
            return ("SELECT ", [self._of(rules, rules.measure, depth) for rules in self.alone])

        return self._once(("measure", depth), make, "subquery of a measure")

    def _of(self, rules: RelationRules, selected: Part, depth: int) -> Part:
        return (selected, " FROM ", rules.table, optional(" WHERE ", self.all_of([rules], depth)))
