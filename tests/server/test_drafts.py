"""Drafts over HTTP: the field ``draft``, the texts and counts of its answers, and its errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.support.server.asking import ask, chat, chunks_of, error_of

if TYPE_CHECKING:
    from constrain.server.app import Application

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 120}},
    "required": ["name", "age"],
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
TEXT = {"format": {"type": "json_schema", "name": "person", "schema": SCHEMA}}
TOOL = {"name": "greet", "parameters": {"type": "object", "properties": {"loud": {"type": "boolean"}}}}
QUESTION = "Ada is 36 years old. Who is she?"
MESSAGES: Any = [{"role": "user", "content": QUESTION}]
BUDGET = 80


def respond(application: Application, **fields: Any) -> Any:
    body = {"model": "small", "input": QUESTION, "temperature": 0, **fields}
    return ask(application, "POST", "/v1/responses", json=body)


def check_usage(usage: dict[str, Any], details: str, name: str, most: int = BUDGET) -> None:
    drafted = usage[details]["reasoning_tokens"]
    assert 0 < drafted < usage[name] <= most


def test_a_chat_completion_has_the_draft_as_reasoning_in_front(application: Application) -> None:
    asked: dict[str, Any] = {"messages": MESSAGES, "response_format": FORMAT, "draft": 16, "max_tokens": BUDGET}
    chunks = chunks_of(chat(application, **asked, stream=True, stream_options={"include_usage": True}))
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    thoughts = [index for index, delta in enumerate(deltas) if delta.get("reasoning_content")]
    content = [index for index, delta in enumerate(deltas) if delta.get("content")]
    assert thoughts[-1] < content[0]
    body = chat(application, **asked).json()
    whole = body["choices"][0]["message"]
    jsonschema.validate(json.loads(whole["content"]), SCHEMA)
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 16
    assert "".join(deltas[index]["reasoning_content"] for index in thoughts) == whole["reasoning_content"]
    assert "".join(deltas[index]["content"] for index in content) == whole["content"]
    check_usage(chunks[-1]["usage"], "completion_tokens_details", "completion_tokens")


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_calls_follow_a_draft(choice: Any, application: Application) -> None:
    tools = [{"type": "function", "function": TOOL}]
    body = chat(application, tools=tools, tool_choice=choice, draft=8, max_tokens=BUDGET, n=2).json()
    for each in body["choices"]:
        assert each["message"]["reasoning_content"]
        if choice != "auto":
            assert each["message"]["tool_calls"][0]["function"]["name"] == "greet"
    check_usage(body["usage"], "completion_tokens_details", "completion_tokens", 2 * BUDGET)


def test_a_response_has_the_draft_as_an_item_of_its_own(application: Application) -> None:
    body = respond(application, text=TEXT, draft=16, max_output_tokens=BUDGET).json()
    reasoning, message = body["output"]
    assert (reasoning["type"], reasoning["status"]) == ("reasoning", "completed")
    assert reasoning["content"][0]["text"]
    jsonschema.validate(json.loads(message["content"][0]["text"]), SCHEMA)
    assert body["status"] == "completed"
    check_usage(body["usage"], "output_tokens_details", "output_tokens")
    assert body["usage"]["output_tokens_details"]["reasoning_tokens"] <= 16


ERRORS: dict[str, tuple[dict[str, Any], str, str]] = {
    "another type": ({"response_format": FORMAT, "draft": "yes"}, "draft", "invalid_type"),
    "none": ({"response_format": FORMAT, "draft": 0}, "draft", "integer_below_min_value"),
    "all": ({"response_format": FORMAT, "draft": 30, "max_tokens": 30}, "draft", "invalid_value"),
    "too much": ({"response_format": FORMAT, "draft": 30, "max_tokens": 32}, "max_tokens", "integer_below_min_value"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_field(case: str, application: Application) -> None:
    fields, param, code = ERRORS[case]
    error = error_of(chat(application, messages=MESSAGES, **{"draft": True, **fields}))
    assert (error["param"], error["code"]) == (param, code)
    if param == "max_tokens":
        assert "too few for any answer after a draft" in error["message"]
    else:
        assert "'draft'" in error["message"]
