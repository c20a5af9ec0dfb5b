"""Texts of schemas, and the documents that are parsed from them."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from typing import Any

import pytest

import constrain
from constrain.inspection.check import check_schema
from constrain.language.schema_text import parse_schema, plain_schema
from tests.support import byte_vocabulary, for_each

SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "number", "minimum": 0.25}, "b": {"type": "string"}}},
    {"properties": {}, "title": "nothing"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": ["array", "null"], "items": {"$ref": "#/$defs/a"}}}},
    {"allOf": [{"properties": {"a": {"const": 1.5}}, "type": "object"}, {"required": ["a"], "type": "object"}]},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a)\\1"}}},
    {"id": "x", "type": "number", "minimum": 1, "exclusiveMinimum": True},
    {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, [1.0], {"a": None}]}},
]


def test_equal_texts_are_parsed_once() -> None:
    text = '{"title": "parsed once", "minimum": 0.1}'
    assert parse_schema(text) == {"title": "parsed once", "minimum": Decimal("0.1")}
    assert parse_schema(text[:1] + text[1:]) is parse_schema(text)


def test_errors_are_the_same_each_time() -> None:
    for _ in range(2):
        with pytest.raises(constrain.SchemaError, match="not JSON") as caught:
            parse_schema('{"a":\n}')
        assert (caught.value.line, caught.value.column) == (2, 1)


@for_each("schema", SCHEMAS)
def test_nobody_changes_a_document(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    document = parse_schema(text)
    check_schema(text, byte_vocabulary())
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    for work in (
        lambda: constrain.compile(text, byte_vocabulary(), cache=False),
        lambda: constrain.strict.strict_schema(text),
        lambda: constrain.strict.check_strict(text),
        lambda: constrain.tools.tool_from_json(tool),
        lambda: constrain.parts.sequence("a", schema),
    ):
        with contextlib.suppress(constrain.ConstrainError):
            work()
    parse_schema.memory.clear()  # type: ignore[attr-defined]
    assert document == parse_schema(text)
    assert document is not parse_schema(text)


def test_a_plain_copy_has_floats_and_shares_nothing() -> None:
    text = '{"a": [0.1, {"b": 1e2}, [true, null, 3]], "c": "0.1", "d": -0.0}'
    document = parse_schema(text)
    plain = plain_schema(document)
    assert json.dumps(plain) == json.dumps(json.loads(text))
    plain["a"][1].clear()
    plain["a"][2].clear()
    assert json.dumps(plain_schema(document)) == json.dumps(json.loads(text))
    assert plain_schema(parse_schema("0.5")) == 0.5
    assert plain_schema(True) is True


def test_deep_documents_are_copied() -> None:
    deep: object = parse_schema("[" * 900 + "]" * 900)
    copied = plain_schema(deep)
    for _ in range(899):
        (copied,) = copied
    assert copied == []
