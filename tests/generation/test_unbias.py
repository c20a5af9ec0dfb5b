"""``unbias``: votes that stand for the model's own distribution, on languages whose distribution is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import constrain
from tests.confidence.test_fields import every_answer, whole
from tests.support import for_each
from tests.support.llama.prompts import prompt_tokens


@pytest.mark.slow
@pytest.mark.parametrize("schema", [constrain.Regex("red|green|great"), constrain.Regex("[0-9]{1,2}")])
def test_weights_undo_the_bias_of_masks(model: constrain.Model, schema: Any) -> None:
    """Over all ways to write all texts: probability of coming about, times weight, is the model's own probability."""
    prompt = "Say something." if schema.pattern.startswith("[") else "Is the grass red or green?"
    answers = every_answer(model, prompt, schema)
    assert sum(whole(each).probability for each in answers) == pytest.approx(1, abs=1e-6)
    own = 0.0
    for each in answers:
        assert each.log_mass is not None
        assert each.log_mass == pytest.approx(whole(each).log_mass, abs=1e-9)
        assert each.log_mass <= 1e-6
        own += whole(each).probability * math.exp(each.log_mass)
    assert 0 < own <= 1 + 1e-6


@pytest.mark.slow
def test_the_weight_is_the_probability_of_all_allowed_tokens(model: constrain.Model) -> None:
    """Where no token is forced and none replaced, the weighted probability is that of llama.cpp's own logits."""
    prompt, digits = "How many?", [f"{digit}" for digit in range(10)]
    answers = every_answer(model, prompt, constrain.Regex("[0-9]"))
    with model.turn() as context:
        context.prefill(prompt_tokens(model, prompt, constrained=True))
        logits = context.logits().astype(np.float64)
    own = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert sorted(each.text for each in answers) == digits
    for each in answers:
        (token,) = each.tokens
        assert each.log_mass is not None
        assert whole(each).probability * math.exp(each.log_mass) == pytest.approx(own[token], rel=1e-3)


def test_a_vote_is_weighted(model: constrain.Model) -> None:
    asked: dict[str, Any] = {"schema": {"enum": ["red", "green", "blue"]}, "n": 8, "vote": True, "seed": 1}
    answer = constrain.complete(model, "The colour of grass?", unbias=True, **asked)
    masses = [each.log_mass for each in answer.votes]
    assert None not in masses
    weights = [math.exp(each) for each in masses if each is not None]
    assert len({round(each, 3) for each in masses if each is not None}) > 1
    same = sum(weight for weight, each in zip(weights, answer.votes, strict=True) if each.value == answer.value)
    assert answer.agreement is not None
    assert answer.agreement[()] == pytest.approx(same / sum(weights))
    assert answer.fields is None


def test_free_text_is_unbiased_already(model: constrain.Model) -> None:
    answer = constrain.complete(model, "Hello", n=2, vote=True, unbias=True, max_tokens=4, seed=1)
    assert [each.log_mass for each in answer.votes] == [0.0, 0.0]
    sure = constrain.complete(model, "Hello", confidence=True, max_tokens=4, seed=1)
    field = whole(sure)
    assert (field.mass, field.choices, field.logprob) == (1, 4, pytest.approx(field.constrained_logprob))


@for_each(
    "options, said",
    ({}, "needs vote=True"),
    ({"n": 3, "vote": True, "temperature": 0.5}, "leave temperature out"),
    ({"n": 3, "vote": True, "top_k": 40}, "leave top_k out"),
    ({"n": 3, "vote": True, "draft": True}, "without tools"),
    ({"n": 3, "vote": True, "allow_refusal": True}, "without tools"),
    (
        {"n": 3, "vote": True, "schema": constrain.Lark("start: word\nword[temperature=0.5]: /[a-z]+/")},
        "a temperature; leave it out",
    ),
)
def test_what_does_not_fit_is_refused(model: constrain.Model, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        constrain.complete(model, "Red?", **{"schema": {"enum": ["red"]}, **options}, unbias=True, max_tokens=20)
