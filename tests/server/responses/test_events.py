"""Streams of events: the accumulator of OpenAI's client judges them."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from constrain import TextDelta
from constrain.server.http.errors import ApiError
from constrain.server.responses.events import EventWriter, server_sent
from constrain.server.responses.output import finished_response, response_json
from tests.support import for_each
from tests.support.server.response_answers import ANSWERS, TOOLS, Answer

Events = list[dict[str, Any]]


def _events(answer: Answer) -> Events:
    writer = EventWriter(answer.head)
    events = writer.begin()
    for event in answer.events:
        events += writer.write(event)
    return events + writer.finish(answer.completion, completed_at=1_763_800_002.0, reasoning_tokens=3)


def _client(events: Events) -> openai.OpenAI:
    body = "".join(map(server_sent, events)).encode()
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=body))
    client = httpx2.Client(transport=transport)
    return openai.OpenAI(api_key="none", base_url="http://test/v1", http_client=client, max_retries=0)


def _kinds(events: Events) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


@pytest.mark.slow(only=("text",))
@pytest.mark.parametrize("name", ANSWERS)
def test_every_event_is_one_of_openais_type(name: str) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    for event in _events(ANSWERS[name]):
        assert adapter.validate_python(event).to_dict(exclude_unset=True).keys() == event.keys()


@for_each("name", ANSWERS)
def test_a_stream_ends_in_the_response_that_is_not_streamed(name: str) -> None:
    answer = ANSWERS[name]
    whole = finished_response(answer.head, answer.completion, completed_at=1_763_800_002.0, reasoning_tokens=3)
    events = _events(answer)
    assert events[-1]["response"] == response_json(whole)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


@for_each("name", ANSWERS)
def test_openais_accumulator_takes_every_stream(name: str) -> None:
    events = _events(ANSWERS[name])
    with _client(events).responses.stream(model="tiny", input="Hello", tools=TOOLS) as stream:
        assert [event.type for event in stream] == [event["type"] for event in events]


def test_openais_accumulator_parses_the_value() -> None:
    class Person(BaseModel):
        name: str

    events = _events(ANSWERS["JSON"])
    with _client(events).responses.stream(model="tiny", input="Hello", text_format=Person) as stream:
        assert stream.get_final_response().output_parsed == Person(name="Ada")


@for_each("name", ANSWERS)
def test_deltas_add_up_to_what_is_done(name: str) -> None:
    written: dict[tuple[str, str], str] = {}
    for event in _events(ANSWERS[name]):
        kind, _, stage = event["type"].rpartition(".")
        if stage == "delta":
            key = (event["item_id"], kind)
            written[key] = written.get(key, "") + event["delta"]
        elif stage == "done" and "item_id" in event and "part" not in event:
            value = next(event[key] for key in ("text", "refusal", "arguments", "input") if key in event)
            assert written.get((event["item_id"], kind), "") == value


@for_each("name", ANSWERS)
def test_items_are_the_same_when_added_done_and_completed(name: str) -> None:
    events = _events(ANSWERS[name])
    added = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    assert [(item["id"], item["type"]) for item in added] == [(item["id"], item["type"]) for item in done]
    assert {item["status"] for item in added} <= {"in_progress"}
    assert not any(item.get("content") or item.get("arguments") or item.get("input") for item in added)


def test_text_is_streamed_as_one_part_of_one_message() -> None:
    assert _kinds(_events(ANSWERS["text"])) == [
        *("created", "in_progress", "output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.delta", "output_text.done", "content_part.done", "output_item.done", "completed"),
    ]


def test_a_call_is_finished_before_the_next_begins() -> None:
    call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.delta"]
    call += ["function_call_arguments.done", "output_item.done"]
    done = [event for event in _events(ANSWERS["calls"]) if event["type"] == "response.function_call_arguments.done"]
    assert [event["name"] for event in done] == ["weather", "weather"]
    custom = [kind.replace("function_call_arguments", "custom_tool_call_input") for kind in call]
    assert _kinds(_events(ANSWERS["calls"]))[2:-1] == [*call, *call, *custom]


def test_an_error_amid_a_stream_is_flat_and_the_response_failed() -> None:
    writer = EventWriter(ANSWERS["everything"].head)
    writer.begin()
    for event in ANSWERS["everything"].events[:5]:
        writer.write(event)
    error, failed = writer.fail(ApiError("The model is gone.", status=500, kind="server_error", code="internal_error"))
    number = error.pop("sequence_number")
    assert error == {"type": "error", "code": "internal_error", "message": "The model is gone.", "param": None}
    assert (failed["type"], failed["sequence_number"]) == ("response.failed", number + 1)
    assert [item["type"] for item in failed["response"]["output"]] == ["reasoning", "message"]


def test_openais_accumulator_takes_a_stream_that_fails() -> None:
    writer = EventWriter(ANSWERS["text"].head)
    events = writer.begin() + writer.write(TextDelta("Hé"))
    events += writer.fail(ApiError("The model is gone.", status=500, kind="server_error"))
    with _client(events).responses.stream(model="tiny", input="Hello") as stream:
        assert [event.type for event in stream][-2:] == ["error", "response.failed"]


def test_an_event_is_two_lines_named_by_its_type() -> None:
    event = {"type": "error", "message": "☃\n\u2028\x85"}
    name, data, end = server_sent(event).splitlines()
    assert (name, end) == ("event: error", "")
    assert json.loads(data.removeprefix("data: ")) == event
