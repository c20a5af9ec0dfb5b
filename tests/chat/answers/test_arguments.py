"""Arguments in every style: of any schema, under any policy, they are read back as values of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain.chat.answers.choices import DEFAULT_POLICIES, Calls, FunctionCalls, Value
from constrain.chat.answers.language import AnswerLanguage
from tests.support import byte_vocabulary
from tests.support.chat.forms import ELEMENTS, PYTHON, TAGS
from tests.support.chat.parsed import read_answer
from tests.support.chat.walks import walked
from tests.support.judging import validation_error

STRING: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}

SCHEMAS: dict[str, Any] = {
    "no type": {"properties": {"a": STRING}},
    "optional": {"type": "object", "properties": {"a": STRING, "b": NUMBER, "c": {"type": ["string", "null"]}}},
    "counted": {"type": "object", "properties": {"a": STRING, "b": NUMBER, "c": STRING}, "minProperties": 2},
    "at most": {"type": "object", "properties": {"a": STRING, "b": NUMBER, "c": STRING}, "maxProperties": 1},
    "dependent": {
        "type": "object",
        "properties": {"a": STRING, "b": NUMBER, "c": STRING},
        "dependentRequired": {"a": ["c"]},
    },
    "either": {
        "type": "object",
        "properties": {"a": STRING, "b": NUMBER},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "conditional": {
        "type": "object",
        "properties": {"kind": {"enum": ["x", "y"]}, "a": {"type": "integer"}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "x"}}},
        "then": {"required": ["a"]},
    },
    "one of": {
        "oneOf": [
            {"type": "object", "properties": {"k": {"const": "x"}, "a": NUMBER}, "required": ["k"]},
            {"type": "object", "properties": {"k": {"const": "y"}, "b": STRING}, "required": ["k", "b"]},
        ]
    },
    "recursive": {"type": "object", "properties": {"v": STRING, "next": {"$ref": "#"}}, "required": ["v"]},
    "constants": {
        "type": "object",
        "properties": {"a": {"enum": ["true", True, None, 'q"\\', 1]}, "b": {"const": [None, {"x": False}]}},
        "required": ["a", "b"],
    },
    "strings": {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": '^["\\\\\\n]{1,4}$'},
            "b": {"type": "string", "enum": ["\n", "</parameter>", '"', "é"]},
            "c": {"type": "string", "format": "date"},
            "d": {"type": "string", "minLength": 2, "maxLength": 5, "not": {"const": "ab"}},
        },
        "required": ["a", "b", "d"],
    },
    "different items": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": ["boolean", "null"]}, "uniqueItems": True}},
        "required": ["a"],
    },
    "within": {
        "type": "object",
        "properties": {"a": {"type": "object", "additionalProperties": {"type": ["boolean", "string"]}}, "b": {}},
        "required": ["a"],
    },
}
POLICIES = {
    "default": DEFAULT_POLICIES,
    "any": DEFAULT_POLICIES._replace(whitespace="any", property_order="any", numbers="any"),
    "compact": DEFAULT_POLICIES._replace(whitespace="compact"),
}


@pytest.mark.slow(but=("python-no type-any", "python-at most-default", "python-recursive-compact"))
@pytest.mark.parametrize("policies", POLICIES)
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("form", [TAGS, ELEMENTS, PYTHON], ids=lambda form: form.name)
def test_random_arguments_are_valid(form: Any, name: str, policies: str) -> None:
    tools = (FunctionCalls("f", json.dumps(SCHEMAS[name])),)
    answer = AnswerLanguage(form, tools=tools, calls=Calls.REQUIRED, parallel=False, policies=POLICIES[policies])
    for text in walked(answer, 1, count=6):
        (call,) = read_answer(answer, text).calls
        assert call.ended
        assert validation_error(SCHEMAS[name], (call.arguments or "").encode()) is None, text


@pytest.mark.parametrize("typed", [True, False])
def test_integers_that_python_types_read_are_plain_under_every_policy(*, typed: bool) -> None:
    """Pydantic reads 7e3 as a float; by JSON Schema it is an integer."""
    schema = '{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}'
    answer = AnswerLanguage(
        TAGS,
        tools=(FunctionCalls("f", schema, typed=typed),),
        content=Value(schema, typed=typed),
        policies=DEFAULT_POLICIES._replace(numbers="any"),
    )
    constraint = constrain.compile(answer, byte_vocabulary(), cache=False)
    call = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
    for form in ("%s", call):
        assert constraint.accepts(form % '{"x": 7}')
        assert constraint.accepts(form % '{"x": 7e3}') is not typed
