"""Conditions on many keys in any order: exact, without dead ends, and no larger than they have to be."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

import constrain
from constrain.json_schema.formulas import objects as object_formulas
from constrain.json_schema.formulas.remembered import members as remembered_members
from tests.support import LONG
from tests.support.oracles.schemas.conditions import Conditions
from tests.support.processor_time import finishes_within

BYTES = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
NUMBERS = (17, 40)
MOST_EDGES = 400
"""For each key: what is linear takes some dozens, the numbers of members compared with another one a few hundred."""


def names(number: int) -> list[str]:
    return [f"k{index}" for index in range(number)]


def requires(*keys: str) -> dict[str, Any]:
    return {"required": list(keys)}


def pairs(number: int) -> list[tuple[str, str]]:
    return list(zip(names(number), names(number)[1:], strict=False))


def odd(number: int) -> dict[str, Any]:
    """An odd number of keys; such deep nesting takes the more nodes, the deeper it is."""
    schema = requires("k0")
    for key in names(min(number, 20))[1:]:
        schema = {"oneOf": [schema, requires(key)]}
    return schema


def chain(number: int, **beside: Any) -> dict[str, Any]:
    return {"dependentRequired": {one: [two] for one, two in pairs(number)}, **beside}


FAMILIES: dict[str, Callable[[int], dict[str, Any]]] = {
    "chain": chain,
    "chain backwards": lambda n: {"dependentRequired": {two: [one] for one, two in pairs(n)}},
    "all or none": lambda n: {"dependentRequired": {key: names(n) for key in names(n)}},
    "one asks for all": lambda n: {"dependentRequired": {"k0": names(n)}},
    "random": lambda n: {"dependentRequired": {key: Random(key).sample(names(n), 2) for key in names(n)}},
    "not all": lambda n: {"not": requires(*names(n))},
    "one of each pair": lambda n: {"allOf": [{"not": requires(*pair)} for pair in pairs(n)]},
    "at most one": lambda n: {
        "dependentSchemas": {key: {"not": {"anyOf": [requires(k) for k in names(n) if k != key]}} for key in names(n)}
    },
    "if": lambda n: {
        "allOf": [
            {"if": requires(one), "then": requires(two), "else": {"not": requires(f"k{n}")}} for one, two in pairs(n)
        ]
    },
    "odd": odd,
    "values": lambda n: {
        "allOf": [
            {"if": {"properties": {one: {"const": 1}}, "required": [one]}, "then": requires(two)}
            for one, two in pairs(n)
        ]
    },
    "schemas": lambda n: {
        "dependentSchemas": {one: {"properties": {two: {"minimum": 2}}, "required": [two]} for one, two in pairs(n)}
    },
    "at least": lambda n: chain(n, minProperties=3),
    "at most": lambda n: chain(n, maxProperties=n // 2),
    "closed, at most": lambda n: chain(
        n, maxProperties=n // 2, properties=dict.fromkeys(names(n), True), additionalProperties=False
    ),
}


@pytest.fixture(autouse=True)
def _without_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made here is what is tested, and not what there was before."""

    def fail(*_: object) -> None:
        raise AssertionError("not tested against memory")

    monkeypatch.setattr(object_formulas, "_in_any_order", fail)


def spelled(rng: Random, instance: dict[str, int]) -> str:
    keys = list(instance)
    rng.shuffle(keys)
    return json.dumps({key: instance[key] for key in keys})


