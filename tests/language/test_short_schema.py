"""Schemas in one line."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.errors import SchemaError
from constrain.language.short_schema import is_short, read_short
from tests.support import for_each

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@for_each("text, properties", [
        ("name", {"name": STRING}),
        ("name, age int", {"name": STRING, "age": INTEGER}),
        ("tags list[str]", {"tags": {"type": "array", "items": STRING}}),
        ("level: low|high, name", {"level": {"enum": ["low", "high"]}, "name": STRING}),
        ("age int: in years, bio", {"age": {**INTEGER, "description": "in years"}, "bio": STRING}),
        ("a: b, then c\n\nage int\n", {"a": {**STRING, "description": "b, then c"}, "age": INTEGER}),
        ("level int: 1|2|2", {"level": {"enum": [1, 2]}}),
        ("marks list[float]: 1.5 | 2", {"marks": {"type": "array", "items": {"enum": [1.5, 2.0]}}}),
        ("x int|null", {"x": {"anyOf": [INTEGER, {"type": "null"}]}}),
        ("x list[int|str]|int", {"x": {"anyOf": [{"type": "array", "items": {"anyOf": [INTEGER, STRING]}}, INTEGER]}}),
        ("x list", {"x": {"type": "array"}}),
        ("x any", {"x": {}}),
        ("type str: string, of", {"type": {**STRING, "description": "string"}, "of": STRING}),
        ("at datetime, Größe Number", {"at": {"type": "string", "format": "date-time"}, "Größe": {"type": "number"}}),
    ])  # fmt: skip
def test_what_a_line_says(text: str, properties: dict[str, Any]) -> None:
    assert is_short(text)
    expected = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    assert read_short(text) == expected


def test_optional_keys() -> None:
    schema = read_short("name, nick?, age? int: in years")
    assert schema["required"] == ["name"]
    assert schema["properties"] == {"name": STRING, "nick": STRING, "age": {**INTEGER, "description": "in years"}}


@for_each("text", ["Person str", "URL", "Person, age int", "Person: who it is about"])
def test_a_key_may_have_the_name_of_a_class(text: str) -> None:
    assert read_short(text)["required"][0] in ("Person", "URL")


@for_each("text", ['{"type": "object"}', " [1]", "true", " false ", "null", "12", '"name"', "", "NaN", "Infinity"])
def test_json_is_json(text: str) -> None:
    assert not is_short(text)


@for_each(
    "text, message, line, column",
    [
        ("name,, age", "a key is missing", 1, 6),
        ("name,", "a key is missing", 1, 6),
        ("name, 2nd int", "'2nd int' is no key with a type", 1, 7),
        ("type: object\nproperties:", "'type': a type stands before the colon", 1, 1),
        ("name: str, age: int", "'name': a type stands before the colon: write name str, or name str: str", 1, 1),
        ("age: int|null", "'age': a type stands before the colon", 1, 1),
        ("a: list[str]", "'a': a type stands before the colon", 1, 1),
        ('start: "a" | "b"', "'start': this reads like a grammar or YAML", 1, 1),
        ('root ::= "yes"', "'root': this reads like a grammar or YAML", 1, 1),
        ("name\nrequired: [name]", "'required': this reads like a grammar or YAML", 2, 1),
        ("title: A person\nproperties:", "'properties': there is nothing behind the colon", 2, 1),
        ("\n\n  name, age integr", "'age': unknown type 'integr'", 3, 9),
        ("a x" + " " * 100_000 + "y", "'a': unknown type", 1, 1),
        ("person.json", r"'person\.json' is no key", 1, 1),
        ("name\n  age\n  name int", "the key 'name' occurs twice", 3, 3),
        ("name, age integr", r"'age': unknown type 'integr' \(did you mean integer\?\); the types are str, int", 1, 7),
        ("x list[strr]", "'x': unknown type 'strr'", 1, 1),
        ("x list[int", "'x': unknown type", 1, 1),
        ("x |int", "'x': unknown type ''", 1, 1),
        ("x: a||b", "'x': a value is missing", 1, 1),
        ("x bool: yes|no", "'x': values cannot be listed for the type 'bool'", 1, 1),
        ("x int: 1|b", "'x': a listed value is no int", 1, 1),
        ("x " + "list[" * 60 + "int" + "]" * 60, "'x': lists are nested more than 50 deep", 1, 1),
    ],
)
def test_what_is_no_such_schema(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(SchemaError, match=message) as error:
        read_short(text)
    assert (error.value.line, error.value.column) == (line, column)
