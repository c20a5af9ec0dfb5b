"""Objects that satisfy formulas: the automaton that asks their members the questions."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.json_schema.formulas.formulas import FALSE
from constrain.json_schema.formulas.independent_keys import MIN_GROUPS, IndependentKeys, independent_keys
from constrain.json_schema.formulas.object_questions import AboutKeys, AboutShapes, Counters, ObjectQuestions
from constrain.json_schema.formulas.shape_automaton import START, Case, Cases, Read, ShapeAutomaton
from constrain.json_schema.shapes.data import ANY

if TYPE_CHECKING:
    from constrain.json_schema.formulas.remembered.members import RememberedMembers
    from constrain.json_schema.shapes.data import Combined
    from constrain.json_schema.shapes.goals import Goals

MAX_TRACKED_KEYS = 10
"""Keys in any order of which every set that may have been read is a state of its own."""


class State(NamedTuple):
    """``position``: how many named keys had their turn (0 in any order). ``offers``: a member must follow.

    ``read``: the named keys that were read, as bits, where that must be known.
    """

    offers: bool
    position: int
    node: int
    counters: Counters
    read: int = 0


class _Builder:
    """Explores the states."""

    def __init__(self, goals: Goals, questions: ObjectQuestions, *, tracks_keys: bool = False) -> None:
        self.tracks_keys = tracks_keys
        self.goals = goals
        self.questions = questions
        self.decisions = questions.decisions
        self.cases = Cases(goals, self.decisions)
        self.automaton = ShapeAutomaton()
        self.automaton.any_order = questions.any_order
        self.automaton.classes = [key_class.keys for key_class in questions.classes]
        self.finite = [index for index, keys in enumerate(self.automaton.classes) if keys.number != inf]
        self.size_bits = sum(1 << variable for variable in questions.sizes.values())
        self.ids: dict[State, int] = {}
        self.queue: list[State] = []
        required = set(questions.base.required)
        self.required = [name in required for name in questions.names]

    def build(self) -> ShapeAutomaton:
        zeros = (0,) * (1 + len(self.finite))
        if self.questions.node == FALSE:
            return self.automaton
        self.add_after(State(offers=False, position=0, node=self.questions.node, counters=zeros), START)
        for state in self.queue:
            self.goals.explore()
            if state.offers:
                self.add_offer(state)
            else:
                self.add_after(state, self.ids[state])
        return self.automaton

    def state(self, state: State) -> int:
        """The number of a state; a new one is explored later."""
        found = self.ids.get(state)
        if found is None:
            found = self.ids[state] = len(self.ids)
            self.queue.append(state)
        return found

    def add_after(self, state: State, number: int) -> None:
        if self.questions.closes(state.node, state.position):
            self.automaton.closing.add(number)
        offer = State(offers=True, position=state.position, node=state.node, counters=state.counters, read=state.read)
        self.automaton.go_on.append((number, self.state(offer)))

    def add_offer(self, state: State) -> None:
        names = self.questions.names
        if self.questions.any_order:
            for index in range(len(names)):
                if not state.read >> index & 1:
                    self.add_named(state, index, 0)
            self.add_classes(state)
        elif state.position < len(names):
            self.add_named(state, state.position, state.position + 1)
            if not self.required[state.position]:
                self.add_skip(state)
        else:
            self.add_classes(state)

    def add_named(self, state: State, index: int, position: int) -> None:
        questions = self.questions
        node, members = self.counted(questions.present(state.node, index), state.counters[0])
        case = Case(questions.key_goals[0][questions.names[index]], node, (members, *state.counters[1:]))
        read = state.read | 1 << index if self.tracks_keys else 0
        for found in self.cases.split(case, questions.about_value(index)):
            self.add_read(state, questions.names[index], position, found, read)

    def add_skip(self, state: State) -> None:
        position = state.position + 1
        node = self.questions.settled(self.questions.skipped(state.node, state.position), position)
        if node != FALSE:
            target = self.state(State(offers=True, position=position, node=node, counters=state.counters))
            self.automaton.skips.append((self.ids[state], target))

    def add_classes(self, state: State) -> None:
        for index, key_class in enumerate(self.questions.classes):
            node, members = self.counted(state.node, state.counters[0])
            taken = list(state.counters[1:])
            if index in self.finite:
                place = self.finite.index(index)
                if taken[place] >= key_class.keys.number:
                    continue
                taken[place] += 1
            case = Case(key_class.goals[0], node, (members, *taken))
            for found in self.cases.split(case, self.questions.about_class(index)):
                self.add_read(state, index, state.position, found, state.read)

    def add_read(self, state: State, label: str | int, position: int, case: Case, read: int) -> None:
        node = case.node if isinstance(label, int) else self.questions.settled(case.node, position)
        if node == FALSE:
            return
        members = case.counters[0] if self.decisions.support(node) & self.size_bits else 0
        target = self.state(
            State(offers=False, position=position, node=node, counters=(members, *case.counters[1:]), read=read)
        )
        self.automaton.add_read(Read(self.ids[state], label, case.goal, target))

    def counted(self, node: int, members: int) -> tuple[int, int]:
        """What is left of a condition after one more member, and how many members that makes."""
        members += 1
        for size, variable in self.questions.sizes.items():
            if size <= members:
                node = self.decisions.set(node, variable, True)  # noqa: FBT003
        return node, members


def object_automaton(
    goals: Goals, shape: Combined, pointer: str
) -> ShapeAutomaton | IndependentKeys | RememberedMembers:
    """The automaton of the objects of a combination. Raises LimitError."""
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
        return _Builder(goals, AboutShapes(shape, any_order=False)).build()
    except LimitError:
        return _Builder(goals, AboutKeys(shape, any_order=False)).build()


def _in_any_order(goals: Goals, shape: Combined, pointer: str) -> ShapeAutomaton:
    """An automaton with a state for whatever may be left: where that is less than what there is to test."""
    questions = AboutKeys(shape, any_order=True)
    # Numbers of members that count, where keys may run out: it matters which keys are left.
    endless = any(
        key_class.keys.number == inf and all(goal is ANY for goal in key_class.goals) for key_class in questions.classes
    )
    finite = any(key_class.keys.number != inf for key_class in questions.classes)
    runs_out = finite or bool(questions.sizes and not endless)
    if runs_out and len(questions.names) > MAX_TRACKED_KEYS:
        raise LimitError(
            f'with property_order="any", numbers of members cannot be bounded beside other conditions for more than '
            f"MAX_TRACKED_KEYS = {MAX_TRACKED_KEYS} keys",
            pointer=pointer,
        )
    return _Builder(goals, questions, tracks_keys=runs_out).build()
