"""Quotes in the value of an answer: folded ones get the spelling of their source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.schema_text import parse_schema, plain_schema, schema_text
from constrain.quotes.keyword import has_quotes, may_have_quotes, with_sources
from constrain.quotes.places import Quotes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.result import ResultType
    from constrain.quotes.keyword import Texts


def with_quotes(result: ResultType, schema: object, sources: Mapping[str, Texts]) -> ResultType:
    """Returns a result type that finds the quotes of answers; unchanged if the schema has none.

    ``schema``: the schema of ``result``; a JSON Schema as text, so that it need not be written out to be searched.
    """
    may_quote = may_have_quotes(schema) if isinstance(schema, str) else result.may_quote
    quotes = make_quotes(schema_text(schema), sources) if may_quote else None
    return result if quotes is None else replace(result, quotes=quotes)


def make_quotes(schema: str, sources: Mapping[str, Texts]) -> Quotes | None:
    """Returns the object that finds the quotes of a schema; None if the schema has none."""
    document = plain_schema(parse_schema(with_sources(schema, sources)))
    return Quotes(document) if has_quotes(document) else None
