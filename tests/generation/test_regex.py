"""Answers that match a regular expression, in every way to ask for one."""

from __future__ import annotations

import asyncio
import re

import pytest

import constrain
from constrain import Regex
from constrain.chat.reading.events import TextDelta
from constrain.generation.completion import Finished

PLATE = Regex(r"[A-Z]{1,3}-[0-9]{1,4}")
PROMPT = "Make up a licence plate."


@pytest.mark.slow
def test_the_value_is_a_text_that_matches(model: constrain.Model) -> None:
    for seed in range(5):
        plate = constrain.generate(model, PROMPT, schema=PLATE, seed=seed)
        assert re.fullmatch(PLATE.pattern, plate)


@pytest.mark.slow
def test_all_ways_to_generate_take_a_pattern(model: constrain.Model) -> None:
    completion = constrain.complete(model, PROMPT, schema=PLATE, temperature=0)
    assert completion.value == completion.text
    assert completion.report is not None
    *deltas, last = constrain.stream(model, PROMPT, schema=PLATE, temperature=0)
    assert isinstance(last, Finished)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == completion.text
    several = constrain.generate_batch(model, [PROMPT] * 2, schema=PLATE, temperature=0)
    later = asyncio.run(constrain.agenerate(model, PROMPT, schema=PLATE, temperature=0))
    assert [last.completion.value, *several, later] == [completion.text] * 4


@pytest.mark.slow
def test_of_several_answers_only_those_with_a_json_schema_have_policies(model: constrain.Model) -> None:
    kinds = [PLATE, {"enum": [[1, 2]]}, None]
    plate, pair, _ = constrain.complete_batch(model, [PROMPT] * 3, schemas=kinds, whitespace="compact", max_tokens=20)
    assert re.fullmatch(PLATE.pattern, plate.value)
    assert pair.text == "[1,2]"


def test_an_answer_may_be_empty(model: constrain.Model) -> None:
    completion = constrain.complete(model, PROMPT, schema=Regex("[a-z]{0,30}"), max_tokens=0)
    assert (completion.value, completion.tokens, completion.finish_reason) == ("", (), "length")
    assert constrain.generate(model, PROMPT, schema=Regex("")) == ""


@pytest.mark.slow(but=("2", "3"))
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_an_answer_is_whole_within_its_tokens(most: int, model: constrain.Model) -> None:
    for seed in range(3):
        completion = constrain.complete(model, PROMPT, schema=Regex(r"\w+(, \w+)*\."), max_tokens=most + 1, seed=seed)
        assert re.fullmatch(r"\w+(, \w+)*\.", completion.text)
        assert len(completion.tokens) <= most + 1


def test_no_answer_fits(model: constrain.Model) -> None:
    with pytest.raises(constrain.BudgetError):
        constrain.complete(model, PROMPT, schema=PLATE, max_tokens=1)
