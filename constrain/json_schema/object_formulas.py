"""Objects that satisfy formulas: the questions their members answer, and the automaton that asks them.

The questions (variables of the decision diagram, in this order): are there at least n members; for every named key, is
it there, and does its value satisfy G (true of an absent one); for every class of other keys, do all values satisfy G.
With keys in schema order a key is answered when its turn has come, read or skipped; in any order, when it is read, or
at the end. A key whose questions are still open has not been read, so the members that are needed can always come.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from constrain._errors import UnsupportedSchemaError
from constrain.json_schema.formulas import FALSE, TRUE, Atom, Decisions, atoms
from constrain.json_schema.goal import ANY, NOTHING, Goal
from constrain.json_schema.key_partition import SharedKeys, partition
from constrain.json_schema.objects import ObjectShape, key_goals
from constrain.json_schema.shape_automaton import START, Case, Cases, Question, Read, ShapeAutomaton

if TYPE_CHECKING:
    from constrain.json_schema.combined import Combined
    from constrain.json_schema.goals import Goals

Counters = tuple[int, ...]  # members so far, then members of each finite key class


class State(NamedTuple):
    """``position``: how many named keys had their turn (0 in any order). ``offers``: a member must follow."""

    offers: bool
    position: int
    node: int
    counters: Counters


class ObjectQuestions:
    """The variables of one combination of object shapes, and the diagram of its formulas."""

    def __init__(self, shape: Combined, *, any_order: bool) -> None:
        base = shape.base
        assert isinstance(base, ObjectShape)
        self.base = base
        self.any_order = any_order
        self.parts = list(atoms(shape.formulas))
        self.shapes: list[ObjectShape] = [base]
        for atom in self.parts:
            assert isinstance(atom.shape, ObjectShape)
            self.shapes.append(atom.shape)
        names = dict.fromkeys(base.properties)
        for each in self.shapes[1:]:
            names.update(dict.fromkeys((*each.properties, *each.required)))
        names.update(dict.fromkeys(base.required))
        self.names = list(names)
        self.key_goals = [key_goals(each, names) for each in self.shapes]
        self.classes: list[SharedKeys] = partition(self.shapes, self.names)
        self.decisions = Decisions()
        self._number()
        known: dict[object, int] = {}
        self.node = self._base_node()
        for formula in shape.formulas:
            diagram = self.decisions.build(formula, self._atom_node, known)
            self.node = self.decisions.choose(self.node, diagram, FALSE)

    def _number(self) -> None:
        """Gives every question its variable."""
        total = 0
        self.sizes: dict[int, int] = {}
        self.present: dict[str, int] = {}
        self.valued: dict[str, dict[Goal, int]] = {name: {} for name in self.names}
        self.all_valued: list[dict[Goal, int]] = [{} for _ in self.classes]
        for size in sorted({size for shape in self.shapes for size in _sizes(shape)}):
            self.sizes[size] = total
            total += 1
        asked = {name for shape in self.shapes[1:] for name in shape.required}
        if self.any_order:
            asked.update(self.base.required)
        for name in self.names:
            goals = dict.fromkeys(of_key[name] for of_key in self.key_goals[1:])
            if name in asked or NOTHING in goals:
                self.present[name] = total
                total += 1
            for goal in goals:
                if goal is not ANY and goal is not NOTHING:
                    self.valued[name][goal] = total
                    total += 1
        for key_class, variables in zip(self.classes, self.all_valued, strict=True):
            for goal in dict.fromkeys(key_class.goals[1:]):
                if goal is not ANY:
                    variables[goal] = total
                    total += 1
        self.absent_is_true = [False] * total
        for of_goal in (*self.valued.values(), *self.all_valued):
            for variable in of_goal.values():
                self.absent_is_true[variable] = True

    def _base_node(self) -> int:
        literals = [(self.present[name], True) for name in self.base.required] if self.any_order else []
        return self.decisions.conjunction(literals + self._size_literals(self.base))

    def _atom_node(self, atom: Atom) -> int:
        index = 1 + self.parts.index(atom)
        shape, goals = self.shapes[index], self.key_goals[index]
        literals = self._size_literals(shape)
        for name, goal in goals.items():
            if goal is NOTHING:
                literals.append((self.present[name], False))
            elif goal is not ANY:
                literals.append((self.valued[name][goal], True))
        literals += ((self.present[name], True) for name in shape.required)
        for key_class, variables in zip(self.classes, self.all_valued, strict=True):
            if key_class.goals[index] is not ANY:
                literals.append((variables[key_class.goals[index]], True))
        return self.decisions.conjunction(literals)

    def _size_literals(self, shape: ObjectShape) -> list[tuple[int, bool]]:
        literals = []
        if shape.minimum > len(shape.required):
            literals.append((self.sizes[shape.minimum], True))
        if shape.maximum is not None:
            literals.append((self.sizes[shape.maximum + 1], False))
        return literals

    def closes(self, node: int) -> bool:
        """Whether the formulas hold if nothing follows."""
        return self.decisions.follow(node, self.absent_is_true) == TRUE


def _sizes(shape: ObjectShape) -> list[int]:
    sizes = [shape.minimum] if shape.minimum > len(shape.required) else []
    return sizes if shape.maximum is None else [*sizes, shape.maximum + 1]


class _Builder:
    """Explores the states."""

    def __init__(self, goals: Goals, questions: ObjectQuestions) -> None:
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
        self.last_required = max((i for i, needed in enumerate(self.required) if needed), default=-1)

    def build(self) -> ShapeAutomaton:
        zeros = (0,) * (1 + len(self.finite))
        if self.questions.node == FALSE:
            return self.automaton
        self.add_after(State(False, 0, self.questions.node, zeros), START)
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
        if (self.questions.any_order or state.position > self.last_required) and self.questions.closes(state.node):
            self.automaton.closing.add(number)
        self.automaton.go_on.append((number, self.state(state._replace(offers=True))))

    def add_offer(self, state: State) -> None:
        names = self.questions.names
        if self.questions.any_order:
            for index in range(len(names)):
                self.add_named(state, index, 0)
            self.add_classes(state)
        elif state.position < len(names):
            index = state.position
            self.add_named(state, index, index + 1)
            if not self.required[index]:
                self.add_skip(state, names[index])
        else:
            self.add_classes(state)

    def add_named(self, state: State, index: int, position: int) -> None:
        name = self.questions.names[index]
        goal = self.questions.key_goals[0][name]
        present = self.questions.present.get(name)
        node = state.node if present is None else self.decisions.set(state.node, present, True)
        node, members = self.counted(node, state.counters[0])
        asked = [self.question(goal, variable) for goal, variable in self.questions.valued[name].items()]
        for case in self.cases.split(Case(goal, node, (members, *state.counters[1:])), asked):
            self.add_read(state, name, position, case)

    def question(self, goal: Goal, variable: int) -> Question:
        """A question that a single value answers."""
        return Question(
            goal,
            1 << variable,
            lambda node, counters: (self.decisions.set(node, variable, True), counters),
            lambda node, counters: (self.decisions.set(node, variable, False), counters),
        )

    def add_skip(self, state: State, name: str) -> None:
        node = state.node
        present = self.questions.present.get(name)
        if present is not None:
            node = self.decisions.set(node, present, False)
        for variable in self.questions.valued[name].values():
            node = self.decisions.set(node, variable, True)
        if node != FALSE:
            source = self.ids[state]
            self.automaton.skips.append((source, self.state(state._replace(position=state.position + 1, node=node))))

    def add_classes(self, state: State) -> None:
        for index, (key_class, variables) in enumerate(
            zip(self.questions.classes, self.questions.all_valued, strict=True)
        ):
            node, members = self.counted(state.node, state.counters[0])
            taken = list(state.counters[1:])
            if index in self.finite:
                place = self.finite.index(index)
                if taken[place] >= key_class.keys.number:
                    continue
                taken[place] += 1
            asked = [self.universal(goal, variable) for goal, variable in variables.items()]
            for case in self.cases.split(Case(key_class.goals[0], node, (members, *taken)), asked):
                self.add_read(state, index, state.position, case)

    def universal(self, goal: Goal, variable: int) -> Question:
        """A question that a value can only answer with no."""
        return Question(
            goal,
            1 << variable,
            lambda node, counters: (node, counters),
            lambda node, counters: (self.decisions.set(node, variable, False), counters),
        )

    def add_read(self, state: State, label: str | int, position: int, case: Case) -> None:
        target = self.state(State(False, position, case.node, case.counters))
        self.automaton.add_read(Read(self.ids[state], label, case.goal, target))

    def counted(self, node: int, members: int) -> tuple[int, int]:
        """What is left of a condition after one more member, and how many members that makes as far as it matters."""
        members += 1
        for size, variable in self.questions.sizes.items():
            if size <= members:
                node = self.decisions.set(node, variable, True)
        if not self.decisions.support(node) & self.size_bits:
            members = 0
        return node, members


def object_automaton(goals: Goals, shape: Combined, pointer: str) -> ShapeAutomaton:
    """The automaton of the objects of a combination. Raises LimitError; UnsupportedSchemaError at ``pointer``."""
    questions = ObjectQuestions(shape, any_order=goals.policies.property_order == "any")
    endless = any(
        key_class.keys.number == inf and all(goal is ANY for goal in key_class.goals) for key_class in questions.classes
    )
    least = any(each.minimum > max(len(each.required), 1) for each in questions.shapes)
    finite = any(key_class.keys.number != inf for key_class in questions.classes)
    if questions.any_order and not endless and (least or finite):
        raise UnsupportedSchemaError(
            'minProperties over finitely many keys cannot be enforced beside other conditions with property_order="any"',
            pointer=pointer,
        )
    return _Builder(goals, questions).build()
