"""Keywords for arrays: ``items``, ``prefixItems``, ``minItems``, ``uniqueItems``, ``contains`` and their like."""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.dialects import DRAFT_6, DRAFT_2019, DRAFT_2020
from constrain.json_schema.documents.keyword import KEYWORDS, Keyword
from constrain.json_schema.formulas.complements import arrays_where
from constrain.json_schema.keywords.joining import both_schemas, either, greater, lesser
from constrain.json_schema.shapes.data import ANY_ARRAY, NOTHING, ArrayShape, Atom, Formula, ItemCount, Not
from constrain.language.stages import UNIQUE_BY

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


@Keyword("minItems", "array", hint=None, merge=greater)
def min_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``minItems``: the least number of items."""
    found.min_items = goals.count(at, "minItems", value)
    found.arrays_restricted = True


@Keyword("maxItems", "array", hint=None, merge=lesser)
def max_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``maxItems``: the greatest number of items."""
    found.max_items = goals.count(at, "maxItems", value)
    found.arrays_restricted = True


@Keyword("items", "array", hint=None, merge=both_schemas, holds="schema or list", in_place=None)
def items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``items``: the schema of all items after ``prefixItems``; up to 2019-09 also a list, a schema for each item."""
    if isinstance(value, list):
        if found.prefix:
            raise SchemaError("items as a list cannot stand beside prefixItems", pointer=at.pointer("items"))
        found.prefix = goals.children(at, "items", value)
    else:
        found.items = goals.child(at, "/items", value)
    found.arrays_restricted = True


@Keyword("prefixItems", "array", hint=None, merge=None, holds="list", in_place=None, since=DRAFT_2020)
def prefix_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``prefixItems``: one schema for each of the first items."""
    if found.prefix:
        raise SchemaError("items as a list cannot stand beside prefixItems", pointer=at.pointer("prefixItems"))
    found.prefix = goals.children(at, "prefixItems", value)
    found.arrays_restricted = True


@Keyword(
    "additionalItems", "array", hint=None, merge=None, holds="schema", in_place=None, until=DRAFT_2019, everywhere=True
)
def additional_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``additionalItems``: the schema of all items after ``items`` as a list."""
    goal = goals.child(at, "/additionalItems", value)
    if isinstance(at.schema, dict) and isinstance(at.schema.get("items"), list):
        found.items = goal
        found.arrays_restricted = True


@Keyword(
    "unevaluatedItems", "array", "unevaluated", hint=None, merge=None, holds="schema", in_place=None, since=DRAFT_2019
)
def unevaluated_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``unevaluatedItems``: the schema of items that no other keyword evaluates.

    It is recorded here, since ``keywords.unevaluated`` needs the other keywords first.
    """
    if value is not True and value != {}:
        found.unevaluated = True


@Keyword("uniqueItems", "array", hint=None, merge=either)
def unique_items(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``uniqueItems``: no two items are equal."""
    if not isinstance(value, bool):
        raise SchemaError(f"uniqueItems must be a boolean, not {value!r:.80}", pointer=at.pointer("uniqueItems"))
    if value:
        found.unique_items = found.arrays_restricted = goals.has_unique_items = True


@Keyword(UNIQUE_BY, "array", hint=lambda pointer: f"all items differ in {pointer}", merge=None)
def unique_by(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``x-unique-by``: the pointer to a member of the items that has another value in each of them."""
    if not isinstance(value, str):
        message = f"{UNIQUE_BY} must be a JSON Pointer to a member of the items, such as /id, not {value!r:.80}"
        raise SchemaError(message, pointer=at.pointer(UNIQUE_BY))
    message = f"{UNIQUE_BY} is not supported here; leave it out, and compare the items of the answer"
    raise UnsupportedSchemaError(message, pointer=at.pointer(UNIQUE_BY))


@Keyword("contains", "array", hint=None, merge=None, holds="schema", in_place=None, since=DRAFT_6)
def contains(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``contains``: the schema of at least one item; of ``minContains`` to ``maxContains`` items from 2019-09 on."""
    assert isinstance(at.schema, dict)
    goal = goals.child(at, "/contains", value)
    bounds = at.schema if at.resource.dialect in KEYWORDS.records["minContains"].drafts else {}
    least = goals.count(at, "minContains", bounds.get("minContains", 1))
    formulas: list[Formula] = []
    if least:
        formulas.append(Atom(ItemCount(goal, least)))
    if "maxContains" in bounds:
        formulas.append(Not(Atom(ItemCount(goal, 1 + goals.count(at, "maxContains", bounds["maxContains"])))))
    if formulas:
        found.parts.append(arrays_where(goals, formulas))


for _name, _says in (
    ("minContains", "the least number of items that satisfy ``contains``"),
    ("maxContains", "the greatest number of items that satisfy ``contains``"),
):
    KEYWORDS.add(Keyword(_name, "array", hint=None, merge=None, read_by="contains", since=DRAFT_2019, says=_says))


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
