"""Objects that satisfy formulas: the questions that their members answer.

There are two sets of variables for the decision diagrams, beside "are there at least n members". With one for each
shape in the formulas ("does the object have this shape"), a shape is out of question once a member violates it or a
required key is skipped, and certain once nothing it asks for can follow. Where shapes exclude one another, this is
small.

With variables for keys the questions are: is this key there; does its value satisfy G (true of an absent one); do all
values of this class of undeclared keys. This is small where many shapes ask the same of a key. It is also what keys in
any order need, where it depends on the keys that are left whether a shape can still be violated: a key whose questions
are open has not been read, so the members that are needed can always come.
"""

# ruff: noqa: ARG002, D102, FBT003  (the two kinds of questions have the same methods; truth values are what it is about)

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from constrain.json_schema.formulas.cases import Question, question_about
from constrain.json_schema.formulas.formulas import ALWAYS, MAX_DECISIONS, Decisions, listed_atoms
from constrain.json_schema.shapes.combined import names_in_order
from constrain.json_schema.shapes.data import ANY, NOTHING, Goal, ObjectShape
from constrain.json_schema.shapes.key_partition import SharedKeys, partition
from constrain.json_schema.shapes.objects import KEYS_PER_STEP, key_goals
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.json_schema.shapes.data import Combination

MAX_SHAPE_DECISIONS = 10_000
"""Nodes of the diagrams over shapes: where they get larger, keys may do better."""


class ObjectQuestions(ABC):
    """The variables of one combination of object shapes, and the diagram of its formulas.

    ``shapes[0]`` holds in any case; ``atoms`` are about the others.
    """

    limit = MAX_DECISIONS

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
        self.key_goals = [key_goals(each, self.names) for each in self.shapes]
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
        """What a shape says about the number of members."""
        literals = []
        if shape.minimum > len(shape.required):
            literals.append((self.sizes[shape.minimum], True))
        if shape.maximum is not None:
            literals.append((self.sizes[shape.maximum + 1], False))
        return literals

    # What the two kinds of variables make of it.

    @abstractmethod
    def number_variables(self) -> None:
        """Gives every question a number, from ``len(self.sizes)`` on."""

    @abstractmethod
    def base_literals(self) -> list[tuple[int, bool]]:
        """What the base asks for, apart from goals of values and the number of members."""

    @abstractmethod
    def literals(self, index: int) -> list[tuple[int, bool]]:
        """The values of variables that the shape at ``index`` stands for."""

    @abstractmethod
    def present(self, node: int, index: int) -> int:
        """What is left of a condition if the key at ``index`` is there."""

    @abstractmethod
    def skipped(self, node: int, index: int) -> int:
        """What is left of a condition if the key at ``index`` is not there."""

    @abstractmethod
    def about_value(self, index: int) -> list[Question]:
        """What the value of the key at ``index`` decides."""

    @abstractmethod
    def about_class(self, index: int) -> list[Question]:
        """What the value of some key of this class decides."""

    @abstractmethod
    def settled(self, node: int, position: int) -> int:
        """``node`` once the keys before ``position`` are read or skipped."""

    @abstractmethod
    def closes(self, node: int, position: int) -> bool:
        """Whether the formulas hold if nothing follows."""


class AboutShapes(ObjectQuestions):
    """One variable for each shape; keys come in schema order."""

    limit = MAX_SHAPE_DECISIONS

    def number_variables(self) -> None:
        self.first = len(self.sizes) - 1  # the variable of shape i is first + i
        names, last = self.names, len(self.names)
        self.required_until: list[int] = []  # by shape: where the last required key has had its turn
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
            found = self.asked[index] = self._about([goals[name] for goals in self.key_goals[1:]])
        return found

    def about_class(self, index: int) -> list[Question]:
        found = self.asked.get(~index)
        if found is None:
            found = self.asked[~index] = self._about(self.classes[index].goals[1:])
        return found

    def _about(self, goals: Sequence[Goal]) -> list[Question]:
        variables: dict[Goal, list[int]] = {}
        for place, goal in enumerate(goals, 1):
            if goal is not ANY:
                variables.setdefault(goal, []).append(self.first + place)
        return [question_about(self.decisions, goal, among, if_satisfied=False) for goal, among in variables.items()]

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
            found = [question_about(self.decisions, goal, [variable], if_satisfied=True) for goal, variable in valued]
            self.asked[index] = found
        return found

    def about_class(self, index: int) -> list[Question]:
        found = self.asked.get(~index)
        if found is None:
            valued = self.all_valued[index].items()
            found = [question_about(self.decisions, goal, [variable], if_satisfied=False) for goal, variable in valued]
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
