"""Objects whose formulas fall into groups without common keys: one small automaton for each group.

One automaton for all keys would have the product of the groups' states. Here a rule keeps the state of each group in a
counter of its own. This is possible if no formula mentions undeclared keys or the number of members: then the groups
are independent, and an object is complete once each group is.

The state of a group is a decision diagram, as in ``shape_automaton``. Reading or skipping a key keeps the diagram or
leads to one with fewer questions, so states are numbered in the order of the path.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.json_schema.formulas.cases import Case, Cases
from constrain.json_schema.formulas.formulas import NEVER
from constrain.json_schema.formulas.object_questions import AboutKeys, AboutShapes, ObjectQuestions
from constrain.json_schema.shapes.combined import atoms
from constrain.json_schema.shapes.data import ANY, NOTHING, Combination, Goal, ObjectShape
from constrain.json_schema.shapes.key_partition import partition
from constrain.json_schema.shapes.objects import key_goals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.shapes.data import Formula
    from constrain.json_schema.shapes.goals import Goals
    from constrain.json_schema.shapes.keys import KeyClass

MIN_GROUPS = 5
"""Least number of groups that get their own automata; fewer are cheap in one automaton, which needs no memory."""

MAX_CAPTURE_WORK = 200
"""Number of states of one group; with more, one automaton covers all keys instead."""


class Change(NamedTuple):
    """A transition: a key is read with a value for ``goal``, or skipped (``goal`` is ``None``).

    States are numbered; ``place`` is the key's place in the object.
    """

    place: int
    before: int
    after: int
    goal: Goal | None


class Group:
    """The automaton of the formulas that name some keys. State 0 is the start."""

    def __init__(self, places: list[int]) -> None:
        self.places = places  # of its keys, ascending
        self.changes: list[Change] = []
        self.accepting: set[int] = set()  # after its last key; in any order: with the other keys missing
        self.states = 0

    def useful(self, *, any_order: bool) -> list[Change]:
        """Returns the changes that lead to an accepting state through goals that admit a value."""
        changes = [change for change in self.changes if change.goal is None or change.goal.productive]
        if any_order:  # a change never leads to a smaller number
            live = set(self.accepting)
            for change in sorted(changes, key=lambda change: -change.before):
                if change.after in live:
                    live.add(change.before)
            return [change for change in changes if change.before in live and change.after in live]
        found: list[Change] = []
        live = set(self.accepting)
        for place in reversed(self.places):
            here = [change for change in changes if change.place == place and change.after in live]
            live = {change.before for change in here}
            found += here
        return found

    def is_productive(self, *, any_order: bool) -> bool:
        """Returns whether a known object satisfies the formulas."""
        return 0 in self.accepting or any(change.before == 0 for change in self.useful(any_order=any_order))


class IndependentKeys:
    """The keys of an object in their order, its groups, and the classes of undeclared keys.

    ``free``: goals of keys that are in no group, by place, and whether they are required.
    """

    def __init__(self, names: list[str], *, any_order: bool) -> None:
        self.names = names
        self.any_order = any_order
        self.groups: list[Group] = []
        self.free: dict[int, tuple[Goal, bool]] = {}
        self.classes: list[tuple[KeyClass, Goal]] = []

    def goals(self) -> Iterable[Goal]:
        """Yields the goals of all members."""
        for group in self.groups:
            yield from (change.goal for change in group.changes if change.goal is not None)
        yield from (goal for goal, _ in self.free.values())
        yield from (goal for _, goal in self.classes)

    def has_endless_keys(self) -> bool:
        """Returns whether the objects may have infinitely many different keys."""
        return any(goal.productive for _, goal in self.classes)

    def useful_goals(self) -> Iterable[Goal]:
        """Yields the goals of members that objects have; two values of each optional key give endlessly many."""
        return self.goals()

    def is_productive(self) -> bool:
        """Returns whether a known object satisfies all groups."""
        return all(goal.productive for goal, required in self.free.values() if required) and all(
            group.is_productive(any_order=self.any_order) for group in self.groups
        )

    def blockers(self) -> list[Goal] | None:
        """Returns the goals that are not known to admit a value; ``None`` if the object is known to admit one."""
        if self.is_productive():
            return None
        return [goal for goal in self.goals() if not goal.productive]


def independent_keys(goals: Goals, shape: Combination) -> IndependentKeys | None:
    """Returns the groups of a combination; ``None`` if they are few or depend on one another."""
    base = shape.base
    assert isinstance(base, ObjectShape)
    if len(shape.formulas) < MIN_GROUPS or base.minimum > len(base.required) or base.maximum is not None:
        return None
    parts = _parts(shape.formulas)
    if parts is None or len(parts) < MIN_GROUPS:
        return None
    any_order = goals.policies.property_order == "any"
    names = dict.fromkeys(base.properties)  # in the order of one automaton for all keys
    for atom in atoms(shape.formulas):
        assert isinstance(atom.shape, ObjectShape)
        names.update(dict.fromkeys((*atom.shape.properties, *atom.shape.required)))
    names.update(dict.fromkeys(base.required))
    result = IndependentKeys(list(names), any_order=any_order)
    for shared in partition([base], result.names):
        if shared.keys.number != inf:
            return None
        result.classes.append((shared.keys, shared.goals[0]))
    places = {name: place for place, name in enumerate(names)}
    base_goals = key_goals(base, names)
    required = set(base.required)
    grouped: set[str] = set()
    for keys, formulas in parts:
        own = sorted(keys, key=places.__getitem__)
        grouped.update(own)
        kept = ObjectShape(
            {name: base_goals[name] for name in own}, tuple(name for name in own if name in required), (), NOTHING
        )
        group = _group(goals, Combination(kept, formulas), [places[name] for name in own], any_order=any_order)
        if group is None:
            return None
        result.groups.append(group)
    result.free = {place: (base_goals[name], name in required) for name, place in places.items() if name not in grouped}
    return result


def _parts(formulas: tuple[Formula, ...]) -> list[tuple[set[str], tuple[Formula, ...]]] | None:
    """Returns the formulas in groups, each with its keys; ``None`` if a formula mentions more than named keys."""
    owner: dict[str, int] = {}
    parts: dict[int, tuple[set[str], list[Formula]]] = {}
    for number, formula in enumerate(formulas):
        keys: set[str] = set()
        for atom in atoms((formula,)):
            shape = atom.shape
            if not isinstance(shape, ObjectShape) or shape.patterns or shape.additional is not ANY:
                return None
            if shape.maximum is not None or shape.minimum > len(shape.required):
                return None
            keys.update(shape.properties, shape.required)
        together = [formula]
        for other in sorted({owner[key] for key in keys if key in owner}):
            theirs, earlier = parts.pop(other)
            keys |= theirs
            together = earlier + together
        parts[number] = keys, together
        owner.update(dict.fromkeys(keys, number))
    return [(keys, tuple(together)) for keys, together in parts.values()]


def _group(goals: Goals, shape: Combination, places: list[int], *, any_order: bool) -> Group | None:
    if not any_order:
        try:
            return _explored(goals, AboutShapes(shape, any_order=False), places)
        except LimitError:
            pass  # variables for keys may be smaller
    return _explored(goals, AboutKeys(shape, any_order=any_order), places)


def _explored(goals: Goals, questions: ObjectQuestions, places: list[int]) -> Group | None:
    search = _GroupSearch(goals, questions)
    found = search.in_any_order() if questions.any_order else search.in_schema_order()
    if not found:
        return None
    group = Group(places)
    numbers = _numbered(search.nodes, search.ways)
    group.states = len(numbers)
    last = len(questions.names)
    group.accepting = {numbers[node] for node in search.ends if questions.closes(node, last)}
    group.changes = [Change(places[way.key], numbers[way.before], numbers[way.after], way.goal) for way in search.ways]
    return group


class _Way(NamedTuple):
    """A transition of a group that is still being searched: it reads or skips a key.

    ``key``: index of the key. ``before``, ``after``: the group's decision diagrams around it, which become states.
    ``goal``: what the key's value must satisfy; ``None`` if the key is skipped.
    """

    key: int
    before: int
    after: int
    goal: Goal | None


class _GroupSearch:
    """Finds the diagrams of a group and the transitions between them. ``ends``: diagrams after all keys.

    Unlike the states of ``exploration``, diagrams do not record the next key.
    """

    def __init__(self, goals: Goals, questions: ObjectQuestions) -> None:
        self.goals = goals
        self.questions = questions
        self.cases = Cases(goals, questions.decisions)
        self.nodes: dict[int, None] = {questions.node: None} if questions.node != NEVER else {}
        self.ends: list[int] = []
        self.ways: list[_Way] = []

    def in_any_order(self) -> bool:
        """Searches with every key as the next; returns whether at most MAX_CAPTURE_WORK were found."""
        queue = self.ends = list(self.nodes)
        for node in queue:
            self.goals.explore()
            for index in range(len(self.questions.names)):
                for after in self._add(node, index, self._read(node, index, 0)):
                    if after not in self.nodes:
                        self.nodes[after] = None
                        queue.append(after)
            if len(queue) > MAX_CAPTURE_WORK:
                return False
        return True

    def in_schema_order(self) -> bool:
        """Searches key by key; returns whether at most MAX_CAPTURE_WORK were found."""
        questions = self.questions
        required = set(questions.base.required)
        level = dict(self.nodes)
        for index, name in enumerate(questions.names):
            following: dict[int, None] = {}
            for node in level:
                self.goals.explore()
                ways = self._read(node, index, index + 1)
                if name not in required:
                    ways.append((questions.settled(questions.skipped(node, index), index + 1), None))
                following.update(dict.fromkeys(self._add(node, index, ways)))
            self.nodes.update(following)
            level = following
            if len(self.nodes) > MAX_CAPTURE_WORK:
                return False
        self.ends = list(level)
        return True

    def _read(self, node: int, index: int, position: int) -> list[tuple[int, Goal | None]]:
        """Returns the diagram after the key is read, for each case of its value, with the goal of the case."""
        questions = self.questions
        case = Case(questions.key_goals[0][questions.names[index]], questions.present(node, index), (0,))
        cases = self.cases.split(case, questions.about_value(index))
        return [(questions.settled(each.node, position), each.goal) for each in cases]

    def _add(self, node: int, index: int, ways: list[tuple[int, Goal | None]]) -> list[int]:
        """Adds the transitions after which the formulas can still hold; returns their targets."""
        possible = [(after, goal) for after, goal in ways if after != NEVER]
        self.ways += (_Way(index, node, after, goal) for after, goal in possible)
        return [after for after, _ in possible]


def _numbered(nodes: Iterable[int], ways: list[_Way]) -> dict[int, int]:
    """Returns a number for each diagram, greater than the numbers of its predecessors."""
    after: dict[int, set[int]] = {node: set() for node in nodes}
    waiting = dict.fromkeys(after, 0)
    for _, source, target, _ in ways:
        if target != source and target not in after[source]:
            after[source].add(target)
            waiting[target] += 1
    ready = [node for node, count in waiting.items() if count == 0]
    for node in ready:
        for target in after[node]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    assert len(ready) == len(after)
    return {node: number for number, node in enumerate(ready)}
