"""Objects closed for generation: random schemas against judges that close them by ``unevaluatedProperties: false``.

Every object of a random schema declares some key, and so does every schema in it that says something about objects.
"""

from __future__ import annotations

import json
from itertools import combinations, permutations, product
from random import Random
from typing import Any

import jsonschema
import pytest

from constrain.json_schema import compile_schema
from constrain.json_schema.alternatives import MAX_TOGETHER
from tests.json_schema.grammar_interpreter import Interpreter
from tests.support import LONG

SCHEMAS = 3_000 if LONG else 80
KEYS = ["a", "b", "c"]
LEAVES: list[Any] = [{}, {"type": "integer"}, {"type": "string"}, {"const": 0}]
Schema = dict[str, Any]


def interpreter(schema: Schema, **options: Any) -> Interpreter:
    return Interpreter(compile_schema(schema, whitespace="compact", **options).grammar)


def objects(keys: list[str], values: list[Any]) -> list[dict[str, Any]]:
    """All objects of these keys and values."""
    chosen = (names for number in range(len(keys) + 1) for names in combinations(keys, number))
    return [dict(zip(names, mix, strict=True)) for names in chosen for mix in product(values, repeat=len(names))]


def accepts(grammar: Interpreter, value: dict[str, Any]) -> bool:
    """Whether some order of the keys is accepted."""
    orders = (dict(members) for members in permutations(value.items()))
    return any(grammar.accepts(json.dumps(each, separators=(",", ":")).encode()) for each in orders)


def plain(rng: Random) -> Schema:
    keys = rng.sample(KEYS, rng.randint(1, 2))
    schema: Schema = {"properties": {key: rng.choice(LEAVES) for key in keys}}
    if rng.random() < 0.4:
        schema["required"] = [rng.choice(keys)]
    if rng.random() < 0.15:
        schema["additionalProperties"] = rng.choice([True, False, {"type": "integer"}])
    if rng.random() < 0.15:
        schema["patternProperties"] = {rng.choice(["^a", "[bc]"]): rng.choice(LEAVES)}
    return schema


def mixed(rng: Random, depth: int, *, alternative: bool = False) -> Schema:
    """A schema with most ways to apply others to the same object.

    Not with those that tell alternatives apart without declaring a key: alternatives that do not overlap are objects of
    their own, which stay open if nothing is left of them.
    """
    if depth == 0:
        return plain(rng)
    schema = plain(rng) if rng.random() < 0.5 else {}
    inner = lambda: mixed(rng, depth - 1, alternative=True)  # noqa: E731
    for _ in range(rng.choice([1, 1, 2])):
        keyword = rng.choice(["anyOf", "anyOf", "anyOf", "allOf", "not not", "if", "dependentSchemas", "not"])
        if keyword == "not" and alternative:
            keyword = "anyOf"
        if keyword in ("anyOf", "allOf"):
            schema[keyword] = [inner() for _ in range(rng.randint(2, 3))]
        elif keyword == "not not":
            schema["not"] = {"not": inner()}
        elif keyword == "dependentSchemas":
            schema[keyword] = {rng.choice(KEYS): inner()}
        else:
            schema[keyword] = inner()
            for other in rng.sample(["then", "else"], rng.randrange(3)) if keyword == "if" else ():
                schema[other] = inner()
    return schema


@pytest.mark.parametrize("property_order", ["schema", "any"])
def test_the_keys_that_holding_branches_declare_are_allowed(property_order: str) -> None:
    pool = objects(KEYS, [0, "s"])
    narrowed = allowed = 0
    for seed in range(SCHEMAS):
        rng = Random(seed)
        schema = {"type": "object", **plain(rng), **mixed(rng, rng.choice([1, 2, 2]))}
        judge = jsonschema.Draft202012Validator({"allOf": [schema], "unevaluatedProperties": False})
        expected = [value for value in pool if judge.is_valid(value)]
        if not expected:
            continue  # where nothing would be left, objects stay open
        grammar = interpreter(schema, property_order=property_order, close_objects=True)
        found = [value for value in pool if accepts(grammar, value)]
        assert found == expected, f"seed {seed}: {json.dumps(schema)}"
        narrowed += sum(map(jsonschema.Draft202012Validator(schema).is_valid, pool)) - len(expected)
        allowed += len(expected)
    assert allowed > 2 * SCHEMAS
    assert narrowed > SCHEMAS


def nested(rng: Random, depth: int) -> Schema:
    """A schema whose key ``x`` always has an object, which declares keys, too."""
    if depth == 0 or rng.random() < 0.3:
        inner: Schema = {
            "properties": {key: rng.choice(LEAVES[:3]) for key in rng.sample(["p", "q"], rng.randint(1, 2))}
        }
        if rng.random() < 0.3:
            inner["required"] = [next(iter(inner["properties"]))]
        members = {"x": {"type": "object", **inner}, "b": rng.choice(LEAVES), "c": rng.choice(LEAVES)}
        schema: Schema = {
            "properties": {key: members[key] for key in sorted(rng.sample(sorted(members), 2), reverse=True)}
        }
        if rng.random() < 0.4:
            schema["required"] = [rng.choice(list(schema["properties"]))]
        return schema
    return {rng.choice(["anyOf", "anyOf", "allOf"]): [nested(rng, depth - 1) for _ in range(rng.randint(2, 3))]}


