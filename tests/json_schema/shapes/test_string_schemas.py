"""Schemas for strings (pattern, lengths, format, not, enum at once) against all short strings, through the kernel."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest
import regress

import constrain
from constrain import LimitError, UnsatisfiableSchemaError

STRINGS = ["".join(text) for length in range(5) for text in product("a1-.", repeat=length)]
PATTERNS = ["a", "^a", "1$", "^(?!-)", "^[^.]*$", r"\ba\b", "(?<!-)1", "^(?:(?!a1).)*$", r"\.|^$", "^.{2}$"]
HOSTNAMES = regress.Regex(r"^(?=.)[a1](?:[a1-]*[a1])?(?:\.[a1](?:[a1-]*[a1])?)*$", "u")
VOCABULARY = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


def random_schema(rng: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    if rng.random() < 0.6:
        schema["pattern"] = rng.choice(PATTERNS)
    if rng.random() < 0.3:
        schema["minLength"] = rng.randrange(4)
    if rng.random() < 0.3:
        schema["maxLength"] = rng.randrange(1, 4)
    if rng.random() < 0.15:
        schema["format"] = rng.choice(["hostname", "ipv4", "date"])
    if rng.random() < 0.15:
        schema["enum"] = rng.sample(STRINGS[:85], 5)
    if depth and rng.random() < 0.6:
        schema["not"] = {"type": "string", **random_schema(rng, depth - 1)}
    if depth and rng.random() < 0.3:
        schema[rng.choice(["anyOf", "oneOf", "allOf"])] = [random_schema(rng, depth - 1) for _ in range(2)]
    return schema


def holds(schema: dict[str, Any], text: str) -> bool:
    """What the keywords mean, of a string."""
    branches = [[holds(branch, text) for branch in schema.get(word, ())] for word in ("anyOf", "oneOf", "allOf")]
    return (
        ("pattern" not in schema or regress.Regex(schema["pattern"], "u").find(text) is not None)
        and schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 99)
        and text in schema.get("enum", (text,))
        and ("not" not in schema or not holds(schema["not"], text))
        and ("anyOf" not in schema or any(branches[0]))
        and ("oneOf" not in schema or sum(branches[1]) == 1)
        and all(branches[2])
        and ("format" not in schema or (schema["format"] == "hostname" and HOSTNAMES.find(text) is not None))
    )


@pytest.mark.parametrize("block", range(8))
def test_all_short_strings_are_judged_as_the_keywords_say(block: int) -> None:
    rng = random.Random(block)
    compiled = 0
    while compiled < 6:
        schema = {"type": "string", **random_schema(rng, 2)}
        expected = {text for text in STRINGS if holds(schema, text)}
        try:
            constraint = constrain.compile(schema, VOCABULARY, whitespace="compact")
        except UnsatisfiableSchemaError:
            assert expected == set(), schema
            continue
        except LimitError:
            continue
        found = {text for text in STRINGS if constraint.accepts(json.dumps(text))}
        assert found == expected, schema
        compiled += 1
