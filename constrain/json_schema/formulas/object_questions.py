"""Questions that the members of an object answer, for objects that satisfy formulas.

A decision diagram has variables "are there at least n members", and one of two further sets. The first set has one
variable for each shape in the formulas ("does the object have this shape"). A shape is false once a member violates it
or a required key is skipped, and true once no later member can violate it. This set is small if shapes exclude one
another.

The second set has variables for keys: is this key there; does its value satisfy G (true of an absent key); do all
values of this class of undeclared keys satisfy G. This set is small if many shapes constrain the same key alike. Keys
in any order need it, because there the remaining keys decide whether a shape can still be violated. A key with open
questions has not been read, so a needed member can always come.
"""

# ruff: noqa: ARG002, D102, FBT003  (the two kinds of questions have the same methods; truth values are the data)

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from constrain.json_schema.formulas.cases import Question
from constrain.json_schema.formulas.formulas import ALWAYS, Decisions, listed_atoms
from constrain.json_schema.shapes.combined import names_in_order
from constrain.json_schema.shapes.data import ANY, NOTHING, Goal, ObjectShape
from constrain.json_schema.shapes.goal import representative
from constrain.json_schema.shapes.key_partition import SharedKeys, partition
from constrain.json_schema.shapes.objects import KEYS_PER_STEP, key_goals
from constrain.work import MAX_CASES, spend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.json_schema.shapes.data import Combination

SHAPE_DECISIONS = 10_000
"""Nodes of the diagrams over shapes; above it, variables for keys are tried instead."""


class ObjectQuestions(ABC):
    """The variables of one combination of object shapes, and the diagram of its formulas.

    ``shapes[0]`` always holds; ``atoms`` are the other shapes.
    """

    limit = MAX_CASES

    def __init__(self, shape: Combination, *, any_order: bool) -> None:
        self.any_order = any_order
        base = shape.base
        assert isinstance(base, ObjectShape)
        self.base = base
        self.atoms = listed_atoms(shape.formulas, self.limit)
        self.shapes: list[ObjectShape] = [base]
        for atom in self.atoms:
            assert isinstance(atom.shape, ObjectShape)
            self.shapes.append(atom.shape)
        self.names = names_in_order(shape)
        self.key_goals = [
            {name: representative(goal) for name, goal in key_goals(each, self.names).items()} for each in self.shapes
        ]
        self.classes: list[SharedKeys] = partition(self.shapes, self.names)
        self.decisions = Decisions(self.limit)
        self.sizes = {
            size: variable
            for variable, size in enumerate(sorted({size for each in self.shapes for size in _sizes(each)}))
        }
        self.asked: dict[int, list[Question]] = {}  # by index of a key, or ~index of a class
        self.number_variables()
        indices = {atom: index for index, atom in enumerate(self.atoms, 1)}
        conjunction = self.decisions.conjunction
        node = conjunction([*self.base_literals(), *self.size_literals(base)])
        node = self.decisions.build_all(node, shape.formulas, lambda atom: conjunction(self.literals(indices[atom])))
        self.node = self.settled(node, 0)

    def size_literals(self, shape: ObjectShape) -> list[tuple[int, bool]]:
        """Returns the shape's bounds on the number of members, as literals."""
        literals = []
        if shape.minimum > len(shape.required):
            literals.append((self.sizes[shape.minimum], True))
        if shape.maximum is not None:
            literals.append((self.sizes[shape.maximum + 1], False))
        return literals

    # The part that differs between the two kinds of variables.

    @abstractmethod
    def number_variables(self) -> None:
        """Numbers the questions, from ``len(self.sizes)`` on."""

    @abstractmethod
    def base_literals(self) -> list[tuple[int, bool]]:
        """Returns the literals of the base shape, without goals of values and bounds on members."""

    @abstractmethod
    def literals(self, index: int) -> list[tuple[int, bool]]:
        """Returns the literals that express the shape at ``index``."""

    @abstractmethod
    def present(self, node: int, index: int) -> int:
        """Returns the condition with the key at ``index`` present."""

    @abstractmethod
    def skipped(self, node: int, index: int) -> int:
        """Returns the condition with the key at ``index`` absent."""

    @abstractmethod
    def about_value(self, index: int) -> list[Question]:
        """Returns the questions that the value of the key at ``index`` answers."""

    @abstractmethod
    def about_class(self, index: int) -> list[Question]:
        """Returns the questions that a value of this class of keys answers."""

    @abstractmethod
    def settled(self, node: int, position: int) -> int:
        """Returns the diagram ``node`` after the keys before ``position`` are read or skipped."""

    @abstractmethod
    def closes(self, node: int, position: int) -> bool:
        """Returns whether the object may end: whether the formulas hold with all later keys absent."""


