"""MaskBench: every valid instance is accepted, every invalid one stopped, and as many schemas compile as ever did.

Some valid instances have their keys in another order than the schema; these must be allowed with any order.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from random import Random
from typing import Any

import pytest

import constrain
from tests.support import LONG, Tokens, allowed, maskbench, maskbench_that_compiles, real_vocabulary
from tests.support.maskbench_record import (
    EXPLANATIONS,
    RATCHET,
    REGENERATE,
    WITHOUT_A_VALUE,
    Entry,
    measure_all,
    record,
)

BLOCKS = 10 if LONG else 2
SCHEMAS = 100 if LONG else 12
"""Schemas of a block."""


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return Tokens(real_vocabulary("llama-bpe"))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_valid_instances_are_allowed_and_invalid_ones_stopped(block: int, tokens: Tokens) -> None:
    vocabulary = real_vocabulary("llama-bpe")
    wrong = []
    for entry, constraint in maskbench_that_compiles(vocabulary, 100 + block, SCHEMAS, whitespace="any"):
        row = constraint.allocate_bitmask()[0]
        for number, test in enumerate(entry["tests"]):
            text = json.dumps(test["data"], ensure_ascii=False).encode("utf-8", "surrogatepass")
            matcher = constraint.matcher()
            position, fits = 0, True
            for token in tokens.split(text):
                in_mask = token in allowed(matcher, row)
                assert matcher.accept(token) == in_mask, (entry["id"], number, text[:position])
                if not in_mask:
                    fits = False
                    break
                position += len(vocabulary.token_bytes(token))
            fits = fits and matcher.is_accepting
            assert constraint.accepts(text) == fits, (entry["id"], number)
            if test["valid"] and not fits:
                unordered = constrain.compile(entry["schema"], vocabulary, whitespace="any", property_order="any")
                fits = unordered.accepts(text)
            if fits != test["valid"]:
                wrong.append((entry["id"], number, test["valid"], text[:position], text[position:][:40]))
    assert not wrong


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    """All schemas at full length, otherwise a seeded sample."""
    return measure_all(maskbench() if LONG else Random(7).sample(maskbench(), 250))


@cache
def ratchet() -> dict[str, Any]:
    return json.loads(RATCHET.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_no_invalid_instance_is_accepted(entries: list[Entry]) -> None:
    assert sum(entry.invalid for entry in entries) > len(entries)
    assert not [(entry.id, entry.accepted) for entry in entries if entry.accepted]


@pytest.mark.slow
def test_every_rejected_valid_instance_is_explained(entries: list[Entry]) -> None:
    wrong = [(entry.id, number) for entry in entries for number, why in entry.rejected if not why]
    wrong += [(entry.id, entry.refused) for entry in entries if entry.empty and entry.id not in WITHOUT_A_VALUE]
    assert not wrong
    order = EXPLANATIONS[0][0]
    other = Counter(why for entry in entries for _, why in entry.rejected if why != order)
    assert other.total() <= 1 + 0.001 * sum(entry.valid for entry in entries), other


@pytest.mark.slow
def test_no_schema_is_refused_that_once_compiled(entries: list[Entry]) -> None:
    before = {name for ids in ratchet()["refused"].values() for name in ids}
    refused = [entry for entry in entries if entry.refused and not entry.empty]
    assert not [(entry.id, entry.pointer, entry.refused) for entry in refused if entry.id not in before]


@pytest.mark.slow
def test_the_record_is_true(entries: list[Entry]) -> None:
    """Each refusal stands there with its reason, each rejection with its explanation, and nothing else does."""
    ids = {entry.id for entry in entries}
    now, before = record(entries), ratchet()
    for part in ("refused", "rejected", "without a value"):
        expected = {name: why for name, why in by_id(before[part]).items() if name.rsplit(" ", 1)[0] in ids}
        assert by_id(now[part]) == expected, f"write it down: {REGENERATE}"


def by_id(part: dict[str, Any]) -> dict[str, str]:
    return {
        name: why if isinstance(names, list) else names
        for why, names in part.items()
        for name in (names if isinstance(names, list) else [why])
    }