@pytest.mark.slow(but=("closed, at most-17", "one asks for all-17", "chain-17"))
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_many_keys_in_any_order(family: str, number: int) -> None:
    schema = {"type": "object", **FAMILIES[family](number)}
    with finishes_within(3):
        constraint = constrain.compile(schema, BYTES, property_order="any")
    assert sum(len(rule.edges) for rule in constraint.grammar.rules) < MOST_EDGES * number
    validator = jsonschema.Draft202012Validator(schema)
    rng = Random(family)
    outcomes = set()
    for _ in range(80):
        first, count = rng.randrange(number), rng.choice((0, 1, 2, 3, number // 3, number))
        keys = rng.choice((rng.sample(names(number), count), names(number)[first:], names(number)[:first]))
        instance = {key: rng.randint(0, 3) for key in keys}
        valid = validator.is_valid(instance)
        outcomes.add(valid)
        assert constraint.accepts(spelled(rng, instance)) == valid, instance
    assert outcomes == {True, False}
    for _ in range(5):
        walk(constraint, validator, rng)


def walk(constraint: constrain.Constraint, validator: jsonschema.Draft202012Validator, rng: Random) -> None:
    """Allowed bytes, mostly of members; then the shortest way to the end."""
    matcher, row, text = constraint.matcher(), constraint.allocate_bitmask()[0], b""
    while len(text) < 200:
        matcher.fill_bitmask(row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        assert allowed, text
        byte = rng.choice([each for each in allowed if chr(each) in '{"k0123456789:,'] or allowed)
        if byte == 256:  # the end
            break
        assert matcher.accept(byte)
        text += bytes([byte])
    text += matcher.shortest_completion()
    assert validator.is_valid(json.loads(text)), text


def test_keys_without_values_are_not_waited_for() -> None:
    endless = {"type": "object", "properties": {"a": {"$ref": "#/$defs/endless"}}, "required": ["a"]}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/endless"}, "b": {"enum": [1, 2]}, "c": {"const": 3}},
        "additionalProperties": False,
        "oneOf": [requires("a"), requires("b"), requires("c")],
        "$defs": {"endless": endless},
    }
    constraint = constrain.compile(schema, BYTES, whitespace="compact", property_order="any")
    assert constraint.accepts('{"b":1}')
    assert constraint.accepts('{"c":3}')
    matcher = constraint.matcher()
    assert matcher.accept_many(list(b'{"a')) == len('{"')
    matcher = constraint.matcher()
    assert matcher.accept_many(list(b'{"b":1,')) == len('{"b":1')
    with pytest.raises(constrain.UnsatisfiableSchemaError):
        constrain.compile({**schema, "required": ["a"]}, BYTES, property_order="any")


def test_keys_that_run_out() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [0, 1]}},
        "patternProperties": {"^[xy]$": {"enum": [0, 1]}},
        "additionalProperties": False,
        "anyOf": [{"minProperties": 3}, {"patternProperties": {"^[xy]$": {"const": 1}}, "minProperties": 2}],
    }
    constraint = constrain.compile(schema, BYTES, whitespace="compact", property_order="any")
    assert constraint.accepts('{"y":1,"x":1}')
    assert not constraint.accepts('{"y":1,"x":0}')
    matcher = constraint.matcher()
    assert matcher.accept_many(list(b'{"x":0,"y":1,"')) == len(b'{"x":0,"y":1,"')
    assert matcher.shortest_completion() == b'a":0}'
    assert matcher.accept_many(list(b'a":0,')) == len(b'a":0')


def test_values_of_objects_are_counted() -> None:
    switch = {"enum": [0, 1]}
    item = {
        "type": "object",
        "properties": {"a": switch, "b": switch},
        "additionalProperties": False,
        "dependentRequired": {"a": ["b"]},
    }
    schema = {"type": "array", "uniqueItems": True, "items": item}
    values = 1 + 2 + 4  # {}, b, a and b
    constraint = constrain.compile({**schema, "minItems": values}, BYTES, property_order="any")
    found = json.loads(constraint.matcher().shortest_completion())
    assert len(found) == len({json.dumps(value, sort_keys=True) for value in found}) == values
    with pytest.raises(constrain.UnsatisfiableSchemaError):
        constrain.compile({**schema, "minItems": values + 1}, BYTES, property_order="any")


@pytest.mark.slow
def test_conditions_on_endlessly_many_keys() -> None:
    """Those on keys that no schema names, too; not all texts can be listed, so all objects of some keys are tried."""
    for seed in range(500 if LONG else 30):
        rng = Random(f"endless {seed}")
        conditions = Conditions(rng, ["a", "b"], undeclared=True, sizes=rng.random() < 0.6)
        schema = {
            "type": "object",
            "properties": {"a": {"enum": [0, 1]}, "b": True},
            "additionalProperties": rng.choice((True, {"enum": [0, 1]}, {"minimum": 0})),
            "allOf": [conditions.schema(rng.randint(1, 3))],
        }
        validator = jsonschema.Draft202012Validator(schema)
        instances = [
            dict(zip(keys, values, strict=True))
            for number in range(5)
            for keys in itertools.combinations(("a", "b", "x", "z", "v"), number)
            for values in itertools.product((0, 1), repeat=number)
        ]
        try:
            constraint = constrain.compile(schema, BYTES, property_order="any")
        except constrain.UnsatisfiableSchemaError:
            assert not any(map(validator.is_valid, instances)), schema
            continue
        for instance in instances:
            valid = validator.is_valid(instance)
            assert constraint.accepts(spelled(rng, instance)) == valid, (instance, schema)
        for _ in range(3):
            walk(constraint, validator, rng)


def test_large_numbers_of_members_are_counted_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "object", "not": {"maxProperties": 300, "additionalProperties": {"type": "string"}}}
    monkeypatch.undo()
    constraint = constrain.compile(schema, BYTES, property_order="any")
    assert constraint.accepts('{"a": 1}')
    assert not constraint.accepts('{"a": ""}')
    assert remembered_members.LEVELS < 300
