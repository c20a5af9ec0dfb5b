"""Random schemas in all styles of arguments: the same values as in JSON."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

import constrain
from constrain.parts import StructuralTag
from tests.structural.cases import json as json_format
from tests.structural.styles import TYPED, WRITERS, written
from tests.support import LONG, byte_vocabulary

SEEDS = 400 if LONG else 15
NAMES = ("a", "b", "item", "c d")
SCALARS: list[Any] = ["", "a", "b c", "</", '"', 0, 7, -1.5, None, True, False]
KINDS = ("string", "integer", "number", "boolean", "null", "enum", "union", "array", "tuple", "object")


def some_object(rng: Random, depth: int, *, is_open: bool) -> dict[str, Any]:
    names = rng.sample(NAMES, rng.randint(1, 3))
    properties = {name: some_schema(rng, depth, is_open=is_open) for name in names}
    required = [name for name in names if rng.random() < 0.6]
    made: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if is_open and rng.random() < 0.4:
        return made | {"additionalProperties": some_schema(rng, 0, is_open=False)}
    made["additionalProperties"] = False
    if rng.random() < 0.3:
        made["minProperties"] = rng.randint(len(required), len(names))
    return made


def some_schema(rng: Random, depth: int, *, is_open: bool) -> dict[str, Any]:
    """A random schema; ``is_open``: with types of which one mark must tell which, and arguments that are not listed."""
    kind = rng.choice(KINDS if depth else KINDS[:6])
    match kind:
        case "enum":
            kept = [value for value in SCALARS if is_open or not isinstance(value, str)]
            return {"enum": rng.sample(kept, 2)}
        case "union":
            return (
                {"anyOf": [some_schema(rng, depth - 1, is_open=True) for _ in range(2)]}
                if is_open
                else {"type": "null"}
            )
        case "array":
            least = rng.randint(0, 1)
            items = some_schema(rng, depth - 1, is_open=is_open)
            return {"type": kind, "items": items, "minItems": least, "maxItems": least + rng.randint(1, 2)}
        case "tuple":
            items = [some_schema(rng, depth - 1, is_open=is_open) for _ in range(2)]
            return {"type": "array", "prefixItems": items, "items": False}
        case "object":
            return some_object(rng, depth - 1, is_open=is_open)
    return {"type": kind}


def some_value(rng: Random, schema: dict[str, Any], *, of_any_type: bool) -> Any:
    """A value that often satisfies a schema; ``of_any_type``: perhaps of another type."""
    if of_any_type and rng.random() < 0.08:
        return rng.choice([*SCALARS, [], [1], {"a": 1}, {}])
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return some_value(rng, rng.choice(schema["anyOf"]), of_any_type=of_any_type)
    match schema["type"]:
        case "object":
            chosen = [name for name in schema["properties"] if name in schema["required"] or rng.random() < 0.5]
            if rng.random() < 0.1:
                rng.shuffle(chosen)
            value = {name: some_value(rng, schema["properties"][name], of_any_type=of_any_type) for name in chosen}
            if schema["additionalProperties"] and rng.random() < 0.7:
                value |= {
                    name: some_value(rng, schema["additionalProperties"], of_any_type=of_any_type)
                    for name in ("x", "y z")[: rng.randint(0, 2)]
                }
            return value
        case "array" if "prefixItems" in schema:
            return [
                some_value(rng, item, of_any_type=of_any_type) for item in schema["prefixItems"][: rng.randint(0, 2)]
            ]
        case "array":
            return [some_value(rng, schema["items"], of_any_type=of_any_type) for _ in range(rng.randint(0, 3))]
        case "string":
            return rng.choice([value for value in SCALARS if isinstance(value, str)])
        case "integer":
            return rng.choice([0, 7, -12])
        case "number":
            return rng.choice([0, 2.5, -1.5])
        case "boolean":
            return rng.random() < 0.5
    return None


def compiled(schema: object, style: str) -> constrain.Constraint:
    source = StructuralTag({"format": json_format(schema, style=style)})
    return constrain.compile(source.closed(), byte_vocabulary(), cache=False)


@pytest.mark.slow
@pytest.mark.parametrize("style", WRITERS)
def test_the_values_are_those_of_json(style: str) -> None:
    for seed in range(SEEDS):
        rng = Random(f"{style} {seed}")
        schema = some_object(rng, 2, is_open=style in TYPED)
        styled, in_json = compiled(schema, style), compiled(schema, "json")
        for _ in range(12):
            value = some_value(rng, schema, of_any_type=style in TYPED)
            if isinstance(value, dict):
                expected = in_json.accepts(json.dumps(value, ensure_ascii=False))
                assert styled.accepts(written(style, value, rng.choice(["", "\n"]))) == expected, (schema, value, style)
