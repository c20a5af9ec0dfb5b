"""Arrays: the shape, its intersection, and the array keywords."""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import SchemaError
from constrain.json_schema.shapes.goal import ANY, NOTHING, Goal

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


class ArrayShape(NamedTuple):
    """Arrays of ``minimum`` to ``maximum`` items: item *i* satisfies ``prefix[i]``, those after it ``rest``.

    ``unique``: no two items are equal.
    """

    prefix: tuple[Goal, ...] = ()
    rest: Goal = ANY
    minimum: int = 0
    maximum: int | None = None
    unique: bool = False


ANY_ARRAY = ArrayShape()


def intersect_arrays(goals: Goals, a: ArrayShape, b: ArrayShape) -> ArrayShape | None:
    """The arrays of both shapes, or ``None`` if the bounds leave none."""
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
    """What the item at ``index`` must satisfy."""
    return shape.prefix[index] if index < len(shape.prefix) else shape.rest


def longest_length(shape: ArrayShape) -> int | None:
    """The greatest number of items whose goals are all productive, as far as is known; ``None``: no bound."""
    for index, goal in enumerate(shape.prefix):
        if not goal.productive:
            return index if shape.maximum is None else min(index, shape.maximum)
    if not shape.rest.productive:
        return len(shape.prefix) if shape.maximum is None else min(len(shape.prefix), shape.maximum)
    return shape.maximum


def unproductive_item(shape: ArrayShape) -> tuple[Goal, int] | None:
    """An item that must be there and is not known to have a value; ``None`` if the shape has a value."""
    for index in range(min(shape.minimum, len(shape.prefix))):
        if not shape.prefix[index].productive:
            return shape.prefix[index], index
    if shape.minimum > len(shape.prefix) and not shape.rest.productive:
        return shape.rest, len(shape.prefix)
    return None


def min_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """The least number of items."""
    found.min_items = goals.count(at, "minItems", value)
    found.arrays_restricted = True


def max_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """The greatest number of items."""
    found.max_items = goals.count(at, "maxItems", value)
    found.arrays_restricted = True


def items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """One schema for all items after ``prefixItems``; in drafts up to 2019-09 also one schema for each."""
    if isinstance(value, list):
        if found.prefix:
            raise SchemaError("items as a list and prefixItems exclude each other", pointer=at.pointer("items"))
        found.prefix = goals.children(at, "items", value)
    else:
        found.items = goals.child(at, "/items", value)
    found.arrays_restricted = True


def prefix_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """From 2020-12 on: one schema for each of the first items."""
    if found.prefix:
        raise SchemaError("items as a list and prefixItems exclude each other", pointer=at.pointer("prefixItems"))
    found.prefix = goals.children(at, "prefixItems", value)
    found.arrays_restricted = True


def additional_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """Up to 2019-09, and only beside ``items`` as a list: what the items after those satisfy."""
    goal = goals.child(at, "/additionalItems", value)
    if isinstance(at.schema, dict) and isinstance(at.schema.get("items"), list):
        found.items = goal
        found.arrays_restricted = True


def unevaluated_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """Depends on what other keywords evaluate, and is seen to after them (``keywords.unevaluated``)."""
    if value is not True and value != {}:
        found.unevaluated = True


def unique_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """No two items are equal."""
    if not isinstance(value, bool):
        raise SchemaError(f"uniqueItems must be a boolean, not {value!r:.80}", pointer=at.pointer("uniqueItems"))
    if value:
        found.unique_items = found.arrays_restricted = goals.has_unique_items = True


def array_shape(found: Assertions) -> ArrayShape | None:
    """The shape that the array keywords of one schema make together."""
    if not found.arrays_restricted:
        return ANY_ARRAY
    if found.max_items is not None and found.min_items > found.max_items:
        return None
    return ArrayShape(found.prefix, found.items, found.min_items, found.max_items, found.unique_items)


def constant_array(goals: Goals, at: Location, value: list[object]) -> ArrayShape:
    """Exactly this array."""
    prefix = tuple(goals.constant(at, item) for item in value)
    return ArrayShape(prefix, NOTHING, len(value), len(value))
