"""Quotes in the value of an answer: folded ones get the spelling of their source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.schema_text import parse_schema, plain_schema
from constrain.quotes.keyword import has_quotes, may_have_quotes, with_sources
from constrain.quotes.places import Quotes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.result import ResultType
    from constrain.quotes.keyword import Texts


def with_quotes(result: ResultType, sources: Mapping[str, Texts]) -> ResultType:
    """Returns the result type of a JSON Schema with sources, which finds quotes in answers; itself without quotes."""
    if not may_have_quotes(result.schema.text):
        return result
    schema = replace(result.schema, text=with_sources(result.schema.text, sources))
    return replace(result, given=schema, quotes=make_quotes(schema.text))


def make_quotes(schema: str) -> Quotes | None:
    """Returns the object that finds the quotes of a schema; None if the schema has none."""
    document = plain_schema(parse_schema(schema))
    return Quotes(document) if has_quotes(document) else None
