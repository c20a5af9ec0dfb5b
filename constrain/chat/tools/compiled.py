"""The grammars of tools' arguments, compiled once: for the check of a new tool, and for the answers that call it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.chat.families.format import ArgumentStyle, Element
from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.language.policies import DEFAULT_POLICIES, Policies
from constrain.language.schema_text import document_bytes, parse_schema
from constrain.remembering import MANY, remembered
from constrain.work import apart

if TYPE_CHECKING:
    from constrain.json_schema.compiler import CompiledSchema

ARGUMENT_BYTES = 56 << 20
"""Bytes that cached grammars of tools' arguments may take together: 56 MiB, some 2,600 tools of MCP servers; beyond it,
the least recently used are dropped.
"""

_NEUTRAL_KEYWORDS = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "type", "properties", "title", "description")
)
"""Keywords that say nothing about further keys: with these alone, ``"properties": {}`` means no parameters."""


_APPLICATORS = frozenset(("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "not"))
"""Keywords beside which ``additionalProperties`` does not know all declared arguments."""

_DECLARED_ONLY = "arguments that the schema does not declare by name are left out: the model's form cannot express them"


class ToolArguments(NamedTuple):
    """The arguments of a tool's calls, as they are compiled. Tools that differ in name and description share them.

    Attributes:
        parameters: JSON Schema of the arguments, as text.
        closed: whether undeclared parameters are left out.
        typed: whether Python types read the arguments, so that integers have neither a fraction nor an exponent.
        policies: spelling of JSON; ``close_objects`` is ignored here.
        style: notation of the arguments.
        element: notation of one argument, for the style ``XML``; ``None`` for the others.
        keys_apart: whether keys and colons are separate lexemes (see ``compile_schema``).
    """

    parameters: str
    closed: bool = True
    typed: bool = False
    policies: Policies = DEFAULT_POLICIES
    style: ArgumentStyle = ArgumentStyle.JSON
    element: Element | None = None
    keys_apart: bool = False


def arguments_schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a call's arguments: an object, without any keys if ``parameters`` say so."""
    schema = {"type": "object", **parameters}
    saying = {key for key, value in parameters.items() if (key, value) != ("required", [])}
    if parameters.get("properties") == {} and saying <= _NEUTRAL_KEYWORDS:
        schema["additionalProperties"] = False
    return schema


@remembered(MANY, ARGUMENT_BYTES, lambda tool: 2 * document_bytes(tool.parameters))
def compile_arguments(tool: ToolArguments) -> CompiledSchema:
    """Compiles the arguments of a tool. Raises the errors of ``compile_schema``.

    Each tool has the steps of a whole compilation for itself, so that the limit depends neither on caches nor on the
    number of tools.
    """
    schema = parse_schema(tool.parameters)
    if tool.closed and isinstance(schema, dict):
        schema = arguments_schema(schema)
    with apart():
        try:
            return _compile(schema, tool)
        except UnsupportedSchemaError:
            narrows = tool.style is not ArgumentStyle.JSON and tool.policies.inexact == "narrow"
            if not narrows or not isinstance(schema, dict) or not schema.get("properties"):
                raise
            if not _APPLICATORS.isdisjoint(schema):
                raise
            with contextlib.suppress(SchemaError):  # the first error says what is wrong
                found = _compile({**schema, "additionalProperties": False}, tool)
                return replace(found, warnings=(_DECLARED_ONLY, *found.warnings))
            raise


def _compile(schema: object, tool: ToolArguments) -> CompiledSchema:
    from constrain.json_schema.compiler import compile_schema
    from constrain.json_schema.emission.arguments import JSON_ARGUMENTS, PYTHON_ARGUMENTS, xml_arguments

    if tool.element is not None:
        form = xml_arguments(tool.element.before, tool.element.between, tool.element.behind)
    else:
        form = JSON_ARGUMENTS if tool.style is ArgumentStyle.JSON else PYTHON_ARGUMENTS
    policies = tool.policies._asdict() | {"close_objects": tool.closed}
    return compile_schema(schema, keys_apart=tool.keys_apart, plain_integers=tool.typed, arguments=form, **policies)
