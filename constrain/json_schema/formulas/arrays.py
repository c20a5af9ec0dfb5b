"""Arrays that satisfy formulas: the questions their items answer, and the automaton that asks them.

The questions (variables of the decision diagram, in this order): are there at least n items; do at least n items
satisfy G (``contains``); does the array have this shape, for every shape in the formulas. A shape is out of question
once an item violates it, and certain once nothing it asks for can follow.
"""

# ruff: noqa: FBT003  (truth values are what this is about)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.formulas.formulas import FALSE, MAX_DECISIONS, TRUE, Decisions, listed_atoms
from constrain.json_schema.formulas.shape_automaton import START, Case, Cases, Question, Read, ShapeAutomaton
from constrain.json_schema.shapes.arrays import item_goal
from constrain.json_schema.shapes.data import ANY, ArrayShape, Atom, Goal, ItemCount

if TYPE_CHECKING:
    from constrain.json_schema.shapes.data import Combined, Formula
    from constrain.json_schema.shapes.goals import Goals

Counters = tuple[int, ...]  # items so far as they matter, then items that satisfy each counted goal


class State(NamedTuple):
    """``position``: how many items were read, up to the length of the longest prefix. ``offers``: an item follows."""

    offers: bool
    position: int
    node: int
    counters: Counters


class ArrayQuestions:
    """The variables of one combination of array shapes, and the diagram of its formulas."""

    def __init__(self, shape: Combined) -> None:
        base = shape.base
        assert isinstance(base, ArrayShape)
        self.base = base
        self.shapes: list[ArrayShape] = []
        counts: dict[Goal, set[int]] = {}
        parts = listed_atoms(shape.formulas, MAX_DECISIONS)
        for atom in parts:
            if isinstance(atom.shape, ItemCount):
                counts.setdefault(atom.shape.goal, set()).add(atom.shape.number)
            else:
                assert isinstance(atom.shape, ArrayShape)
                self.shapes.append(atom.shape)
        self.longest = max(len(each.prefix) for each in (base, *self.shapes))
        self.decisions = Decisions()
        lengths = sorted({length for each in (base, *self.shapes) for length in _lengths(each)})
        self.lengths = {length: variable for variable, length in enumerate(lengths)}
        total = len(lengths)
        self.counted: dict[Goal, dict[int, int]] = {goal: {} for goal in counts}
        for goal, numbers in counts.items():
            for number in sorted(numbers):
                self.counted[goal][number] = total
                total += 1
        self.first = total  # the variable of shape i is first + i
        indices = {id(each): index for index, each in enumerate(self.shapes)}
        known: dict[Formula, int] = {}
        self.node = self.decisions.conjunction(self._length_literals(base))
        for formula in shape.formulas:
            diagram = self.decisions.build(formula, lambda atom: self._atom_node(atom, indices), known)
            self.node = self.decisions.choose(self.node, diagram, FALSE)
        self.node = self.settled(self.node, 0)
        self.answers = [variable >= self.first for variable in range(self.first + len(self.shapes))]

    def _atom_node(self, atom: Atom, indices: dict[int, int]) -> int:
        shape = atom.shape
        if isinstance(shape, ItemCount):
            return self.decisions.variable(self.counted[shape.goal][shape.number])
        assert isinstance(shape, ArrayShape)
        return self.decisions.conjunction([(self.first + indices[id(shape)], True), *self._length_literals(shape)])

    def _length_literals(self, shape: ArrayShape) -> list[tuple[int, bool]]:
        literals = [(self.lengths[shape.minimum], True)] if shape.minimum else []
        if shape.maximum is not None:
            literals.append((self.lengths[shape.maximum + 1], False))
        return literals

    def about_item(self, index: int) -> dict[Goal, list[int]]:
        """The variables that are false if the item at ``index`` does not satisfy the goal."""
        variables: dict[Goal, list[int]] = {}
        for place, shape in enumerate(self.shapes):
            goal = item_goal(shape, index)
            if goal is not ANY:
                variables.setdefault(goal, []).append(self.first + place)
        return variables

    def settled(self, node: int, position: int) -> int:
        """``node`` once the items before ``position`` are read."""
        for place, shape in enumerate(self.shapes):
            if position >= len(shape.prefix) and shape.rest is ANY:
                node = self.decisions.set(node, self.first + place, True)
        return node

    def closes(self, node: int) -> bool:
        """Whether the formulas hold if nothing follows."""
        return self.decisions.follow(node, self.answers) == TRUE


