"""Boolean formulas over shapes, and binary decision diagrams (Bryant 1986) that decide them.

A formula says which of several shapes one value must and must not have. Formulas share parts and compare by identity,
so that deeply nested ``oneOf`` stays small; the diagrams are ordered by the variables' numbers and canonical: equal
conditions are equal numbers.
"""

# ruff: noqa: FBT001, FBT003  (truth values are what this is about)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from constrain._errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from constrain.json_schema.arrays import ArrayShape
    from constrain.json_schema.goal import Goal
    from constrain.json_schema.objects import ObjectShape

MAX_DECISIONS = 30_000
"""Nodes of the decision diagrams of one value: real schemas need some dozens."""


class ItemCount(NamedTuple):
    """Arrays in which at least ``number`` items satisfy ``goal``."""

    goal: Goal
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """The value has this shape."""

    shape: ObjectShape | ArrayShape | ItemCount


@dataclass(frozen=True, slots=True, eq=False)
class Not:
    """The part does not hold."""

    part: Formula


@dataclass(frozen=True, slots=True, eq=False)
class And:
    """All parts hold."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Or:
    """At least one part holds."""

    parts: tuple[Formula, ...]


Formula = Atom | Not | And | Or


def negated(formula: Formula) -> Formula:
    """The formula that holds where this one does not."""
    return formula.part if isinstance(formula, Not) else Not(formula)


def atoms(formulas: tuple[Formula, ...]) -> Iterator[Atom]:
    """The atoms of the formulas, each once, from left to right."""
    seen: set[Formula] = set()
    stack = list(reversed(formulas))
    while stack:
        formula = stack.pop()
        if formula in seen:
            continue
        seen.add(formula)
        match formula:
            case Atom():
                yield formula
            case Not(part):
                stack.append(part)
            case And(parts) | Or(parts):
                stack += reversed(parts)


FALSE, TRUE = 0, 1
"""The diagrams of the conditions that never and always hold."""

NO_VARIABLE = 1 << 60
"""Comes after all variables: what those two ask for."""


class Decisions:
    """Decision diagrams that share their nodes. A node asks for one variable: ``low`` if it is false, ``high`` if true.

    No node asks for a variable that one above it has asked for, and none has two equal branches. Diagrams are as deep
    as there are variables, so nothing here recurs.
    """

    def __init__(self, limit: int = MAX_DECISIONS) -> None:
        self._limit = limit
        self._nodes: list[tuple[int, int, int]] = [(NO_VARIABLE, 0, 0), (NO_VARIABLE, 1, 1)]
        self._supports: list[int] = [0, 0]
        self._ids: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}

    def variable(self, number: int) -> int:
        """The condition that this variable is true."""
        return self._node(number, FALSE, TRUE)

    def conjunction(self, literals: Iterable[tuple[int, bool]]) -> int:
        """The condition that these variables have these values."""
        node = TRUE
        for variable, wanted in sorted(set(literals), reverse=True):
            asked = self.variable(variable)
            node = self.choose(asked, node, FALSE) if wanted else self.choose(asked, FALSE, node)
        return node

    def support(self, node: int) -> int:
        """The variables that the condition depends on, as bits."""
        return self._supports[node]

    def _node(self, variable: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = variable, low, high
        found = self._ids.get(key)
        if found is None:
            if len(self._nodes) > self._limit:
                raise LimitError(f"schemas combine to more cases than MAX_DECISIONS = {self._limit} allows")
            found = self._ids[key] = len(self._nodes)
            self._nodes.append(key)
            self._supports.append(self._supports[low] | self._supports[high] | 1 << variable)
        return found

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        """``then`` where ``condition`` holds, ``otherwise`` elsewhere."""
        stack = [(condition, then, otherwise)]
        while True:
            key = stack[-1]
            found = self._chosen(*key)
            if found is None:
                variable = min(self._nodes[part][0] for part in key)
                lower = self._branches(key, variable, False)
                higher = self._branches(key, variable, True)
                low, high = self._chosen(*lower), self._chosen(*higher)
                if low is None:
                    stack.append(lower)
                    continue
                if high is None:
                    stack.append(higher)
                    continue
                found = self._choices[key] = self._node(variable, low, high)
            stack.pop()
            if not stack:
                return found

    def _chosen(self, condition: int, then: int, otherwise: int) -> int | None:
        if condition == TRUE or then == otherwise:
            return then
        if condition == FALSE:
            return otherwise
        if then == TRUE and otherwise == FALSE:
            return condition
        return self._choices.get((condition, then, otherwise))

    def _branches(self, key: tuple[int, int, int], variable: int, value: bool) -> tuple[int, int, int]:
        condition, then, otherwise = key
        return (
            self._branch(condition, variable, value),
            self._branch(then, variable, value),
            self._branch(otherwise, variable, value),
        )

    def _branch(self, node: int, variable: int, value: bool) -> int:
        asked, low, high = self._nodes[node]
        return (high if value else low) if asked == variable else node

    def set(self, node: int, variable: int, value: bool) -> int:
        """What is left of a condition once a variable is known."""
        bit = 1 << variable
        if not self._supports[node] & bit:
            return node
        known: dict[int, int] = {}
        stack = [node]
        while stack:
            top = stack[-1]
            asked, low, high = self._nodes[top]
            if asked == variable:
                known[top] = high if value else low
            else:
                waiting = [part for part in (low, high) if self._supports[part] & bit and part not in known]
                if waiting:
                    stack += waiting
                    continue
                known[top] = self._node(asked, known.get(low, low), known.get(high, high))
            stack.pop()
        return known[node]

    def follow(self, node: int, answers: Sequence[bool]) -> int:
        """What a condition comes to if each variable has the value at its index in ``answers``."""
        while node > TRUE:
            variable, low, high = self._nodes[node]
            node = high if answers[variable] else low
        return node

    def build(self, formula: Formula, of_atom: Callable[[Atom], int], known: dict[Formula, int]) -> int:
        """The diagram of a formula; ``known`` remembers those of its parts."""
        found = known.get(formula)
        if found is None:
            match formula:
                case Atom():
                    found = of_atom(formula)
                case Not(part):
                    found = self.choose(self.build(part, of_atom, known), FALSE, TRUE)
                case And(parts):
                    found = TRUE
                    for part in parts:
                        found = self.choose(found, self.build(part, of_atom, known), FALSE)
                case Or(parts):
                    found = FALSE
                    for part in parts:
                        found = self.choose(found, TRUE, self.build(part, of_atom, known))
            known[formula] = found
        return found
