"""``client.chat.completions.create`` without tools: the response, and the parameters that shape it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from openai import BadRequestError
from samples import MESSAGES, MOVE_SCHEMA, OPEN_SCHEMA, json_schema

if TYPE_CHECKING:
    from openai import OpenAI


def test_a_completion_has_all_fields(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=5)
    assert completion.object == "chat.completion"
    assert completion.id.startswith("chatcmpl-")
    assert completion.model == model
    assert isinstance(completion.created, int)
    assert completion._request_id
    choice = completion.choices[0]
    assert (choice.index, choice.logprobs) == (0, None)
    assert (choice.message.role, choice.message.refusal, choice.message.tool_calls) == ("assistant", None, None)
    assert {"content", "refusal", "role"} <= choice.message.model_fields_set
    assert {"finish_reason", "index", "message", "logprobs"} <= choice.model_fields_set


def test_usage_adds_up(client: OpenAI, model: str) -> None:
    usage = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=5).usage
    assert usage
    assert usage.prompt_tokens > 0
    assert 0 < usage.completion_tokens <= 5
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens_details
    assert usage.completion_tokens_details


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_text_that_is_cut_says_so(client: OpenAI, model: str, name: str) -> None:
    limit: Any = {name: 3}
    completion = client.chat.completions.create(model=model, messages=MESSAGES, temperature=0, **limit)
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage
    assert completion.usage.completion_tokens == 3


def test_a_text_that_ends_by_itself_is_a_stop(client: OpenAI, model: str) -> None:
    messages: Any = [{"role": "user", "content": "Say hi."}]
    completion = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=400)
    assert completion.choices[0].finish_reason == "stop"


def test_several_choices(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=MESSAGES, n=3, max_tokens=4, temperature=1.5)
    assert [choice.index for choice in completion.choices] == [0, 1, 2]
    assert completion.usage
    assert completion.usage.completion_tokens <= 12


def test_several_choices_of_a_schema(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, n=2, max_tokens=60, response_format=json_schema(MOVE_SCHEMA, strict=True)
    )
    assert all(json.loads(choice.message.content or "")["to"] in ("left", "right") for choice in completion.choices)


def test_temperature_zero_repeats_itself(client: OpenAI, model: str) -> None:
    texts = {
        client.chat.completions.create(model=model, messages=MESSAGES, temperature=0, max_tokens=8)
        .choices[0]
        .message.content
        for _ in range(2)
    }
    assert len(texts) == 1


def test_equal_seeds_give_equal_answers(client: OpenAI, model: str) -> None:
    def text(seed: int) -> str | None:
        completion = client.chat.completions.create(
            model=model, messages=MESSAGES, seed=seed, temperature=1.2, max_tokens=12
        )
        return completion.choices[0].message.content

    text(5)  # The prompt is in the cache from here on.
    assert text(5) == text(5)
    assert len({text(seed) for seed in range(5)}) > 1


@pytest.mark.parametrize(
    "options",
    [{"top_p": 0}, {"top_p": 1}, {"top_p": 0.5, "temperature": 0.7}, {"temperature": 2}, {"seed": -1}, {"seed": 2**40}],
    ids=str,
)
def test_sampling_within_its_ranges(client: OpenAI, model: str, options: Any) -> None:
    assert client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=3, **options).choices


OUT_OF_RANGE = [
    ({"temperature": 2.1}, "temperature", "decimal_above_max_value"),
    ({"temperature": -0.1}, "temperature", "decimal_below_min_value"),
    ({"top_p": 1.1}, "top_p", "decimal_above_max_value"),
    ({"top_p": -1}, "top_p", "decimal_below_min_value"),
    ({"n": 0}, "n", "integer_below_min_value"),
    ({"n": 100_000}, "n", "integer_above_max_value"),
    ({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
    ({"max_completion_tokens": -1}, "max_completion_tokens", "integer_below_min_value"),
    ({"presence_penalty": 2.5}, "presence_penalty", "decimal_above_max_value"),
    ({"frequency_penalty": -2.5}, "frequency_penalty", "decimal_below_min_value"),
    ({"top_logprobs": 21, "logprobs": True}, "top_logprobs", "integer_above_max_value"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop", "array_above_max_length"),
    ({"temperature": "hot"}, "temperature", "invalid_type"),
    ({"seed": 1.5}, "seed", "invalid_type"),
    ({"stop": 5}, "stop", "invalid_type"),
    ({"logit_bias": {"5": 101}}, "logit_bias", "decimal_above_max_value"),
    ({"logit_bias": {"x": 1}}, "logit_bias", "invalid_value"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value"),
    ({"modalities": ["text", "audio"], "audio": {"voice": "ash", "format": "wav"}}, "modalities", None),
]


@pytest.mark.parametrize(("options", "param", "code"), OUT_OF_RANGE, ids=lambda value: str(value)[:50])
def test_out_of_range(client: OpenAI, model: str, options: Any, param: str, code: str | None) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=MESSAGES, **options)
    assert str(caught.value.param).startswith(param)
    assert code is None or caught.value.code == code
    assert caught.value.type == "invalid_request_error"


def test_a_stop_is_not_in_the_text(client: OpenAI, model: str) -> None:
    whole = client.chat.completions.create(model=model, messages=MESSAGES, temperature=0, max_tokens=40)
    text = whole.choices[0].message.content or ""
    stop = text.split()[3]
    cut = client.chat.completions.create(model=model, messages=MESSAGES, temperature=0, max_tokens=40, stop=stop)
    assert cut.choices[0].message.content == text[: text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"


def test_four_stops(client: OpenAI, model: str) -> None:
    stops = ["a", "e", "i", "o"]
    completion = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=30, stop=stops)
    assert not set(stops) & set(completion.choices[0].message.content or "")


def test_a_stop_never_cuts_a_value(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=60, stop=['"', "}"], response_format=json_schema(MOVE_SCHEMA)
    )
    assert set(json.loads(completion.choices[0].message.content or "")) == {"to", "steps"}
    assert completion.choices[0].finish_reason == "stop"


def test_a_bias_can_forbid(client: OpenAI, model: str) -> None:
    options: Any = {"model": model, "messages": MESSAGES, "temperature": 0, "max_tokens": 1}
    before = client.chat.completions.create(**options).choices[0].message.content
    biases = {str(token): -100 for token in range(20_000)}
    after = client.chat.completions.create(**options, logit_bias=biases).choices[0].message.content
    assert before != after


def test_a_bias_never_leaves_the_schema(client: OpenAI, model: str) -> None:
    biases = {str(token): 100 for token in range(100, 200)}
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=60, logit_bias=biases, response_format=json_schema(MOVE_SCHEMA)
    )
    assert set(json.loads(completion.choices[0].message.content or "")) == {"to", "steps"}


@pytest.mark.parametrize("name", ["presence_penalty", "frequency_penalty"])
def test_a_penalty_never_leaves_the_schema(client: OpenAI, model: str, name: str) -> None:
    penalty: Any = {name: 2}
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=60, response_format=json_schema(OPEN_SCHEMA), **penalty
    )
    assert set(json.loads(completion.choices[0].message.content or "")) == {"name", "age"}


def test_a_frequency_penalty_changes_what_repeats(client: OpenAI, model: str) -> None:
    messages: Any = [{"role": "user", "content": "Repeat: ha ha ha ha ha ha ha ha ha ha"}]
    options: Any = {"model": model, "messages": messages, "temperature": 0, "max_tokens": 30}
    texts = {
        client.chat.completions.create(**options, frequency_penalty=value).choices[0].message.content
        for value in (0, 2)
    }
    assert len(texts) == 2


ACCEPTED: dict[str, Any] = {
    "user": "emma",
    "metadata": {"purpose": "test"},
    "store": False,
    "service_tier": "auto",
    "prompt_cache_key": "emma",
    "prompt_cache_retention": "24h",
    "safety_identifier": "emma",
    "verbosity": "low",
    "reasoning_effort": "minimal",
    "prediction": {"type": "content", "content": "Emma is 21."},
    "modalities": ["text"],
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logprobs": False,
    "n": 1,
    "logit_bias": {},
    "parallel_tool_calls": True,
    "extra_body": {"some_field_of_tomorrow": {"a": 1}},
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(client: OpenAI, model: str, name: str) -> None:
    given: Any = {name: ACCEPTED[name]}
    assert client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=2, **given).choices


@pytest.mark.parametrize(
    "name", ["temperature", "top_p", "n", "stop", "seed", "max_tokens", "tools", "response_format", "stream_options"]
)
def test_null_is_as_good_as_nothing(client: OpenAI, model: str, name: str) -> None:
    given: Any = {"max_completion_tokens": 2, name: None}
    assert client.chat.completions.create(model=model, messages=MESSAGES, **given).choices