def _lengths(shape: ArrayShape) -> list[int]:
    lengths = [shape.minimum] if shape.minimum else []
    return lengths if shape.maximum is None else [*lengths, shape.maximum + 1]


class _Builder:
    """Explores the states."""

    def __init__(self, goals: Goals, questions: ArrayQuestions) -> None:
        self.goals = goals
        self.questions = questions
        self.decisions = questions.decisions
        self.cases = Cases(goals, self.decisions)
        self.automaton = ShapeAutomaton()
        self.asked: dict[int, list[Question]] = {}  # by position
        self.counts = [
            self.counting(place, goal, numbers) for place, (goal, numbers) in enumerate(questions.counted.items(), 1)
        ]
        self.count_bits = [
            sum(1 << variable for variable in numbers.values()) for numbers in questions.counted.values()
        ]
        self.length_bits = sum(1 << variable for variable in questions.lengths.values())
        self.ids: dict[State, int] = {}
        self.queue: list[State] = []

    def build(self) -> ShapeAutomaton:
        counters = (0,) * (1 + len(self.questions.counted))
        if self.questions.node == FALSE:
            return self.automaton
        self.add_after(State(offers=False, position=0, node=self.questions.node, counters=counters), START)
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
        if self.questions.closes(state.node):
            self.automaton.closing.add(number)
        self.automaton.go_on.append((number, self.state(state._replace(offers=True))))

    def add_offer(self, state: State) -> None:
        questions = self.questions
        node, length = self.lengthened(state.node, state.counters[0])
        last = state.position == questions.longest
        asked = self.asked.get(state.position)
        if asked is None:
            asked = [self.about_shapes(goal, among) for goal, among in questions.about_item(state.position).items()]
            asked += self.counts
            self.asked[state.position] = asked
        position = state.position if last else state.position + 1
        goal = item_goal(questions.base, state.position)
        for case in self.cases.split(Case(goal, node, (length, *state.counters[1:])), asked):
            node = questions.settled(case.node, position)
            if node == FALSE:
                continue
            target = self.state(
                State(offers=False, position=position, node=node, counters=self.relevant(node, case.counters))
            )
            self.automaton.add_read(Read(self.ids[state], None, case.goal, target))

    def lengthened(self, node: int, length: int) -> tuple[int, int]:
        """What is left of a condition after one more item, and how many items that makes."""
        length += 1
        for bound, variable in self.questions.lengths.items():
            if bound <= length:
                node = self.decisions.set(node, variable, True)
        return node, length

    def relevant(self, node: int, counters: Counters) -> Counters:
        """The counters, zero where no open question asks for them."""
        support = self.decisions.support(node)
        length = counters[0] if support & self.length_bits else 0
        counts = [count if support & bits else 0 for count, bits in zip(counters[1:], self.count_bits, strict=True)]
        return (length, *counts)

    def about_shapes(self, goal: Goal, variables: list[int]) -> Question:
        """The question whether this item satisfies what some shapes ask of it."""

        def violated(node: int, counters: Counters) -> tuple[int, Counters]:
            for variable in variables:
                node = self.decisions.set(node, variable, False)
            return node, counters

        bits = sum(1 << variable for variable in variables)
        return Question(goal, bits, lambda node, counters: (node, counters), violated)

    def counting(self, place: int, goal: Goal, numbers: dict[int, int]) -> Question:
        """The question whether this item satisfies a counted goal."""

        def one_more(node: int, counters: Counters) -> tuple[int, Counters]:
            count = counters[place] + 1
            for number, variable in numbers.items():
                if number <= count:
                    node = self.decisions.set(node, variable, True)
            return node, (*counters[:place], count, *counters[place + 1 :])

        bits = sum(1 << variable for variable in numbers.values())
        return Question(goal, bits, one_more, lambda node, counters: (node, counters))


def array_automaton(goals: Goals, shape: Combined, pointer: str) -> ShapeAutomaton:
    """The automaton of the arrays of a combination. Raises LimitError; UnsupportedSchemaError at ``pointer``."""
    questions = ArrayQuestions(shape)
    if any(each.unique for each in questions.shapes):
        raise UnsupportedSchemaError("uniqueItems that need not hold cannot be enforced", pointer=pointer)
    return _Builder(goals, questions).build()
