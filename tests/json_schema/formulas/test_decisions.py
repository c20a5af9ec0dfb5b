"""Decisions about keys stay few, and keys that do not depend on each other stay apart."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

import constrain
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.formulas import independent_keys, object_questions
from constrain.json_schema.formulas import objects as object_formulas
from constrain.json_schema.formulas.formulas import Decisions
from constrain.json_schema.formulas.remembered import members
from tests.support import byte_vocabulary, for_each
from tests.support.processor_time import finishes_within

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
    assert compile_schema(unevaluated(16), property_order=order).steps < 50_000


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


VOCABULARY = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


def pairs(number: int) -> dict[str, Any]:
    """Every ``a`` needs its ``b``; all triggers are declared before all targets."""
    keys = [f"a{i}" for i in range(number)] + [f"b{i}" for i in range(number)]
    return {
        "type": "object",
        "properties": {key: {} for key in keys},
        "dependentRequired": {f"a{i}": [f"b{i}"] for i in range(number)},
    }


SCHEMAS: dict[str, dict[str, Any]] = {
    "pairs": pairs(2),
    "closed pairs, one required": {**pairs(2), "required": ["a1"], "additionalProperties": False},
    "schemas": {
        "type": "object",
        "properties": {"a": {}, "c": {}},
        "dependentSchemas": {
            "a": {"required": ["b"], "properties": {"b": {"const": 1}}},
            "c": {"properties": {"d": {"const": 2}}},
        },
        "required": ["z"],
    },
    "exactly one of each": {
        "type": "object",
        "additionalProperties": {"enum": [1, 2]},
        "allOf": [
            {"not": {"required": ["a", "b"]}},
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"if": {"properties": {"c": {"const": 1}}, "required": ["c"]}, "then": {"required": ["d"]}},
        ],
    },
}


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_groups_accept_what_the_schema_allows(
    schema: dict[str, Any], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(independent_keys, "MIN_GROUPS", 1)
    monkeypatch.setattr(object_formulas, "MIN_GROUPS", 1)
    grouped = []
    make = independent_keys.independent_keys
    monkeypatch.setattr(object_formulas, "independent_keys", lambda *args: grouped.append(make(*args)) or grouped[-1])
    constraint = constrain.compile({**schema, "title": "in groups"}, VOCABULARY, property_order=order)
    assert any(each is not None for each in grouped)
    declared = list(schema.get("properties", ()))
    names = dict.fromkeys([*declared, "a", "b", "c", "d", "z"])
    validator = jsonschema.Draft202012Validator(schema)
    for size in range(5):
        for keys in itertools.combinations(names, size):
            for values in itertools.product((1, 2), repeat=size):
                instance = dict(zip(keys, values, strict=True))
                assert constraint.accepts(json.dumps(instance)) == validator.is_valid(instance), instance
                if order == "any":
                    backwards = dict(reversed(instance.items()))
                    assert constraint.accepts(json.dumps(backwards)) == validator.is_valid(instance), backwards


@for_each("order", ["schema", "any"])
@for_each("number", [17, 100])
def test_many_groups_stay_small(number: int, order: str) -> None:
    with finishes_within(1):
        constraint = constrain.compile(pairs(number), VOCABULARY, property_order=order)
        assert sum(len(rule.edges) for rule in constraint.grammar.rules) < 60 * number
        assert constraint.accepts(json.dumps({"a0": 1, "a5": 2, "b0": 3, "b5": 4}))
        assert not constraint.accepts(json.dumps({"a0": 1, "a5": 2, "b0": 3}))
        assert constraint.report


def test_a_way_to_finish_is_found_soon_among_many_keys() -> None:
    schema = {
        "type": "object",
        "properties": {f"p{i}": {"type": "string"} for i in range(500)},
        "minProperties": 20,
        "additionalProperties": False,
    }
    matcher = constrain.compile(schema, VOCABULARY, property_order="any").matcher()
    with finishes_within(2):
        assert matcher.min_tokens_left >= len('{"p0":""}') + 19 * len(',"p0":""')
        assert matcher.accept_many(list(b'{"p7":"","p499":')) == len('{"p7":"","p499":')
        assert matcher.min_tokens_left > 0


def test_a_multiple_of_a_large_number_is_finished() -> None:
    matcher = constrain.compile({"type": "integer", "multipleOf": 10**9 + 7}, VOCABULARY).matcher()
    assert matcher.accept_many(list(b"12")) == len("12")
    assert 0 < matcher.min_tokens_left < len("12") * 20
