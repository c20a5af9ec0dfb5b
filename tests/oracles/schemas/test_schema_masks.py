"""Masks of random schemas against enumeration, bit by bit, with all keywords and both orders of keys.

A failure names its seed: ``check(seed)`` runs it again.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import jsonschema_rs
import pytest

from tests.support import LONG
from tests.support.oracles.schemas import conditions
from tests.support.oracles.schemas.cases import RATCHET, RECORDED_SEEDS, REGENERATE, Texts, check, make_case
from tests.support.oracles.schemas.generator import Universe, random_universe, spellings

BLOCKS = 20
SEEDS_PER_BLOCK = (20_000 if LONG else RECORDED_SEEDS) // BLOCKS


@pytest.fixture(scope="module")
def refusals() -> dict[int, str]:
    """Filled by the blocks: the reasons of all refusals, by seed."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_masks_equal_enumeration(block: int, refusals: dict[int, str]) -> None:
    for seed in range(block * SEEDS_PER_BLOCK, (block + 1) * SEEDS_PER_BLOCK):
        why = check(seed)
        if why:
            refusals[seed] = why


@pytest.mark.slow
def test_refusals_are_as_recorded(refusals: dict[int, str]) -> None:
    recorded = json.loads(RATCHET.read_text())
    reasons = Counter(why for seed, why in refusals.items() if seed < RECORDED_SEEDS)
    assert reasons.total() <= recorded["refused"], "more refusals than ever"
    assert reasons == recorded["reasons"], f"write them down: {REGENERATE}"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_masks_of_conditions_on_keys_in_any_order_equal_enumeration(block: int) -> None:
    seeds = 2_000 if LONG else 25
    for seed in range(block * seeds, (block + 1) * seeds):
        assert conditions.check(seed) == ""


# The oracle itself


def test_the_bound_admits_the_universe_and_nothing_else() -> None:
    for seed in range(20):
        universe = random_universe(Random(seed))
        schema = {"$defs": universe.bounds(), "$ref": f"#/$defs/bound{universe.depth}"}
        validator = jsonschema_rs.Draft202012Validator(schema)
        assert all(map(validator.is_valid, universe.values()))
        for value in ([[[[]]]], "abab", -1, 99, 0.5, {"z": 0}, [0, 0, 0, 0], {"a": {"a": {"a": 0}}}):
            assert not validator.is_valid(value)


def test_values_are_listed_once_and_spelled_in_every_order() -> None:
    universe = Universe(integers=1, strings=("a",), simple=(None,), keys=("b", "a"), most_items=1, depth=1)
    texts = [text for value in universe.values() for text in spellings(value, any_order=False)]
    members = ["null", "0", '"a"']
    single = [f'{{"{key}":{item}}}' for key in "ba" for item in members]
    double = [f'{{"b":{one},"a":{two}}}' for one in members for two in members]
    assert texts == [*members, "[]", "[null]", "[0]", '["a"]', "{}", *single, *double]
    assert list(spellings({"b": 1, "a": [{"c": 2, "d": 3}]}, any_order=True)) == [
        '{"b":1,"a":[{"c":2,"d":3}]}',
        '{"b":1,"a":[{"d":3,"c":2}]}',
        '{"a":[{"c":2,"d":3}],"b":1}',
        '{"a":[{"d":3,"c":2}],"b":1}',
    ]


def test_masks_of_a_list_of_texts() -> None:
    texts = Texts([b"[1,1]", b"[1]", b"[]"])
    assert texts.mask(b"[", [b"1", b"1,", b"]", b"2", b"1]", b"1]]"]) == [True, True, True, False, True, False, False]
    assert texts.mask(b"[1]", [b","]) == [False, True]


@pytest.mark.slow
def test_cases_are_neither_trivial_nor_disputed() -> None:
    cases = [make_case(seed) for seed in range(200)]
    about_keys = [conditions.make_case(seed) for seed in range(100)]
    assert sum(not case.texts for case in about_keys) < 15
    assert sum(len(case.others) > 0 for case in about_keys) > 80
    assert sum(case.disputed for case in cases) <= 2
    assert sum(not case.texts for case in cases) < 60
    assert sum(len(case.texts) < len(case.universe.values()) for case in cases) > 120
