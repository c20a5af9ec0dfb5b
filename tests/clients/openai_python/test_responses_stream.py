"""Events of streamed responses: which, in which order, and that they agree with each other."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from openai import BadRequestError
from samples import MOVE_SCHEMA, PROMPT, Person, flat_custom, flat_function, text_format

if TYPE_CHECKING:
    from httpx2 import Client
    from openai import OpenAI

MOVE = flat_function("Move", MOVE_SCHEMA, description="Moves a piece.")
WRITE = flat_custom("write", "lark", 'start: "go " ("left" | "right")')

BEGIN = ["response.created", "response.in_progress"]
TEXT = [
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
]
CALL = [
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
]
CUSTOM = [
    "response.output_item.added",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.output_item.done",
]


def stream(client: OpenAI, model: str, **options: Any) -> list[Any]:
    """The events, which have what all of them have."""
    asked: Any = {"input": PROMPT, "max_output_tokens": 120, "temperature": 0, "parallel_tool_calls": False, **options}
    events: list[Any] = list(client.responses.create(model=model, stream=True, **asked))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == BEGIN
    whole = [event.response for event in events if hasattr(event, "response")]
    assert len({response.id for response in whole}) == 1
    assert whole[0].status == "in_progress"
    assert whole[0].output == []
    last = events[-1]
    assert last.type == f"response.{last.response.status}"
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.to_dict() for item in done] == [item.to_dict() for item in last.response.output]
    added = [event.item for event in events if event.type == "response.output_item.added"]
    assert [item.id for item in added] == [item.id for item in done]
    return events


def kinds(events: list[Any]) -> list[str]:
    """The types of the events, deltas that follow each other as one."""
    types = [event.type for event in events]
    return types[:1] + [after for before, after in pairwise(types) if before != after or "delta" not in after]


def joined(events: list[Any], kind: str) -> str:
    return "".join(event.delta for event in events if event.type == kind)


def test_a_text(client: OpenAI, model: str) -> None:
    events = stream(client, model, input="Say hi.", max_output_tokens=400)
    assert kinds(events) == [*BEGIN, *TEXT, "response.completed"]
    text = joined(events, "response.output_text.delta")
    assert text == events[-1].response.output_text
    (done,) = [event for event in events if event.type == "response.output_text.done"]
    assert (done.text, done.logprobs) == (text, [])
    assert all(event.logprobs == [] for event in events if event.type == "response.output_text.delta")


def test_items_and_parts_begin_empty(client: OpenAI, model: str) -> None:
    events = stream(client, model, max_output_tokens=5)
    (item,) = [event.item for event in events if event.type == "response.output_item.added"]
    assert (item.status, item.content) == ("in_progress", [])
    (part,) = [event.part for event in events if event.type == "response.content_part.added"]
    assert (part.text, part.annotations) == ("", [])


def test_a_text_that_is_cut(client: OpenAI, model: str) -> None:
    events = stream(client, model, max_output_tokens=5)
    assert kinds(events) == [*BEGIN, *TEXT, "response.incomplete"]
    assert events[-1].response.incomplete_details.reason == "max_output_tokens"


def test_a_schema(client: OpenAI, model: str) -> None:
    events = stream(client, model, text=text_format(MOVE_SCHEMA, strict=True))
    assert kinds(events) == [*BEGIN, *TEXT, "response.completed"]
    assert set(json.loads(joined(events, "response.output_text.delta"))) == {"to", "steps"}


def test_a_call(client: OpenAI, model: str) -> None:
    events = stream(client, model, tools=[MOVE], tool_choice="required")
    assert kinds(events) == [*BEGIN, *CALL, "response.completed"]
    added = events[2].item
    assert (added.type, added.name, added.arguments) == ("function_call", "Move", "")
    assert added.call_id.startswith("call_")
    arguments = joined(events, "response.function_call_arguments.delta")
    (done,) = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert (done.name, done.arguments) == ("Move", arguments)
    assert set(json.loads(arguments)) == {"to", "steps"}


def test_a_custom_call(client: OpenAI, model: str) -> None:
    events = stream(client, model, tools=[WRITE], tool_choice="required")
    assert kinds(events) == [*BEGIN, *CUSTOM, "response.completed"]
    text = joined(events, "response.custom_tool_call_input.delta")
    (done,) = [event for event in events if event.type == "response.custom_tool_call_input.done"]
    assert done.input == text
    assert re.fullmatch("go (left|right)", text)
    assert events[2].item.input == ""


def test_several_calls_come_one_after_the_other(client: OpenAI, model: str) -> None:
    events = stream(
        client, model, tools=[MOVE, WRITE], tool_choice="required", parallel_tool_calls=True, temperature=1,
        max_output_tokens=200,
    )  # fmt: skip
    indices = [event.output_index for event in events if hasattr(event, "output_index")]
    assert indices == sorted(indices)
    assert [event.output_index for event in events if event.type == "response.output_item.added"] == list(
        range(len(events[-1].response.output))
    )


def test_usage_is_in_the_last_event(client: OpenAI, model: str) -> None:
    events = stream(client, model, max_output_tokens=5)
    assert events[0].response.usage is None
    assert events[-1].response.usage.output_tokens == 5


def test_on_the_wire(raw: Client, model: str) -> None:
    body = {"model": model, "input": "Hi.", "stream": True, "max_output_tokens": 4}
    with raw.stream("POST", "responses", json=body) as response:
        assert response.headers["content-type"].split(";")[0] == "text/event-stream"
        blocks = response.read().decode().strip().split("\n\n")
    for block in blocks:
        name, data = block.split("\n")
        assert name == f"event: {json.loads(data.removeprefix('data: '))['type']}"


def test_what_is_streamed_is_kept(client: OpenAI, model: str) -> None:
    last = stream(client, model, max_output_tokens=5)[-1].response
    assert client.responses.retrieve(last.id).output_text == last.output_text


def test_a_stream_goes_on_from_a_response(client: OpenAI, model: str) -> None:
    first = client.responses.create(model=model, input="Hi.", max_output_tokens=5)
    events = stream(client, model, previous_response_id=first.id, max_output_tokens=5)
    assert events[-1].response.previous_response_id == first.id


def test_what_is_wrong_is_said_before_the_stream(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        stream(client, model, text=text_format({"type": "array", "items": {}}, strict=True))
    assert caught.value.code == "invalid_json_schema"


def test_streams_that_are_left_early(client: OpenAI, model: str) -> None:
    for _ in range(8):
        with client.responses.create(model=model, input=PROMPT, stream=True, max_output_tokens=2000) as events:
            next(iter(events))
    assert client.responses.create(model=model, input="Hi.", max_output_tokens=2).output


def test_the_helper_with_a_text(client: OpenAI, model: str) -> None:
    with client.responses.stream(model=model, input="Say hi.", max_output_tokens=300, temperature=0) as events:
        seen: list[Any] = list(events)
        response = events.get_final_response()
    deltas = [event for event in seen if event.type == "response.output_text.delta"]
    assert deltas[-1].snapshot == response.output_text


def test_the_helper_with_a_model(client: OpenAI, model: str) -> None:
    with client.responses.stream(model=model, input=PROMPT, text_format=Person, max_output_tokens=90) as events:
        seen: list[Any] = list(events)
        response = events.get_final_response()
    assert isinstance(response.output_parsed, Person)
    (done,) = [event for event in seen if event.type == "response.output_text.done"]
    assert isinstance(done.parsed, Person)


def test_the_helper_with_a_call(client: OpenAI, model: str) -> None:
    with client.responses.stream(
        model=model, input=PROMPT, tools=[{**MOVE, "strict": True}], tool_choice="required", max_output_tokens=120
    ) as events:
        seen: list[Any] = list(events)
        response = events.get_final_response()
    deltas = [event for event in seen if event.type == "response.function_call_arguments.delta"]
    assert deltas
    item = response.output[-1]
    assert item.type == "function_call"
    assert set(json.loads(item.arguments)) == {"to", "steps"}
    assert deltas[-1].snapshot == item.arguments
