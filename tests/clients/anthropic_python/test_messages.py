"""What the ``anthropic`` package alone asks for: blocks, marks for the cache, thinking, counts, events and errors."""

from __future__ import annotations

import os
from typing import Any

import anthropic
import httpx2
import pytest
from adapter import TOOLS, Messages, read, said
from anthropic import beta_tool
from anthropic.types import ModelInfo, RawMessageStreamEvent
from pydantic import TypeAdapter
from shared import MODEL, PROMPT, QUESTION, Person

WAY = Messages()
CLIENT = WAY.client
FORMAT: Any = {"type": "json_schema", "schema": {**Person.model_json_schema(), "additionalProperties": False}}
ANY: Any = {"type": "any", "disable_parallel_tool_use": True}


def create(*messages: Any, **more: Any) -> Any:
    found = CLIENT.messages.create(**{**WAY.asked, "messages": list(messages) or [said(PROMPT)], **more})
    return anthropic.types.Message.model_validate(found.model_dump(), strict=True)


def test_a_message_has_all_that_its_type_has() -> None:
    message = create(system="Be brief.", max_tokens=3)
    [block] = message.content
    assert (block.type, message.role, message.type, message.model) == ("text", "assistant", "message", MODEL)
    assert message.id.startswith("msg_")
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 3)
    count = CLIENT.messages.count_tokens(model=MODEL, messages=[said(PROMPT)], system="Be brief.").input_tokens
    assert count == message.usage.input_tokens + message.usage.cache_read_input_tokens


def test_blocks_system_blocks_and_marks_for_the_cache() -> None:
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind.", "cache_control": mark}]
    turns = [said("Hello."), {"role": "assistant", "content": "Hello!"}, said("And who am I?")]
    blocks = [{"type": "text", "text": "Who are you?", "cache_control": mark}]
    asked: Any = {"system": system, "metadata": {"user_id": "a"}, "max_tokens": 8}
    first, second = (create(*turns, {"role": "user", "content": blocks}, **asked) for _ in range(2))
    assert first.content == second.content
    assert second.usage.cache_read_input_tokens > 0


@pytest.mark.parametrize("more", [{"output_config": {"format": FORMAT}}, {"extra_body": {"output_format": FORMAT}}])
def test_a_format_in_either_field(more: Any) -> None:
    assert Person.model_validate_json(create(**more).content[0].text)


@pytest.mark.parametrize("kind", ["enabled", "adaptive", "disabled"])
def test_thinking_is_taken(kind: str) -> None:
    budget = {"budget_tokens": 20} if kind == "enabled" else {}
    assert create(thinking={"type": kind, **budget}, max_tokens=60).content[-1].type == "text"  # it cannot think


@pytest.mark.parametrize("stream", [False, True])
def test_a_draft_is_a_block_of_thinking(stream: bool) -> None:
    asked: Any = {"output_config": {"format": FORMAT}, "extra_body": {"draft": 16, "temperature": 0}}
    if stream:
        with CLIENT.messages.stream(**{**WAY.asked, **asked}, messages=[said(PROMPT)]) as events:
            assert {"thinking", "signature", "text"} <= {event.type for event in events}
            message: Any = events.get_final_message()
    else:
        message = create(**asked)
    thinking, text = message.content
    assert thinking.signature
    assert Person.model_validate_json(text.text)
    assert create(said(PROMPT), message.to_param(), said("Why?"), max_tokens=4).content


def test_every_event_is_one_of_the_packages_types() -> None:
    events = list(CLIENT.messages.create(model=MODEL, max_tokens=5, messages=[said(PROMPT)], stream=True))
    for event in events:
        TypeAdapter(RawMessageStreamEvent).validate_python(event.model_dump(), strict=True)
    kinds = [event.type for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_one_call_at_most_and_errors_as_results() -> None:
    tool = {**TOOLS[0], "type": "custom", "strict": True, "input_examples": [{"city": "Oslo", "days": 1}]}
    first = create(said(QUESTION), tools=[tool, TOOLS[1]], tool_choice=ANY)
    [call] = read(first)
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "It fails.", "is_error": True}]
    turns = [said(QUESTION), first.to_param(), {"role": "user", "content": [*results, {"type": "text", "text": "So?"}]}]
    assert create(*turns, tools=TOOLS, tool_choice={"type": "none"}, max_tokens=8).content


def test_the_loop_of_the_package() -> None:
    seen: list[Any] = []

    @beta_tool
    def move(to: str, steps: int) -> str:
        """Moves a piece."""
        seen.append((to, steps))
        return "Done."

    asked: Any = {"model": MODEL, "max_tokens": 60, "messages": [said(PROMPT)], "tools": [move], "tool_choice": ANY}
    messages = list(CLIENT.beta.messages.tool_runner(**asked, max_iterations=2))
    assert [message.stop_reason for message in messages] == ["tool_use", "tool_use"]
    assert all(isinstance(steps, int) for _, steps in seen)
    assert seen


def test_tools_of_anthropics_servers_are_left_out() -> None:
    search: Any = {"type": "web_search_20250305", "name": "web_search"}
    assert create(tools=[TOOLS[0], search], max_tokens=8)
    with pytest.raises(anthropic.BadRequestError, match="web_search"):
        create(tools=[TOOLS[0], search], tool_choice={"type": "tool", "name": "web_search"})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]},
            "messages[0].content[0]",
        ),
        ({"tools": [{"name": "a b", "input_schema": {"type": "object"}}]}, "tools[0].name"),
        ({"messages": [said("Hm."), {"role": "robot", "content": "I"}]}, "messages[1]"),
        ({"extra_body": {"temperature": 2}}, "temperature"),
        ({"messages": [said("word " * 20_000)]}, "context"),
    ],
)
def test_an_error_has_the_form_of_the_package(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        create(**fields)
    body: Any = caught.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert body["request_id"] == caught.value.request_id
    assert says in body["error"]["message"]


def test_keys_paths_and_models() -> None:
    with anthropic.Anthropic(api_key=None, auth_token=os.environ["CONSTRAIN_OTHER_KEY"], max_retries=0) as client:
        assert client.messages.create(model=MODEL, max_tokens=1, messages=[said(PROMPT)]).content
    with pytest.raises(anthropic.NotFoundError):
        CLIENT.messages.batches.list()
    with pytest.raises(anthropic.APIStatusError) as caught:
        CLIENT.get("/v1/messages", cast_to=httpx2.Response)
    assert caught.value.status_code == 405
    assert [each.id for each in CLIENT.models.list(limit=5)] == [MODEL]
    found = CLIENT.models.retrieve(MODEL)
    assert ModelInfo.model_validate(found.model_dump(), strict=True).display_name == MODEL
    with pytest.raises(anthropic.NotFoundError):
        CLIENT.models.retrieve("other")
