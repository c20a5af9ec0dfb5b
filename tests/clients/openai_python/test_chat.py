"""Chat completions: types and parameters of the package, streams by its helper, and older forms."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from adapter import Chat, said
from openai.types.chat import ChatCompletion
from shared import MODEL, PROMPT, TOOLS, Person, Weather

CHAT = Chat()
ASKED: Any = {**CHAT.asked, "messages": [said(PROMPT)]}
WEATHER: Any = openai.pydantic_function_tool(Weather)


def ask(**more: Any) -> ChatCompletion:
    found: ChatCompletion = CHAT.client.chat.completions.create(**{**ASKED, **more})
    return found


def test_a_completion_has_all_that_its_type_has() -> None:
    completion = ask(max_tokens=4, logprobs=True, top_logprobs=2, n=2)
    assert type(completion).model_validate(completion.model_dump(), strict=True)
    assert completion.id.startswith("chatcmpl-")
    assert (completion.object, completion.model) == ("chat.completion", MODEL)
    assert [choice.index for choice in completion.choices] == [0, 1]
    assert completion.usage
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + 8
    for choice in completion.choices:
        assert choice.logprobs
        tokens = choice.logprobs.content or []
        assert [len(token.top_logprobs) for token in tokens] == [2] * 4
        assert b"".join(bytes(token.bytes or ()) for token in tokens).decode() == choice.message.content


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
    "logit_bias": {},
    "parallel_tool_calls": True,
    "extra_body": {"some_field_of_tomorrow": {"a": 1}},
    "temperature": None,
    "stop": None,
    "tools": None,
    "response_format": None,
    "stream_options": None,
}


def test_all_parameters_of_the_package_are_taken() -> None:
    assert ask(**{**ACCEPTED, "max_tokens": 2}).choices


def test_the_helper_tells_of_values_as_they_grow() -> None:
    with CHAT.client.chat.completions.stream(**ASKED, response_format=Person, n=2) as events:
        seen: list[Any] = list(events)
        completion = events.get_final_completion()
    assert all(isinstance(choice.message.parsed, Person) for choice in completion.choices)
    assert all(isinstance(event.parsed, Person) for event in seen if event.type == "content.done")
    assert any(isinstance(event.parsed, dict) for event in seen if event.type == "content.delta")


def test_the_helper_says_when_a_text_was_cut() -> None:
    asked: Any = {**ASKED, "tools": [WEATHER], "tool_choice": "none", "max_tokens": 3}
    with pytest.raises(openai.LengthFinishReasonError), CHAT.client.chat.completions.stream(**asked) as events:
        events.until_done()


@pytest.mark.parametrize("stream", [False, True])
def test_functions_in_the_older_way_are_called(stream: bool) -> None:
    functions: Any = [tool["function"] for tool in TOOLS]
    asked: Any = {"functions": functions, "function_call": {"name": "weather"}, "stream": stream}
    found: Any = ask(**asked)
    if stream:
        deltas = [chunk.choices[0].delta.function_call for chunk in found]
        arguments = "".join(delta.arguments or "" for delta in deltas if delta)
    else:
        assert found.choices[0].finish_reason == "function_call"
        arguments = found.choices[0].message.function_call.arguments
    assert Weather.model_validate(json.loads(arguments))


def test_a_format_is_kept_beside_a_forced_call_and_in_its_place() -> None:
    asked: Any = {**ASKED, "tools": [WEATHER], "response_format": Person}
    called = (
        CHAT.client.chat.completions.parse(**asked, tool_choice={"type": "function", "function": {"name": "Weather"}})
        .choices[0]
        .message
    )
    assert called.tool_calls
    said_ = CHAT.client.chat.completions.parse(**asked, tool_choice="none").choices[0].message
    assert isinstance(said_.parsed, Person)