class AboutShapes(ObjectQuestions):
    """One variable for each shape; keys come in schema order."""

    limit = SHAPE_DECISIONS

    def number_variables(self) -> None:
        self.first = len(self.sizes) - 1  # the variable of shape i is first + i
        names, last = self.names, len(self.names)
        self.required_until: list[int] = []  # by shape: the position after its last required key
        self.settling: list[list[int]] = [[] for _ in range(last + 1)]
        self.requiring: list[list[int]] = [[] for _ in names]
        places = {name: place for place, name in enumerate(names)}
        for index, (shape, goals) in enumerate(zip(self.shapes, self.key_goals, strict=True)):
            required = set(shape.required)
            spend(len(names) // KEYS_PER_STEP)
            self.required_until.append(max((i for i, name in enumerate(names, 1) if name in required), default=0))
            asks = [i for i, name in enumerate(names, 1) if name in required or goals[name] is not ANY]
            for name in required if index else ():
                self.requiring[places[name]].append(self.first + index)
            if index and all(key_class.goals[index] is ANY for key_class in self.classes):
                self.settling[max(asks, default=0)].append(self.first + index)

    def base_literals(self) -> list[tuple[int, bool]]:
        return []

    def literals(self, index: int) -> list[tuple[int, bool]]:
        return [(self.first + index, True), *self.size_literals(self.shapes[index])]

    def present(self, node: int, index: int) -> int:
        return node

    def skipped(self, node: int, index: int) -> int:
        return self.decisions.set_all(node, self.requiring[index], value=False)

    def about_value(self, index: int) -> list[Question]:
        found = self.asked.get(index)
        if found is None:
            name = self.names[index]
            goals_here = [goals[name] for goals in self.key_goals[1:]]
            found = self.asked[index] = self._about(goals_here, self.settling[index + 1])
        return found

    def about_class(self, index: int) -> list[Question]:
        found = self.asked.get(~index)
        if found is None:
            found = self.asked[~index] = self._about(self.classes[index].goals[1:], ())
        return found

    def _about(self, goals: Sequence[Goal], settling: Sequence[int]) -> list[Question]:
        """Returns the questions by which shapes become false; those in ``settling`` otherwise become true."""
        variables: dict[Goal, list[int]] = {}
        for place, goal in enumerate(goals, 1):
            if goal is not ANY:
                variables.setdefault(goal, []).append(self.first + place)
        settled = set(settling)
        return [
            Question(self.decisions, goal, among, [each for each in among if each in settled])
            for goal, among in variables.items()
        ]

    def settled(self, node: int, position: int) -> int:
        return self.decisions.set_all(node, self.settling[position], value=True)

    def closes(self, node: int, position: int) -> bool:
        if self.required_until[0] > position:
            return False
        answers = [False] * len(self.sizes)
        answers += (until <= position for until in self.required_until[1:])
        return self.decisions.follow(node, answers) == ALWAYS


class AboutKeys(ObjectQuestions):
    """Variables for keys and their values."""

    def number_variables(self) -> None:
        total = len(self.sizes)
        self.present_ids: dict[str, int] = {}
        self.valued: dict[str, dict[Goal, int]] = {name: {} for name in self.names}
        self.all_valued: list[dict[Goal, int]] = [{} for _ in self.classes]
        asked = {name for shape in self.shapes[not self.any_order :] for name in shape.required}
        required = set(self.base.required)
        self.required_until = max((i for i, name in enumerate(self.names, 1) if name in required), default=0)
        spend(len(self.names) * len(self.key_goals) // KEYS_PER_STEP)
        for name in self.names:
            goals = dict.fromkeys(of_key[name] for of_key in self.key_goals[1:])
            if name in asked or NOTHING in goals:
                self.present_ids[name] = total
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

    def base_literals(self) -> list[tuple[int, bool]]:
        return [(self.present_ids[name], True) for name in self.base.required] if self.any_order else []

    def literals(self, index: int) -> list[tuple[int, bool]]:
        shape = self.shapes[index]
        literals = self.size_literals(shape)
        for name, goal in self.key_goals[index].items():
            if goal is NOTHING:
                literals.append((self.present_ids[name], False))
            elif goal is not ANY:
                literals.append((self.valued[name][goal], True))
        literals += ((self.present_ids[name], True) for name in shape.required)
        for key_class, variables in zip(self.classes, self.all_valued, strict=True):
            if key_class.goals[index] is not ANY:
                literals.append((variables[key_class.goals[index]], True))
        return literals

    def present(self, node: int, index: int) -> int:
        variable = self.present_ids.get(self.names[index])
        return node if variable is None else self.decisions.set(node, variable, True)

    def skipped(self, node: int, index: int) -> int:
        name = self.names[index]
        if name in self.present_ids:
            node = self.decisions.set(node, self.present_ids[name], False)
        return self.decisions.set_all(node, self.valued[name].values(), value=True)

    def about_value(self, index: int) -> list[Question]:
        found = self.asked.get(index)
        if found is None:
            valued = self.valued[self.names[index]].items()
            found = [Question(self.decisions, goal, (variable,), (variable,)) for goal, variable in valued]
            self.asked[index] = found
        return found

    def about_class(self, index: int) -> list[Question]:
        found = self.asked.get(~index)
        if found is None:
            valued = self.all_valued[index].items()
            found = [Question(self.decisions, goal, (variable,)) for goal, variable in valued]
            self.asked[~index] = found
        return found

    def settled(self, node: int, position: int) -> int:
        return node

    def closes(self, node: int, position: int) -> bool:
        if not self.any_order and self.required_until > position:
            return False
        return self.decisions.follow(node, self.absent_is_true) == ALWAYS


def _sizes(shape: ObjectShape) -> list[int]:
    sizes = [shape.minimum] if shape.minimum > len(shape.required) else []
    return sizes if shape.maximum is None else [*sizes, shape.maximum + 1]
