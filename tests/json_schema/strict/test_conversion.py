"""Conversion to OpenAI's strict subset: what it does, what it refuses, and what it keeps."""

from __future__ import annotations

import copy
import json
from enum import Enum
from random import Random
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field

import constrain
from tests.support import LONG, byte_vocabulary, for_each, maskbench
from tests.support.judging import validation_error

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def opened(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SCALAR = {"s": {"type": "string", "minLength": 2}, "chain": {"$ref": "#/$defs/s"}, "o": opened(a=TEXT)}

CONVERSIONS: dict[str, tuple[Any, Any]] = {
    "an object is closed and requires all": (opened(a=TEXT, b=NUMBER), closed(a=TEXT, b=NUMBER)),
    "required becomes the order of properties": ({**opened(a=TEXT, b=TEXT), "required": ["b"]}, closed(a=TEXT, b=TEXT)),
    "nothing becomes the empty object": ({}, closed()),
    "an object without properties": ({"type": "object"}, closed()),
    "type object is inferred": ({"properties": {"a": TEXT}}, closed(a=TEXT)),
    "a nullable object is closed": (
        opened(a={"type": ["object", "null"], "properties": {"b": TEXT}}),
        closed(a={**closed(b=TEXT), "type": ["object", "null"]}),
    ),
    "a property that is called properties": (
        opened(properties={"type": "string"}, required=TEXT),
        closed(properties=TEXT, required=TEXT),
    ),
    "in items": (
        opened(a={"type": "array", "items": opened(b=TEXT)}),
        closed(a={"type": "array", "items": closed(b=TEXT)}),
    ),
    "in prefixItems": ({"prefixItems": [opened(a=TEXT)]}, {"prefixItems": [closed(a=TEXT)]}),
    "in anyOf": ({"anyOf": [opened(a=TEXT), NUMBER]}, {"anyOf": [closed(a=TEXT), NUMBER]}),
    "in $defs": (
        {**opened(a={"$ref": "#/$defs/o"}), "$defs": {"o": opened(a=TEXT)}},
        {**closed(a={"$ref": "#/$defs/o"}), "$defs": {"o": closed(a=TEXT)}},
    ),
    "in definitions": (
        {**opened(a={"$ref": "#/definitions/o"}), "definitions": {"o": opened(a=TEXT)}},
        {**closed(a={"$ref": "#/definitions/o"}), "definitions": {"o": closed(a=TEXT)}},
    ),
    "not is left alone": (opened(a={"not": opened(b=TEXT)}), closed(a={"not": opened(b=TEXT)})),
    "oneOf becomes anyOf": (opened(a={"oneOf": [TEXT, NUMBER]}), closed(a={"anyOf": [TEXT, NUMBER]})),
    "a single allOf is merged": ({"type": "object", "allOf": [{"properties": {"a": TEXT}}]}, closed(a=TEXT)),
    "a single allOf of a reference is the reference": (
        {"allOf": [{"$ref": "#/$defs/s"}], "$defs": SCALAR},
        {"$defs": {**SCALAR, "o": closed(a=TEXT)}, "type": "string", "minLength": 2},
    ),
    "allOf of objects is one object": (
        {"allOf": [opened(a=TEXT), {"properties": {"a": {"minLength": 1}, "b": NUMBER}, "required": ["b"]}]},
        closed(a={**TEXT, "minLength": 1}, b=NUMBER),
    ),
    "allOf keeps what cannot be merged": (
        opened(a={"allOf": [{"pattern": "a"}, {"pattern": "b"}]}),
        closed(a={"pattern": "a", "allOf": [{"pattern": "b"}]}),
    ),
    "bounds in allOf are intersected": (
        {"minimum": 1, "allOf": [{"minimum": 3, "type": "number"}, {"maximum": 5, "type": ["integer", "string"]}]},
        {"minimum": 3, "maximum": 5, "type": "integer"},
    ),
    "null defaults go, others stay": (
        opened(a={**TEXT, "default": None}, b={**TEXT, "default": ""}),
        closed(a=TEXT, b={**TEXT, "default": ""}),
    ),
    "a null that is no default stays": (opened(a={"const": None}), closed(a={"const": None})),
    "a property that is called default": (opened(default=TEXT), closed(default=TEXT)),
    "a lone reference stays": (
        {**opened(a={"$ref": "#/$defs/chain"}), "$defs": SCALAR},
        {**closed(a={"$ref": "#/$defs/chain"}), "$defs": {**SCALAR, "o": closed(a=TEXT)}},
    ),
    "a null default beside a reference goes": (
        {**opened(a={"$ref": "#/$defs/s", "default": None}), "$defs": SCALAR},
        {**closed(a={"$ref": "#/$defs/s"}), "$defs": {**SCALAR, "o": closed(a=TEXT)}},
    ),
    "a description beside a chained reference is merged": (
        {**opened(a={"$ref": "#/$defs/chain", "description": "d"}), "$defs": SCALAR},
        {**closed(a={"description": "d", "type": "string", "minLength": 2}), "$defs": {**SCALAR, "o": closed(a=TEXT)}},
    ),
    "the description of the use wins": (
        {
            **opened(a={"$ref": "#/$defs/d", "description": "use"}),
            "$defs": {"d": {**TEXT, "description": "definition"}},
        },
        {**closed(a={**TEXT, "description": "use"}), "$defs": {"d": {**TEXT, "description": "definition"}}},
    ),
    "a bound beside a reference is merged": (
        {**opened(a={"$ref": "#/$defs/s", "maxLength": 5, "minLength": 1}), "$defs": SCALAR},
        {**closed(a={"maxLength": 5, "minLength": 2, "type": "string"}), "$defs": {**SCALAR, "o": closed(a=TEXT)}},
    ),
    "before 2019-09 a bound beside a reference says nothing": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            **opened(a={"$ref": "#/$defs/s", "maxLength": 1}),
            "$defs": SCALAR,
        },
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            **closed(a={"$ref": "#/$defs/s"}),
            "$defs": {**SCALAR, "o": closed(a=TEXT)},
        },
    ),
    "an object beside a description is inlined and closed": (
        {**opened(a={"$ref": "#/$defs/o", "description": "d"}), "$defs": {"o": opened(a=TEXT)}},
        {**closed(a={"description": "d", **closed(a=TEXT)}), "$defs": {"o": closed(a=TEXT)}},
    ),
    "recursion keeps the reference": (
        {"$ref": "#/$defs/n", "$defs": {"n": opened(next={"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]})}},
        {
            **closed(next={"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}),
            "$defs": {"n": closed(next={"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]})},
        },
    ),
    "recursion with a description ends": (
        {**opened(a={"$ref": "#", "description": "d"}), "title": "t"},
        {
            **closed(a={"description": "d", "title": "t", **closed(a={"anyOf": [{"$ref": "#"}], "description": "d"})}),
            "title": "t",
        },
    ),
    "an object by anyOf alone leaves closing to its branches": (
        {"type": "object", "anyOf": [opened(a=TEXT), opened(b=TEXT)]},
        {"anyOf": [closed(a=TEXT), closed(b=TEXT)]},
    ),
    "branches about presence alone stay": (
        {**opened(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {**closed(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    ),
    "closed already by unevaluatedProperties": ({**opened(a=TEXT), "unevaluatedProperties": False}, closed(a=TEXT)),
    "a reference to nothing stays": ({"$ref": "#/definitions/none"}, {"$ref": "#/definitions/none"}),
}


@for_each("name", CONVERSIONS)
def test_conversion(name: str) -> None:
    schema, expected = CONVERSIONS[name]
    before = copy.deepcopy(schema)
    result = constrain.strict.strict_schema(schema)
    assert result == expected
    assert schema == before
    assert constrain.strict.strict_schema(json.dumps(schema)) == expected
    assert constrain.strict.strict_schema(result) == result


ERRORS: dict[str, tuple[Any, str, str]] = {
    "open object": ({**opened(a=TEXT), "additionalProperties": True}, "/additionalProperties", "arbitrary keys"),
    "dictionary": (
        opened(a={"type": "object", "additionalProperties": TEXT}),
        "/properties/a/additionalProperties",
        "closed",
    ),
    "any additional": ({**opened(a=TEXT), "additionalProperties": {}}, "/additionalProperties", "arbitrary keys"),
    "open by unevaluatedProperties": (
        {**opened(a=TEXT), "unevaluatedProperties": TEXT},
        "/unevaluatedProperties",
        "closed",
    ),
    "required but not declared": ({**opened(a=TEXT), "required": ["b"]}, "/required", "'b'"),
    "in a definition": (
        {"$defs": {"a/b": {"type": "object", "additionalProperties": TEXT}}, **opened(a={"$ref": "#/$defs/a~1b"})},
        "/$defs/a~1b/additionalProperties",
        "arbitrary keys",
    ),
    "in an inlined definition": (
        {
            **opened(a={"$ref": "#/$defs/o", "title": "t"}),
            "$defs": {"o": opened(b={**opened(), "additionalProperties": TEXT})},
        },
        "/$defs/o/properties/b/additionalProperties",
        "arbitrary keys",
    ),
    "branches with other properties": (
        {**opened(a=TEXT), "anyOf": [opened(b=TEXT), opened(c=TEXT)]},
        "/anyOf/0",
        "different properties",
    ),
    "properties of a condition": ({**opened(a=TEXT), "if": {}, "then": opened(b=TEXT)}, "/then", "forbid"),
    "properties of a dependency": (
        {**opened(a=TEXT), "dependentSchemas": {"a": opened(b=TEXT)}},
        "/dependentSchemas/a",
        "forbid",
    ),
    "closed objects that exclude each other": (
        {"allOf": [closed(a=TEXT), closed(b=TEXT)]},
        "/allOf/1",
        "cannot be merged",
    ),
    "oneOf by presence": (
        {**opened(a=TEXT, b=TEXT), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "/oneOf",
        "strict mode requires all properties",
    ),
    "oneOf beside anyOf": ({"oneOf": [TEXT], "anyOf": [NUMBER]}, "/oneOf", "anyOf"),
    "siblings that refer to nothing": (
        opened(a={"$ref": "#/$defs/none", "title": "t"}),
        "/properties/a/$ref",
        "no schema",
    ),
    "siblings of another document": (opened(a={"$ref": "other.json", "title": "t"}), "/properties/a/$ref", "no schema"),
    "resource inside": (opened(a={"$id": "https://example.com/a", **TEXT}), "/properties/a/$id", "$id"),
    "properties that is a list": ({"type": "object", "properties": []}, "/properties", "must be"),
    "a property that is a number": (opened(a=1), "/properties/a", "not 1"),
    "required that is a string": ({**opened(a=TEXT), "required": "a"}, "/required", "must be"),
    "allOf that is an object": ({"allOf": {}}, "/allOf", "must be"),
    "anyOf that is an object": ({"anyOf": {}}, "/anyOf", "must be"),
    "a reference that is a number": (opened(a={"$ref": 1, "title": "t"}), "/properties/a/$ref", "must be"),
    "a boolean": (True, "", "object"),
}


@for_each("name", ERRORS)
def test_what_would_change_meaning_is_refused(name: str) -> None:
    schema, pointer, says = ERRORS[name]
    with pytest.raises(constrain.SchemaError) as caught:
        constrain.strict.strict_schema(schema)
    assert caught.value.pointer == pointer
    assert says in str(caught.value)


def test_a_reference_into_what_is_rewritten_is_refused() -> None:
    schema = opened(a={"oneOf": [TEXT, NUMBER]}, b={"$ref": "#/properties/a/oneOf/1"})
    with pytest.raises(constrain.SchemaError, match="rewrite"):
        constrain.strict.strict_schema(schema)


def test_the_empty_object_is_a_fresh_one_each_time() -> None:
    first = constrain.strict.strict_schema({})
    first["properties"]["a"] = TEXT
    first["required"].append("a")
    assert constrain.strict.strict_schema({}) == closed()


def test_the_result_shares_nothing_with_the_argument_or_itself() -> None:
    schema = {
        **opened(a={"$ref": "#/$defs/e", "title": "t"}, b={"$ref": "#/$defs/e"}),
        "$defs": {"e": {"enum": ["x", ["y"]], "examples": [{"z": 1}]}},
    }
    result = constrain.strict.strict_schema(schema)
    before = copy.deepcopy(schema)
    result["properties"]["a"]["enum"][1].append("changed")
    assert result["$defs"]["e"]["enum"] == ["x", ["y"]]
    assert schema == before


def test_numbers_stay_what_they_are() -> None:
    result = constrain.strict.strict_schema(opened(a={"minimum": 0.1, "multipleOf": 3, "maximum": 10**30}))
    assert result["properties"]["a"] == {"minimum": 0.1, "multipleOf": 3, "maximum": 10**30}
    assert type(result["properties"]["a"]["minimum"]) is float


@pytest.mark.slow(only=("True",))
@pytest.mark.parametrize("inline", [True, False])
def test_references_that_multiply_end_or_meet_a_limit(inline: bool) -> None:
    beside = {"description": "d"} if inline else {}
    definitions = {
        f"d{i}": opened(a={"$ref": f"#/$defs/d{i + 1}", **beside}, b={"$ref": f"#/$defs/d{i + 1}", **beside})
        for i in range(40)
    }
    schema = {**opened(a={"$ref": "#/$defs/d0", **beside}), "$defs": {**definitions, "d40": TEXT}}
    if inline:
        with pytest.raises(constrain.LimitError, match="MAX_COMPILE_WORK"):
            constrain.strict.strict_schema(schema)
    else:
        assert constrain.strict.check_strict(constrain.strict.strict_schema(schema), subset="structural") == []


@for_each(
    "schema",
    {"$ref": "#", "title": "t"},
    {"allOf": [{"$ref": "#"}], "title": "t"},
    {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {
        "$defs": {"a": {"$ref": "#/$defs/b", "title": "a"}, "b": {"$ref": "#/$defs/a", "title": "b"}},
        "$ref": "#/$defs/a",
    },
    {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, opened(b=TEXT)]}}, **opened(a={"$ref": "#/$defs/a"})},
    {"anyOf": [{"$ref": "#"}], "properties": {"a": TEXT}},
)
def test_a_cycle_ends(schema: dict[str, Any]) -> None:
    try:
        result = constrain.strict.strict_schema(schema)
    except constrain.SchemaError:
        return
    assert json.dumps(result)


@for_each("step", [lambda s: {"items": s}, lambda s: opened(a=s), lambda s: {"allOf": [s]}, lambda s: [s]])
@for_each("function", [constrain.strict.strict_schema, constrain.strict.check_strict])
def test_deep_schemas_meet_a_clear_error(step: Any, function: Any) -> None:
    schema: Any = dict(TEXT)
    for _ in range(10_000):
        schema = step(schema)
    with pytest.raises((constrain.SchemaError, constrain.LimitError)):
        function(opened(a=schema))
    with pytest.raises((constrain.SchemaError, constrain.LimitError)):
        function('{"items":' * 10_000 + "true" + "}" * 10_000)


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    for function in (constrain.strict.strict_schema, constrain.strict.check_strict):
        with pytest.raises(constrain.SchemaError):
            function(schema)


@for_each("text", ["", "{", '{"a": 1, "a": 2}', "NaN", "[" * 100_000, '{"minimum": ' + "1" * 5_000 + "}"])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    for function in (constrain.strict.strict_schema, constrain.strict.check_strict):
        with pytest.raises(constrain.SchemaError):
            function(text)


# Pydantic models


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tail: Annotated[float, Field(gt=0)] | None = None


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    following: Page[Item] | None = None


class Home(BaseModel):
    """A home."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    colour: Colour = Field(default=Colour.RED, description="Of the walls")
    pages: Page[Cat]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Dictionary(BaseModel):
    a: dict[str, int]


def test_models_become_strict_and_their_texts_are_read() -> None:
    schema = constrain.strict.strict_schema(Home)
    assert constrain.strict.check_strict(schema, subset="structural") == []
    constraint = constrain.compile(schema, byte_vocabulary(), strict=True)
    text = bytes(constraint.matcher().shortest_completion())
    home = Home.model_validate_json(text)
    assert json.loads(text).keys() == {"pet", "colour", "pages"}
    assert isinstance(home.pet, (Cat, Dog))
    dog = '{"pet":{"kind":"dog","tail":null},"colour":"blue","pages":{"items":[],"following":null}}'
    assert constraint.accepts(dog)
    assert not constraint.accepts(dog.replace(',"tail":null', ""))
    assert schema["properties"]["colour"] == {
        "default": "red",
        "description": "Of the walls",
        "enum": ["red", "blue"],
        "title": "Colour",
        "type": "string",
    }


@pytest.mark.parametrize("model", [Open, Dictionary])
def test_models_of_arbitrary_keys_are_refused(model: type[BaseModel]) -> None:
    with pytest.raises(constrain.SchemaError, match="additionalProperties"):
        constrain.strict.strict_schema(model)


@pytest.mark.slow
def test_what_a_strict_schema_allows_the_schema_allows() -> None:
    vocabulary, tried = byte_vocabulary(), 0
    for entry in Random(7).sample(maskbench(), 150 if LONG else 40):
        text = json.dumps(entry["schema"])
        if "oneOf" in text:  # is taken to be exclusive
            continue
        try:
            constraint = constrain.compile(constrain.strict.strict_schema(text), vocabulary)
        except (constrain.SchemaError, constrain.PatternError, constrain.LimitError):
            continue
        error = validation_error(entry["schema"], bytes(constraint.matcher().shortest_completion()))
        assert error is None, (entry["id"], error)
        tried += 1
    assert tried > 12


def test_a_strict_schema_narrows_only_to_declared_and_required_properties() -> None:
    schema = {"allOf": [opened(a=TEXT), {"properties": {"b": {"oneOf": [NUMBER, {"type": "null"}]}}}]}
    constraint = constrain.compile(constrain.strict.strict_schema(schema), byte_vocabulary(), strict=True)
    assert constraint.accepts('{"a": "x", "b": null}')
    for text in ('{"a": "x"}', '{"a": 1, "b": 1}', '{"a": "x", "b": 1, "c": 1}', "1"):
        assert not constraint.accepts(text)
