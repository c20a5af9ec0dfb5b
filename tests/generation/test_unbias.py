"""``unbias``: votes that stand for the model's own distribution, on languages whose distribution is known."""

from __future__ import annotations

import math
from typing import Any

import pytest

import constrain
from tests.confidence.test_fields import every_answer, whole


@pytest.mark.slow
@pytest.mark.parametrize("schema", [constrain.Regex("red|green|great"), constrain.Regex("yes|yellow|no")])
def test_weights_undo_the_bias_of_masks(model: constrain.Model, schema: Any) -> None:
    """Over all ways to write all texts: probability of coming about, times weight, is the model's own probability."""
    answers = every_answer(model, "Is the grass red or green?", schema)
    for each in answers:
        field = whole(each)
        ended = each.tokens and field.log_mass + field.constrained_logprob - field.logprob
        assert ended is not None
        assert ended <= 1e-6  # the logarithm of the probability of the end, where that was chosen
        assert field.log_mass == pytest.approx(field.logprob + ended - field.constrained_logprob, abs=1e-9)
    weighed = sum(math.exp(whole(each).constrained_logprob + whole(each).log_mass) for each in answers)
    assert sum(whole(each).probability for each in answers) == pytest.approx(1, abs=1e-6)
    assert 0 < weighed <= 1 + 1e-6


def test_a_vote_is_weighed(model: constrain.Model) -> None:
    asked: dict[str, Any] = {"schema": {"enum": ["red", "green", "blue"]}, "n": 8, "vote": True, "seed": 1}
    answer = constrain.complete(model, "The colour of grass?", unbias=True, **asked)
    weights = [math.exp(whole(each).log_mass) for each in answer.votes]
    same = sum(weight for weight, each in zip(weights, answer.votes, strict=True) if each.value == answer.value)
    assert answer.agreement is not None
    assert answer.agreement[()] == pytest.approx(same / sum(weights))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs vote=True"),
        ({"n": 3, "vote": True, "temperature": 0.5}, "leave temperature out"),
        ({"n": 3, "vote": True, "top_k": 40}, "leave top_k out"),
        ({"n": 3, "vote": True, "draft": True}, "without tools"),
        ({"n": 3, "vote": True, "allow_refusal": True}, "without tools"),
    ],
)
def test_what_does_not_fit_is_refused(model: constrain.Model, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        constrain.complete(model, "Red?", schema={"enum": ["red"]}, unbias=True, max_tokens=20, **options)
