"""Requests for messages: what is refused, in which words, and what the fields mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.chat.answers.choice import read_choice
from constrain.chat.answers.choices import Calls
from constrain.server.http.errors import ApiError
from constrain.server.messages.request import MessagesRequest, read_count_request, read_messages_request
from constrain.server.requests.limits import MAX_STOP_SEQUENCES
from constrain.server.settings import Settings
from tests.support import for_each

BASE = {"model": "small", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
OPEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOLS = [{"name": "f", "input_schema": OPEN_SCHEMA}, {"name": "g", "input_schema": {"type": "object"}}]


def read(fields: dict[str, Any]) -> MessagesRequest:
    return read_messages_request({**BASE, **fields}, Settings())


def options(**fields: Any) -> dict[str, Any]:
    return dict(read(fields).question.options)


def test_a_count_needs_no_limit() -> None:
    asked = {name: value for name, value in BASE.items() if name != "max_tokens"}
    assert "max_tokens" not in read_count_request(asked, Settings()).question.options
    with pytest.raises(ApiError, match="max_tokens"):
        read_messages_request(asked, Settings())


def test_numbers_and_stop_sequences_become_options() -> None:
    found = options(temperature=0.5, top_p=0.9, top_k=3, stop_sequences=["a", "b"], max_tokens=7)
    assert found == {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "stop": ["a", "b"], "max_tokens": 7}


def test_stop_sequences_are_limited() -> None:
    assert len(options(stop_sequences=["a"] * MAX_STOP_SEQUENCES)["stop"]) == MAX_STOP_SEQUENCES
    with pytest.raises(ApiError, match="'stop_sequences': array too long"):
        options(stop_sequences=["a"] * (MAX_STOP_SEQUENCES + 1))


@for_each(
    "given, expected",
    (None, {}),
    ({"type": "disabled"}, {"thinking": False}),
    ({"type": "adaptive"}, {"thinking": "adaptive"}),
    ({"type": "enabled", "budget_tokens": 50}, {"thinking": True, "max_reasoning_tokens": 50}),
)
def test_thinking_is_the_models_reasoning(given: Any, expected: dict[str, Any]) -> None:
    assert options(thinking=given) == {"max_tokens": 100, **expected}


@pytest.mark.parametrize(("display", "shown"), [(None, True), ("summarized", True), ("omitted", False)])
def test_the_text_of_thinking_may_be_left_out(display: str | None, shown: bool) -> None:
    assert read({"thinking": {"type": "adaptive", "display": display}}).shows_thinking is shown


@pytest.mark.parametrize("field", ["output_config", "output_format"])
def test_a_format_is_a_schema_in_either_field(field: str) -> None:
    document = {"type": "json_schema", "schema": OPEN_SCHEMA}
    question = read({field: {"format": document} if field == "output_config" else document}).question
    assert json.loads(str(question.schema)) == OPEN_SCHEMA


def test_a_grammar_is_a_format_too() -> None:
    question = read({"structured_outputs": {"regex": "[0-9]+"}}).question
    assert question.content is not None
    assert question.content.place.param == "structured_outputs.regex"


@for_each(
    "given, calls, allowed, parallel",
    (None, Calls.AUTO, None, True),
    ({"type": "auto"}, Calls.AUTO, None, True),
    ({"type": "auto", "disable_parallel_tool_use": True}, Calls.AUTO, None, False),
    ({"type": "any"}, Calls.REQUIRED, None, True),
    ({"type": "any", "disable_parallel_tool_use": True}, Calls.REQUIRED, None, False),
    ({"type": "tool", "name": "g"}, Calls.REQUIRED, ("g",), True),
    ({"type": "none"}, Calls.NONE, None, True),
)
def test_every_tool_choice_is_one_of_the_library(given: Any, calls: Calls, allowed: Any, parallel: bool) -> None:
    found = options(tools=TOOLS, tool_choice=given)
    choice = read_choice(found.get("tool_choice"), found["tools"])
    assert (choice.calls, choice.allowed, found["parallel_tool_calls"]) == (calls, allowed, parallel)


def test_the_model_sees_the_examples_of_a_tool() -> None:
    given = {"name": "f", "description": "Does.", "input_schema": OPEN_SCHEMA, "input_examples": [{"a": "é"}, {}]}
    (tool,) = options(tools=[given])["tools"]
    assert tool.description == 'Does.\nExample: {"a": "é"}\nExample: {}'
    (tool,) = options(tools=[{**given, "description": None, "input_examples": None}])["tools"]
    assert tool.description == ""
