"""Quotes in the value of an answer: folded ones get the spelling of their source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.schema_text import parse_schema, plain_schema
from constrain.quotes.keyword import has_quotes
from constrain.quotes.places import Quotes

if TYPE_CHECKING:
    from constrain.given import Given
    from constrain.language.result import ResultType


def with_given(result: ResultType, given: Given) -> ResultType:
    """Returns the result type of a JSON Schema with its sources and tables, which finds quotes in answers."""
    if not given.is_for(result.schema.text):
        return result
    schema = replace(result.schema, text=given.bind(result.schema.text))
    return replace(result, given=schema, quotes=make_quotes(schema.text))


def make_quotes(schema: str) -> Quotes | None:
    """Returns the object that finds the quotes of a schema; None if the schema has none."""
    document = plain_schema(parse_schema(schema))
    return Quotes(document) if has_quotes(document) else None
