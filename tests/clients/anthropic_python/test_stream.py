"""Streams, and the package's helper for them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import anthropic
import jsonschema
import pytest
from anthropic.types import RawMessageStreamEvent
from pydantic import TypeAdapter
from samples import PERSON, QUESTION, TOOLS, Person, calls_of

if TYPE_CHECKING:
    from anthropic import Anthropic

EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
COLD = {"temperature": 0}


def test_every_event_is_one_of_the_packages_types(client: Anthropic, model: str) -> None:
    events = list(client.messages.create(model=model, max_tokens=5, messages=QUESTION, stream=True))
    for event in events:
        EVENTS.validate_python(event.model_dump(), strict=True)
    kinds = [event.type for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_a_text(client: Anthropic, model: str) -> None:
    with client.messages.stream(model=model, max_tokens=20, messages=QUESTION, extra_body=COLD) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert message.content[0].text == text
    assert stream.get_final_text() == text
    whole = client.messages.create(model=model, max_tokens=20, messages=QUESTION, extra_body=COLD)
    assert (message.stop_reason, message.content[0].text) == (whole.stop_reason, whole.content[0].text)
    assert message.usage.output_tokens == whole.usage.output_tokens
    assert stream.request_id


def test_calls(client: Anthropic, model: str) -> None:
    asked: Any = {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "move"}, "extra_body": COLD}
    with client.messages.stream(model=model, max_tokens=60, messages=QUESTION, **asked) as stream:
        pieces = "".join(event.partial_json for event in stream if event.type == "input_json")
        message = stream.get_final_message()
    [call] = calls_of(message)
    assert json.loads(pieces) == call.input


def test_thinking(client: Anthropic, model: str) -> None:
    body = {**COLD, "draft": 16}
    config: Any = {"format": {"type": "json_schema", "schema": PERSON}}
    asked: Any = {"output_config": config, "extra_body": body}
    with client.messages.stream(model=model, max_tokens=100, messages=QUESTION, **asked) as stream:
        kinds = {event.type for event in stream}
        message = stream.get_final_message()
    assert {"thinking", "signature", "text"} <= kinds
    thinking, text = message.content
    assert thinking.signature
    jsonschema.validate(json.loads(text.text), PERSON)


def test_a_type_is_parsed(client: Anthropic, model: str) -> None:
    asked: Any = {"output_format": Person, "extra_body": COLD}
    with client.messages.stream(model=model, max_tokens=200, messages=QUESTION, **asked) as stream:
        stream.until_done()
        assert isinstance(stream.get_final_message().parsed_output, Person)


def test_a_wrong_request_is_an_error_before_the_stream(client: Anthropic, model: str) -> None:
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(model=f"not-{model}", max_tokens=5, messages=QUESTION, stream=True)


async def _collect(model: str) -> str:
    async with (
        anthropic.AsyncAnthropic(max_retries=0) as client,
        client.messages.stream(model=model, max_tokens=5, messages=QUESTION) as stream,
    ):
        return "".join([text async for text in stream.text_stream])


def test_an_asynchronous_client(model: str) -> None:
    assert asyncio.run(_collect(model))
