"""Objects closed for generation: random schemas against judges that close them by ``unevaluatedProperties: false``.

Every object of a random schema declares some key, and so does every schema in it that says something about objects.
"""

from __future__ import annotations

import json
from itertools import combinations, permutations, product
from random import Random
from typing import Any, NamedTuple

import jsonschema
import pytest

import constrain
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.formulas.alternatives import MAX_TOGETHER
from tests.support import LONG, byte_vocabulary, each_row

SCHEMAS = 1_200 if LONG else 40
KEYS = ["a", "b", "c"]
LEAVES: list[Any] = [{}, {"type": "integer"}, {"type": "string"}, {"const": 0}]
Schema = dict[str, Any]


def constraint(schema: Schema, **options: Any) -> constrain.Constraint:
    return constrain.compile(compile_schema(schema, whitespace="compact", **options).grammar, byte_vocabulary())


def objects(keys: list[str], values: list[Any]) -> list[dict[str, Any]]:
    """All objects of these keys and values."""
    chosen = (names for number in range(len(keys) + 1) for names in combinations(keys, number))
    return [dict(zip(names, mix, strict=True)) for names in chosen for mix in product(values, repeat=len(names))]


def accepts(grammar: constrain.Constraint, value: dict[str, Any], property_order: str) -> bool:
    """Whether some order of the keys is accepted."""
    orders = (dict(members) for members in permutations(value.items())) if property_order == "schema" else (value,)
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


def mixed(rng: Random, depth: int) -> Schema:
    """A schema with most ways to apply others to the same object."""
    if depth == 0:
        return plain(rng)
    schema = plain(rng) if rng.random() < 0.5 else {}
    inner = lambda: mixed(rng, depth - 1)  # noqa: E731
    for _ in range(rng.choice([1, 1, 2])):
        keyword = rng.choice(["anyOf", "anyOf", "anyOf", "allOf", "not not", "if", "dependentSchemas", "not"])
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


def alternatives(schema: Schema) -> list[list[Schema]]:
    """The schemas that each alternative consists of; what stands under other keywords makes none."""
    own = {key: part for key, part in schema.items() if key not in ("anyOf", "allOf")}
    found = [[own]]
    for branch in schema.get("allOf", []):
        found = [[*one, *two] for one in found for two in alternatives(branch)]
    if "anyOf" in schema:
        others = [parts for branch in schema["anyOf"] for parts in alternatives(branch)]
        found = [[*one, *two] for one in found for two in others]
    return found


