"""All violations of OpenAI's strict subset, in OpenAI's words."""

from __future__ import annotations

import doctest
import json
import os
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import constrain
from constrain.json_schema.strict import merging as strict_merging
from constrain.json_schema.strict import subset as strict
from constrain.types import patterns as _type_patterns
from tests.support import LONG, byte_vocabulary, for_each
from tests.support.processor_time import finishes_within

CLOSED = "'additionalProperties' is required to be supplied and to be false."
REQUIRED = "'required' is required to be supplied and to be an array including every key in properties."
TEXT: dict[str, Any] = {"type": "string"}
REGEX = {"type": "string", "pattern": "("}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def within(schema: Any) -> dict[str, Any]:
    """``schema`` as that of the property ``a``."""
    return closed(a=schema)


STRUCTURAL: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "nothing wrong": (closed(a=TEXT), []),
    "open": ({"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, [("", f"In context=(), {CLOSED}")]),
    "open on purpose": (
        within({**closed(), "additionalProperties": True}),
        [("/properties/a/additionalProperties", f"In context=('properties', 'a'), {CLOSED}")],
    ),
    "a dictionary": (
        within({"type": "object", "additionalProperties": TEXT}),
        [("/properties/a/additionalProperties", f"In context=('properties', 'a'), {CLOSED}")],
    ),
    "optional": (
        {**closed(a=TEXT, b=TEXT, c=TEXT), "required": ["b"]},
        [
            ("/required", f"In context=(), {REQUIRED} Missing 'a'."),
            ("/required", f"In context=(), {REQUIRED} Missing 'c'."),
        ],
    ),
    "without required": (
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
        [("", f"In context=(), {REQUIRED} Missing 'a'.")],
    ),
    "required without a property": (
        {**closed(a=TEXT), "required": ["a", "b"]},
        [("/required/1", f"In context=(), {REQUIRED} Extra required key 'b' supplied.")],
    ),
    "array at the root": (
        {"type": "array", "items": TEXT},
        [("/type", "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'.")],
    ),
    "no type at the root": (
        {"$ref": "#/$defs/a", "$defs": {"a": closed()}},
        [("", "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.")],
    ),
    "anyOf at the root": (
        {**closed(), "anyOf": [closed()]},
        [
            (
                "/anyOf",
                "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
            )
        ],
    ),
    "no object at the root": (True, [("", "True is not of type 'object'.")]),
    "items missing": (
        within({"type": "array"}),
        [("/properties/a", "In context=('properties', 'a'), array schema missing items.")],
    ),
    "a reference to nothing": (
        within({"$ref": "#/$defs/b"}),
        [
            (
                "/properties/a/$ref",
                "In context=('properties', 'a'), reference to component '#/$defs/b' which was not found in the schema.",
            )
        ],
    ),
    "an anchor that is nowhere": (
        within({"$ref": "#b"}),
        [
            (
                "/properties/a/$ref",
                "In context=('properties', 'a'), reference to component '#b' which was not found in the schema.",
            )
        ],
    ),
    "an invalid pattern": (
        within(REGEX),
        [("/properties/a/pattern", "In context=('properties', 'a'), '(' is not a 'regex'.")],
    ),
    "an invalid type": (
        within({"type": ["string", "strng"]}),
        [
            (
                "/properties/a/type",
                "In context=('properties', 'a'), ['string', 'strng'] is not valid under any of the given schemas.",
            )
        ],
    ),
    "no schema": (
        within("string"),
        [("/properties/a", "In context=('properties', 'a'), 'string' is not of type 'object', 'boolean'.")],
    ),
    "in nested places": (
        closed(**{"x/y": {"anyOf": [TEXT, {"type": "array", "items": {"properties": {}}}]}, "z": {"$ref": "#/$defs/d"}})
        | {"$defs": {"d": {"type": ["object", "null"]}}},
        [
            ("/properties/x~1y/anyOf/1/items", f"In context=('properties', 'x/y', 'anyOf', '1', 'items'), {CLOSED}"),
            ("/$defs/d", f"In context=('$defs', 'd'), {CLOSED}"),
        ],
    ),
    "several at once": (
        {"type": "object", "properties": {"a": REGEX, "b": {"type": "array"}}},
        [
            ("", f"In context=(), {CLOSED}"),
            ("", f"In context=(), {REQUIRED} Missing 'a'."),
            ("", f"In context=(), {REQUIRED} Missing 'b'."),
            ("/properties/a/pattern", "In context=('properties', 'a'), '(' is not a 'regex'."),
            ("/properties/b", "In context=('properties', 'b'), array schema missing items."),
        ],
    ),
    "what a condition says need not be closed": (
        {**closed(a=TEXT), "if": {"properties": {"a": {"const": ""}}}, "not": {"type": "object"}},
        [],
    ),
    "a format that nothing is known of": (
        closed(a={"type": ["string", "null"], "format": "jwt"}, b={"type": "integer", "format": "int32"}),
        [("/properties/a/format", "In context=('properties', 'a'), 'jwt' is not a valid format.")],
    ),
    "a format that is the name of a pattern": (
        closed(a={"type": "string", "format": "cuid", "pattern": "^[a-z]*$"}),
        [],
    ),
    "keywords beyond the subset": (
        closed(
            a={"type": "string", "format": "uri", "default": "", "not": {"const": ""}},
            b={"oneOf": [TEXT, {"type": "null"}]},
            c={"type": "array", "prefixItems": [TEXT], "items": False, "uniqueItems": True},
            d={},
        ),
        [],
    ),
}


@for_each("name", STRUCTURAL)
def test_structural_rules(name: str) -> None:
    schema, expected = STRUCTURAL[name]
    for given_as in (schema, json.dumps(schema)):
        found = constrain.strict.check_strict(given_as, subset="structural")
        assert [(violation.pointer, violation.complaint) for violation in found] == expected
    full = [(violation.pointer, violation.complaint) for violation in constrain.strict.check_strict(schema)]
    assert [entry for entry in full if entry in expected] == expected


@for_each("name", STRUCTURAL)
def test_compiling_strictly_lists_all_violations(name: str) -> None:
    schema, expected = STRUCTURAL[name]
    if name in ("keywords beyond the subset", "what a condition says need not be closed"):
        return  # whether the compiler takes them is not a question of structure
    if not expected:
        assert constrain.compile(schema, byte_vocabulary(), strict=True).accepts('{"a": ""}')
        return
    for _ in range(2):
        with pytest.raises(constrain.SchemaError) as caught:
            constrain.compile(schema, byte_vocabulary(), strict=True)
        assert caught.value.pointer == (expected[0][0] if len(expected) == 1 else None)
        assert str(caught.value).count("\n- ") == len(expected)
        for _, line in expected:
            assert line in str(caught.value)


def test_a_schema_that_is_not_strict_compiles_without_strict() -> None:
    schema = {"type": "object", "properties": {"a": TEXT}}
    assert constrain.compile(schema, byte_vocabulary()).accepts("{}")
    with pytest.raises(constrain.SchemaError):
        constrain.compile(schema, byte_vocabulary(), strict=True)
    assert constrain.compile(schema, byte_vocabulary()).accepts("{}")


FULL: dict[str, tuple[Any, list[str]]] = {
    **{
        f"{keyword} is not permitted": (
            within({"type": kind, "items": TEXT, keyword: value}),
            [f"'{keyword}' is not permitted."],
        )
        for kind, keyword, value in (
            ("string", "allOf", [TEXT]),
            ("string", "not", TEXT),
            ("string", "oneOf", [TEXT]),
            ("string", "default", None),
            ("string", "if", TEXT),
            ("array", "uniqueItems", True),
            ("array", "contains", TEXT),
            ("array", "minContains", 1),
            ("array", "prefixItems", [TEXT]),
            ("array", "unevaluatedItems", TEXT),
        )
    },
    **{
        f"{keyword} is not permitted": (within({**closed(), keyword: value}), [f"'{keyword}' is not permitted."])
        for keyword, value in (
            ("patternProperties", {"b": TEXT}),
            ("propertyNames", TEXT),
            ("minProperties", 1),
            ("dependentRequired", {}),
            ("unevaluatedProperties", False),
        )
    },
    "unknown format": (within({"type": "string", "format": "uri"}), ["'uri' is not a valid format."]),
    "known format": (within({"type": "string", "format": "date-time"}), []),
    "untyped": (within({"description": "anything"}), ["schema must have a 'type' key."]),
    "boolean schema": (within(True), ["schema must have a 'type' key."]),
    "untyped items": (
        within({"type": "array", "items": {}}),
        ["In context=('properties', 'a', 'items'), schema must have a 'type' key."],
    ),
    "siblings of a reference": (
        {**within({"$ref": "#", "title": "t", "description": "d"})},
        ["$ref cannot have keywords {'description', 'title'}."],
    ),
    "reference elsewhere": (
        closed(a=closed(b=TEXT), b={"$ref": "#/properties/a"}),
        ["reference can only point to definitions defined at the top level of the schema."],
    ),
    "lookahead": (within({"type": "string", "pattern": "^(?=a)[(?=].*"}), ["lookaround is not supported."]),
    "no lookahead": (within({"type": "string", "pattern": r"^[(?=]\(?=(?:a)$"}), []),
    "object without properties": (
        within({"type": "object", "additionalProperties": False}),
        ["object schema missing properties."],
    ),
    "a pattern that only others can enforce": (within({"type": "string", "pattern": r"(a)\1"}), []),
    "null by anyOf": (within({"anyOf": [TEXT, {"type": "null"}]}), []),
}


@for_each("name", FULL)
def test_full_subset(name: str) -> None:
    schema, expected = FULL[name]
    found = constrain.strict.check_strict(schema)
    assert len(found) == len(expected), found
    for violation, message in zip(found, expected, strict=True):
        assert message in str(violation)
    assert constrain.strict.check_strict(schema, subset="structural") == []


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = TEXT
    for level in range(levels):
        schema = {"type": "array", "items": schema} if level % 2 else closed(a=schema)
    return schema if schema["type"] == "object" else closed(a=schema["items"])


def chained(levels: int) -> dict[str, Any]:
    definitions = {f"d{i}": closed(a={"$ref": f"#/$defs/d{i + 1}"}) for i in range(levels - 2)}
    return {**closed(a={"$ref": "#/$defs/d0"}), "$defs": {**definitions, f"d{levels - 2}": closed(a=TEXT)}}


OPT_OUT = "Consider reducing the number of enums, or use 'strict: false' to opt out of structured outputs."
LIMITS: dict[str, tuple[Any, Any, str]] = {
    "properties": (
        closed(**{f"p{i}": TEXT for i in range(5000)}),
        closed(**{f"p{i}": TEXT for i in range(5001)}),
        "5001 parameters exceeds limit of 5000.",
    ),
    "nesting": (nested(9), nested(11), "11 levels of nesting exceeds limit of 10."),
    "nesting by reference": (chained(10), chained(11), "11 levels of nesting exceeds limit of 10."),
    "names": (
        closed(
            **{
                "n" * 60_000: {"const": "c" * 40_000, "type": "string"},
                "e": {"type": "string", "enum": ["x" * 19_998, 7]},
            }
        )
        | {"$defs": {"d": TEXT}},
        closed(
            **{
                "n" * 60_000: {"const": "c" * 40_000, "type": "string"},
                "e": {"type": "string", "enum": ["x" * 19_998, 7]},
            }
        )
        | {"$defs": {"dd": TEXT}},
        (
            "Expected at most 120000 total characters across property names, definition names, enum values and const "
            "values, but received 120001."
        ),
    ),
    "enum values": (
        closed(a={"type": "integer", "enum": [*range(500)]}, b={"type": "integer", "enum": [*range(500)]}),
        closed(a={"type": "integer", "enum": [*range(500)]}, b={"type": "integer", "enum": [*range(501)]}),
        (
            "Expected at most 1000 enum values in total within a single schema when using structured outputs, "
            f"but received 1001. {OPT_OUT}"
        ),
    ),
    "characters of a large enum": (
        closed(a={"type": "string", "enum": [f"{i:0100d}" for i in range(250)]}),
        closed(a={"type": "string", "enum": [f"{i:0100d}" for i in range(251)]}),
        (
            "Expected at most 15000 total characters across enum values when there are more than 250 enum values, but "
            f"received 25100. {OPT_OUT}"
        ),
    ),
}


@for_each("name", LIMITS)
def test_limits(name: str) -> None:
    within_limit, beyond, message = LIMITS[name]
    assert constrain.strict.check_strict(within_limit) == []
    assert [str(violation) for violation in constrain.strict.check_strict(beyond, name="n")] == [
        f"Invalid schema for response_format 'n': {message}"
    ]
    assert constrain.strict.check_strict(beyond, subset="structural") == []


def test_recursion_counts_once() -> None:
    node = closed(next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}, root={"$ref": "#"})
    assert constrain.strict.check_strict({**closed(a={"$ref": "#/$defs/node"}), "$defs": {"node": node}}) == []


