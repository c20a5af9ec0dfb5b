"""Masks of random schemas against enumeration, bit by bit, with all keywords and both orders of keys.

A failure names its seed: ``check(seed)`` runs it again.
"""

from __future__ import annotations

import json

import pytest

from tests.support import LONG
from tests.support.oracles.schemas import conditions
from tests.support.oracles.schemas.cases import RATCHET, RECORDED_SEEDS, REGENERATE, check, make_case

SEEDS = range(20_000 if LONG else 150)


@pytest.mark.slow
def test_masks_equal_enumeration_and_refusals_are_as_recorded() -> None:
    recorded = json.loads(RATCHET.read_text())["refused"]
    expected = {seed: why for why, seeds in recorded.items() for seed in seeds if seed in SEEDS}
    refused = {seed: why for seed in SEEDS if (why := check(seed))}
    assert {seed: why for seed, why in refused.items() if seed < RECORDED_SEEDS} == expected, REGENERATE


@pytest.mark.slow
def test_masks_of_conditions_on_keys_in_any_order_equal_enumeration() -> None:
    assert [seed for seed in range(20_000 if LONG else 50) if conditions.check(seed)] == []


def test_masks_of_a_schema_equal_enumeration() -> None:
    assert check(0) == ""
    assert conditions.check(1) == ""


# The oracle itself


@pytest.mark.slow
def test_cases_are_neither_trivial_nor_disputed() -> None:
    cases, about_keys = [make_case(seed) for seed in range(50)], [conditions.make_case(seed) for seed in range(25)]
    assert sum(not case.texts for case in about_keys) < 6
    assert sum(len(case.others) > 0 for case in about_keys) > 16
    assert sum(case.disputed for case in cases) <= 1
    assert sum(not case.texts for case in cases) < 20
    assert sum(len(case.texts) < len(case.universe.values()) for case in cases) > 25
