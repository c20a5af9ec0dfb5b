"""Types of columns follow schemas, and records are those of a batch."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
import pytest
from pydantic import BaseModel

import constrain
from constrain.batch.lines import LineError
from constrain.batch.tables.columns import MAX_COLUMN_NESTING, answer_columns
from constrain.errors import OutputValidationError
from constrain.generation.completion import Completion, Timings, Usage
from tests.support import each_row, for_each

STRING, INTEGER, NUMBER = pa.string(), pa.int64(), pa.float64()


class Person(BaseModel):
    name: str
    age: int | None
    level: Literal["low", "high"]
    tags: list[str] = []


PERSON = pa.struct([("name", STRING), ("age", INTEGER), ("level", STRING), ("tags", pa.list_(STRING))])


def nested(levels: int) -> dict[str, Any]:
    """Arrays of arrays of strings."""
    return reduce(lambda inner, _: {"type": "array", "items": inner}, range(levels), {"type": "string"})


def arrays(levels: int) -> pa.DataType:
    return reduce(lambda inner, _: pa.list_(inner), range(levels), STRING)


def doubled(levels: int) -> dict[str, Any]:
    """Objects with two members that are the same, of which each has two, and so on."""
    parts = {
        str(level): {"type": "object", "properties": {name: {"$ref": f"#/$defs/{level + 1}"} for name in "ab"}}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/0", "$defs": {**parts, str(levels): {"type": "string"}}}


@for_each(
    "schema, kind",
    (Person, PERSON),
    (list[Person], pa.list_(PERSON)),
    ({"type": "number"}, NUMBER),
    ({"type": ["boolean", "null"]}, pa.bool_()),
    ({"enum": [1, 2, None]}, INTEGER),
    ({"enum": [1, 2.5]}, NUMBER),
    ({"const": True}, pa.bool_()),
    ({"type": "null"}, pa.null()),
    ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "string"}}}, STRING),
    ({"enum": [1, "one"]}, None),
    ({"type": ["string", "integer"]}, None),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, None),
    ({"type": "object", "additionalProperties": {"type": "string"}}, None),
    ({"type": "object", "properties": {}}, None),
    ({"type": "array", "prefixItems": [{"type": "string"}]}, None),
    ({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}, None),
    (nested(MAX_COLUMN_NESTING - 1), arrays(MAX_COLUMN_NESTING - 1)),
    (nested(MAX_COLUMN_NESTING), None),
    (doubled(25), None),
    ({"type": "string", "pattern": "a"}, STRING),
    ({}, None),
    (True, None),
    ("name, age int", pa.struct([("name", STRING), ("age", INTEGER)])),
)
def test_the_type_of_values_follows_the_schema(schema: Any, kind: pa.DataType | None) -> None:
    assert answer_columns(schema, has_tools=False, has_samples=False).value == kind


@pytest.mark.parametrize("schema", [None, constrain.Regex("a"), constrain.Lark('start: "a"')])
def test_texts_are_texts(schema: Any) -> None:
    columns = answer_columns(schema, has_tools=False, has_samples=False)
    assert (columns.value, columns.is_json) == (None, False)


def completion(text: str, value: Any) -> Completion:
    return Completion(value, text, (1, 2), Usage(7, 3, 2), Timings(0, 0, 0, 0), "stop", None)


@for_each(
    "schema, text, value",
    (
        Person,
        '{"name": "Ada", "age": null, "level": "low", "tags": []}',
        {"name": "Ada", "age": None, "level": "low", "tags": []},
    ),
    ({"type": "string"}, '"a\\u00e4"', "aä"),
    ({}, "[1, 2.50]", "[1, 2.50]"),
    (None, "[1", "[1"),
)
def test_a_record_has_the_value(schema: Any, text: str, value: Any) -> None:
    columns = answer_columns(schema, has_tools=False, has_samples=False)
    record = columns.record(completion(text, object()))
    assert record["value"] == value
    assert record["text"] == text
    assert record["usage"] == {"prompt_tokens": 7, "completion_tokens": 2, "draft_tokens": 0}
    assert record["error"] is None
    table = pa.Table.from_pylist([record], columns.schema())
    assert table.to_pylist() == [record]


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809"])
def test_a_value_that_does_not_fit_is_an_error(text: str) -> None:
    columns = answer_columns({"type": "integer"}, has_tools=False, has_samples=False)
    record = columns.record(completion(text, int(text)))
    assert record["value"] is None
    assert record["text"] == text
    assert record["error"]["error"] == "ValueTypeError"
    assert "int64" in record["error"]["message"]


def test_details_are_those_of_a_batch() -> None:
    columns = answer_columns({"type": "string"}, has_tools=False, has_samples=True)
    record = columns.record(replace(completion('"a"', "a"), agreement={(): 0.5}, reasoning="so"), 3)
    assert json.loads(record["details"]) == {"agreement": {"": 0.5}, "reasoning": "so"}
    assert record["sample"] == 3


@each_row(
    "error, expected",
    (LineError("no prompt"), {"error": "LineError", "message": "no prompt"}),
    (OutputValidationError("wrong", text="5"), {"error": "OutputValidationError", "message": "wrong", "text": "5"}),
    (constrain.SchemaError("bad", pointer="/a"), {"error": "SchemaError", "message": "bad", "pointer": "/a"}),
)
def test_an_error_is_that_of_a_batch(error: Any, expected: dict[str, str]) -> None:
    columns = answer_columns(None, has_tools=False, has_samples=False)
    record = columns.record(error)
    assert record["error"] == expected
    (kept,) = pa.Table.from_pylist([record], columns.schema()).to_pylist()
    assert {name: value for name, value in kept["error"].items() if value is not None} == expected
