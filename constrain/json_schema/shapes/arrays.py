"""The shape of arrays and its intersection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.shapes.data import ANY_ARRAY, ArrayShape, Goal

if TYPE_CHECKING:
    from constrain.json_schema.shapes.goals import Goals


def intersect_arrays(goals: Goals, a: ArrayShape, b: ArrayShape) -> ArrayShape | None:
    """Returns the arrays of both shapes; ``None`` if the bounds leave none."""
    if a is ANY_ARRAY:
        return b
    if b is ANY_ARRAY:
        return a
    longest = max(len(a.prefix), len(b.prefix))
    prefix = tuple(goals.conjunction(item_goal(a, i), item_goal(b, i)) for i in range(longest))
    maximum = a.maximum if b.maximum is None else b.maximum if a.maximum is None else min(a.maximum, b.maximum)
    minimum = max(a.minimum, b.minimum)
    if maximum is not None and minimum > maximum:
        return None
    return ArrayShape(prefix, goals.conjunction(a.rest, b.rest), minimum, maximum, a.unique or b.unique)


def item_goal(shape: ArrayShape, index: int) -> Goal:
    """Returns the goal of the item at ``index``."""
    return shape.prefix[index] if index < len(shape.prefix) else shape.rest
