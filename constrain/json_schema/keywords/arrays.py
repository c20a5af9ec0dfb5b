"""Keywords for arrays: ``items``, ``prefixItems``, ``minItems``, ``uniqueItems`` and their like."""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError
from constrain.json_schema.shapes.data import ANY_ARRAY, NOTHING, ArrayShape

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def min_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``minItems``: the least number of items."""
    found.min_items = goals.count(at, "minItems", value)
    found.arrays_restricted = True


def max_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``maxItems``: the greatest number of items."""
    found.max_items = goals.count(at, "maxItems", value)
    found.arrays_restricted = True


def items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``items``: one schema for all items after ``prefixItems``; up to 2019-09 also a list, a schema for each item."""
    if isinstance(value, list):
        if found.prefix:
            raise SchemaError("items as a list cannot stand beside prefixItems", pointer=at.pointer("items"))
        found.prefix = goals.children(at, "items", value)
    else:
        found.items = goals.child(at, "/items", value)
    found.arrays_restricted = True


def prefix_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``prefixItems``, from 2020-12 on: one schema for each of the first items."""
    if found.prefix:
        raise SchemaError("items as a list cannot stand beside prefixItems", pointer=at.pointer("prefixItems"))
    found.prefix = goals.children(at, "prefixItems", value)
    found.arrays_restricted = True


def additional_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``additionalItems``, up to 2019-09 and only beside ``items`` as a list: the schema of all later items."""
    goal = goals.child(at, "/additionalItems", value)
    if isinstance(at.schema, dict) and isinstance(at.schema.get("items"), list):
        found.items = goal
        found.arrays_restricted = True


def unevaluated_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``unevaluatedItems``: recorded here, since ``keywords.unevaluated`` needs the other keywords first."""
    if value is not True and value != {}:
        found.unevaluated = True


def unique_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``uniqueItems``: no two items are equal."""
    if not isinstance(value, bool):
        raise SchemaError(f"uniqueItems must be a boolean, not {value!r:.80}", pointer=at.pointer("uniqueItems"))
    if value:
        found.unique_items = found.arrays_restricted = goals.has_unique_items = True


def array_shape(found: Assertions) -> ArrayShape | None:
    """Returns the shape that the array keywords of one schema describe together."""
    if not found.arrays_restricted:
        return ANY_ARRAY
    if found.max_items is not None and found.min_items > found.max_items:
        return None
    return ArrayShape(found.prefix, found.items, found.min_items, found.max_items, found.unique_items)


def constant_array(goals: Goals, at: Location, value: list[object]) -> ArrayShape:
    """Returns the shape of exactly this array."""
    prefix = tuple(goals.constant(at, item) for item in value)
    return ArrayShape(prefix, NOTHING, len(value), len(value))
