"""The keyword ``x-quote``: a string that is a piece of a source text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.shapes.quotes import quotes_at
from constrain.json_schema.shapes.strings import StringShape
from constrain.quotes.keyword import QUOTE
from constrain.quotes.texts import has_parts, without_spaces_around

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def quote(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``x-quote``: true, the name of a source, or an object of options."""
    schema = at.schema
    assert isinstance(schema, dict)
    kinds = schema.get("type", "string")
    if "string" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise SchemaError(f"{QUOTE} is about strings, but the type here is {kinds!r:.80}", pointer=at.pointer(QUOTE))
    if goals.policies.escapes == "any":
        message = f'{QUOTE} needs escapes="canonical": with "any", a character has several spellings'
        raise UnsupportedSchemaError(message, pointer=at.pointer(QUOTE))
    expression = quotes_at(goals, at, value)
    if has_parts(expression):
        found.restrict_strings(StringShape((expression, without_spaces_around()) if expression.cuts else (expression,)))
    else:
        found.strings = None
