"""The expression of a string that is a piece of a source text (``x-quote``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.quotes.keyword import PROMPT, QUOTE, read_keyword, sources_of
from constrain.quotes.texts import quote_expression

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.shapes.goals import Goals
    from constrain.language.tree import Substring


def quotes_at(goals: Goals, at: Location, value: object) -> Substring:
    """Returns the expression of all quotes of a keyword. Raises SchemaError, UnsupportedSchemaError and LimitError."""
    try:
        keyword = read_keyword(value)
        sources = sources_of(goals.references.root.schema)
    except (TypeError, ValueError) as error:
        raise SchemaError(str(error), pointer=at.pointer(QUOTE)) from error
    except LimitError as error:
        raise LimitError(error.message, pointer=at.pointer(QUOTE)) from error
    if keyword.source not in sources:
        known = f"; there are {', '.join(map(repr, sources))}" if sources else ""
        remedy = "give it a text in 'sources'"
        if keyword.source == PROMPT:
            remedy += ", or call generate with a prompt: its source are the user's messages"
        message = f"there is no source {keyword.source!r:.80} to quote from: {remedy}{known}"
        raise SchemaError(message, pointer=at.pointer(QUOTE))
    if keyword.fold and isinstance(at.schema, dict):
        own = KEYWORDS.about_strings - KEYWORDS.in_place - {"type", QUOTE}
        beside = [name for name in at.schema if name in own]
        if beside:
            message = f"with fold, the value gets the source's spelling, which may not fit {beside[0]}; leave out one"
            raise UnsupportedSchemaError(message, pointer=at.pointer(beside[0]))
    return quote_expression(sources[keyword.source], keyword)