def test_messages_say_what_the_schema_is_for() -> None:
    (violation,) = constrain.strict.check_strict({"type": "array", "items": TEXT}, name="get_weather", kind="function")
    assert str(violation) == (
        "Invalid schema for function 'get_weather': "
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'."
    )
    assert (violation.pointer, violation.context) == ("/type", None)
    assert violation.message.startswith("schema must be")


class Answer(BaseModel):
    kind: Literal["a"]
    link: int | None = None


def test_types_are_checked_as_pydantic_writes_them() -> None:
    found = constrain.strict.check_strict(Answer)
    assert [violation.message for violation in found] == [
        CLOSED,
        f"{REQUIRED} Missing 'link'.",
        "'default' is not permitted.",
    ]
    assert constrain.strict.check_strict(constrain.strict.strict_schema(Answer)) == []


@pytest.mark.parametrize("option", [{"kind": "tool"}, {"subset": "strict"}, {"subset": None}])
def test_unknown_options_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="it must be"):
        constrain.strict.check_strict({}, **option)


def examples() -> dict[str, Any]:
    folder = os.environ.get("CONSTRAIN_DATA")
    if not folder:
        pytest.skip("CONSTRAIN_DATA is not set")
    found: dict[str, Any] = json.loads((Path(folder) / "openai-examples.json").read_text(encoding="utf-8"))["schemas"]
    return found


