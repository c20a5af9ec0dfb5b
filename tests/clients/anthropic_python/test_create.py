"""``client.messages.create``: texts, why they end, and what they cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from samples import PERSON, QUESTION, Person

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic import Anthropic

FORMAT: Any = {"type": "json_schema", "schema": PERSON}


def test_a_text(create: Callable[..., Any], model: str) -> None:
    message = create(system="Be brief.")
    [block] = message.content
    assert (block.type, message.role, message.type, message.model) == ("text", "assistant", "message", model)
    assert block.text
    assert message.id.startswith("msg_")
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.usage.output_tokens > 0


def test_a_text_that_is_cut(create: Callable[..., Any]) -> None:
    message = create(max_tokens=3)
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 3)


def test_a_stop_sequence(create: Callable[..., Any]) -> None:
    words = create().content[0].text.split()
    message = create(stop_sequences=[words[3]])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", words[3])
    assert words[3] not in message.content[0].text


def test_blocks_system_blocks_and_marks_for_the_cache(create: Callable[..., Any]) -> None:
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind.", "cache_control": mark}]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Hello."}]},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": [{"type": "text", "text": "Who are you?", "cache_control": mark}]},
        {"role": "user", "content": "And who am I?"},
    ]
    first, second = (create(system=system, messages=messages, metadata={"user_id": "a"}) for _ in range(2))
    assert first.content == second.content
    assert second.usage.cache_read_input_tokens > 0


def test_an_answer_goes_into_the_next_request(create: Callable[..., Any]) -> None:
    first = create(max_tokens=20)
    turns = [*QUESTION, first.to_param(), {"role": "user", "content": "Why?"}]
    assert create(messages=turns, max_tokens=20).content


def test_a_format(create: Callable[..., Any]) -> None:
    message = create(output_config={"format": FORMAT})
    jsonschema.validate(json.loads(message.content[0].text), PERSON)
    assert message.stop_reason == "end_turn"


def test_a_format_in_the_older_field(create: Callable[..., Any]) -> None:
    message = create(extra_body={"output_format": FORMAT})
    jsonschema.validate(json.loads(message.content[0].text), PERSON)


def test_a_type_is_parsed(client: Anthropic, model: str) -> None:
    message = client.messages.parse(model=model, max_tokens=200, messages=QUESTION, output_format=Person)
    assert isinstance(message.parsed_output, Person)


def test_a_type_is_parsed_in_the_beta(client: Anthropic, model: str) -> None:
    message = client.beta.messages.parse(
        model=model,
        max_tokens=200,
        messages=QUESTION,
        output_format=Person,
        betas=["structured-outputs-2025-11-13"],
    )
    assert isinstance(message.parsed_output, Person)


@pytest.mark.parametrize("kind", ["enabled", "adaptive", "disabled"])
def test_thinking(create: Callable[..., Any], kind: str) -> None:
    budget = {"budget_tokens": 20} if kind == "enabled" else {}
    message = create(thinking={"type": kind, **budget}, max_tokens=60)
    assert message.content[-1].type == "text"  # this model cannot think


def test_a_draft_is_a_block_of_thinking(create: Callable[..., Any]) -> None:
    message = create(output_config={"format": FORMAT}, extra_body={"draft": 16})
    thinking, text = message.content
    assert thinking.type == "thinking"
    assert thinking.signature
    jsonschema.validate(json.loads(text.text), PERSON)
    turns = [*QUESTION, message.to_param(), {"role": "user", "content": "Why?"}]
    assert create(messages=turns, max_tokens=20).content


def test_the_count_is_that_of_the_request(client: Anthropic, create: Callable[..., Any], model: str) -> None:
    asked: Any = {"messages": QUESTION, "system": "Be brief."}
    count = client.messages.count_tokens(model=model, **asked).input_tokens
    usage = create(**asked, max_tokens=1).usage
    assert count == usage.input_tokens + usage.cache_read_input_tokens


def test_the_id_of_the_request(client: Anthropic, model: str) -> None:
    message = client.messages.create(model=model, max_tokens=1, messages=QUESTION)
    assert str(message._request_id).startswith("req_")
