"""The shape of objects and its intersection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.json_schema.shapes.data import ANY, ANY_OBJECT, NOTHING, Goal, KeyPattern, ObjectShape
from constrain.json_schema.spelling.languages import is_surely_empty, matching
from constrain.language.tree import Alternation, Complement, Expression, Intersection
from constrain.work import MAX_ALTERNATIVES, spend

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.shapes.goals import Goals

KEYS_PER_STEP = 2
"""Keys of two objects that are joined per compilation step."""


def intersect_objects(goals: Goals, a: ObjectShape, b: ObjectShape) -> ObjectShape | None:
    """Returns the objects of both shapes; ``None`` if the bounds leave none."""
    if a is ANY_OBJECT:
        return b
    if b is ANY_OBJECT:
        return a
    maximum = a.maximum if b.maximum is None else b.maximum if a.maximum is None else min(a.maximum, b.maximum)
    minimum = max(a.minimum, b.minimum)
    required = tuple(dict.fromkeys(a.required + b.required)) if a.required and b.required else a.required or b.required
    if maximum is not None and max(minimum, len(required)) > maximum:
        return None
    return ObjectShape(
        _intersect_properties(goals, a, b),
        required,
        _intersect_patterns(goals, a, b),
        goals.conjunction(a.additional, b.additional),
        minimum,
        maximum,
        a.open and b.open,
    )


def _intersect_properties(goals: Goals, a: ObjectShape, b: ObjectShape) -> dict[str, Goal]:
    if not b.properties and not b.patterns and b.additional is ANY:
        return a.properties
    if not a.properties and not a.patterns and a.additional is ANY:
        return b.properties
    keys = dict.fromkeys((*a.properties, *b.properties))
    spend(len(keys) // KEYS_PER_STEP)
    ours, theirs = key_goals(a, keys), key_goals(b, keys)
    return {key: goals.conjunction(ours[key], theirs[key]) for key in keys}


def key_goals(shape: ObjectShape, keys: Iterable[str]) -> dict[str, Goal]:
    """Returns the goals of the values of ``keys``."""
    properties, additional = shape.properties, shape.additional
    goals = {key: properties.get(key, additional) for key in keys}
    spend(len(goals) // KEYS_PER_STEP)
    if shape.patterns:
        undeclared = [key for key in goals if key not in properties]
        for pattern in shape.patterns:
            goals.update(dict.fromkeys(matching(pattern.expression, undeclared), pattern.goal))
    return goals


def _intersect_patterns(goals: Goals, a: ObjectShape, b: ObjectShape) -> tuple[KeyPattern, ...]:
    if not b.patterns and b.additional is ANY:
        return a.patterns
    if not a.patterns and a.additional is ANY:
        return b.patterns
    ours = {pattern.text: pattern for pattern in a.patterns}
    theirs = {pattern.text: pattern for pattern in b.patterns}
    shared = [
        pattern._replace(goal=goals.conjunction(pattern.goal, theirs[pattern.text].goal))
        for pattern in a.patterns
        if pattern.text in theirs
    ]
    only_ours = [pattern for pattern in a.patterns if pattern.text not in theirs]
    only_theirs = [pattern for pattern in b.patterns if pattern.text not in ours]
    if only_ours and only_theirs and all(pattern.goal is NOTHING for pattern in only_ours + only_theirs):
        return (*shared, _excluded(only_ours + only_theirs))
    cells = divide_keys(goals, only_ours, only_theirs)
    return (
        *shared,
        *(cell for cell in cells.both),
        *(cell._replace(goal=goals.conjunction(cell.goal, b.additional)) for cell in cells.left),
        *(cell._replace(goal=goals.conjunction(cell.goal, a.additional)) for cell in cells.right),
    )


def _excluded(patterns: list[KeyPattern]) -> KeyPattern:
    """Returns the keys that match any of the patterns, all forbidden; so their overlaps do not matter."""
    expressions: list[Expression] = []
    for each in patterns:
        expressions += each.expression.parts if isinstance(each.expression, Alternation) else (each.expression,)
    return KeyPattern(" or ".join(each.text for each in patterns), Alternation(tuple(expressions)), NOTHING)


class KeyCells(NamedTuple):
    """Keys that match a pattern of both lists, of the left one only, of the right one only."""

    both: list[KeyPattern]
    left: list[KeyPattern]
    right: list[KeyPattern]


def divide_keys(goals: Goals, left: list[KeyPattern], right: list[KeyPattern]) -> KeyCells:
    """Divides the keys of two lists of patterns; no two patterns of one list match the same key."""
    cells = KeyCells([], [], [])
    remaining: list[KeyPattern | None] = list(right)
    for pattern in left:
        rest: KeyPattern | None = pattern
        for index, other in enumerate(remaining):
            if rest is None:
                break
            if other is not None and not is_surely_empty((rest.expression, other.expression)):
                goal = goals.conjunction(rest.goal, other.goal)
                both = Intersection((rest.expression, other.expression))
                cells.both.append(KeyPattern(f"{rest.text} and {other.text}", both, goal))
                remaining[index] = _less(other, rest)
                rest = _less(rest, other)
        if rest is not None:
            cells.left.append(rest)
    cells.right.extend(pattern for pattern in remaining if pattern is not None)
    if sum(map(len, cells)) > MAX_ALTERNATIVES:
        raise too_many_classes()
    return cells


def too_many_classes() -> LimitError:
    """Returns the error for key patterns that overlap in too many ways."""
    return LimitError(
        f"key patterns divide the keys into more classes than MAX_ALTERNATIVES = {MAX_ALTERNATIVES}; use fewer patterns"
    )


def _less(pattern: KeyPattern, other: KeyPattern) -> KeyPattern | None:
    """Returns the keys that match the first pattern only; ``None`` if there are none."""
    parts = (pattern.expression, Complement(other.expression))
    if is_surely_empty(parts):
        return None
    return pattern._replace(text=f"{pattern.text} and not {other.text}", expression=Intersection(parts))
