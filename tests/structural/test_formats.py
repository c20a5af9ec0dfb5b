"""Structural tags: their texts, complete answers at every place and within every budget, special tokens, parts."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import constrain
from constrain import StructuralTag
from tests.structural.cases import CASES, Case
from tests.support import byte_vocabulary


def compiled(document: dict[str, Any] | str, vocabulary: constrain.Vocabulary | None = None) -> constrain.Constraint:
    return constrain.compile(StructuralTag(document), vocabulary or byte_vocabulary(), cache=False)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_texts_are_accepted_and_rejected(case: Case) -> None:
    constraint = compiled({"type": "structural_tag", "format": case.format})
    assert [text for text in case.accepted if not constraint.accepts(text)] == []
    assert [text for text in case.rejected if constraint.accepts(text)] == []


@pytest.mark.slow(but=("tag", "regex", "triggered_tags"))
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_beginning_of_a_text_can_be_completed(case: Case) -> None:
    constraint = compiled({"format": case.format})
    for text in (each.encode()[:120] for each in case.accepted):
        matcher = constraint.matcher()
        for end, byte in enumerate(text, start=1):
            assert matcher.accept(byte)
            assert constraint.accepts(text[:end] + matcher.shortest_completion())


@pytest.mark.slow(but=("tag", "triggered_tags"))
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_answer_is_complete_within_its_budget(case: Case) -> None:
    constraint = compiled({"format": case.format})
    least = constraint.report.min_tokens
    rng = Random(7)
    for budget in (least, least + 1, least + 5, least + 20):
        matcher = constraint.matcher(max_tokens=budget)
        written: list[int] = []
        while not matcher.is_finished:
            row = constraint.allocate_bitmask()[0]
            matcher.fill_bitmask(row)
            token = rng.choice([each for each in range(257) if row[each // 32] >> (each % 32) & 1])
            assert matcher.accept(token)
            written.append(token)
        assert len(written) <= budget + 1
        assert constraint.accepts(bytes(each for each in written if each < 256))
