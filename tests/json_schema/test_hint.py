"""The rendering of a schema for the prompt."""

from __future__ import annotations

from typing import Any

from constrain.json_schema.hint import describe, render
from tests.support import for_each

CASES: list[tuple[Any, str]] = [
    (True, "any JSON"),
    ({}, "any JSON"),
    ({"type": "boolean"}, "boolean"),
    ({"type": ["string", "null"]}, "string or null"),
    ({"type": "string", "format": "date", "maxLength": 9}, "date (YYYY-MM-DD, at most 9 characters)"),
    ({"type": "string", "pattern": "^a+$"}, "string (matching ^a+$)"),
    ({"type": "integer", "minimum": 0, "maximum": 120}, "integer (0 to 120)"),
    ({"type": "number", "minimum": 2}, "number (at least 2)"),
    ({"type": "number", "minimum": 0, "maximum": 100_000}, "number"),
    ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
    ({"const": "é"}, '"é"'),
    ({"enum": list(range(100))}, " | ".join(map(str, range(40))) + " | ... (100 values)"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}, "string or null"),
    ({"type": "array", "items": {"type": "string"}, "maxItems": 3}, "[string, ...]"),
    ({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3}, "[string, ...] (at least 1 items)"),
    ({"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3}, "[string, ...] (3 items)"),
    ({"prefixItems": [{"type": "string"}, {"type": "number"}], "maxItems": 2}, "[string, number]"),
    ({"type": "object"}, "object"),
    ({"type": "object", "additionalProperties": {"type": "number"}}, "{\n  [any key]: number\n}"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, "null"),
    ({"$ref": "#/nowhere"}, "any JSON"),
    ({"allOf": [{"type": "string"}]}, "string"),
]


@for_each("schema, text", CASES)
def test_schemas_are_shown_as_text(schema: Any, text: str) -> None:
    assert render(schema) == text


def test_objects_show_descriptions_and_what_is_optional() -> None:
    schema = {
        "properties": {
            "name": {"type": "string", "description": "the family\nname first"},
            "home": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
        "required": ["name"],
    }
    assert render(schema) == (
        '{\n  "name": string,  // the family name first\n  "home"?: {\n    "city": string\n  }\n}'
    )


def test_definitions_that_are_used_often_or_contain_themselves_get_a_name() -> None:
    schema = {
        "$defs": {"Tree": {"properties": {"left": {"$ref": "#/$defs/Tree"}}, "required": ["left"]}},
        "$ref": "#/$defs/Tree",
    }
    assert render(schema) == 'Tree\nTree = {\n  "left": Tree\n}'


def test_a_schema_that_is_its_own_child_ends() -> None:
    assert render({"items": {"$ref": "#"}, "type": "array"}) == "[[Root, ...], ...]\nRoot = [Root, ...]"


def test_deep_schemas_are_cut_off() -> None:
    schema: Any = {"type": "string"}
    for _ in range(5000):
        schema = {"type": "array", "items": schema}
    assert "any JSON" in render(schema)


def test_the_instruction_holds_the_schema() -> None:
    assert describe({"type": "boolean"}).endswith("\nboolean")
