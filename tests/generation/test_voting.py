"""Votes of a model's samples."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Literal

import pytest
from pydantic import BaseModel, field_validator

import constrain
from constrain.chat.reading.reply import Reply
from tests.support.llama.babbler import babbler


class Colours(BaseModel):
    sky: Literal["red", "green", "blue"]
    grass: Literal["red", "green", "blue"]
    others: list[Literal["pink", "grey", "black"]]


PROMPT = "Name the colour of the sky, of grass, and two other colours."


@pytest.fixture(scope="module")
def shared() -> constrain.Model:
    return babbler(parallel=5)


@pytest.mark.slow
def test_the_winner_has_the_majority_of_each_field(shared: constrain.Model) -> None:
    answer = constrain.complete(shared, PROMPT, schema=Colours, n=5, vote=True, seed=3, max_tokens=60)
    values = [sample.value for sample in answer.votes]
    assert len(values) == 5
    assert answer.agreement is not None
    for name in ("sky", "grass"):
        counts = Counter(getattr(value, name) for value in values)
        assert counts[getattr(answer.value, name)] == counts.most_common(1)[0][1]
        assert answer.agreement[name,] == counts[getattr(answer.value, name)] / 5
    assert Colours.model_validate_json(answer.text) == answer.value
    assert answer.usage.completion_tokens == sum(sample.usage.completion_tokens for sample in answer.votes)
    samples = constrain.complete_batch(shared, [PROMPT], schema=Colours, n=5, seed=3, max_tokens=60)[0]
    assert [sample.text for sample in samples] == [sample.text for sample in answer.votes]


@pytest.mark.slow
def test_a_winner_keeps_the_prefix_of_its_samples(shared: constrain.Model) -> None:
    prefix = '{"sky": "red",'
    for seed in range(3):
        answer = constrain.complete(
            shared, PROMPT, schema=Colours, n=5, vote=True, seed=seed, max_tokens=60, prefix=prefix
        )
        assert all(sample.text.startswith(prefix) for sample in answer.votes)
        assert answer.text.startswith(prefix)


class Even(BaseModel):
    number: Literal[1, 2, 3, 4]

    @field_validator("number")
    @classmethod
    def even(cls, value: int) -> int:
        assert value % 2 == 0
        return value


@pytest.mark.slow
def test_samples_that_the_type_refuses_do_not_vote(shared: constrain.Model) -> None:
    asked: dict[str, Any] = {"schema": Even, "seed": 1, "temperature": 100, "top_k": 0, "top_p": 1, "min_p": 0}
    samples = constrain.complete_batch(shared, ["A number?"], n=5, return_errors=True, **asked)[0]
    refused = [each for each in samples if isinstance(each, constrain.OutputValidationError)]
    assert 0 < len(refused) < 5
    answer = constrain.complete(shared, "A number?", n=5, vote=True, **asked)
    assert len(answer.votes) == 5 - len(refused)
    assert answer.value.number % 2 == 0


def weather(city: Literal["Oslo", "Rome"]) -> str:
    """Returns the weather of a city."""
    return city


def cities(reply: Reply) -> tuple[str, ...]:
    return tuple(json.loads(call.text)["city"] for call in reply)


@pytest.mark.slow
def test_calls_are_voted_on_as_a_whole(shared: constrain.Model) -> None:
    asked: dict[str, Any] = {"tools": [weather], "tool_choice": "required", "max_tokens": 60, "seed": 1}
    answer = constrain.complete(shared, "The weather in Oslo?", n=3, vote=True, **asked)
    assert isinstance(answer.value, Reply)
    counts = Counter(cities(sample.value) for sample in answer.votes)
    assert counts[cities(answer.value)] == max(counts.values())
    assert answer.agreement is not None
    assert ("calls", 0, "arguments", "city") in answer.agreement


def test_votes_need_their_number(shared: constrain.Model) -> None:
    with pytest.raises(ValueError, match="vote=True needs n"):
        constrain.complete(shared, "x", schema=bool, vote=True)
    with pytest.raises(ValueError, match="of 2 or more"):
        constrain.complete(shared, "x", schema=bool, n=1, vote=True)
    with pytest.raises(ValueError, match="n needs vote=True here"):
        constrain.complete(shared, "x", schema=bool, n=3)
