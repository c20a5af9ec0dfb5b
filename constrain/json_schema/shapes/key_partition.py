"""Undeclared keys of several object shapes, divided into classes that every shape treats alike."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.shapes.data import NOTHING, Goal
from constrain.json_schema.shapes.goal import representative
from constrain.json_schema.shapes.keys import JSON_STRING, KeyClass, number_of_texts, quoted, without
from constrain.json_schema.shapes.objects import too_many_classes
from constrain.json_schema.shapes.strings import ANY_CONTENT
from constrain.json_schema.spelling.languages import is_surely_empty, matching
from constrain.language.tree import Complement, Expression, Intersection
from constrain.work import MAX_ALTERNATIVES

if TYPE_CHECKING:
    from constrain.json_schema.shapes.data import ObjectShape


class SharedKeys(NamedTuple):
    """A class of keys. ``goals``: for each shape, the goal of their values."""

    keys: KeyClass
    goals: tuple[Goal, ...]


def partition(shapes: list[ObjectShape], names: list[str]) -> list[SharedKeys]:
    """Returns the classes of keys outside ``names``; the first shape allows a value for each."""
    expressions: dict[str, Expression] = {}
    for shape in shapes:
        for pattern in shape.patterns:
            expressions.setdefault(pattern.text, pattern.expression)
    if not expressions:
        goals = tuple(representative(shape.additional) for shape in shapes)
        keys = KeyClass(without(JSON_STRING, names), goals[0], inf)
        return [] if goals[0] is NOTHING else [SharedKeys(keys, goals)]
    found = []
    for matched, content in _cells(expressions):
        goals = tuple(representative(_goal(shape, matched)) for shape in shapes)
        if goals[0] is NOTHING:
            continue
        taken = matching(content, names)
        number = number_of_texts(content) - len(taken)
        if number > 0:
            found.append(SharedKeys(KeyClass(without(quoted(content), taken), goals[0], number), goals))
    return found


def _goal(shape: ObjectShape, matched: frozenset[str]) -> Goal:
    return next((pattern.goal for pattern in shape.patterns if pattern.text in matched), shape.additional)


def _cells(expressions: dict[str, Expression]) -> list[tuple[frozenset[str], Expression]]:
    """Returns each combination of patterns that some key matches exactly, with the content of its keys."""
    cells: list[tuple[frozenset[str], tuple[Expression, ...]]] = [(frozenset(), (ANY_CONTENT,))]
    for text, expression in expressions.items():
        divided = []
        for matched, parts in cells:
            for more, part in (({text}, expression), (set(), Complement(expression))):
                if not is_surely_empty((*parts, part)):
                    divided.append((matched | more, (*parts, part)))
        cells = divided
        if len(cells) > MAX_ALTERNATIVES:
            raise too_many_classes()
    return [(matched, Intersection(parts)) for matched, parts in cells]
