"""``functions`` and ``function_call``, as clients from before there were tools send and read them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from constrain.server.app import Application
from constrain.server.http.account import Account
from constrain.server.requests.messages import convert_function_calls, read_messages
from tests.support.server.asking import chat, chunks_of

OF_FUNCTION = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
}
WEATHER = {"name": "get_weather", "description": "The weather of a city.", "parameters": OF_FUNCTION}
NEWS = {"name": "get_news", "parameters": {"type": "object", "properties": {}}}
QUESTION: dict[str, Any] = {"role": "user", "content": "How is the weather in Rome?"}
CALLED = {"functions": [WEATHER, NEWS], "function_call": {"name": "get_weather"}, "max_tokens": 200}


@pytest.mark.slow
def test_a_named_function_is_called_and_a_stream_names_it_once(application: Application) -> None:
    (choice,) = chat(application, messages=[QUESTION], **CALLED).json()["choices"]
    assert choice["finish_reason"] == "function_call"
    assert set(choice["message"]) == {"role", "content", "refusal", "function_call"}
    assert choice["message"]["content"] is None
    whole = choice["message"]["function_call"]
    assert (set(whole), whole["name"]) == ({"name", "arguments"}, "get_weather")
    jsonschema.validate(json.loads(whole["arguments"]), OF_FUNCTION)
    chunks = chunks_of(chat(application, messages=[QUESTION], stream=True, **CALLED))
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    first, *pieces = [delta["function_call"] for delta in deltas if "function_call" in delta]
    assert first == {"name": "get_weather", "arguments": ""}
    assert len(pieces) > 1
    assert all(set(piece) == {"arguments"} for piece in pieces)
    assert "".join(piece["arguments"] for piece in pieces) == whole["arguments"]
    assert not any("tool_calls" in delta for delta in deltas)
    assert chunks[-1]["choices"][0]["finish_reason"] == "function_call"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_there_is_a_text_or_one_call(application: Application, seed: int) -> None:
    asked = {"functions": [WEATHER, NEWS], "temperature": 2, "seed": seed, "max_tokens": 100}
    (choice,) = chat(application, messages=[QUESTION], **asked).json()["choices"]
    has_call = "function_call" in choice["message"]
    assert (choice["finish_reason"] == "function_call") == has_call
    assert has_call or choice["message"]["content"]


@pytest.mark.slow
def test_a_conversation_goes_on_after_a_call(client: openai.OpenAI) -> None:
    asked: Any = {"model": "small", "temperature": 0, **CALLED}
    messages: list[Any] = [QUESTION]
    message = client.chat.completions.create(messages=messages, **asked).choices[0].message
    assert message.function_call
    messages += [message, {"role": "function", "name": message.function_call.name, "content": "sunny"}]
    asked |= {"function_call": "none", "max_tokens": 5}
    assert client.chat.completions.create(messages=messages, **asked).choices[0].message.content


def test_calls_of_functions_are_shown_to_the_model_as_those_of_tools() -> None:
    call = {"name": "get_news", "arguments": "{}"}
    old = [{"role": "assistant", "content": None, "function_call": call}]
    old.append({"role": "function", "name": "get_news", "content": "none"})
    new: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_0", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "call_0", "content": "none"},
    ]
    assert convert_function_calls([QUESTION, *old]) == [QUESTION, *new]


def test_misspelt_members_of_messages_are_warnings_and_no_unread_one_goes_on(account: Account) -> None:
    told = {"role": "assistant", "content": "Hi", "tool_call": [1], "id": "1", "reasoning_details": []}
    found = read_messages([{**QUESTION, "metadata": {}}, told, QUESTION])
    assert found == [QUESTION, {"role": "assistant", "content": "Hi"}, QUESTION]
    assert account.warnings == ("messages[1].tool_call is not read; is 'tool_calls' meant?",)


def test_the_result_of_a_function_whose_call_is_gone_is_a_result() -> None:
    result = {"role": "function", "name": "get_news", "content": "none"}
    assert convert_function_calls([QUESTION, result]) == [QUESTION, {**result, "role": "tool"}]
