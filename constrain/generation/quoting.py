"""The quotes of one request's answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.schema_text import parse_schema, plain_schema, schema_text
from constrain.quotes.keyword import QUOTE, with_sources
from constrain.quotes.places import Quotes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.result import ResultType
    from constrain.quotes.keyword import Texts


def with_quotes(result: ResultType, schema: object, sources: Mapping[str, Texts]) -> ResultType:
    """Returns a result type that finds the quotes of answers; unchanged if the schema has none."""
    if result.document is None or QUOTE not in str(result.document):
        return result
    document = plain_schema(parse_schema(with_sources(schema_text(schema), sources)))
    return replace(result, quotes=Quotes(document))
