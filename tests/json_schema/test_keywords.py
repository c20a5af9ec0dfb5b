"""A keyword is one record, which no part can forget; schemas are shown in prompts."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.documents.vocabularies import declared_vocabulary
from constrain.json_schema.hint import describe, render
from constrain.json_schema.keywords.table import KEYWORDS, Keyword
from constrain.json_schema.lint.linter import lint_schema
from constrain.json_schema.shapes.strings import StringShape, pattern_expression
from constrain.json_schema.strict.merging import merged
from tests.support import byte_vocabulary, each_row, for_each


@pytest.fixture(autouse=True)
def records_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KEYWORDS, "__dict__", {**vars(KEYWORDS), "records": dict(KEYWORDS.records)})


def start(_: Any, at: Any, value: object, found: Any) -> None:
    """``x-start``: the text that the string begins with."""
    if not isinstance(value, str):
        raise SchemaError(f"x-start must be a string, not {value!r:.80}", pointer=at.pointer("x-start"))
    found.restrict_strings(StringShape((pattern_expression(at, f"^{value}", "x-start"),)))


@each_row(
    "schema, accepted, rejected",
    ({"type": "string", "x-start": "ab"}, '"abc"', '"b"'),
    ({"type": "string", "not": {"x-start": "ab"}}, '"b"', '"abc"'),
    ({"type": "object", "propertyNames": {"x-start": "k"}, "maxProperties": 1}, '{"k1":0}', '{"l":0}'),
    ({"type": "string", "anyOf": [{"x-start": "a"}], "unevaluatedItems": False}, '"a"', '"b"'),
)
def test_a_keyword_that_is_added_is_enforced(schema: object, accepted: str, rejected: str) -> None:
    Keyword("x-start", "string", hint=None, merge=None)(start)
    KEYWORDS.derive()
    constraint = constrain.compile(compile_schema(schema, whitespace="compact").grammar, byte_vocabulary())
    assert constraint.accepts(accepted)
    assert not constraint.accepts(rejected)


def test_a_keyword_that_is_added_is_checked_shown_merged_and_listed() -> None:
    Keyword("x-start", "string", hint=lambda value: f"beginning with {value}", merge=max)(start)
    KEYWORDS.derive()
    with pytest.raises(SchemaError, match="x-start must be a string"):
        compile_schema({"items": {"x-start": 1}})
    with pytest.raises(UnsupportedSchemaError, match="may not fit x-start"):
        compile_schema({"x-quote": {"fold": True}, "x-start": "a", "x-sources": {"prompt": "abc"}})
    assert render({"type": "string", "x-start": "ab"}) == "string (beginning with ab)"
    assert merged({"x-start": "a"}, {"x-start": "ab"}) == {"x-start": "ab"}
    assert lint_schema({"x-start": "a"}).enforced == {"x-start": ("/x-start",)}
    assert KEYWORDS.records["x-start"].says == "the text that the string begins with"
    core = declared_vocabulary({"https://json-schema.org/draft/2020-12/vocab/core": True}, "urn:own", "")
    assert "x-start" in core.left_out


WHOLE = {
    "about": "array",
    "hint": None,
    "merge": None,
    "in_place": None,
    "holds": "list",
    "says": "all",
    "handler": start,
}


@pytest.mark.parametrize("part", ["about", "hint", "merge", "in_place", "says", "handler"])
def test_a_part_that_is_missing_is_named(part: str) -> None:
    parts: dict[str, Any] = {name: value for name, value in WHOLE.items() if name != part}
    with pytest.raises(TypeError, match=f"^the keyword x-all lacks {part}: "):
        KEYWORDS.add(Keyword("x-all", **parts))


def test_a_function_documents_its_own_keyword_which_has_one_record() -> None:
    with pytest.raises(TypeError, match=r"^the keyword x-begin lacks says: "):
        Keyword("x-begin", "string", hint=None, merge=None)(start)
    with pytest.raises(TypeError, match=r"^the keyword minLength has two records"):
        KEYWORDS.add(KEYWORDS.records["minLength"])


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
    ({"type": "integer", "minimum": {"$data": "1/low"}, "maximum": 9}, "integer (at most 9, at least low)"),
    (
        {"type": "string", "format": "date", "formatExclusiveMinimum": {"$data": "1/a~1b"}},
        "date (YYYY-MM-DD, after a/b)",
    ),
    ({"type": "string", "formatMaximum": {"$data": "/x/end"}}, "string (not after end)"),
    ({"anyOf": [{"const": {"$data": "1/a"}, "type": "string"}, {"type": "null"}]}, "string (the same as a) or null"),
    (
        {"type": "array", "minItems": {"$data": "1/n"}, "exclusiveMaximum": {"$data": "1/m"}},
        "[any JSON, ...] (at least n items, below m)",
    ),
    ({"type": "string", "enum": {"$data": "1/names"}}, "string (one of names)"),
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
