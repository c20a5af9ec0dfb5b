"""JSON Schemas as GBNF, Lark and patterns: read back, they have the same texts; what cannot be said is refused."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel

import constrain
from constrain.engine.compiling import grammar_of
from tests.support import LONG, for_each
from tests.support.exporting import TARGETS, compiled, read_back, require_same

WALKS = 60 if LONG else 3

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1, "maxItems": 4},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"tag": {"type": "string", "pattern": "^[a-z]+$"}},
}

SCHEMAS: dict[str, Any] = {
    "an object": PERSON,
    "null": {"type": "null"},
    "strings": {"type": "string"},
    "a pattern with a length": {"type": "string", "pattern": "^(ab|[c-e])+x?$", "maxLength": 6},
    "a pattern beyond ASCII": {"type": "string", "pattern": "^[é-ü€]{1,2}[^a-é]$"},
    "escapes": {"enum": ['"', "\\", "\n", "\u0001", "/", "é", "😀", "\u2028"]},
    "integers": {"type": "integer"},
    "multiples": {"type": "integer", "multipleOf": 3, "minimum": 0, "maximum": 50},
    "numbers": {"type": "number", "minimum": -1.5, "maximum": 2},
    "formats": {"type": "array", "items": {"anyOf": [{"format": "date", "type": "string"}, {"const": None}]}},
    "a long array": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 60},
    "a tuple": {"prefixItems": [{"type": "null"}, {"const": 1}, {"type": "boolean"}], "items": False, "type": "array"},
    "a choice of objects": {
        "anyOf": [
            {"properties": {"kind": {"const": "a"}, "x": {"type": "null"}}, "required": ["kind"], "type": "object"},
            {"properties": {"kind": {"const": "b"}}, "required": ["kind"], "type": "object"},
            {"type": "boolean"},
        ]
    },
    "at most one key": {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 1},
    "named keys only": {
        "type": "object",
        "propertyNames": {"enum": ["a", "b", "c"]},
        "additionalProperties": {"type": "boolean"},
    },
    "counted keys": {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}, "d": {"const": 4}},
        "minProperties": 2,
        "maxProperties": 3,
    },
    "keys that need others": {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
        "dependentRequired": {"a": ["c"], "b": ["a"]},
    },
    "different items of a few": {"type": "array", "items": {"enum": ["x", "y", 1, 1.5]}, "uniqueItems": True},
    "different booleans": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 1},
}
RECURSIVE = {
    "a tree": {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    },
    "mutual": {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/b"}},
            "b": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]},
        },
    },
}
POLICIES: list[dict[str, Any]] = [
    {},
    {"whitespace": "compact"},
    {"whitespace": "any"},
    {"property_order": "any"},
    {"numbers": "any", "precision": "decimal"},
    {"escapes": "any"},
]


def texts(schema: Any) -> list[str]:
    """Spellings of values that are near the schemas above."""
    values: list[Any] = [None, True, 0, 3, 51, -1.5, 1e2, "", "ab", "abx", "éü€", '"', "\n", [], [1, "x", "y", 1.5, 1]]
    values += [[True, False], [True, True], [None, 1, True], {}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": True}]
    values += [{"name": "Ada", "age": 36, "tags": ["x", "y"]}, {"age": 1}, {"kind": "b"}, {"value": 1, "children": []}]
    values += schema.get("enum", [])
    return [json.dumps(value, **style) for value in values for style in STYLES]


STYLES: list[dict[str, Any]] = [{}, {"separators": (",", ":")}, {"indent": 2, "ensure_ascii": False}]


def closed(schema: Any, **policies: Any) -> constrain.Constraint:
    """The constraint of a schema as ``generate`` has it: objects without undeclared keys."""
    return compiled(grammar_of(schema, close_objects=True, **policies))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_read_back_has_the_same_texts(name: str, target: Any) -> None:
    schema = SCHEMAS[name]
    back = read_back(constrain.grammars.export(schema, target), target)
    require_same(closed(schema), back, Random(name), WALKS, texts(schema))


@for_each("target", ["gbnf", "lark"])
@for_each("name", RECURSIVE)
def test_a_recursive_schema_read_back_has_the_same_texts(name: str, target: Any) -> None:
    schema = RECURSIVE[name]
    back = read_back(constrain.grammars.export(schema, target), target)
    require_same(closed(schema), back, Random(name), WALKS, texts(schema))


@pytest.mark.slow
@pytest.mark.parametrize("policies", POLICIES, ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_policies_are_kept(target: Any, policies: dict[str, Any]) -> None:
    schema = PERSON if target != "regex" or "property_order" not in policies else SCHEMAS["counted keys"]
    back = read_back(constrain.grammars.export(schema, target, **policies), target)
    require_same(closed(schema, **policies), back, Random(str(policies)), WALKS, texts(schema))


def test_open_objects_are_exported_where_their_keys_cannot_repeat() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 1}
    assert read_back(constrain.grammars.export(schema, "gbnf", closed=False), "gbnf").accepts('{"x": null}')
    with pytest.raises(constrain.ExportError):
        constrain.grammars.export({"type": "object"}, "gbnf", closed=False)


REFUSED = [
    ({"additionalProperties": {"type": "integer"}, "type": "object"}, "gbnf", "keys differ", ""),
    (
        {"properties": {"a": {"items": {"type": "string"}, "uniqueItems": True, "type": "array"}}},
        "lark",
        "items differ",
        "/properties/a",
    ),
    ({"items": {"type": "number"}, "uniqueItems": True, "type": "array"}, "regex", "items differ", ""),
    ({"properties": {"x": {"items": True, "type": "array"}}}, "gbnf", "keys differ", "/properties/x"),
    (RECURSIVE["a tree"], "regex", "contains itself", ""),
    (RECURSIVE["mutual"], "regex", "contains itself", "/$defs/a"),
    (
        {"properties": {"a": {"type": "integer"}, "b": {"const": {"$data": "1/a"}}}, "required": ["a", "b"]},
        "gbnf",
        "depends on values that were written before",
        None,
    ),
]


@for_each("schema, target, message, pointer", REFUSED)
def test_what_cannot_be_said_is_refused_with_its_place(schema: Any, target: Any, message: str, pointer: str) -> None:
    whole = schema if "properties" not in schema else {"type": "object", "additionalProperties": False, **schema}
    with pytest.raises(constrain.ExportError, match=message) as caught:
        constrain.grammars.export(whole, target)
    assert (caught.value.pointer, caught.value.target) == (pointer, target)


@pytest.mark.parametrize("target", TARGETS)
def test_undeclared_keys_may_repeat_if_the_caller_says_so(target: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": {"type": "boolean"}}
    back = read_back(constrain.grammars.export(schema, target, repeated_keys=True), target)
    assert back.accepts('{"a": 1, "b": true, "b": false}')
    for text in ('{"a": 1, "a": 1}', '{"b": true, "a": 1}', '{"a": true}', '{"b": 1}', '{"b": true,}'):
        assert not back.accepts(text)
    items = {"type": "array", "items": schema, "uniqueItems": True}
    with pytest.raises(constrain.ExportError, match="items differ"):
        constrain.grammars.export(items, target, repeated_keys=True)


@pytest.mark.slow
def test_limits_are_named() -> None:
    keys = {name: {"type": "integer"} for name in "abcdefghijklmnop"}
    with pytest.raises(constrain.LimitError, match="MAX_WRITTEN_STATES") as caught:
        constrain.grammars.export({"type": "object", "properties": keys}, "gbnf", property_order="any")
    assert caught.value.pointer == ""
    with pytest.raises(constrain.LimitError, match="MAX_PATTERN_NESTING"):
        constrain.grammars.export(
            {"type": "object", "properties": {f"k{n}": {"type": "null"} for n in range(200)}}, "regex"
        )
    with pytest.raises(constrain.LimitError, match="MAX_PATTERN_LEAVES"):
        constrain.grammars.export({"type": "integer", "multipleOf": 7}, "lark")


def test_names_are_those_of_properties_and_definitions() -> None:
    schema = {
        "type": "object",
        "properties": {
            "homeAddress": {"$ref": "#/$defs/address"},
            "workAddress": {"$ref": "#/$defs/address"},
            "root": {"$ref": "#/$defs/größe"},
        },
        "$defs": {
            "address": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}},
            "größe": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        },
    }
    gbnf = constrain.grammars.export(schema, "gbnf")
    names = [line.partition(" ::=")[0] for line in gbnf.splitlines() if "::=" in line]
    assert {"root", "address", "gr-e", "from-work-address", "comma"} <= set(names)
    assert len(names) == len(set(names))


def test_a_type_and_a_constraint_are_exported() -> None:
    class Pet(BaseModel):
        name: str
        legs: int = 4

    back = read_back(constrain.grammars.export(Pet, "gbnf"), "gbnf")
    assert back.accepts('{"name": "Rex", "legs": 3}')
    assert not back.accepts('{"name": "Rex", "legs": 3, "tail": 1}')
    assert compiled({"enum": ["a", "b"]}).export("regex") == '"a"|"b"'


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="to must be one of 'gbnf', 'lark', 'regex', not 'ebnf'"):
        constrain.grammars.export({}, "ebnf")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        constrain.grammars.export({}, "gbnf", whitespaces="any")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="whitespace applies to JSON Schemas only"):
        constrain.grammars.export(constrain.Regex("a"), "gbnf", whitespace="compact")
    with pytest.raises(constrain.UnsatisfiableSchemaError):
        constrain.grammars.export({"type": "integer", "minimum": 2, "maximum": 1}, "gbnf")
