"""JSON Schemas in a grammar text: ``%json {...}``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import ConstrainError, GrammarError, LimitError, PatternError
from constrain.language.schema_text import parse_schema
from constrain.lark.reading.places import placed

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.lark.reading.syntax import Embedded


def schema_grammar(text: str, embedded: Embedded) -> Grammar:
    """Returns the grammar of a schema's values, under the default policies; ``text`` is the grammar text around it.

    Raises GrammarError, PatternError and LimitError with the place of ``%json`` in the text; messages add the JSON
    Pointer into the schema, if one is known.
    """
    from constrain.json_schema.compiler import compile_schema

    try:
        return compile_schema(parse_schema(embedded.schema), keys_apart=True).part
    except ConstrainError as error:
        kind = next((kind for kind in (PatternError, LimitError) if isinstance(error, kind)), GrammarError)
        raise placed(kind, text, embedded.at, f"this JSON Schema cannot be used: {error}") from error
