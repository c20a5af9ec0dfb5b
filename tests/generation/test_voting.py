"""Votes: of a model's samples, weighed or not, and what samples agree on, without a model."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import pytest
from pydantic import BaseModel, field_validator

import constrain
from constrain.chat.answers.choices import REFUSAL, Reasoning, Value
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.reading.progress import TextProgress
from constrain.chat.reading.reply import Refusal, Reply, ReplyProgress
from constrain.generation.completion import Completion, Timings, Usage
from constrain.generation.options import AnswerSettings
from constrain.generation.plan import Language, Plan
from constrain.generation.voting import decide
from constrain.language.result import result_type
from constrain.llama.decoding.sampler import Sampling
from tests.confidence.test_fields import every_answer, whole
from tests.support import byte_vocabulary, for_each
from tests.support.chat.forms import CHANNELS, TAGS
from tests.support.llama.babbler import babbler
from tests.support.llama.prompts import prompt_tokens


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


ODD = 'a\u2028"\\/\x00'

VOCABULARY = byte_vocabulary()


def plan_for(schema: Any, answer: AnswerLanguage | None = None) -> Plan:
    result = result_type(schema)
    if answer is None:
        language = Language(schema)
        progress: Any = lambda _, tokens: TextProgress(result, (), tokens, cuts=False)  # noqa: E731
    else:
        language = Language(answer)
        progress = partial(ReplyProgress, answer, {}, result, (), (), wants_reply=False)
    asked = (language, [], progress, Sampling(), AnswerSettings(), result)
    return Plan(cast("Any", None), *asked, constraint=language.compile(VOCABULARY))


def sample(plan: Plan, written: str) -> Completion:
    """A finished answer, read as the plan reads it."""
    assert plan.constraint is not None
    assert plan.constraint.accepts(written), written
    progress = plan.progress(0, None)
    progress.feed(written.encode())
    progress.finish()
    outcome = progress.outcome()
    usage, tokens = Usage(10, 0, len(written)), tuple(written.encode())
    return Completion(
        outcome.value, outcome.text, tokens, usage, Timings(0, 0, 0, 0), "stop", None, reasoning=outcome.reasoning
    )


def voted(schema: Any, *values: Any) -> Completion:
    plan = plan_for(schema)
    return decide(plan, [sample(plan, value if isinstance(value, str) else json.dumps(value)) for value in values])


def record(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


NUMBERS = record(a={"type": "integer"}, b={"type": "integer"}, c={"type": "integer"})


def test_fields_that_some_samples_lack_keep_the_order_of_the_schema() -> None:
    answer = voted(NUMBERS, {"a": 1, "c": 3}, {"b": 2, "c": 3}, {"a": 1, "b": 2})
    assert (answer.value, answer.tokens) == ({"a": 1, "b": 2, "c": 3}, ())
    assert answer.text == '{"a": 1, "b": 2, "c": 3}'
    assert answer.agreement == {(): 0, ("a",): 2 / 3, ("b",): 2 / 3, ("c",): 2 / 3}
    assert answer.usage == Usage(10, 0, sum(len(each.text) for each in answer.votes))


def test_the_prompt_counts_once_and_tools_that_were_shown_for_each_sample() -> None:
    plan = plan_for(NUMBERS)
    samples = [replace(sample(plan, "{}"), usage=Usage(10 + shown, 0, 2, 0, shown)) for shown in (4, 0, 6)]
    assert decide(plan, samples).usage == Usage(20, 0, 6, 0, 10)


def test_tuples_are_merged_by_position() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}] * 2, "items": False, "minItems": 2}
    answer = voted(pair, [1, 5], [2, 5], [1, 6], [3, 5])
    assert answer.value == [1, 5]
    assert voted(tuple[int, str], [1, "x"], [2, "x"], [1, "y"]).value == (1, "x")


def test_sets_have_no_order() -> None:
    unique = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True}
    answer = voted(unique, ["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"], ["c"])
    assert sorted(answer.value) == ["a", "b"]
    assert answer.agreement is not None
    assert answer.agreement[0,] == answer.agreement[1,] == 0.8


def test_tagged_unions_are_never_mixed() -> None:
    cat = record("kind", "lives", kind={"const": "cat"}, lives={"type": "integer"})
    dog = record("kind", "barks", kind={"const": "dog"}, barks={"type": "boolean"})
    either = {"anyOf": [cat, dog]}
    assert voted(either, {"kind": "cat", "lives": 9}, {"kind": "dog", "barks": True}, {"kind": "cat", "lives": 7},
                 {"kind": "cat", "lives": 9}).value == {"kind": "cat", "lives": 9}  # fmt: skip
    tied = voted(either, *[{"kind": "cat", "lives": 9}] * 2, *[{"kind": "dog", "barks": True}] * 2)
    assert tied.value == {"kind": "cat", "lives": 9}
    assert tied.agreement == {(): 0.5, ("kind",): 0.5, ("lives",): 0.5}


@for_each(
    "schema, values, winner",
    ({"type": ["integer", "null"]}, [None, 3, 3], 3),
    ({"type": ["integer", "string"]}, [1, 2, "a", "a"], "a"),
    ({"type": "number"}, ["1.0", "1", "2"], 1),
    ({"type": "array", "items": {"type": "integer"}}, [[], [], [1]], []),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, [[1], [2], [3]], [1]),
    ({"type": "string"}, [ODD, ODD, "b"], ODD),
    ({"const": 5}, [5, 5], 5),
)
def test_winners(schema: Any, values: list[Any], winner: Any) -> None:
    texts = [value if schema == {"type": "number"} else json.dumps(value, ensure_ascii=False) for value in values]
    assert voted(schema, *texts).value == winner


@pytest.mark.parametrize("form", [TAGS, CHANNELS], ids=lambda form: form.name)
def test_values_are_merged_behind_reasoning(form: Any) -> None:
    answer = AnswerLanguage(form, content=Value(json.dumps(NUMBERS)), reasoning=Reasoning.OPTIONAL)
    plan = plan_for(NUMBERS, answer)
    begin, end = ("", "") if form.content is None else (form.content.begin, form.content.end)
    values = ({"a": 1, "c": 3}, {"b": 2, "c": 3}, {"a": 1, "b": 2})
    thought = f'{form.thinking.begin}{{"a": 1, "c": 3}}? {{"b": 2, "c": 3}}?{form.thinking.end}'
    samples = [sample(plan, f"{thought}{begin}{json.dumps(value)}{end}") for value in values]
    found = decide(plan, samples)
    assert (found.value, found.reasoning) == ({"a": 1, "b": 2, "c": 3}, samples[0].reasoning)
    assert found.text == '{"a": 1, "b": 2, "c": 3}'


def test_refusals_vote_apart() -> None:
    answer = AnswerLanguage(TAGS, content=Value(json.dumps(NUMBERS)), refusal=True)
    plan = plan_for(NUMBERS, answer)
    values = ['{"a": 1}', f"{REFUSAL}no.", '{"a": 1, "b": 2}', '{"b": 2, "c": 3}', f"{REFUSAL}never."]
    refusals = [each for each in values if not each.startswith("{")]
    read = [sample(plan, each) for each in values]
    assert [isinstance(each.value, Refusal) for each in read] == [not each.startswith("{") for each in values]
    assert decide(plan, read).value == {"a": 1, "b": 2}
    assert decide(plan, read[:2]).value == {"a": 1}
    refused = decide(plan, [read[0], *(sample(plan, each) for each in refusals)])
    assert isinstance(refused.value, Refusal)
    assert refused.agreement == {(): 1 / 3, ("refusal",): 1 / 3}


def test_refusals_beside_tools_vote_apart() -> None:
    plan = plan_for(NUMBERS)
    tools = replace(plan, tools={"f": cast("Any", None)})
    replies = [Reply(refusal="no"), Reply(refusal="no"), Reply(content={"a": 1}, text='{"a": 1}')]
    samples = [Completion(each, each.text, (), Usage(1, 0, 1), Timings(0, 0, 0, 0), "stop", None) for each in replies]
    found = decide(tools, samples)
    assert found.value.refusal == "no"
    assert found.agreement == {
        (): 2 / 3, ("content",): 2 / 3, ("calls",): 1, ("refusal",): 2 / 3,
    }  # fmt: skip


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
