"""The error for a schema without values, or without values that can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.dialects import escape
from constrain.json_schema.documents.required_keys import misspelt_keys
from constrain.json_schema.shapes.data import NOTHING, Goal
from constrain.json_schema.shapes.quotes import quotes_at
from constrain.json_schema.shapes.strings import StringShape, matches_nothing, pattern_expression, with_lengths
from constrain.json_schema.shapes.tables import column_at
from constrain.json_schema.values.doubles import ONLY_DECIMALS
from constrain.kernel import unproductive_item, unproductive_member
from constrain.language.tree import Substring
from constrain.quotes.keyword import QUOTE
from constrain.quotes.texts import has_parts
from constrain.tables.keyword import ONE_OF

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.shapes.goals import Goals

BOUNDS = (
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minimum", "maximum"),
    ("exclusiveMinimum", "maximum"),
    ("minimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
)


def why_empty(goals: Goals, root: Goal) -> SchemaError:
    """Returns the error for a goal without values; its pointer names the innermost contradiction.

    The error is ``UnsatisfiableSchemaError``; ``UnsupportedSchemaError`` if values exist, but none can be written.
    """
    goal, path = root, ""
    pointer = goals.references.root.pointer()
    seen = {root}
    while True:
        if goal.location is not None:
            pointer = goal.location.pointer()
        step = _obstacle(goal)
        if step is None:
            place, message = _contradiction(goals, goal, pointer)
            kind = UnsupportedSchemaError if message == ONLY_DECIMALS else UnsatisfiableSchemaError
            return kind(message + _needed(path), pointer=place)
        inner, token = step
        path += escape(token)
        if inner is NOTHING:
            message = "a required part is forbidden here, by a schema that is false or by additionalProperties"
            return UnsatisfiableSchemaError(message + _needed(path) + _meant(goal, token), pointer=pointer)
        goal = inner
        if goal in seen:
            message = "a $ref cycle without values: each value would contain another one, without end"
            return UnsatisfiableSchemaError(message + _needed(path), pointer=pointer)
        seen.add(goal)


def _needed(path: str) -> str:
    return f" ({path} is required and can have no value)" if path else ""


def _meant(goal: Goal, key: str) -> str:
    """Returns the question for the property that a required key seems to stand for; empty if there is none."""
    schema = goal.location.schema if goal.location is not None else None
    near = dict(misspelt_keys(schema)).get(key)
    return f"; did you mean {near!r:.80}?" if near else ""


def _obstacle(goal: Goal) -> tuple[Goal, str] | None:
    """Returns a required part without values."""
    shapes = goal.shapes
    assert shapes is not None
    for shape in shapes.objects:
        member = unproductive_member(shape)
        if member is not None:
            return member
    for array in shapes.arrays:
        item = unproductive_item(array)
        if item is not None:
            return item[0], str(item[1])
    return None


def _contradiction(goals: Goals, goal: Goal, pointer: str) -> tuple[str, str]:
    """Returns pointer and message for a goal without shapes."""
    locations = [part.location for part in goal.parts if part.location is not None]
    if goal in goals.shortages:
        return pointer, goals.shortages[goal]
    if goal is NOTHING:
        return pointer, "a schema that is false allows no value"
    if not locations:
        return pointer, "the schemas that apply here exclude each other"
    for location in locations:
        found = _within(goals, location)
        if found is not None:
            return found
    return locations[0].pointer(), "the keywords and schemas that apply here exclude each other"


def _within(goals: Goals, location: Location) -> tuple[str, str] | None:
    schema = location.schema
    if not isinstance(schema, dict):
        return location.pointer(), "a schema that is false allows no value"
    if schema.get("enum") == []:
        return location.pointer("enum"), "an empty enum allows no value"
    for low, high in BOUNDS:
        least, greatest = schema.get(low), schema.get(high)
        if isinstance(least, (int, float)) and isinstance(greatest, (int, float)):
            strict = "exclusive" in low + high and least == greatest
            if least > greatest or strict:
                return location.pointer(low), f"{low} {least} and {high} {greatest} exclude each other"
    if (
        "pattern" in schema
        and _is_about_strings(schema)
        and matches_nothing(pattern_expression(location, schema["pattern"], "pattern"))
    ):
        return location.pointer("pattern"), f"no text matches the pattern {schema['pattern']!a:.80}"
    if QUOTE in schema:
        why = _without_quotes(goals, location, schema)
        if why is not None:
            return location.pointer(QUOTE), why
    if ONE_OF in schema:
        named, column = column_at(goals, location, schema[ONE_OF])
        values = f"the {len(column):,} values of {named}, which are {column.kinds()}"
        return location.pointer(ONE_OF), f"the other keywords here leave none of {values}"
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(keyword)
        for branch in branches if isinstance(branches, list) else ():
            inner = location.resource.locations.get(id(branch))
            if inner is not None and inner is not location and inner.shapes is not None and not any(inner.shapes):
                found = _within(goals, inner)
                if found is not None:
                    return found
    return None


def _without_quotes(goals: Goals, location: Location, schema: dict[str, object]) -> str | None:
    """Returns why a source has no quote of the wanted length; ``None`` if it has one."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    given = quotes_at(goals, location, schema[QUOTE])
    lengths = (least if isinstance(least, int) else 0), (most if isinstance(most, int) else None)
    quotes = with_lengths(StringShape((given,), *lengths)).parts[0]
    assert isinstance(quotes, Substring)
    if has_parts(quotes):
        return None
    wanted = f"{quotes.minimum} or more" + ("" if quotes.maximum is None else f" and {quotes.maximum} or fewer")
    longest = max(map(len, quotes.texts), default=0)
    return f"no quote has {wanted} characters: the longest text of its source has {longest}"


def _is_about_strings(schema: dict[str, object]) -> bool:
    kinds = schema.get("type", "string")
    return "string" in kinds if isinstance(kinds, list) else kinds == "string"
