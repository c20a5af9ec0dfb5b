"""Objects whose formulas have no key in common: as exact as one automaton for all keys, and linear in their number."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.json_schema.formulas import independent_keys
from constrain.json_schema.formulas import objects as object_formulas
from tests.support import for_each
from tests.support.processor_time import finishes_within

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