def closed(schema: Schema, pool: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects of the pool that generation allows where alternatives that do not overlap are known as such.

    Those that overlap are one object, closed by ``unevaluatedProperties: false`` unless nothing would be left.
    """
    groups: list[tuple[list[Schema], set[int]]] = []
    for parts in alternatives(schema):
        validator = jsonschema.Draft202012Validator({"allOf": parts})
        members, valid = [{"allOf": parts}], {index for index, value in enumerate(pool) if validator.is_valid(value)}
        if valid:
            overlapping = [group for group in groups if group[1] & valid]
            groups = [group for group in groups if not group[1] & valid]
            for others, values in overlapping:
                members, valid = others + members, values | valid
            groups.append((members, valid))
    left: set[int] = set()
    for members, valid in groups:
        judge = jsonschema.Draft202012Validator({"anyOf": members, "unevaluatedProperties": False})
        left |= {index for index in valid if judge.is_valid(pool[index])} or valid
    return [pool[index] for index in sorted(left)]


@pytest.mark.slow
@pytest.mark.parametrize("property_order", ["schema", "any"])
def test_the_keys_that_holding_branches_declare_are_allowed(property_order: str) -> None:
    pool = objects(KEYS, [0, 1, "s", None])
    narrowed = allowed = unknown = 0
    for seed in range(SCHEMAS):
        rng = Random(seed)
        schema = {"type": "object", **plain(rng), **mixed(rng, rng.choice([1, 2, 2]))}
        expected = closed(schema, pool)
        if not expected:
            continue
        grammar = constraint(schema, property_order=property_order, close_objects=True)
        found = [value for value in pool if accepts(grammar, value, property_order)]
        if found != expected:  # alternatives that only ``not`` tells apart may count as one object
            judge = jsonschema.Draft202012Validator({"allOf": [schema], "unevaluatedProperties": False})
            together = [value for value in pool if judge.is_valid(value)]
            assert together == found, f"seed {seed}: {json.dumps(schema)}"
            unknown += 1
        narrowed += sum(map(jsonschema.Draft202012Validator(schema).is_valid, pool)) - len(expected)
        allowed += len(expected)
    assert allowed > 2 * SCHEMAS
    assert narrowed > SCHEMAS
    assert unknown <= SCHEMAS // 50


def nested(rng: Random, depth: int) -> Schema:
    """A schema whose key ``x`` has an object, which declares keys, too, or any value."""
    if depth == 0 or rng.random() < 0.3:
        inner: Schema = {
            "properties": {key: rng.choice(LEAVES[:3]) for key in rng.sample(["p", "q"], rng.randint(1, 2))}
        }
        if rng.random() < 0.3:
            inner["required"] = [next(iter(inner["properties"]))]
        members = {"x": {"type": "object", **inner}, "b": rng.choice(LEAVES), "c": rng.choice(LEAVES)}
        if rng.random() < 0.15:
            members["x"] = {}
        schema: Schema = {
            "properties": {key: members[key] for key in sorted(rng.sample(sorted(members), 2), reverse=True)}
        }
        if rng.random() < 0.4:
            schema["required"] = [rng.choice(list(schema["properties"]))]
        return schema
    return {rng.choice(["anyOf", "anyOf", "allOf"]): [nested(rng, depth - 1) for _ in range(rng.randint(2, 3))]}


class Keys(NamedTuple):
    """The keys that an alternative declares, and those in its member x; ``None`` if it leaves that open."""

    outer: set[str]
    inner: set[str] | None


def holding(schema: Schema, value: Any) -> list[Keys]:
    """The alternatives that hold for the value."""
    found: list[Keys] = []
    for parts in alternatives(schema):
        if jsonschema.Draft202012Validator({"allOf": parts}).is_valid(value):
            declared = [part["properties"] for part in parts if "properties" in part]
            inner = [keys["x"]["properties"].keys() for keys in declared if "properties" in keys.get("x", {})]
            found.append(Keys(set().union(*declared), set().union(*inner) if inner else None))
    return found


def allowed_together(schema: Schema, value: dict[str, Any]) -> bool:
    """Whether some of the alternatives that hold declare together all keys that the value has."""
    every = holding(schema, value)
    opening = [each for each in every if each.inner is None]
    x = value.get("x")
    within = x.keys() if isinstance(x, dict) else set()
    return any(
        set().union(*(each.outer for each in some)) >= value.keys()
        and (some is opening or set().union(*(each.inner or () for each in some)) >= within)
        for some in (every, opening)
        if some
    )


@pytest.mark.slow
def test_objects_within_alternatives_have_the_keys_of_all_that_hold() -> None:
    inner = objects(["p", "q"], [0, "s"])
    pool = [
        {**({} if x is None else {"x": x}), **rest} for x in (None, *inner) for rest in objects(["b", "c"], [0, "s"])
    ]
    allowed = 0
    for seed in range(SCHEMAS // 2):
        schema = {"type": "object", **nested(Random(seed), 2)}
        expected = [value for value in pool if allowed_together(schema, value)]
        if not expected:
            continue
        compiled = compile_schema(schema, whitespace="compact", property_order="any", close_objects=True)
        if compiled.warnings:
            continue  # too many alternatives together: see below
        grammar = constrain.compile(compiled.grammar, byte_vocabulary())
        found = [value for value in pool if grammar.accepts(json.dumps(value, separators=(",", ":")).encode())]
        assert found == expected, f"seed {seed}: {json.dumps(schema)}"
        allowed += len(expected)
    assert allowed > 4 * SCHEMAS


def with_x(*keys: str, **others: Any) -> Schema:
    return {"properties": {"x": {"properties": {key: {} for key in keys}}, **others}}


@each_row(
    "branches",
    [with_x("p", b={}), with_x("q", b={"type": "string"}), {"properties": {"c": {}, "b": {"type": "string"}}}],
    [{"properties": {"x": {}, "b": {}}}, with_x("p"), with_x("q", c={})],
    ids=["each declares some", "one declares none"],
)
def test_an_object_within_has_the_keys_of_three_alternatives(branches: list[Schema]) -> None:
    for order in permutations(branches):
        grammar = constraint({"type": "object", "anyOf": list(order)}, property_order="any", close_objects=True)
        assert grammar.accepts(b'{"x":{"p":0,"q":0},"b":"s","c":0}')
        assert not grammar.accepts(b'{"x":{"p":0,"q":0,"r":0},"b":"s","c":0}')


def test_each_alternative_keeps_its_own_order_of_keys() -> None:
    schema = {
        "anyOf": [{"properties": {"b": {}, "a": {}}}, {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["c"]}]
    }
    grammar = constraint({"type": "object", **schema}, close_objects=True)
    assert grammar.accepts(b'{"b":1,"a":1}')
    assert grammar.accepts(b'{"a":1,"b":1,"c":1}')


def test_an_alternative_with_a_condition_has_the_keys_of_another_that_holds() -> None:
    condition = {"properties": {"a": {}, "c": {}}, "not": {"required": ["a", "c"]}}
    schema = {"type": "object", "anyOf": [condition, {"properties": {"b": {}}, "required": ["b"]}]}
    grammar = constraint(schema, property_order="any", close_objects=True)
    texts = ['{"a":1,"b":1}', '{"c":1,"b":1}', '{"a":1,"b":1,"c":1}']
    assert [grammar.accepts(text) for text in texts] == [True, True, False]


def test_alternatives_told_apart_by_an_optional_key_do_not_multiply() -> None:
    branches = [
        {"properties": {"kind": {"const": str(number)}, f"k{number}": {}}} for number in range(MAX_TOGETHER - 2)
    ]
    compiled = compile_schema({"type": "object", "anyOf": branches}, whitespace="compact", close_objects=True)
    assert not compiled.warnings
    grammar = constrain.compile(compiled.grammar, byte_vocabulary())
    assert grammar.accepts(b'{"kind":"1","k1":0}')
    assert grammar.accepts(b'{"k0":0,"k1":0,"k7":0}')
    assert not grammar.accepts(b'{"kind":"1","k1":0,"k2":0}')


def test_alternatives_that_are_too_many_together_are_closed_one_by_one_and_reported() -> None:
    branches = [{"properties": {f"k{number}": {}}, "required": [f"k{number}"]} for number in range(6)]
    compiled = compile_schema({"type": "object", "anyOf": branches}, whitespace="compact", close_objects=True)
    assert [f"MAX_TOGETHER = {MAX_TOGETHER}" in warning for warning in compiled.warnings] == [True]
    grammar = constrain.compile(compiled.grammar, byte_vocabulary())
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
    grammar = constraint(schema, close_objects=True, property_order=property_order)
    assert grammar.accepts(b'{"x":0}')
    assert grammar.accepts(b'{"b":{"x":0},"x":1}')
    assert not grammar.accepts(b'{"b":{}}')


def test_a_value_that_can_end_in_what_it_declares_is_closed() -> None:
    schema = {"properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["value"]}
    grammar = constraint(schema, close_objects=True)
    assert grammar.accepts(b'{"value":1,"next":{"value":2}}')
    assert not grammar.accepts(b'{"value":1,"next":{"value":2,"other":0}}')
