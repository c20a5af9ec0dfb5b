"""Schemas that choose between many kinds of objects: their decisions grow linearly, and stay exact."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import pytest

import constrain
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.formulas import object_questions
from constrain.json_schema.formulas.formulas import Decisions
from constrain.json_schema.formulas.remembered import members
from tests.support import byte_vocabulary, for_each

Schema = dict[str, Any]


def kind(number: int) -> Schema:
    """The objects of one kind, which the key ``kind`` names; the key may be absent."""
    return {"properties": {"kind": {"const": f"k{number}"}}}


def options(number: int) -> Schema:
    own = f"own{number}"
    return {
        "type": "object",
        "properties": {own: {"type": "integer"}},
        "required": [own],
        "additionalProperties": False,
    }


def conditions(number: int, *required: str) -> Schema:
    """One condition for each kind, as in many schemas of files of settings."""
    return {
        "type": "object",
        "properties": {"name": {"type": "string"}, "kind": {"enum": [f"k{each}" for each in range(number)]}},
        "allOf": [
            {"if": {**kind(each), "required": [*required]}, "then": {"properties": {"options": options(each)}}}
            for each in range(number)
        ],
    }


def exclusive(number: int, *, inside: bool = False) -> Schema:
    """Kinds that also allow whatever is no object; with ``inside``, the key that tells them apart is required above."""
    kinds = [
        {"properties": {**kind(each)["properties"], "options": options(each)}, "required": [] if inside else ["kind"]}
        for each in range(number)
    ]
    return {"type": "object", "required": ["kind"], "allOf": [{"oneOf": kinds}]} if inside else {"oneOf": kinds}


def unevaluated(number: int) -> Schema:
    """Conditions below ``dependentSchemas`` that decide which keys are evaluated, as for parameters in OpenAPI 3.1."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"kind": {"enum": [f"k{each}" for each in range(number)]}, "name": True},
        "required": ["kind"],
        "if": {**kind(0), "required": ["kind"]},
        "then": {"properties": {"empty": {"type": "boolean"}}},
        "dependentSchemas": {
            "name": {
                "allOf": [
                    {
                        "if": {**kind(each), "required": ["kind"]},
                        "then": {"properties": {f"own{each}": {"type": "integer"}, "options": {"enum": [each, "all"]}}},
                    }
                    for each in range(number)
                ]
            }
        },
        "unevaluatedProperties": False,
    }


FAMILIES: dict[str, Callable[[int], Schema]] = {
    "a condition for each kind": conditions,
    "a condition for each kind, with its key": lambda number: conditions(number, "kind"),
    "oneOf without a type": exclusive,
    "oneOf whose key is required above": lambda number: exclusive(number, inside=True),
}


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Callable[[Schema, str], int]:
    made: list[Decisions] = []

    class Recorded(Decisions):
        def __init__(self, *limit: int) -> None:
            super().__init__(*limit)
            made.append(self)

    for module in (object_questions, members):
        monkeypatch.setattr(module, "Decisions", Recorded)

    def most(schema: Schema, order: str) -> int:
        made.clear()
        compile_schema(schema, property_order=order)
        return max((len(each._nodes) for each in made), default=2)

    return most


@pytest.mark.parametrize("family", FAMILIES)
def test_decisions_grow_linearly_with_the_kinds(family: str, nodes: Callable[[Schema, str], int]) -> None:
    small, large = (nodes(FAMILIES[family](number), "schema") for number in (10, 20))
    assert large <= 2.2 * small
    assert large <= 20 * 20


@pytest.mark.parametrize("order", ["schema", "any"])
def test_conditions_on_one_key_evaluate_as_many_sets_of_keys_as_there_are_conditions(order: str) -> None:
    assert compile_schema(unevaluated(16), property_order=order).steps < 30_000


@for_each("family", FAMILIES)
def test_many_kinds_are_no_more_than_the_limits_allow_in_any_order(family: str) -> None:
    assert compile_schema(FAMILIES[family](14), property_order="any").steps < 80_000


SMALL = {name: build(3) for name, build in FAMILIES.items()} | {"unevaluated": unevaluated(3)}
VALUES = {
    "name": ("x", 1),
    "kind": ("k0", "k2", "other"),
    "empty": (True, 1),
    "options": ({"own0": 1}, {"own2": 1}, {"own2": "x"}, {}, 0, "all"),
    "own0": (5,),
    "own2": (5, "x"),
}


def objects() -> Iterator[dict[str, Any]]:
    for values in itertools.product(*((None, *values) for values in VALUES.values())):
        given: dict[str, Any] = {key: value for key, value in zip(VALUES, values, strict=True) if value is not None}
        if len(given) <= 4:
            yield given


@for_each("name", SMALL)
def test_the_same_objects_as_another_validator(name: str) -> None:
    schema = SMALL[name]
    validator = jsonschema_rs.validator_for(schema)
    constraint = constrain.compile(schema, byte_vocabulary(), property_order="any")
    verdicts = set()
    others: list[Any] = [1, "x", [], None]
    for given in (*objects(), *others):
        valid = validator.is_valid(given)
        verdicts.add(valid)
        assert constraint.accepts(json.dumps(given)) == valid, given
    assert verdicts == {True, False}


def test_a_compilation_notes_negated_integers_whatever_was_compiled_before() -> None:
    """Draft 4: 2.0 is no integer, so an object in which ``a`` must be one is written with 2 alone."""
    integer = {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    text = {"properties": {"b": {"type": "string"}}, "required": ["b"]}
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "allOf": [{"enum": [{"a": 2}]}, {"not": {"not": {"anyOf": [integer, text]}}}],
    }
    for order in ("schema", "any"):
        constraint = constrain.compile(schema, byte_vocabulary(), property_order=order, numbers="any", cache=False)
        assert [constraint.accepts(each) for each in ('{"a":2}', '{"a":2.0}')] == [True, False]
