"""Streams of chat completions: chunk by chunk, and by the client's helper."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import BadRequestError
from samples import MESSAGES, MOVE, MOVE_SCHEMA, Move, Person, function, json_schema

if TYPE_CHECKING:
    from httpx2 import Client
    from openai import OpenAI
    from openai.types.chat import ChatCompletionChunk

NAMED: Any = {"type": "function", "function": {"name": "Move"}}


def stream(client: OpenAI, model: str, **options: Any) -> list[ChatCompletionChunk]:
    """The chunks, which have what all of them have."""
    asked: Any = {"max_tokens": 60, "temperature": 0, **options}
    chunks = list(client.chat.completions.create(model=model, messages=MESSAGES, stream=True, **asked))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    return chunks


def text_of(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def test_a_text(client: OpenAI, model: str) -> None:
    chunks = stream(client, model, max_tokens=6)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:])
    assert text_of(chunks)


def test_the_reason_comes_in_a_last_chunk_of_its_own(client: OpenAI, model: str) -> None:
    *before, last = stream(client, model, max_tokens=4)
    assert {chunk.choices[0].finish_reason for chunk in before} == {None}
    assert last.choices[0].finish_reason == "length"
    assert not last.choices[0].delta.content


def test_a_stream_says_what_a_response_says(client: OpenAI, model: str) -> None:
    whole = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=12, temperature=0)
    assert text_of(stream(client, model, max_tokens=12)) == whole.choices[0].message.content


def test_no_usage_unless_it_is_wanted(client: OpenAI, model: str) -> None:
    for options in ({}, {"stream_options": {"include_usage": False}}, {"stream_options": {}}):
        chunks = stream(client, model, max_tokens=3, **options)
        assert all(chunk.usage is None and chunk.choices for chunk in chunks)


def test_usage_comes_last(client: OpenAI, model: str) -> None:
    *before, last = stream(client, model, max_tokens=3, stream_options={"include_usage": True})
    assert last.choices == []
    assert last.usage
    assert last.usage.completion_tokens == 3
    assert all("usage" in chunk.model_fields_set and chunk.usage is None for chunk in before)


def test_several_choices_begin_with_the_first(client: OpenAI, model: str) -> None:
    chunks = stream(client, model, max_tokens=4, n=3, temperature=1)
    numbers = [choice.index for chunk in chunks for choice in chunk.choices]
    assert numbers[0] == 0
    reasons = Counter(choice.index for chunk in chunks for choice in chunk.choices if choice.finish_reason)
    assert reasons == {0: 1, 1: 1, 2: 1}


def test_a_schema(client: OpenAI, model: str) -> None:
    chunks = stream(client, model, response_format=json_schema(MOVE_SCHEMA, strict=True))
    assert set(json.loads(text_of(chunks))) == {"to", "steps"}
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_characters_are_whole(client: OpenAI, model: str) -> None:
    text = "äöü 漢字 🎉\u2028"
    chunks = stream(client, model, response_format=json_schema({"const": text}), max_tokens=200)
    assert json.loads(text_of(chunks)) == text


def test_a_stop(client: OpenAI, model: str) -> None:
    chunks = stream(client, model, stop=["a", "e"], max_tokens=30)
    assert not {"a", "e"} & set(text_of(chunks))


def test_a_call_names_itself_once(client: OpenAI, model: str) -> None:
    chunks = stream(client, model, tools=[MOVE], tool_choice=NAMED, parallel_tool_calls=False, max_tokens=100)
    parts = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or ()]
    first, *others = parts
    assert (first.index, first.type) == (0, "function")
    assert first.id
    assert first.function
    assert (first.function.name, first.function.arguments) == ("Move", "")
    for part in others:
        assert (part.index, part.id, part.type) == (0, None, None)
        assert part.function
        assert part.function.name is None
    Move.model_validate_json("".join(part.function.arguments or "" for part in parts if part.function))
    assert not text_of(chunks)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_a_call_is_finished_before_the_next_begins(client: OpenAI, model: str) -> None:
    chunks = stream(client, model, tools=[MOVE], tool_choice="required", temperature=1, seed=3, max_tokens=150)
    numbers = [part.index for chunk in chunks for part in chunk.choices[0].delta.tool_calls or ()]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(max(numbers) + 1))


def test_empty_arguments(client: OpenAI, model: str) -> None:
    chunks = stream(client, model, tools=[function("ping")], tool_choice="required", parallel_tool_calls=False)
    parts = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or ()]
    assert json.loads("".join(part.function.arguments or "" for part in parts if part.function)) == {}


def test_on_the_wire(raw: Client, model: str) -> None:
    body = {"model": model, "messages": MESSAGES, "stream": True, "max_tokens": 3}
    with raw.stream("POST", "chat/completions", json=body) as response:
        assert response.headers["content-type"].split(";")[0] == "text/event-stream"
        assert response.headers["x-request-id"]
        lines = [line for line in response.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert all(json.loads(line[6:])["id"] for line in lines[:-1])


def test_what_is_wrong_is_said_before_the_stream(client: OpenAI, raw: Client, model: str) -> None:
    wanted = json_schema({"type": "array", "items": {}}, strict=True)
    with pytest.raises(BadRequestError):
        client.chat.completions.create(model=model, messages=MESSAGES, stream=True, response_format=wanted)
    body = {"model": model, "messages": MESSAGES, "stream": True, "response_format": wanted}
    response = raw.post("chat/completions", json=body)
    assert (response.status_code, response.headers["content-type"]) == (400, "application/json")


def test_a_stream_that_is_left_early_frees_its_place(client: OpenAI, model: str) -> None:
    for _ in range(12):
        with client.chat.completions.create(model=model, messages=MESSAGES, stream=True, max_tokens=2000) as chunks:
            next(iter(chunks))
    assert text_of(stream(client, model, max_tokens=3))


def test_the_helper_with_a_text(client: OpenAI, model: str) -> None:
    with client.chat.completions.stream(model=model, messages=MESSAGES, max_tokens=300, temperature=0) as events:
        seen = list(events)
        completion = events.get_final_completion()
    kinds = [event.type for event in seen if event.type != "chunk"]
    assert kinds[-1] == "content.done"
    assert set(kinds) == {"content.delta", "content.done"}
    text = "".join(event.delta for event in seen if event.type == "content.delta")
    assert text == completion.choices[0].message.content
    assert completion.choices[0].finish_reason == "stop"


def test_the_helper_with_a_model(client: OpenAI, model: str) -> None:
    with client.chat.completions.stream(
        model=model, messages=MESSAGES, response_format=Person, max_tokens=90, stream_options={"include_usage": True}
    ) as events:
        seen = list(events)
        completion = events.get_final_completion()
    (done,) = [event for event in seen if event.type == "content.done"]
    assert isinstance(done.parsed, Person)
    assert isinstance(completion.choices[0].message.parsed, Person)
    assert completion.usage
    partial: list[Any] = [event.parsed for event in seen if event.type == "content.delta"]
    assert any(isinstance(each, dict) for each in partial)


def test_the_helper_with_tools(client: OpenAI, model: str) -> None:
    with client.chat.completions.stream(
        model=model, messages=MESSAGES, tools=[MOVE], tool_choice="required", max_tokens=120, temperature=0
    ) as events:
        seen = list(events)
        message = events.get_final_completion().choices[0].message
    done = [event for event in seen if event.type == "tool_calls.function.arguments.done"]
    assert done
    assert message.tool_calls
    assert len(done) == len(message.tool_calls)
    for event, call in zip(done, message.tool_calls, strict=True):
        assert event.name == "Move"
        assert isinstance(event.parsed_arguments, Move)
        assert event.arguments == call.function.arguments


def test_the_helper_with_several_choices(client: OpenAI, model: str) -> None:
    with client.chat.completions.stream(
        model=model, messages=MESSAGES, response_format=Person, max_tokens=90, n=2
    ) as events:
        completion = events.get_final_completion()
    assert [isinstance(choice.message.parsed, Person) for choice in completion.choices] == [True, True]


def test_the_helper_says_when_a_text_was_cut(client: OpenAI, model: str) -> None:
    with (
        pytest.raises(openai.LengthFinishReasonError),
        client.chat.completions.stream(
            model=model, messages=MESSAGES, tools=[MOVE], tool_choice="none", max_tokens=3
        ) as events,
    ):
        events.until_done()


def test_the_helper_under_beta(client: OpenAI, model: str) -> None:
    with client.beta.chat.completions.stream(
        model=model, messages=MESSAGES, response_format=Person, max_tokens=90
    ) as events:
        assert events.get_final_completion().choices[0].message.parsed
