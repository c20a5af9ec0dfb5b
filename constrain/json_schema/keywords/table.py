"""The table of keywords: the function for each keyword of each draft.

To add a keyword, follow CONTRIBUTING.md, "Add a keyword": besides its function and an entry here, several tables name
it. A keyword about strings that is missing in ``documents.keyword_sets.ABOUT_STRINGS`` is ignored in ``propertyNames``.
"""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from constrain.errors import SchemaError
from constrain.json_schema.documents.dialects import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020, Dialect
from constrain.json_schema.documents.keyword_sets import ANNOTATIONS
from constrain.json_schema.keywords import (
    arrays,
    combinators,
    conditionals,
    contains,
    numeric,
    objects,
    quotes,
    strings,
)
from constrain.json_schema.keywords import format as formats_keyword

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals

    Handler = Callable[[Goals, Location, object, Assertions], None]
else:
    Handler = Callable


def unknown_keyword(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """Handles keywords outside the table: JSON Schema says to ignore these."""


def identifier(keyword: str) -> Handler:
    """Returns a function that checks the type of an identifying keyword; ``documents`` reads its value earlier."""

    def check(goals: Goals, at: Location, value: object, found: Assertions) -> None:
        if not isinstance(value, str):
            raise SchemaError(f"{keyword} must be a string, not {value!r:.80}", pointer=at.pointer(keyword))

    return check


def identifier_of_draft_4(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``id`` of draft 4: a value that is no string is ignored with a warning; often it is a misplaced property."""
    if not isinstance(value, str):
        goals.warnings.setdefault(f"the id at {at.pointer('id')} is not a string and is ignored")


def recursive_anchor(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``$recursiveAnchor``: checks its type; ``$recursiveRef`` reads its value."""
    if not isinstance(value, bool):
        raise SchemaError(
            f"$recursiveAnchor must be a boolean, not {value!r:.80}", pointer=at.pointer("$recursiveAnchor")
        )


_EVERY_DRAFT: dict[str, Handler | None] = {
    **dict.fromkeys(ANNOTATIONS),
    "type": combinators.type_,
    "enum": combinators.enum,
    "$ref": combinators.ref,
    "allOf": combinators.all_of,
    "anyOf": combinators.any_of,
    "oneOf": combinators.one_of,
    "not": combinators.not_,
    "minimum": numeric.minimum,
    "maximum": numeric.maximum,
    "multipleOf": numeric.multiple_of,
    "minLength": strings.min_length,
    "maxLength": strings.max_length,
    "pattern": strings.pattern,
    "format": formats_keyword.format_,
    "x-quote": quotes.quote,
    "items": arrays.items,
    "minItems": arrays.min_items,
    "maxItems": arrays.max_items,
    "uniqueItems": arrays.unique_items,
    "properties": objects.properties,
    "patternProperties": objects.pattern_properties,
    "additionalProperties": objects.additional_properties,
    "required": objects.required,
    "minProperties": objects.min_properties,
    "maxProperties": objects.max_properties,
    "dependencies": conditionals.dependencies,
    "additionalItems": arrays.additional_items,
}

_DRAFT_4: dict[str, Handler | None] = {
    **_EVERY_DRAFT,
    "id": identifier_of_draft_4,
    "exclusiveMinimum": numeric.boolean_exclusive_minimum,
    "exclusiveMaximum": numeric.boolean_exclusive_maximum,
}

_DRAFT_6: dict[str, Handler | None] = {
    **_EVERY_DRAFT,
    "$id": identifier("$id"),
    "exclusiveMinimum": numeric.exclusive_minimum,
    "exclusiveMaximum": numeric.exclusive_maximum,
    "const": combinators.const,
    "contains": contains.contains,
    "propertyNames": objects.property_names,
}

_DRAFT_7: dict[str, Handler | None] = {**_DRAFT_6, "if": conditionals.if_, "then": None, "else": None}

_DRAFT_2019: dict[str, Handler | None] = {
    **_DRAFT_7,
    "$anchor": identifier("$anchor"),
    "$recursiveAnchor": recursive_anchor,
    "$recursiveRef": combinators.recursive_ref,
    "dependentRequired": conditionals.dependent_required,
    "dependentSchemas": conditionals.dependent_schemas,
    "contains": contains.contains_between,
    "minContains": None,
    "maxContains": None,
    "unevaluatedItems": arrays.unevaluated_items,
    "unevaluatedProperties": objects.unevaluated_properties,
}

_DRAFT_2020: dict[str, Handler | None] = {
    **_DRAFT_2019,
    "$dynamicAnchor": identifier("$dynamicAnchor"),
    "$dynamicRef": combinators.dynamic_ref,
    "prefixItems": arrays.prefix_items,
}
del _DRAFT_2020["$recursiveAnchor"], _DRAFT_2020["$recursiveRef"]

_TABLES: dict[Dialect, Mapping[str, Handler | None]] = {
    DRAFT_4: _DRAFT_4,
    DRAFT_6: _DRAFT_6,
    DRAFT_7: _DRAFT_7,
    DRAFT_2019: _DRAFT_2019,
    DRAFT_2020: _DRAFT_2020,
}


def keywords_of(dialect: Dialect) -> Mapping[str, Handler | None]:
    """Returns the function for each keyword of a draft; ``None`` for keywords that assert nothing."""
    return _TABLES[dialect]
