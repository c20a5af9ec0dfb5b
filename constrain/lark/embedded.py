"""JSON Schemas in a grammar text: ``%json {...}``, and ``@name`` for a named one."""

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
    try:
        return _grammar(embedded.schema)
    except ConstrainError as error:
        raise placed(_kind(error), text, embedded.at, f"this JSON Schema cannot be used: {error}") from error


def named_schema_grammar(schema: str) -> Grammar:
    """Returns the grammar of the values of a schema, given as JSON text, that has no place in a grammar text.

    Raises GrammarError, PatternError and LimitError.
    """
    try:
        return _grammar(schema)
    except ConstrainError as error:
        raise _kind(error)(f"this JSON Schema cannot be used: {error}") from error


def _grammar(schema: str) -> Grammar:
    from constrain.json_schema.compiler import compile_schema

    return compile_schema(parse_schema(schema), keys_apart=True).part


def _kind(error: ConstrainError) -> type[GrammarError | PatternError | LimitError]:
    return next((kind for kind in (PatternError, LimitError) if isinstance(error, kind)), GrammarError)
