"""``response_format`` of chat completions, by ``create`` and by ``parse``."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

import pytest
from openai import BadRequestError
from pydantic import BaseModel, Field
from samples import MESSAGES, MOVE_SCHEMA, OPEN_SCHEMA, Person, json_schema

if TYPE_CHECKING:
    from openai import OpenAI


def content(client: OpenAI, model: str, response_format: Any, **options: Any) -> Any:
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, response_format=response_format, **{"max_tokens": 150, **options}
    )
    assert completion.choices[0].finish_reason == "stop"
    return json.loads(completion.choices[0].message.content or "")


def test_text(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, response_format={"type": "text"}, max_tokens=5
    )
    assert completion.choices[0].message.content


def test_json_object_is_an_object(client: OpenAI, model: str) -> None:
    assert isinstance(content(client, model, {"type": "json_object"}, max_tokens=60), dict)


@pytest.mark.parametrize("strict", [True, False, None])
def test_a_closed_schema(client: OpenAI, model: str, strict: bool | None) -> None:
    value = content(client, model, json_schema(MOVE_SCHEMA, strict=strict))
    assert set(value) == {"to", "steps"}
    assert value["to"] in ("left", "right")


@pytest.mark.parametrize("strict", [False, None])
def test_an_open_schema_is_closed_unless_it_is_strict(client: OpenAI, model: str, strict: bool | None) -> None:
    value = content(client, model, json_schema(OPEN_SCHEMA, strict=strict))
    assert set(value) == {"name", "age"}
    assert 0 <= value["age"] <= 150


def test_strict_may_be_null(client: OpenAI, model: str) -> None:
    wanted = json_schema(MOVE_SCHEMA)
    wanted["json_schema"]["strict"] = None
    assert content(client, model, wanted)


def test_a_description_is_taken(client: OpenAI, model: str) -> None:
    assert content(client, model, json_schema(MOVE_SCHEMA, description="Where to go."))


SCHEMAS: dict[str, Any] = {
    "definitions": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"side": {"enum": ["left", "right"]}},
        "type": "object",
        "properties": {"side": {"$ref": "#/$defs/side"}},
        "required": ["side"],
    },
    "one of": {
        "type": "object",
        "properties": {"x": {"oneOf": [{"const": 1}, {"const": "one"}]}},
        "required": ["x"],
    },
    "all of": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]},
        ]
    },
    "formats": {
        "type": "object",
        "properties": {"day": {"type": "string", "format": "date"}, "id": {"type": "string", "format": "uuid"}},
        "required": ["day", "id"],
    },
    "unique items": {
        "type": "object",
        "properties": {
            "xs": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2, "maxItems": 3}
        },
        "required": ["xs"],
    },
    "if and then": {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "size": {"type": "integer", "maximum": 9, "minimum": 0}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["size"]},
    },
    "recursion": {
        "type": "object",
        "properties": {"value": {"const": 1}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["value", "next"],
        "additionalProperties": False,
    },
    "multiples": {
        "type": "object",
        "properties": {"x": {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 100}},
        "required": ["x"],
    },
    "a pattern": {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}},
        "required": ["code"],
    },
    "an array": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    "a number": {"type": "number", "minimum": 0, "maximum": 1},
    "a choice of texts": {"enum": ["yes", "no", "perhaps"]},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_beyond_the_strict_subset(client: OpenAI, model: str, name: str) -> None:
    value = content(client, model, json_schema(SCHEMAS[name]))
    assert is_right(name, value), value


def is_right(name: str, value: Any) -> bool:
    """Whether a value is what the schema of this name asks for."""
    import datetime as dt
    import uuid

    match name:
        case "definitions":
            return value in ({"side": "left"}, {"side": "right"})
        case "one of":
            return value in ({"x": 1}, {"x": "one"})
        case "all of":
            return set(value) == {"a", "b"} and isinstance(value["a"], bool) and value["b"] is None
        case "formats":
            return bool(dt.date.fromisoformat(value["day"]) and uuid.UUID(value["id"]))
        case "unique items":
            return 2 <= len(set(value["xs"])) == len(value["xs"])
        case "if and then":
            return value["kind"] == "b" or "size" in value
        case "recursion":
            return value["value"] == 1 and "next" in value
        case "multiples":
            return value["x"] % 7 == 0
        case "a pattern":
            return bool(re.fullmatch("[A-Z]{2}-[0-9]{3}", value["code"]))
        case "an array":
            return all(isinstance(each, bool) for each in value)
        case "a number":
            return 0 <= value <= 1
    return value in ("yes", "no", "perhaps")


def test_keys_come_in_the_order_of_the_schema(client: OpenAI, model: str) -> None:
    names = ["zeta", "alpha", "mid"]
    schema = {"type": "object", "properties": {name: {"type": "boolean"} for name in names}, "required": sorted(names)}
    assert list(content(client, model, json_schema(schema))) == names


def test_many_at_once_without_a_limit(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, response_format=json_schema(MOVE_SCHEMA, strict=True)
    )
    assert json.loads(completion.choices[0].message.content or "")


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_that_is_too_small_names_one_that_works(client: OpenAI, model: str, name: str) -> None:
    def ask(limit: int) -> str | None:
        given: Any = {name: limit}
        completion = client.chat.completions.create(
            model=model, messages=MESSAGES, response_format=json_schema(MOVE_SCHEMA), **given
        )
        return completion.choices[0].message.content

    with pytest.raises(BadRequestError) as caught:
        ask(2)
    assert (caught.value.param, caught.value.code) == (name, "integer_below_min_value")
    enough = max(map(int, re.findall("[0-9]+", caught.value.message)))
    assert set(json.loads(ask(enough) or "")) == {"to", "steps"}


class Nested(BaseModel):
    people: list[Person] = Field(min_length=1, max_length=2)
    leader: Person | None


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Varied(BaseModel):
    colour: Colour
    shade: Literal["light", "dark"] | None = None
    size: int | None = Field(default=3, ge=0, le=9)
    ratio: float = Field(ge=0, le=1)
    good: bool


class Tree(BaseModel):
    label: Literal["a", "b"]
    children: list[Tree] = Field(max_length=2)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    is_good: bool


class Owner(BaseModel):
    pet: Cat | Dog


@pytest.mark.parametrize("wanted", [Person, Nested, Varied, Owner, Tree], ids=lambda wanted: wanted.__name__)
def test_parse(client: OpenAI, model: str, wanted: type[BaseModel]) -> None:
    completion = client.chat.completions.parse(
        model=model, messages=MESSAGES, response_format=wanted, temperature=0, max_tokens=200
    )
    message = completion.choices[0].message
    assert isinstance(message.parsed, wanted)
    assert message.refusal is None


def test_parse_under_beta(client: OpenAI, model: str) -> None:
    completion = client.beta.chat.completions.parse(
        model=model, messages=MESSAGES, response_format=Person, max_tokens=90
    )
    assert isinstance(completion.choices[0].message.parsed, Person)


def test_parse_several(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.parse(
        model=model, messages=MESSAGES, response_format=Person, max_tokens=90, n=2
    )
    assert all(isinstance(choice.message.parsed, Person) for choice in completion.choices)


def test_parse_without_a_format(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.parse(model=model, messages=MESSAGES, max_tokens=300, temperature=0)
    assert completion.choices[0].message.parsed is None


REFUSED: dict[str, tuple[Any, str]] = {
    "an open object": ({**OPEN_SCHEMA}, "'additionalProperties' is required to be supplied and to be false"),
    "a key that is not required": (
        {**MOVE_SCHEMA, "required": ["to"]},
        "'required' is required to be supplied and to be an array including every key in properties. Missing 'steps'",
    ),
    "an array": ({"type": "array", "items": {"type": "string"}}, "schema must be a JSON Schema of 'type: \"object\"'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_strict_schemas_that_break_the_rules(client: OpenAI, model: str, name: str) -> None:
    schema, words = REFUSED[name]
    with pytest.raises(BadRequestError) as caught:
        content(client, model, json_schema(schema, strict=True))
    assert (caught.value.param, caught.value.code) == ("response_format", "invalid_json_schema")
    assert "Invalid schema for response_format 'answer'" in caught.value.message
    assert words in caught.value.message


def test_all_violations_are_listed(client: OpenAI, model: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {}}, "b": {"type": "string"}},
        "required": ["a"],
    }
    with pytest.raises(BadRequestError) as caught:
        content(client, model, json_schema(schema, strict=True))
    assert caught.value.message.count("additionalProperties") >= 2
    assert "Missing 'b'" in caught.value.message


@pytest.mark.parametrize("strict", [True, False, None])
def test_what_cannot_be_enforced_is_refused_either_way(client: OpenAI, model: str, strict: bool | None) -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "https://example.com/schema.json"}},
        "required": ["x"],
        "additionalProperties": False,
    }
    with pytest.raises(BadRequestError) as caught:
        content(client, model, json_schema(schema, strict=strict))
    assert (caught.value.param, caught.value.code) == ("response_format", "invalid_json_schema")


def test_a_contradiction_is_refused(client: OpenAI, model: str) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer", "minimum": 5, "maximum": 4}}, "required": ["x"]}
    with pytest.raises(BadRequestError) as caught:
        content(client, model, json_schema(schema))
    assert caught.value.code == "invalid_json_schema"


@pytest.mark.parametrize(
    ("wanted", "param"),
    [
        ({"type": "xml"}, "response_format.type"),
        ({}, "response_format.type"),
        ({"type": "json_schema"}, "response_format.json_schema"),
        ({"type": "json_schema", "json_schema": {"schema": MOVE_SCHEMA}}, "response_format.json_schema.name"),
        (
            {"type": "json_schema", "json_schema": {"name": "a b", "schema": MOVE_SCHEMA}},
            "response_format.json_schema.name",
        ),
        (
            {"type": "json_schema", "json_schema": {"name": "a" * 65, "schema": MOVE_SCHEMA}},
            "response_format.json_schema.name",
        ),
        ("json_object", "response_format"),
    ],
    ids=str,
)
def test_formats_that_are_none(client: OpenAI, model: str, wanted: Any, param: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        content(client, model, wanted)
    assert caught.value.param == param
