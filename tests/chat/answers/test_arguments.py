"""Arguments in every style: of any schema, under any policy, they are read back as values of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.chat.answers.answer import Answer
from constrain.chat.answers.choices import DEFAULT_POLICIES, Calls, FunctionCalls
from tests.chat.answers.test_answers import walked
from tests.support import validation_error
from tests.support.chat.forms import ELEMENTS, PYTHON, TAGS
from tests.support.chat.parsed import read_answer

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


@pytest.mark.parametrize("policies", POLICIES)
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("form", [TAGS, ELEMENTS, PYTHON], ids=lambda form: form.name)
def test_random_arguments_are_valid(form: Any, name: str, policies: str) -> None:
    tools = (FunctionCalls("f", json.dumps(SCHEMAS[name])),)
    answer = Answer(form, tools=tools, calls=Calls.REQUIRED, parallel=False, policies=POLICIES[policies])
    for text in walked(answer, 1, count=6):
        (call,) = read_answer(answer, text).calls
        assert call.ended
        assert validation_error(SCHEMAS[name], (call.arguments or "").encode()) is None, text
