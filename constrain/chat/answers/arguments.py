"""Arguments of calls: their grammar, and their conversion to JSON from other notations."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import CustomCalls, Value
from constrain.chat.families.format import ArgumentStyle
from constrain.chat.tools.checks import arguments_schema
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.emission.arguments import JSON_ARGUMENTS, PYTHON_ARGUMENTS, xml_arguments
from constrain.language.schema_text import parse_schema
from constrain.regex.source import Regex
from constrain.remembering import remembered
from constrain.work import apart, spend

if TYPE_CHECKING:
    from constrain.chat.answers.choices import Choices, FunctionCalls
    from constrain.chat.families.format import Element, ToolFormat
    from constrain.json_schema.compiler import CompiledSchema
    from constrain.language.grammar import Grammar
    from constrain.language.policies import Policies

_PYTHON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|True|False|None')
_PYTHON_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
_ARGUMENT_NAME = re.compile(r"(?:, )?([A-Za-z_][A-Za-z0-9_]*)=")
_PYTHON_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[^"\[\]{}]|[\[\]{}]', re.DOTALL)

ARGUMENT_BYTES = 64 << 20
"""Bytes that cached grammars of tools' arguments may take together: 64 MiB; beyond it, the least recently used are
dropped.
"""

_BYTES_PER_CHARACTER = 30
"""Estimated bytes of a grammar's Python objects per character of its schema; used to measure the cache."""


def arguments_grammar(answer: Choices, tool: FunctionCalls) -> Grammar:
    """Returns the grammar of a tool's arguments, in the notation of the answer's form."""
    has_languages = any(
        source is not None and not isinstance(source, Regex | Value)
        for source in (answer.content, *(each.input for each in answer.tools if isinstance(each, CustomCalls)))
    )
    return _compile_counted(tool, answer.format, answer.policies, keys_apart=has_languages).part


def raw_arguments(answer: Choices, tool: FunctionCalls) -> frozenset[str]:
    """Returns the names of the arguments that are written as plain text, without quotes and escapes."""
    if answer.format.style is not ArgumentStyle.XML:
        return frozenset()
    return _compile_counted(tool, answer.format, answer.policies, keys_apart=False).raw_arguments


def _argument_bytes(tool: FunctionCalls, *_: object, **__: object) -> int:
    return _BYTES_PER_CHARACTER * len(tool.parameters)


def _compile_counted(tool: FunctionCalls, form: ToolFormat, policies: Policies, *, keys_apart: bool) -> CompiledSchema:
    """Compiles arguments. A cached result costs the same, so that limits do not depend on the cache."""
    compiled = _compiled(tool, form.style, form.element, policies, keys_apart=keys_apart)
    spend(compiled.steps)
    return compiled


@remembered(256, ARGUMENT_BYTES, _argument_bytes)
def _compiled(
    tool: FunctionCalls, style: ArgumentStyle, element: Element, policies: Policies, *, keys_apart: bool
) -> CompiledSchema:
    schema = parse_schema(tool.parameters)
    if tool.closed and isinstance(schema, dict):
        schema = arguments_schema(schema)
    asked = policies._asdict() | {"close_objects": tool.closed}
    written = {ArgumentStyle.JSON: JSON_ARGUMENTS, ArgumentStyle.PYTHON: PYTHON_ARGUMENTS}.get(style)
    arguments = written or xml_arguments(element.before, element.between, element.behind)
    with apart():
        return compile_schema(schema, keys_apart=keys_apart, plain_integers=tool.typed, arguments=arguments, **asked)


def json_of_python(written: str) -> str:
    """Converts keyword arguments in Python's notation to JSON text."""
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


def json_of_xml(written: str, raw: frozenset[str], element: Element) -> str:
    """Converts elements of XML to JSON text; ``raw`` has the names of arguments written as plain text."""
    members = (
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False) if name in raw else value}"
        for name, value in re.findall(_element_pattern(element), written, re.DOTALL)
    )
    return f"{{{', '.join(members)}}}"


def end_of_element(written: bytes | bytearray, element: Element) -> int | None:
    """Returns the end of the element that a text begins with; None if it is incomplete."""
    if element.behind.encode() not in written:  # much faster than the pattern, called for every piece of a long value
        return None
    found = re.match(_element_pattern(element).encode(), written, re.DOTALL)
    return found and found.end()


def _element_pattern(element: Element) -> str:
    name = f"[^{re.escape(element.between[0])}\\n]*"
    return f"{re.escape(element.before)}({name}){re.escape(element.between)}(.*?){re.escape(element.behind)}"


def end_of_python(written: bytes | bytearray, stops: list[bytes]) -> int | None:
    """Returns the first position outside of brackets and strings where a stop begins; None if there is none."""
    depth = 0
    for piece in _PYTHON_VALUE.finditer(written):
        if depth == 0 and any(written.startswith(stop, piece.start()) for stop in stops):
            return piece.start()
        depth += (piece[0] in b"[{") - (piece[0] in b"]}")
    return None


def _json_token(found: re.Match[str]) -> str:
    return _PYTHON_CONSTANTS.get(found[0], found[0])
