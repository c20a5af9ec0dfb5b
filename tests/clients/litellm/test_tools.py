"""Tools by every provider: choices, streams, results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import litellm
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGES = [{"role": "user", "content": "What will the weather be in Rome?"}]

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather of the next days.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Oslo", "Rome"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 9},
            },
            "required": ["city", "days"],
        },
    },
}
NOTE = {
    "type": "function",
    "function": {
        "name": "note",
        "parameters": {"type": "object", "properties": {"words": {"type": "string", "maxLength": 9}}},
    },
}
FORCED = {"type": "function", "function": {"name": "weather"}}

FORCING = pytest.mark.parametrize("provider", ["openai", "anthropic"])
"""The providers of which LiteLLM sends ``tool_choice``."""


def check(message: Any, *names: str) -> None:
    """The calls of a message are of these tools, and match."""
    assert message.tool_calls
    for call in message.tool_calls:
        assert call.id
        assert call.function.name in names
        arguments = json.loads(call.function.arguments)
        if call.function.name == "weather":
            assert arguments["city"] in ("Oslo", "Rome")
            assert 1 <= arguments["days"] <= 9


@FORCING
def test_one_tool_may_be_forced(connect: Callable[[str], Callable[..., Any]], provider: str) -> None:
    ask = connect(provider)
    choice = ask(messages=MESSAGES, tools=[WEATHER, NOTE], tool_choice=FORCED).choices[0]
    check(choice.message, "weather")
    assert choice.finish_reason == "tool_calls"


@FORCING
def test_any_tool_may_be_required(connect: Callable[[str], Callable[..., Any]], provider: str) -> None:
    ask = connect(provider)
    check(ask(messages=MESSAGES, tools=[WEATHER, NOTE], tool_choice="required").choices[0].message, "weather", "note")


def test_the_model_may_choose(ask: Callable[..., Any]) -> None:
    message = ask(messages=MESSAGES, tools=[WEATHER], tool_choice="auto").choices[0].message
    if message.tool_calls:
        check(message, "weather")
    else:
        assert message.content


@FORCING
def test_calls_are_streamed(connect: Callable[[str], Callable[..., Any]], provider: str) -> None:
    ask = connect(provider)
    parts = list(ask(messages=MESSAGES, tools=[WEATHER], tool_choice=FORCED, stream=True))
    check(litellm.stream_chunk_builder(parts).choices[0].message, "weather")


@FORCING
def test_results_are_sent_back(connect: Callable[[str], Callable[..., Any]], provider: str) -> None:
    ask = connect(provider)
    message = ask(messages=MESSAGES, tools=[WEATHER], tool_choice=FORCED).choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sun"} for call in message.tool_calls]
    answer = ask(messages=[*MESSAGES, message, *results], tools=[WEATHER], tool_choice="none", max_tokens=8)
    assert answer.choices[0].message.content


def test_parameters_that_cannot_be_enforced_are_refused(ask: Callable[..., Any]) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)y"}}, "required": ["a"]}
    tool = {"type": "function", "function": {"name": "refused", "parameters": parameters}}
    with pytest.raises(litellm.BadRequestError, match="refused"):
        ask(messages=MESSAGES, tools=[tool])
