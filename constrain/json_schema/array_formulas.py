"""Arrays that satisfy formulas: the questions their items answer, and the automaton that asks them.

The questions (variables of the decision diagram, in this order): are there at least n items; do at least n items
satisfy G (``contains``); does item i satisfy G, for the items that some prefix names (true of an absent one); do all
items after those satisfy G.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain._errors import UnsupportedSchemaError
from constrain.json_schema.arrays import ArrayShape, item_goal
from constrain.json_schema.formulas import FALSE, TRUE, Atom, Decisions, ItemCount, atoms
from constrain.json_schema.goal import ANY, Goal
from constrain.json_schema.shape_automaton import START, Case, Cases, Question, Read, ShapeAutomaton

if TYPE_CHECKING:
    from constrain.json_schema.combined import Combined
    from constrain.json_schema.goals import Goals
    from constrain.json_schema.shape_automaton import Change

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
        self.plain: list[ArrayShape] = []
        counted: dict[Goal, set[int]] = {}
        for atom in atoms(shape.formulas):
            if isinstance(atom.shape, ItemCount):
                counted.setdefault(atom.shape.goal, set()).add(atom.shape.number)
            else:
                assert isinstance(atom.shape, ArrayShape)
                self.plain.append(atom.shape)
        self.longest = max(len(each.prefix) for each in (base, *self.plain))
        self.decisions = Decisions()
        self._number(counted)
        known: dict[object, int] = {}
        self.node = self.decisions.conjunction(self._length_literals(base))
        for formula in shape.formulas:
            diagram = self.decisions.build(formula, self._atom_node, known)
            self.node = self.decisions.choose(self.node, diagram, FALSE)

    def _number(self, counted: dict[Goal, set[int]]) -> None:
        """Gives every question its variable."""
        total = 0
        self.lengths: dict[int, int] = {}
        self.counted: dict[Goal, dict[int, int]] = {goal: {} for goal in counted}
        for length in sorted({length for shape in (self.base, *self.plain) for length in _lengths(shape)}):
            self.lengths[length] = total
            total += 1
        for goal, numbers in counted.items():
            for number in sorted(numbers):
                self.counted[goal][number] = total
                total += 1
        first_true = total
        self.items: list[dict[Goal, int]] = []  # by position; the last one is for all items after the prefixes
        for index in range(self.longest + 1):
            variables: dict[Goal, int] = {}
            for goal in dict.fromkeys(item_goal(shape, index) for shape in self.plain):
                if goal is not ANY:
                    variables[goal] = total
                    total += 1
            self.items.append(variables)
        self.absent_is_true = [variable >= first_true for variable in range(total)]

    def _atom_node(self, atom: Atom) -> int:
        shape = atom.shape
        if isinstance(shape, ItemCount):
            return self.decisions.variable(self.counted[shape.goal][shape.number])
        assert isinstance(shape, ArrayShape)
        literals = self._length_literals(shape)
        for index, variables in enumerate(self.items):
            goal = item_goal(shape, index)
            if goal is not ANY:
                literals.append((variables[goal], True))
        return self.decisions.conjunction(literals)

    def _length_literals(self, shape: ArrayShape) -> list[tuple[int, bool]]:
        literals = [(self.lengths[shape.minimum], True)] if shape.minimum else []
        if shape.maximum is not None:
            literals.append((self.lengths[shape.maximum + 1], False))
        return literals

    def closes(self, node: int) -> bool:
        """Whether the formulas hold if nothing follows."""
        return self.decisions.follow(node, self.absent_is_true) == TRUE


def _lengths(shape: ArrayShape) -> list[int]:
    lengths = [shape.minimum] if shape.minimum else []
    return lengths if shape.maximum is None else [*lengths, shape.maximum + 1]


class _Builder:
    """Explores the states."""

    def __init__(self, goals: Goals, questions: ArrayQuestions) -> None:
        self.questions = questions
        self.decisions = questions.decisions
        self.cases = Cases(goals, self.decisions)
        self.automaton = ShapeAutomaton()
        self.length_bits = sum(1 << variable for variable in questions.lengths.values())
        self.ids: dict[State, int] = {}
        self.queue: list[State] = []

    def build(self) -> ShapeAutomaton:
        counters = (0,) * (1 + len(self.questions.counted))
        if self.questions.node == FALSE:
            return self.automaton
        self.add_after(State(False, 0, self.questions.node, counters), START)
        for state in self.queue:
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
        asked = [
            self.universal(goal, variable) if last else self.single(goal, variable)
            for goal, variable in questions.items[state.position].items()
        ]
        asked += [
            self.counting(place, goal, numbers) for place, (goal, numbers) in enumerate(questions.counted.items(), 1)
        ]
        position = state.position if last else state.position + 1
        goal = item_goal(questions.base, state.position)
        for case in self.cases.split(Case(goal, node, (length, *state.counters[1:])), asked):
            target = self.state(State(False, position, case.node, self.relevant(case)))
            self.automaton.add_read(Read(self.ids[state], None, case.goal, target))

    def lengthened(self, node: int, length: int) -> tuple[int, int]:
        """What is left of a condition after one more item, and how many items that makes as far as it matters."""
        length += 1
        for bound, variable in self.questions.lengths.items():
            if bound <= length:
                node = self.decisions.set(node, variable, True)
        return node, length if self.decisions.support(node) & self.length_bits else 0

    def relevant(self, case: Case) -> Counters:
        """The counters, zero where no open question asks for them."""
        support = self.decisions.support(case.node)
        length = case.counters[0] if support & self.length_bits else 0
        counts = (
            count if any(support >> variable & 1 for variable in numbers.values()) else 0
            for count, numbers in zip(case.counters[1:], self.questions.counted.values(), strict=True)
        )
        return (length, *counts)

    def single(self, goal: Goal, variable: int) -> Question:
        """A question that this item answers."""
        return Question(goal, 1 << variable, self.answer(variable, True), self.answer(variable, False))

    def universal(self, goal: Goal, variable: int) -> Question:
        """A question that an item can only answer with no."""
        return Question(goal, 1 << variable, lambda node, counters: (node, counters), self.answer(variable, False))

    def answer(self, variable: int, value: bool) -> Change:
        """Sets a variable."""
        return lambda node, counters: (self.decisions.set(node, variable, value), counters)

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
    if any(each.unique for each in questions.plain):
        raise UnsupportedSchemaError("uniqueItems that need not hold cannot be enforced", pointer=pointer)
    return _Builder(goals, questions).build()
