"""The quotes of one request's answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.chat.tools.kinds import FunctionTool
from constrain.language.schema_text import parse_schema, plain_schema, schema_text
from constrain.quotes.keyword import QUOTE, may_have_quotes, with_sources
from constrain.quotes.places import Quotes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.chat.tools.kinds import Tool
    from constrain.language.result import ResultType
    from constrain.quotes.keyword import Texts


def with_quotes(result: ResultType, schema: object, sources: Mapping[str, Texts]) -> ResultType:
    """Returns a result type that finds the quotes of answers; unchanged if the schema has none."""
    if result.document is None or QUOTE not in str(result.document):
        return result
    return replace(result, quotes=_make_quotes(schema_text(schema), sources))


def tool_quotes(tools: Sequence[Tool], sources: Mapping[str, Texts]) -> dict[str, Quotes]:
    """Returns objects that find the quotes in the arguments of calls, by name of the tool; for tools with quotes."""
    texts = {tool.name: tool.schema_text for tool in tools if isinstance(tool, FunctionTool)}
    return {name: _make_quotes(text, sources) for name, text in texts.items() if may_have_quotes(text)}


def _make_quotes(schema: str, sources: Mapping[str, Texts]) -> Quotes:
    return Quotes(plain_schema(parse_schema(with_sources(schema, sources))))
