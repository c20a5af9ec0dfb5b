"""Objects with keys in any order whose formulas are tested against memory of the members read.

An automaton of remaining questions (``formulas.objects``) has a state for every set of keys that may have been read,
unless different sets leave the same questions. But memory holds the keys anyway, since no key may repeat. So here
memory answers the questions of ``object_questions``. For each key, a counter records whether it was read, and the
*cell* of its value (a cell is one combination of answers). Each class of undeclared keys has flags (a value violates G)
and, if needed, a number of members. The object may end where the formulas hold of memory. A member may be read if the
formulas can still hold of an object that has it (``viability``).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.formulas.disjoint import DISCRIMINATOR_DEPTH, are_disjoint, satisfying_both
from constrain.json_schema.formulas.formulas import ALWAYS, NEVER, Decisions
from constrain.json_schema.formulas.remembered.questions import (
    ANSWER,
    LEVEL,
    PRESENT,
    UNBROKEN,
    Key,
    UndeclaredKeys,
    ValueCell,
    Variable,
)
from constrain.json_schema.formulas.remembered.viability import Members, Viability, clusters
from constrain.json_schema.shapes.combined import atoms, names_in_order
from constrain.json_schema.shapes.data import ANY, NOTHING, Goal, ObjectShape
from constrain.json_schema.shapes.key_partition import partition
from constrain.json_schema.shapes.objects import key_goals
from constrain.work import MAX_COUNTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.json_schema.shapes.data import Atom, Combination, Formula
    from constrain.json_schema.shapes.goals import Goals

CELLS = 100
"""Combinations of answers that the values of one key may give here; with more, an automaton of remaining questions is
tried instead."""

LEVELS = 200
"""Members of a class of undeclared keys that are counted here; with more, an automaton of remaining questions is tried
instead."""


class RememberedMembers(Members):
    """The variables, and the parts that must hold, as diagrams. Raises LimitError."""

    def __init__(self, goals: Goals, shape: Combination) -> None:
        base = shape.base
        assert isinstance(base, ObjectShape)
        found = list(atoms(shape.formulas))
        self._shapes = [base]
        for atom in found:
            assert isinstance(atom.shape, ObjectShape)
            self._shapes.append(atom.shape)
        names = names_in_order(shape)
        self.keys = [Key(name) for name in names]
        self.classes = [UndeclaredKeys(shared) for shared in partition(self._shapes, names)]
        self._goals_of = [key_goals(each, names) for each in self._shapes]
        self._by_name = {key.name: key for key in self.keys}
        self.variables: list[Variable] = []
        self.decisions = Decisions()
        self._thresholds: dict[int, int] = {}
        self._number_variables()
        self._divide(goals)
        self.parts = clusters(self.decisions, self._parts(shape.formulas, found))
        self._unproductive: set[Goal] = set()
        self._viability = Viability(self, lambda _: True)
        for owner in self.owners():
            owner.cells = [cell for _, cell in self._viability.ways(owner)]
        goals.explore(sum(map(self.decisions.size, self._viability.tests())))

    # Variables.

    def _add(self, kind: int, owner: Key | UndeclaredKeys, number: int = 0) -> int:
        self.variables.append(Variable(kind, owner, number))
        return len(self.variables) - 1

    def _number_variables(self) -> None:
        """Numbers the variables: bounds on members first, then keys of one shape together, for small diagrams."""
        sizes = {size for shape in self._shapes for size in _sizes(shape)}
        order = dict.fromkeys(name for shape in self._shapes[1:] for name in (*shape.properties, *shape.required))
        asked = {name for shape in self._shapes for name in shape.required}
        for each in self.classes:
            wanted = dict.fromkeys(each.shared.goals[1:])
            each.valued = {goal: self._add(UNBROKEN, each) for goal in wanted if goal is not ANY}
            if each.number > MAX_COUNTER and each.number != inf:
                raise LimitError(f"a bound on the number of members exceeds MAX_COUNTER = {MAX_COUNTER}")
            # where values matter, the last possible member does, too
            most = inf if each.valued and each.number != inf else max(sizes, default=0)
            levels = min(each.number, most)
            if levels > LEVELS:
                raise LimitError("too many undeclared keys to count")
            each.levels = [self._add(LEVEL, each, number) for number in range(1, int(levels) + 1)]
        for name in dict.fromkeys((*order, *self._by_name)):
            key = self._by_name[name]
            wanted = dict.fromkeys(of_key[name] for of_key in self._goals_of[1:])
            if sizes or name in asked or wanted.keys() - {ANY}:
                key.present = self._add(PRESENT, key)
                key.valued = {
                    goal: self._add(ANSWER, key) for goal in wanted if goal is not ANY and goal is not NOTHING
                }

    def _divide(self, goals: Goals) -> None:
        base = self._goals_of[0]
        for key in self.keys:
            key.cells = _cells(goals, base[key.name], key.valued)
        for each in self.classes:
            each.cells = _cells(goals, each.shared.goals[0], each.valued)

    # Diagrams.

    def _parts(self, formulas: tuple[Formula, ...], found: list[Atom]) -> list[int]:
        indices = {atom: index for index, atom in enumerate(found, 1)}
        known: dict[Formula, int] = {}
        parts = [self.decisions.variable(self._by_name[name].present) for name in self._shapes[0].required]
        parts += self._size_conditions(self._shapes[0])
        parts += (self.decisions.build(formula, lambda atom: self._holds(indices[atom]), known) for formula in formulas)
        return parts

    def _holds(self, index: int) -> int:
        """Returns the condition that an object has a shape."""
        choose, variable = self.decisions.choose, self.decisions.variable
        shape = self._shapes[index]
        required = set(shape.required)
        conditions = self._size_conditions(shape)
        for name, goal in self._goals_of[index].items():
            key = self._by_name[name]
            if goal is ANY and name not in required:
                continue
            value = ALWAYS if goal is ANY else NEVER if goal is NOTHING else variable(key.valued[goal])
            conditions.append(choose(variable(key.present), value, NEVER if name in required else ALWAYS))
        for each in self.classes:
            goal = each.shared.goals[index]
            if goal is not ANY:
                conditions.append(variable(each.valued[goal]))
        node = ALWAYS
        for condition in sorted(conditions, reverse=True):
            node = choose(condition, node, NEVER)
        return node

    def _size_conditions(self, shape: ObjectShape) -> list[int]:
        least, most = _bounds(shape)
        found = [] if least == 0 else [self._at_least(least)]
        if most is not None:
            found.append(self.decisions.choose(self._at_least(most + 1), NEVER, ALWAYS))
        return found

    def _at_least(self, size: int) -> int:
        """Returns the condition that there are at least ``size`` members."""
        known = self._thresholds.get(size)
        if known is None:
            rest = missing = [ALWAYS] + [NEVER] * size  # by number of missing members; ``rest``: the other owners
            for number in range(len(self.variables) - 1, -1, -1):
                kind, owner, level = self.variables[number]
                if kind == PRESENT or (isinstance(owner, UndeclaredKeys) and level == len(owner.levels)):
                    rest = missing
                if kind in (PRESENT, LEVEL):
                    asked = self.decisions.variable(number)
                    more = (self.decisions.choose(asked, missing[n - 1], rest[n]) for n in range(1, size + 1))
                    missing = [ALWAYS, *more]
            known = self._thresholds[size] = missing[size]
        return known

    # The methods that all automata of combinations share.

    def owners(self) -> Iterator[Key | UndeclaredKeys]:
        """Yields the keys and classes that have members."""
        yield from self.keys
        yield from self.classes

    @property
    def viability(self) -> Viability:
        """Returns the conditions for reading each member, by goals that admit a value."""
        unproductive = {goal for goal in self.goals() if not goal.productive}
        if unproductive != self._unproductive:
            self._unproductive = unproductive
            self._viability = Viability(self, lambda cell: cell.goal not in unproductive)
        return self._viability

    def goals(self) -> Iterable[Goal]:
        """Yields the goals of all members."""
        return (cell.goal for owner in self.owners() for cell in owner.cells)

    def has_endless_keys(self) -> bool:
        """Returns whether the objects may have infinitely many different keys."""
        return any(any(self.viability.first(each)) for each in self.classes if each.number == inf)

    def useful_goals(self) -> Iterable[Goal]:
        """Yields the goals of members that objects have."""
        for owner in self.owners():
            yield from self.viability.first(owner)

    def holds(self, answers: dict[int, bool]) -> bool:
        """Returns whether all parts hold with these answers; the other answers are of an empty object."""
        given = [answers.get(number, variable.true_of_none) for number, variable in enumerate(self.variables)]
        return all(self.decisions.follow(part, given) == ALWAYS for part in self.parts)

    def is_productive(self) -> bool:
        """Returns whether a known object satisfies all parts."""
        return self.viability.is_satisfiable()

    def blockers(self) -> list[Goal] | None:
        """Returns the goals that are not known to admit a value; ``None`` if the object is known to admit one."""
        if self.is_productive():
            return None
        return [goal for goal in self.goals() if not goal.productive]


def _cells(goals: Goals, base: Goal, valued: dict[Goal, int]) -> list[ValueCell]:
    """Returns the values of a member, divided by their answers."""
    found = [] if base is NOTHING else [ValueCell(base, ())]
    for goal, variable in valued.items():
        goals.count_cases(len(found))
        divided = []
        for cell in found:
            if are_disjoint(goals, goals.shapes(cell.goal), goals.shapes(goal), DISCRIMINATOR_DEPTH):
                divided.append(cell._replace(answers=(*cell.answers, (variable, False))))
                continue
            satisfied = satisfying_both(goals, cell.goal, goal)
            violated = goals.conjunction(cell.goal, goals.negation(goal))
            for both, answer in ((satisfied, True), (violated, False)):
                if both is not NOTHING and any(goals.shapes(both)):
                    divided.append(ValueCell(both, (*cell.answers, (variable, answer))))
        found = divided
        if len(found) > CELLS:
            raise LimitError("too many cases of the values of one key")
    return found


def _bounds(shape: ObjectShape) -> tuple[int, int | None]:
    """Returns the least and greatest number of members, if the shape bounds them beyond its required keys."""
    return shape.minimum if shape.minimum > len(shape.required) else 0, shape.maximum


def _sizes(shape: ObjectShape) -> list[int]:
    least, most = _bounds(shape)
    return ([] if least == 0 else [least]) + ([] if most is None else [most + 1])
