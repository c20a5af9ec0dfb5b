"""JSON Schemas in a grammar text: ``%json {...}``, ``@name`` for a named one, and numbers after ``%regex``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from constrain.errors import ConstrainError, GrammarError, LimitError, PatternError
from constrain.language.schema_text import parse_schema
from constrain.lark.reading.places import error_at, placed
from constrain.lark.substrings import substring_expression
from constrain.regex.anchors import union

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.language.tree import Expression
    from constrain.lark.reading.syntax import Embedded, Substring

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


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


def regex_expression(text: str, node: Substring) -> Expression:
    """Returns the expression of a ``%regex`` with a type, as llguidance plans it, or of one without.

    Numbers are spelled as in ``%json``. Raises GrammarError and LimitError with the place of ``%regex`` in the text.
    """
    keys = json.loads(node.given)
    if (kind := keys.get("type", "substring")) == "substring":
        return substring_expression(text, node)
    if kind not in ("number", "integer"):
        raise error_at(text, node.at, f"%regex has no type {json.dumps(kind)}; there are substring, number, integer")
    for key in keys:
        if key != "type" and key not in _BOUNDS:
            message = f"%regex of the type {kind} has no key {json.dumps(key)}; there are {', '.join(_BOUNDS)}"
            raise error_at(text, node.at, message)
    try:
        grammar = _grammar(node.given)
    except ConstrainError as error:
        raise placed(_kind(error), text, node.at, f"these numbers cannot be used: {error}") from error
    assert all(edge[:3] == (0, edge.symbol, 1) for edge in grammar.rules[0].edges), grammar
    return union([terminal.expression for terminal in grammar.terminals])


def _grammar(schema: str) -> Grammar:
    from constrain.json_schema.compiler import compile_schema

    return compile_schema(parse_schema(schema), keys_apart=True).part


def _kind(error: ConstrainError) -> type[GrammarError | PatternError | LimitError]:
    return next((kind for kind in (PatternError, LimitError) if isinstance(error, kind)), GrammarError)
