"""Random schemas against an independent validator: a value's text is in the grammar if and only if the value is valid.

Values come from a small pool, so that constants, bounds and required keys are met by chance; keys may stand in any
order, so that the order policy plays no part.
"""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from constrain.errors import LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from tests.support import LONG
from tests.support.json_schema.grammar_interpreter import Interpreter

SCHEMAS = 6_000 if LONG else 600
KEYS = ["a", "b", "c", "aa"]
PATTERNS = ["^a", "b", "^[ab]$", "c$", "^.{2}$"]
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, -1, 1.5, 0.5, "", "a", "b", "ab", "aab", "ccc"]


def random_value(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if depth == 0 or kind < 0.5:
        return rng.choice(SCALARS)
    if kind < 0.7:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {key: random_value(rng, depth - 1) for key in rng.sample(KEYS, rng.randrange(4))}


def random_schema(rng: random.Random, depth: int) -> Any:
    if rng.random() < 0.08:
        return rng.random() < 0.6
    schema: dict[str, Any] = {}
    for _ in range(rng.randrange(1, 4)):
        schema.update(random_keyword(rng, depth))
    return schema


def random_keyword(rng: random.Random, depth: int) -> dict[str, Any]:
    types = ["null", "boolean", "integer", "number", "string", "array", "object"]
    leaves = [
        lambda: {"type": rng.choice(types)},
        lambda: {"type": rng.sample(types, 3)},
        lambda: {"type": "object"},
        lambda: {"enum": [random_value(rng, 1) for _ in range(rng.randrange(1, 5))]},
        lambda: {"const": random_value(rng, 2)},
        lambda: {"minimum": rng.choice([0, 1, 1.5]), "maximum": rng.choice([1, 2, 3])},
        lambda: {"exclusiveMinimum": rng.choice([0, 0.5, 1])},
        lambda: {"multipleOf": rng.choice([0.5, 1, 1.5, 2])},
        lambda: {"minLength": rng.randrange(3), "maxLength": rng.randrange(1, 4)},
        lambda: {"pattern": rng.choice(PATTERNS)},
        lambda: {"minItems": rng.randrange(3)},
        lambda: {"maxItems": rng.randrange(4)},
        lambda: {"required": rng.sample(KEYS, rng.randrange(3))},
        lambda: {"minProperties": rng.randrange(3)},
        lambda: {"maxProperties": rng.randrange(4)},
    ]
    if depth == 0:
        return rng.choice(leaves)()

    def inner() -> Any:
        return random_schema(rng, depth - 1)

    branches = [
        lambda: {"properties": {key: inner() for key in rng.sample(KEYS, rng.randrange(1, 4))}},
        lambda: {"additionalProperties": inner()},
        lambda: {"patternProperties": {rng.choice(PATTERNS): inner()}},
        lambda: {"items": inner()},
        lambda: {"prefixItems": [inner() for _ in range(rng.randrange(1, 3))]},
        lambda: {"anyOf": [inner() for _ in range(rng.randrange(1, 4))]},
        lambda: {"oneOf": [inner() for _ in range(rng.randrange(1, 3))]},
        lambda: {"allOf": [inner() for _ in range(rng.randrange(1, 3))]},
        lambda: {"$ref": "#/$defs/d"},
    ]
    return rng.choice(leaves if rng.random() < 0.4 else branches)()


def random_document(rng: random.Random) -> dict[str, Any]:
    """A schema that may refer to one that contains itself."""
    recursive = {"properties": {"a": {"$ref": "#/$defs/d"}}, "items": {"$ref": "#/$defs/d"}}
    return {"$defs": {"d": {**recursive, **random_keyword(rng, 0)}}, "allOf": [random_schema(rng, 3)]}


@pytest.mark.slow
@pytest.mark.parametrize("whitespace", ["flexible", "any"])
def test_grammar_agrees_with_validator(whitespace: str) -> None:
    compiled = accepted_in_all = empty = 0
    for seed in range(SCHEMAS):
        rng = random.Random(f"{whitespace} {seed}")
        schema = random_document(rng)
        validator = jsonschema.Draft202012Validator(schema)
        values = [random_value(rng, 3) for _ in range(40)]
        try:
            interpreter = Interpreter(compile_schema(schema, whitespace=whitespace, property_order="any").grammar)
        except (UnsupportedSchemaError, LimitError):
            continue
        except UnsatisfiableSchemaError:
            empty += 1
            assert not any(map(validator.is_valid, values)), f"seed {seed}: {json.dumps(schema)}"
            continue
        compiled += 1
        for value in values:
            accepted = interpreter.accepts(json.dumps(value).encode())
            accepted_in_all += accepted
            message = f"seed {seed}: {json.dumps(value)} against {json.dumps(schema)}"
            assert accepted == validator.is_valid(value), message
    assert compiled > 0.5 * SCHEMAS
    assert accepted_in_all > compiled
    assert empty > 0
