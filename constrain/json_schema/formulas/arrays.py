"""Automata of arrays that satisfy formulas, and the questions that items answer.

The questions are the variables of the decision diagram, in this order: are there at least n items; do at least n items
satisfy G (``contains``); does the array have this shape, for every shape in the formulas. A shape is false once an item
violates it, and true once no later item can violate it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.formulas.cases import Case, Cases, Question
from constrain.json_schema.formulas.exploration import Move, State, explore_states
from constrain.json_schema.formulas.formulas import ALWAYS, NEVER, Decisions, bits, listed_atoms
from constrain.json_schema.formulas.shape_automaton import ShapeAutomaton
from constrain.json_schema.shapes.arrays import item_goal
from constrain.json_schema.shapes.data import ANY, ArrayShape, Atom, Goal, ItemCount
from constrain.json_schema.shapes.goal import representative
from constrain.work import MAX_CASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.formulas.cases import Counters
    from constrain.json_schema.shapes.data import Combination
    from constrain.json_schema.shapes.goals import Goals


class ArrayQuestions:
    """The variables of one combination of array shapes, and the diagram of its formulas."""

    def __init__(self, shape: Combination) -> None:
        base = shape.base
        assert isinstance(base, ArrayShape)
        self.base = base
        self.shapes: list[ArrayShape] = []
        counts: dict[Goal, set[int]] = {}
        parts = listed_atoms(shape.formulas, MAX_CASES)
        for atom in parts:
            if isinstance(atom.shape, ItemCount):
                counts.setdefault(representative(atom.shape.goal), set()).add(atom.shape.number)
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
        node = self.decisions.conjunction(self._length_literals(base))
        node = self.decisions.build_all(node, shape.formulas, lambda atom: self._atom_node(atom, indices))
        self.node = self.settled(node, 0)
        self.answers = [variable >= self.first for variable in range(self.first + len(self.shapes))]

    def _atom_node(self, atom: Atom, indices: dict[int, int]) -> int:
        shape = atom.shape
        if isinstance(shape, ItemCount):
            return self.decisions.variable(self.counted[representative(shape.goal)][shape.number])
        assert isinstance(shape, ArrayShape)
        return self.decisions.conjunction([(self.first + indices[id(shape)], True), *self._length_literals(shape)])

    def _length_literals(self, shape: ArrayShape) -> list[tuple[int, bool]]:
        literals = [(self.lengths[shape.minimum], True)] if shape.minimum else []
        if shape.maximum is not None:
            literals.append((self.lengths[shape.maximum + 1], False))
        return literals

    def about_item(self, index: int) -> dict[Goal, list[int]]:
        """Returns, by goal, the variables that become false if the item at ``index`` violates the goal."""
        variables: dict[Goal, list[int]] = {}
        for place, shape in enumerate(self.shapes):
            goal = representative(item_goal(shape, index))
            if goal is not ANY:
                variables.setdefault(goal, []).append(self.first + place)
        return variables

    def settled(self, node: int, position: int) -> int:
        """Returns the diagram ``node`` after the items before ``position``."""
        certain = (
            variable
            for variable, shape in enumerate(self.shapes, self.first)
            if position >= len(shape.prefix) and shape.rest is ANY
        )
        return self.decisions.set_all(node, certain, value=True)

    def closes(self, node: int) -> bool:
        """Returns whether the array may end: whether the formulas hold when ``node`` is all that is left of them."""
        return self.decisions.follow(node, self.answers) == ALWAYS


def _lengths(shape: ArrayShape) -> list[int]:
    lengths = [shape.minimum] if shape.minimum else []
    return lengths if shape.maximum is None else [*lengths, shape.maximum + 1]


class _Counting(Question):
    """The question whether an item satisfies a counted goal; ``place``: of its counter."""

    def __init__(self, decisions: Decisions, place: int, goal: Goal, numbers: dict[int, int]) -> None:
        super().__init__(decisions, goal, tuple(numbers.values()))
        self.violated = ()
        self.place = place
        self.numbers = numbers

    def answer(self, node: int, counters: Counters, *, yes: bool) -> tuple[int, Counters]:
        """Returns the diagram and the counters after the answer."""
        if not yes:
            return node, counters
        count = counters[self.place] + 1
        counters = (*counters[: self.place], count, *counters[self.place + 1 :])
        return self.decisions.reach(node, self.numbers, count), counters

    def may_be(self, node: int, counters: Counters, *, yes: bool) -> bool:
        """Returns whether the condition can hold after the answer."""
        return self.answer(node, counters, yes=yes)[0] != NEVER


class ArrayMoves:
    """Yields the possible next items of an array. Counters: number of all items, then of each counted goal."""

    def __init__(self, goals: Goals, questions: ArrayQuestions) -> None:
        self.questions = questions
        self.decisions = questions.decisions
        self.cases = Cases(goals, self.decisions)
        self.asked: dict[int, list[Question]] = {}  # by position
        self.counts = [
            _Counting(self.decisions, place, goal, numbers)
            for place, (goal, numbers) in enumerate(questions.counted.items(), 1)
        ]
        self.count_bits = [bits(numbers.values()) for numbers in questions.counted.values()]
        self.length_bits = bits(questions.lengths.values())
        counters = (0,) * (1 + len(questions.counted))
        self.start = State(offers=False, position=0, node=questions.node, counters=counters)

    def closes(self, state: State) -> bool:
        """Returns whether the array may end in this state: then all formulas of its combination hold."""
        return self.questions.closes(state.node)

    def after(self, state: State) -> Iterator[Move]:
        """Yields the next item, once for each case of its value."""
        questions = self.questions
        length = state.counters[0] + 1
        node = self.decisions.reach(state.node, questions.lengths, length)
        position = state.position if state.position == questions.longest else state.position + 1
        case = Case(representative(item_goal(questions.base, state.position)), node, (length, *state.counters[1:]))
        for goal, left, counters in self.cases.split(case, self._asked_at(state.position)):
            node = questions.settled(left, position)
            if node != NEVER:
                relevant = self._relevant(node, counters)
                yield Move(None, goal, State(offers=False, position=position, node=node, counters=relevant))

    def _asked_at(self, position: int) -> list[Question]:
        asked = self.asked.get(position)
        if asked is None:
            about_item = self.questions.about_item(position).items()
            asked = [Question(self.decisions, goal, variables) for goal, variables in about_item]
            asked += self.counts
            self.asked[position] = asked
        return asked

    def _relevant(self, node: int, counters: Counters) -> Counters:
        """Returns the counters, with 0 for each that no open question needs."""
        support = self.decisions.support(node)
        length = counters[0] if support & self.length_bits else 0
        counts = [count if support & those else 0 for count, those in zip(counters[1:], self.count_bits, strict=True)]
        return (length, *counts)


def array_automaton(goals: Goals, shape: Combination, pointer: str) -> ShapeAutomaton:
    """Returns the automaton of a combination of arrays. Raises LimitError; UnsupportedSchemaError at ``pointer``."""
    questions = ArrayQuestions(shape)
    if any(each.unique for each in questions.shapes):
        raise UnsupportedSchemaError("uniqueItems cannot be enforced under not, if, anyOf or oneOf", pointer=pointer)
    return explore_states(goals, ArrayMoves(goals, questions), ShapeAutomaton())
