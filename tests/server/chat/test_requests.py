"""Which requests are refused, and in which words, before any model is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.server.chat.request import ChatRequest, read_chat_request
from constrain.server.http.errors import ApiError
from constrain.server.settings import Settings

BASE = {"model": "small", "messages": [{"role": "user", "content": "Hello"}]}
OPEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def read(fields: dict[str, Any], settings: Settings | None = None) -> ChatRequest:
    return read_chat_request({**BASE, **fields}, settings or Settings())


def schema_of(request: ChatRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.question.schema or "")
    return found


def strict_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


def test_a_result_may_have_what_is_no_text() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parts = [{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    result = {"role": "tool", "tool_call_id": "a", "content": parts}
    prompt: Any = read({"messages": [{"role": "assistant", "tool_calls": [call]}, result]}).question.prompt
    assert prompt[1]["content"] == [parts[0], {"type": "text", "text": "[image omitted]"}]


def test_the_smaller_of_two_limits_counts() -> None:
    request = read({"max_tokens": 20, "max_completion_tokens": 10})
    assert (request.question.options["max_tokens"], request.question.places.max_tokens) == (10, "max_completion_tokens")


def test_a_format_of_any_object_leaves_it_open() -> None:
    assert schema_of(read({"response_format": {"type": "json_object"}})) == {"type": "object"}


def test_a_schema_beside_json_object_is_not_dropped() -> None:
    assert schema_of(read({"response_format": {"type": "json_object", "schema": OPEN_SCHEMA}})) == OPEN_SCHEMA


def test_strict_rules_are_only_checked_where_asked_for() -> None:
    lenient = {"type": "json_schema", "json_schema": {"name": "x", "schema": OPEN_SCHEMA}}
    assert schema_of(read({"response_format": lenient})) == OPEN_SCHEMA


def test_a_server_may_leave_out_the_strict_rules() -> None:
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": OPEN_SCHEMA}}
    asked = {"response_format": strict_format(OPEN_SCHEMA), "tools": [tool]}
    assert schema_of(read(asked, Settings(strict_subset="off"))) == OPEN_SCHEMA


def test_a_server_may_keep_to_all_of_openais_rules() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "format": "uri"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert schema_of(read({"response_format": strict_format(schema)})) == schema
    with pytest.raises(ApiError, match="'uri' is not a valid format"):
        read({"response_format": strict_format(schema)}, Settings(strict_subset="openai"))


def test_equal_seeds_stay_equal() -> None:
    seeds = [read({"seed": seed}).question.options["seed"] for seed in (7, 7, -2, 2**32 + 6)]
    assert seeds[0] == seeds[1] == 7
    assert all(0 <= seed < 2**32 - 1 for seed in seeds)
