"""Arguments of calls: their grammar, and their conversion to JSON from other notations."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from constrain.chat.answers.choices import CustomCalls, Value
from constrain.chat.families.format import ArgumentStyle
from constrain.chat.tools.compiled import ToolArguments, compile_arguments
from constrain.regex.source import Regex

if TYPE_CHECKING:
    from constrain.chat.answers.choices import Choices, FunctionCalls
    from constrain.chat.families.format import Element
    from constrain.language.grammar import Grammar

_PYTHON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|True|False|None')
_PYTHON_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
_ARGUMENT_NAME = re.compile(r"(?:, )?([A-Za-z_][A-Za-z0-9_]*)=")
_PYTHON_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[^"\[\]{}]|[\[\]{}]', re.DOTALL)


def arguments_grammar(answer: Choices, tool: FunctionCalls, *, keys_apart: bool) -> Grammar:
    """Returns the grammar of a tool's arguments, in the notation of the answer's form; see ``ToolArguments``."""
    return compile_arguments(tool_arguments(answer, tool, keys_apart=keys_apart)).part


def raw_arguments(answer: Choices, tool: FunctionCalls) -> frozenset[str]:
    """Returns the names of the arguments that are written as plain text, without quotes and escapes."""
    if answer.format.style is not ArgumentStyle.XML:
        return frozenset()
    return compile_arguments(tool_arguments(answer, tool, keys_apart=False)).raw_arguments


def reads_languages(answer: Choices) -> bool:
    """Returns whether an answer has content or inputs of a grammar, so that arguments have ``keys_apart``."""
    sources = (answer.content, *(each.input for each in answer.tools if isinstance(each, CustomCalls)))
    return any(not isinstance(each, Regex | Value | None) for each in sources)


def tool_arguments(answer: Choices, tool: FunctionCalls, *, keys_apart: bool) -> ToolArguments:
    """Returns the arguments of a tool as they are compiled for an answer."""
    style = answer.format.style
    element = answer.format.element if style is ArgumentStyle.XML else None
    return ToolArguments(tool.parameters, tool.closed, tool.typed, answer.policies, style, element, keys_apart)


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