def test_schemas_of_the_guides_are_in_the_subset() -> None:
    for name, schema in examples().items():
        assert [str(violation) for violation in constrain.strict.check_strict(schema)] == [], name
        assert (
            constrain.strict.strict_schema(schema) == {**schema, "required": [*schema["properties"]]}
            or name == "linked_list"
        )
        constrain.compile(schema, byte_vocabulary(), strict=True)


KEYWORDS = [
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "allOf", "$ref", "enum",
    "const", "$defs", "definitions", "pattern", "format", "default", "prefixItems", "not", "if", "then",
    "dependentSchemas", "patternProperties", "unevaluatedProperties", "$id", "$schema", "$anchor", "minimum",
]  # fmt: skip
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from(["object", "array", "string", "#", "#/$defs/a", "#/properties/a", "a", "("]),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*KEYWORDS, "a"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.slow
@settings(
    max_examples=500 if LONG else 40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(st.dictionaries(st.sampled_from(KEYWORDS), JSON, max_size=6))
def test_anything_gives_violations_or_a_clear_error(schema: dict[str, Any]) -> None:
    for subset in ("openai", "structural"):
        for violation in constrain.strict.check_strict(schema, subset=subset):  # type: ignore[arg-type]
            assert str(violation).startswith("Invalid schema for response_format 'response': ")
    before = json.dumps(schema)
    try:
        result = constrain.strict.strict_schema(schema)
    except (constrain.SchemaError, constrain.LimitError):
        return
    finally:
        assert json.dumps(schema) == before
    messages = [violation.message for violation in constrain.strict.check_strict(result, subset="structural")]
    assert CLOSED not in messages
    assert not [message for message in messages if message.startswith(REQUIRED)]


def test_examples_of_the_documentation_run() -> None:
    for module in (strict, strict_merging, _type_patterns):
        assert doctest.testmod(module) == (0, {strict: 2, strict_merging: 1, _type_patterns: 4}[module])


@pytest.mark.slow
def test_large_schemas_are_checked_and_converted_in_linear_time() -> None:
    schema = closed(**{f"p{i}": closed(a={"enum": [f"v{j}" for j in range(10)]}) for i in range(1_500)})
    with finishes_within(10):
        constrain.strict.check_strict(schema)
        constrain.strict.strict_schema(schema)
