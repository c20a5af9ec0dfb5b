"""Automata of objects that satisfy formulas, and the members that may come next."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.formulas.cases import Case, Cases
from constrain.json_schema.formulas.disjoint import DISCRIMINATOR_DEPTH, are_disjoint
from constrain.json_schema.formulas.exploration import Move, State, explore_states
from constrain.json_schema.formulas.formulas import FALSE_FORMULA, NEVER, bits, listed_atoms, simplified
from constrain.json_schema.formulas.independent_keys import MIN_GROUPS, IndependentKeys, independent_keys
from constrain.json_schema.formulas.object_questions import AboutKeys, AboutShapes, ObjectQuestions
from constrain.json_schema.formulas.shape_automaton import ShapeAutomaton
from constrain.json_schema.shapes.combined import names_in_order
from constrain.json_schema.shapes.data import ANY, Combination, ObjectShape, Shapes
from constrain.json_schema.shapes.objects import key_goals
from constrain.work import MAX_CASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.formulas.cases import Counters
    from constrain.json_schema.formulas.remembered.members import RememberedMembers
    from constrain.json_schema.shapes.data import Formula
    from constrain.json_schema.shapes.goals import Goals

MAX_TRACKED_KEYS = 10
"""Keys in any order whose subsets are each a state of the automaton. Beyond: LimitError."""


class ObjectMoves:
    """Yields the next members of an object. Counters: of all members, then of each finite class of undeclared keys."""

    def __init__(self, goals: Goals, questions: ObjectQuestions, *, tracks_keys: bool) -> None:
        self.questions = questions
        self.tracks_keys = tracks_keys
        self.decisions = questions.decisions
        self.cases = Cases(goals, self.decisions)
        self.finite = [index for index, shared in enumerate(questions.classes) if shared.keys.number != inf]
        self.size_bits = bits(questions.sizes.values())
        required = set(questions.base.required)
        self.required = [name in required for name in questions.names]
        self.start = State(offers=False, position=0, node=questions.node, counters=(0,) * (1 + len(self.finite)))

    def closes(self, state: State) -> bool:
        """Returns whether the object may end in this state: then all formulas of its combination hold."""
        return self.questions.closes(state.node, state.position)

    def after(self, state: State) -> Iterator[Move]:
        """Yields the named keys, in their order or in any, and the undeclared keys after or between them."""
        names = self.questions.names
        if self.questions.any_order:
            for index in range(len(names)):
                if not state.read >> index & 1:
                    yield from self._named(state, index, 0)
            yield from self._undeclared(state)
        elif state.position < len(names):
            yield from self._named(state, state.position, state.position + 1)
            if not self.required[state.position]:
                yield from self._left_out(state)
        else:
            yield from self._undeclared(state)

    def _named(self, state: State, index: int, position: int) -> Iterator[Move]:
        questions = self.questions
        name = questions.names[index]
        members = state.counters[0] + 1
        node = self.decisions.reach(questions.present(state.node, index), questions.sizes, members)
        case = Case(questions.key_goals[0][name], node, (members, *state.counters[1:]))
        read = state.read | 1 << index if self.tracks_keys else 0
        for goal, left, counters in self.cases.split(case, questions.about_value(index)):
            node = questions.settled(left, position)
            if node != NEVER:
                yield Move(name, goal, self._state(position, node, counters, read))

    def _left_out(self, state: State) -> Iterator[Move]:
        position = state.position + 1
        node = self.questions.settled(self.questions.skipped(state.node, state.position), position)
        if node != NEVER:
            yield Move(None, None, State(offers=True, position=position, node=node, counters=state.counters))

    def _undeclared(self, state: State) -> Iterator[Move]:
        questions = self.questions
        for index, shared in enumerate(questions.classes):
            members = state.counters[0] + 1
            node = self.decisions.reach(state.node, questions.sizes, members)
            taken = list(state.counters[1:])
            if index in self.finite:
                place = self.finite.index(index)
                if taken[place] >= shared.keys.number:
                    continue
                taken[place] += 1
            case = Case(shared.goals[0], node, (members, *taken))
            for goal, left, counters in self.cases.split(case, questions.about_class(index)):
                if left != NEVER:
                    yield Move(index, goal, self._state(state.position, left, counters, state.read))

    def _state(self, position: int, node: int, counters: Counters, read: int) -> State:
        """Returns the state after a member; the number of members is kept only while it matters."""
        members = counters[0] if self.decisions.support(node) & self.size_bits else 0
        return State(offers=False, position=position, node=node, counters=(members, *counters[1:]), read=read)


def _explored(goals: Goals, questions: ObjectQuestions, *, tracks_keys: bool = False) -> ShapeAutomaton:
    automaton = ShapeAutomaton()
    automaton.any_order = questions.any_order
    automaton.classes = [shared.keys for shared in questions.classes]
    return explore_states(goals, ObjectMoves(goals, questions, tracks_keys=tracks_keys), automaton)


def _decided(goals: Goals, shape: Combination) -> Combination:
    """Returns an equal combination without the shapes that no object of the base has; the keys keep their order."""
    base = shape.base
    assert isinstance(base, ObjectShape)
    ours = Shapes(objects=(base,))
    impossible: dict[Formula, Formula] = {
        atom: FALSE_FORMULA
        for atom in listed_atoms(shape.formulas, MAX_CASES)
        if isinstance(atom.shape, ObjectShape)
        and are_disjoint(goals, ours, Shapes(objects=(atom.shape,)), DISCRIMINATOR_DEPTH)
    }
    if not impossible:
        return shape
    properties = key_goals(base, names_in_order(shape))
    formulas = tuple(simplified(formula, impossible) for formula in shape.formulas)
    return Combination(base._replace(properties=properties), formulas)


def object_automaton(
    goals: Goals, shape: Combination, pointer: str
) -> ShapeAutomaton | IndependentKeys | RememberedMembers:
    """Returns the automaton of a combination of objects. Raises LimitError."""
    shape = _decided(goals, shape)
    if len(shape.formulas) >= MIN_GROUPS:
        independent = independent_keys(goals, shape)
        if independent is not None:
            return independent
    if goals.policies.property_order == "any":
        from constrain.json_schema.formulas.remembered.members import RememberedMembers

        try:
            return RememberedMembers(goals, shape)
        except LimitError:
            return _in_any_order(goals, shape, pointer)
    try:
        return _explored(goals, AboutShapes(shape, any_order=False))
    except LimitError:
        return _explored(goals, AboutKeys(shape, any_order=False))


def _in_any_order(goals: Goals, shape: Combination, pointer: str) -> ShapeAutomaton:
    """Returns an automaton of remaining questions, or of remembered members if that is smaller."""
    questions = AboutKeys(shape, any_order=True)
    # Where a bound on members counts and keys may run out, the remaining keys matter.
    endless = any(
        key_class.keys.number == inf and all(goal is ANY for goal in key_class.goals) for key_class in questions.classes
    )
    finite = any(key_class.keys.number != inf for key_class in questions.classes)
    runs_out = finite or bool(questions.sizes and not endless)
    if runs_out and len(questions.names) > MAX_TRACKED_KEYS:
        raise LimitError(
            f'property_order="any" allows minProperties or maxProperties beside other conditions for at most '
            f"MAX_TRACKED_KEYS = {MAX_TRACKED_KEYS} keys",
            pointer=pointer,
        )
    return _explored(goals, questions, tracks_keys=runs_out)