def evaluated(schema: Schema, value: Any) -> dict[str, set[str]] | None:
    """The keys that are evaluated in the value ("") and in its member x ("x"); ``None`` if the value is not valid."""
    found: dict[str, set[str]] = {"": set(), "x": set()}
    own = {key: part for key, part in schema.items() if key not in ("anyOf", "allOf")}
    if not jsonschema.Draft202012Validator(own).is_valid(value):
        return None
    found[""] |= value.keys() & schema.get("properties", {}).keys()
    if "x" in found[""]:
        found["x"] |= value["x"].keys() & schema["properties"]["x"]["properties"].keys()
    for keyword in ("anyOf", "allOf"):
        branches = [evaluated(branch, value) for branch in schema.get(keyword, [])]
        holding = [branch for branch in branches if branch is not None]
        if branches and (not holding or (keyword == "allOf" and len(holding) < len(branches))):
            return None
        for branch in holding:
            found = {place: keys | branch[place] for place, keys in found.items()}
    return found


def test_objects_within_alternatives_have_the_keys_of_all_that_hold() -> None:
    inner = objects(["p", "q"], [0, "s"])
    pool = [
        {**({} if x is None else {"x": x}), **rest} for x in (None, *inner) for rest in objects(["b", "c"], [0, "s"])
    ]
    allowed = 0
    for seed in range(SCHEMAS // 2):
        schema = {"type": "object", **nested(Random(seed), 2)}
        expected = [
            value
            for value in pool
            if (keys := evaluated(schema, value))
            and keys[""] >= value.keys()
            and keys["x"] >= value.get("x", {}).keys()
        ]
        if not expected:
            continue
        compiled = compile_schema(schema, whitespace="compact", property_order="any", close_objects=True)
        if compiled.warnings:
            continue  # too many alternatives together: see below
        grammar = Interpreter(compiled.grammar)
        found = [value for value in pool if grammar.accepts(json.dumps(value, separators=(",", ":")).encode())]
        assert found == expected, f"seed {seed}: {json.dumps(schema)}"
        allowed += len(expected)
    assert allowed > 4 * SCHEMAS


def test_each_alternative_keeps_its_own_order_of_keys() -> None:
    schema = {
        "anyOf": [{"properties": {"b": {}, "a": {}}}, {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["c"]}]
    }
    grammar = interpreter({"type": "object", **schema}, close_objects=True)
    assert grammar.accepts(b'{"b":1,"a":1}')
    assert grammar.accepts(b'{"a":1,"b":1,"c":1}')


def test_alternatives_told_apart_by_an_optional_key_do_not_multiply() -> None:
    branches = [
        {"properties": {"kind": {"const": str(number)}, f"k{number}": {}}} for number in range(MAX_TOGETHER - 2)
    ]
    compiled = compile_schema({"type": "object", "anyOf": branches}, whitespace="compact", close_objects=True)
    assert not compiled.warnings
    grammar = Interpreter(compiled.grammar)
    assert grammar.accepts(b'{"kind":"1","k1":0}')
    assert grammar.accepts(b'{"k0":0,"k1":0,"k7":0}')
    assert not grammar.accepts(b'{"kind":"1","k1":0,"k2":0}')


def test_alternatives_that_are_too_many_together_are_closed_one_by_one_and_reported() -> None:
    branches = [{"properties": {f"k{number}": {}}, "required": [f"k{number}"]} for number in range(6)]
    compiled = compile_schema({"type": "object", "anyOf": branches}, whitespace="compact", close_objects=True)
    assert [f"MAX_TOGETHER = {MAX_TOGETHER}" in warning for warning in compiled.warnings] == [True]
    grammar = Interpreter(compiled.grammar)
    assert grammar.accepts(b'{"k5":0}')
    assert not grammar.accepts(b'{"k4":0,"k5":0}')


def test_discriminated_alternatives_cost_no_further_ones() -> None:
    branches = [
        {"properties": {"kind": {"const": number}, f"k{number}": {}}, "required": ["kind"]} for number in range(100)
    ]
    schema = {"type": "object", "anyOf": branches}
    closed, opened = (compile_schema(schema, close_objects=close).grammar for close in (True, False))
    assert len(closed.rules) == len(opened.rules)
    assert sum(len(rule.edges) for rule in closed.rules) < sum(len(rule.edges) for rule in opened.rules)


@pytest.mark.parametrize("property_order", ["schema", "any"])
def test_a_value_that_could_not_end_otherwise_stays_open(property_order: str) -> None:
    schema = {"properties": {"b": {"$ref": "#"}}, "not": {"additionalProperties": False}, "type": "object"}
    grammar = interpreter(schema, close_objects=True, property_order=property_order)
    assert grammar.accepts(b'{"x":0}')
    assert grammar.accepts(b'{"b":{"x":0},"x":1}')
    assert not grammar.accepts(b'{"b":{}}')


def test_a_value_that_can_end_in_what_it_declares_is_closed() -> None:
    schema = {"properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["value"]}
    grammar = interpreter(schema, close_objects=True)
    assert grammar.accepts(b'{"value":1,"next":{"value":2}}')
    assert not grammar.accepts(b'{"value":1,"next":{"value":2,"other":0}}')
