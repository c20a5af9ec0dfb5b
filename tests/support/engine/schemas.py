"""Schemas of every kind of language, with the policies they are compiled with."""

from __future__ import annotations

from typing import Any

POINT: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tag": {"type": "string"}},
    "required": ["id", "tag"],
    "additionalProperties": False,
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name", "kids"],
}
FEW: dict[str, Any] = {"enum": ["a", "bb", "cccccccccccc"]}
UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}

SCHEMAS: dict[str, tuple[Any, dict[str, str]]] = {
    "anything": (True, {}),
    "point": (POINT, {}),
    "tree": (TREE, {}),
    "strings": ({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4}, {}),
    "numbers": ({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 4}, {}),
    "all spellings": ({"type": "array", "items": {"type": "number"}, "maxItems": 3}, {"numbers": "any"}),
    "free keys": ({"type": "object", "minProperties": 2, "maxProperties": 3}, {}),
    "short keys": ({"type": "object", "minProperties": 6, "propertyNames": {"pattern": "^[a-h]$"}}, {}),
    "any order": (
        {
            "type": "object",
            "properties": {key: {"type": "string"} for key in "abc"},
            "required": list("abc"),
            "additionalProperties": False,
        },
        {"property_order": "any"},
    ),
    "contains": ({"type": "array", "contains": {"const": "needle"}, "minContains": 2, "maxItems": 9}, {}),
    "lengths": ({"type": "string", "minLength": 20, "maxLength": 70}, {}),
    "words": ({"type": "string", "pattern": "^[a-z]+( [a-z]+){5,}$"}, {}),
    "a pattern within lengths": ({"type": "string", "pattern": "[0-9]{3}-[0-9]{4}", "maxLength": 60}, {}),
    "a pattern that leaves out": ({"type": "string", "pattern": "^(?!.*foo)[a-z]{5,40}bar$"}, {}),
    "beyond ASCII": ({"type": "string", "pattern": "^[é€\U0001f600]{9,}$"}, {}),
    "escapes": ({"type": "string", "pattern": r'^[\u0001"\\]{4,}$'}, {}),
    "dates": ({"type": "array", "items": {"type": "string", "format": "date-time"}, "minItems": 2}, {}),
    "addresses": ({"type": "string", "format": "email"}, {}),
    "multiples": ({"type": "array", "items": {"type": "integer", "multipleOf": 97, "minimum": 500}, "minItems": 3}, {}),
    "decimals": ({"type": "number", "multipleOf": 0.01, "minimum": 3, "maximum": 1000}, {}),
    "unique texts": ({**UNIQUE, "items": {"type": "string"}, "minItems": 3, "maxItems": 4}, {}),
    "unique numbers": ({**UNIQUE, "items": {"type": "integer"}, "minItems": 4}, {}),
    "unique few": ({**UNIQUE, "items": FEW, "minItems": 3}, {}),
    "unique objects": ({**UNIQUE, "items": POINT, "minItems": 2, "maxItems": 2}, {}),
    "many": ({"enum": [f"item-{number}" for number in range(500)]}, {}),
    "a constant beside": ({"anyOf": [{"const": "a" * 30}, {"type": "string", "pattern": "^a{3,9}b*$"}]}, {}),
}
