"""Responses: what is kept and found, items, events and their order, custom tools, and errors."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import Any

import openai
import pytest
from adapter import Responses, said
from shared import FUNCTIONS, PROMPT

RESPONSES = Responses()
CLIENT = RESPONSES.client
SHORT: Any = {**RESPONSES.asked, "max_output_tokens": 4}
MOVE: Any = {"type": "function", **FUNCTIONS[0]}
WRITE: Any = {
    "type": "custom",
    "name": "write",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "go " ("left" | "right")'},
}


def ask(given: Any = PROMPT, **more: Any) -> Any:
    return CLIENT.responses.create(input=given, **{**SHORT, **more})


def test_a_response_has_all_that_its_type_has() -> None:
    response = ask(instructions="Be brief.", temperature=0.5, top_p=0.9, metadata={"a": "b"}, parallel_tool_calls=False)
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (response.instructions, response.temperature, response.top_p) == ("Be brief.", 0.5, 0.9)
    assert (response.metadata, response.parallel_tool_calls) == ({"a": "b"}, False)
    assert response.usage.total_tokens == response.usage.input_tokens + 4
    assert response.usage.output_tokens_details.reasoning_tokens == 0


def test_all_parameters_of_the_package_are_taken() -> None:
    given: Any = {
        "tools": [], "include": ["reasoning.encrypted_content"], "user": "emma", "service_tier": "auto",
        "prompt_cache_key": "emma",
        "safety_identifier": "emma", "truncation": "auto", "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low"}, "background": False, "top_logprobs": 0, "conversation": None,
        "extra_body": {"some_field_of_tomorrow": True},
    }  # fmt: skip
    assert ask(**given).output


@pytest.mark.parametrize(
    ("options", "param", "code"),
    [
        ({"background": True}, "background", None),
        ({"temperature": 3}, "temperature", "decimal_above_max_value"),
        ({"previous_response_id": "resp_gone"}, "previous_response_id", "previous_response_not_found"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0]", None),
        ({"tools": [MOVE, MOVE]}, "tools[1]", None),
        (
            {"tools": [{**WRITE, "format": {**WRITE["format"], "definition": "start: gone"}}]},
            "tools[0]",
            "invalid_grammar",
        ),
        ({"given": [said("Go."), {"type": "function_call_output", "call_id": "call_9", "output": "x"}]}, "input", None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_error_names_its_parameter(options: Any, param: str, code: str | None) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(**options)
    assert str(caught.value.param).startswith(param)
    assert code is None or caught.value.code == code


def test_responses_are_kept_found_and_deleted() -> None:
    items = [said(f"Line {number}.") for number in range(5)]
    first = ask(items)
    assert CLIENT.responses.retrieve(first.id).to_dict() == first.to_dict()
    page = CLIENT.responses.input_items.list(first.id, limit=2, order="asc")
    assert len(page.data) == 2
    assert [item.content[0].text for item in page] == [item["content"] for item in items]  # type: ignore[union-attr]
    second = ask("And?", previous_response_id=first.id)
    assert second.usage.input_tokens > first.usage.input_tokens
    other = openai.OpenAI(api_key=os.environ["CONSTRAIN_OTHER_KEY"], max_retries=0)
    with other, pytest.raises(openai.NotFoundError):
        other.responses.retrieve(first.id)
    CLIENT.responses.delete(first.id)
    for forget in (CLIENT.responses.retrieve, CLIENT.responses.delete):
        with pytest.raises(openai.NotFoundError):
            forget(first.id)
    with pytest.raises(openai.NotFoundError):
        CLIENT.responses.retrieve(ask(store=False).id)
    with pytest.raises(openai.BadRequestError):
        CLIENT.responses.cancel(second.id)


BEGIN = ["response.created", "response.in_progress"]
TEXT = [
    *("response.output_item.added", "response.content_part.added", "response.output_text.delta"),
    *("response.output_text.done", "response.content_part.done", "response.output_item.done"),
]
CALL = [TEXT[0], "response.function_call_arguments.delta", "response.function_call_arguments.done", TEXT[-1]]
CUSTOM = [TEXT[0], "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", TEXT[-1]]


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"max_output_tokens": 5}, [*TEXT, "response.incomplete"]),
        ({"text": {"format": {"type": "json_object"}}}, [*TEXT, "response.completed"]),
        ({"tools": [MOVE], "tool_choice": "required"}, [*CALL, "response.completed"]),
        ({"tools": [MOVE, WRITE], "tool_choice": {"type": "custom", "name": "write"}}, [*CUSTOM, "response.completed"]),
    ],
    ids=["text", "object", "call", "custom call"],
)
def test_events_come_in_their_order(options: Any, kinds: list[str]) -> None:
    asked = {"max_output_tokens": 120, "parallel_tool_calls": False, **options}
    events: list[Any] = list(ask(**asked, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    types = [event.type for event in events]
    merged = types[:1] + [after for before, after in pairwise(types) if before != after or "delta" not in after]
    assert merged == [*BEGIN, *kinds]
    [done] = [event.item for event in events if event.type == "response.output_item.done"]
    last = events[-1].response
    assert [done.to_dict()] == [item.to_dict() for item in last.output]
    whole = "".join(event.delta for event in events if event.type.endswith(".delta"))
    if done.type == "custom_tool_call":
        assert re.fullmatch("go (left|right)", done.input)
    names = {"message": "content", "function_call": "arguments", "custom_tool_call": "input"}
    found = getattr(done, names[done.type])
    assert whole == (last.output_text if done.type == "message" else found)
    assert CLIENT.responses.retrieve(last.id).output_text == last.output_text


def test_streams_that_are_left_free_their_places() -> None:
    for _ in range(8):
        with ask(stream=True, max_output_tokens=2000) as events:
            next(iter(events))
    assert ask().output
