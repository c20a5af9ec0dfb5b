"""Arguments of calls: their grammar, and the JSON text of what was written in another style."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import CustomCalls, Value
from constrain.chat.families.format import ArgumentStyle
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.emission.arguments import JSON_ARGUMENTS, PYTHON_ARGUMENTS, XML_ARGUMENTS
from constrain.language.schema_text import parse_schema
from constrain.regex.source import Regex
from constrain.remembering import remembered
from constrain.work import apart, spend

if TYPE_CHECKING:
    from constrain.chat.answers.choices import Choices, FunctionCalls
    from constrain.json_schema.compiler import CompiledSchema
    from constrain.json_schema.policies import Policies
    from constrain.language.grammar import Grammar

_WRITINGS = {
    ArgumentStyle.JSON: JSON_ARGUMENTS,
    ArgumentStyle.PYTHON: PYTHON_ARGUMENTS,
    ArgumentStyle.XML: XML_ARGUMENTS,
}

_SAYS_NOTHING = frozenset(("$schema", "type", "properties", "title", "description"))
"""Keywords beside which ``"properties": {}`` is a list of parameters that is empty, as ``tool_from_json`` has it."""

_PYTHON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|True|False|None')
_PYTHON_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
_ARGUMENT_NAME = re.compile(r"(?:, )?([A-Za-z_][A-Za-z0-9_]*)=")
_PYTHON_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[^"\[\]{}]|[\[\]{}]', re.DOTALL)

ELEMENT_BEGIN = b"<parameter="
_ELEMENT_END = b"\n</parameter>\n"
_ELEMENT = re.compile(r"<parameter=([^>\n]*)>\n(.*?)\n</parameter>\n", re.DOTALL)
_ELEMENT_IN_BYTES = re.compile(_ELEMENT.pattern.encode(), re.DOTALL)


ARGUMENT_BYTES = 64 << 20
"""Bytes that the remembered grammars of tools' arguments may take together; beyond, the least recently used go."""

_BYTES_PER_CHARACTER = 30
"""Bytes of a grammar's Python objects for each character of its schema, about as many as most take."""


def arguments_grammar(answer: Choices, tool: FunctionCalls) -> Grammar:
    """The arguments of a tool's calls, in the style of the answer's form."""
    has_languages = any(
        source is not None and not isinstance(source, Regex | Value)
        for source in (answer.content, *(each.input for each in answer.tools if isinstance(each, CustomCalls)))
    )
    return _counted(tool, answer.format.style, answer.policies, keys_apart=has_languages).part


def raw_arguments(answer: Choices, tool: FunctionCalls) -> frozenset[str]:
    """The names of the arguments that are strings written as they are."""
    if answer.format.style is not ArgumentStyle.XML:
        return frozenset()
    return _counted(tool, answer.format.style, answer.policies, keys_apart=False).raw_arguments


def _argument_bytes(tool: FunctionCalls, *_: object, **__: object) -> int:
    return _BYTES_PER_CHARACTER * len(tool.parameters)


def _counted(tool: FunctionCalls, style: ArgumentStyle, policies: Policies, *, keys_apart: bool) -> CompiledSchema:
    """The compiled arguments; they count as much where they are remembered, so that the same is refused each time."""
    compiled = _compiled(tool, style, policies, keys_apart=keys_apart)
    spend(compiled.steps)
    return compiled


@remembered(256, ARGUMENT_BYTES, _argument_bytes)
def _compiled(tool: FunctionCalls, style: ArgumentStyle, policies: Policies, *, keys_apart: bool) -> CompiledSchema:
    schema = parse_schema(tool.parameters)
    if tool.closed and isinstance(schema, dict) and schema.keys() <= _SAYS_NOTHING and schema.get("properties") == {}:
        schema = {**schema, "additionalProperties": False}
    asked = policies._asdict() | {"close_objects": tool.closed}
    with apart():
        return compile_schema(
            schema, keys_apart=keys_apart, plain_integers=tool.typed, arguments=_WRITINGS[style], **asked
        )


def json_of_python(written: str) -> str:
    """The JSON text of keyword arguments."""
    members: list[str] = []
    rest = written.encode()
    while rest:
        name = _ARGUMENT_NAME.match(rest.decode())
        assert name is not None, written
        rest = rest[name.end() :]
        end = end_of_python(rest, [b", "])
        value = rest[: len(rest) if end is None else end]
        rest = rest[len(value) :]
        members.append(f"{json.dumps(name[1])}: {_PYTHON_TOKEN.sub(_json_token, value.decode())}")
    return f"{{{', '.join(members)}}}"


def json_of_xml(written: str, raw: frozenset[str]) -> str:
    """The JSON text of elements; ``raw``: which are strings written as they are."""
    members = (
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False) if name in raw else value}"
        for name, value in _ELEMENT.findall(written)
    )
    return f"{{{', '.join(members)}}}"


def end_of_element(written: bytes | bytearray) -> int | None:
    """Where the element ends that a text begins with, if it does."""
    if _ELEMENT_END not in written:  # much faster than the pattern, and asked for with every piece of a long value
        return None
    found = _ELEMENT_IN_BYTES.match(written)
    return found and found.end()


def end_of_python(written: bytes | bytearray, stops: list[bytes]) -> int | None:
    """Where one of some texts begins, outside of brackets and strings, if it does."""
    depth = 0
    for piece in _PYTHON_VALUE.finditer(written):
        if depth == 0 and any(written.startswith(stop, piece.start()) for stop in stops):
            return piece.start()
        depth += (piece[0] in b"[{") - (piece[0] in b"]}")
    return None


def _json_token(found: re.Match[str]) -> str:
    return _PYTHON_CONSTANTS.get(found[0], found[0])
