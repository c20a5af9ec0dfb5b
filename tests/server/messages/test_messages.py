"""Messages: what is asked for is enforced, and streams tell the same as whole answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import ask, served_as
from tests.support.server.messages import COUNT, body, error_of, joined, message, order_of, post, stream

pytestmark = pytest.mark.slow

WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city", "days"],
    },
}
CLOCK = {"name": "get_time", "description": "The time.", "input_schema": {"type": "object", "properties": {}}}
TOOLS = [WEATHER, CLOCK]
SCHEMAS = {tool["name"]: tool["input_schema"] for tool in TOOLS}
BOOK = {
    "type": "object",
    "properties": {"title": {"type": "string", "maxLength": 20}, "year": {"type": "integer", "maximum": 2100}},
    "required": ["title", "year"],
    "additionalProperties": False,
}
BOOK_FORMAT = {"format": {"type": "json_schema", "schema": BOOK}}
QUESTION = [{"role": "user", "content": "What will the weather be in Oslo in the next 3 days?"}]

THINKING = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n"
    "{% if enable_thinking is defined and not enable_thinking %}\n</think>\n\n{% endif %}{% endif %}"
)
"""The prompt begins the reasoning, or ends it at once."""


@pytest.fixture(scope="module")
def thinker(model: constrain.Model) -> Application:
    return Application(served_as(constrain.Model(model.llama, chat_template=THINKING), "small"), Settings())


def text_of(found: Mapping[str, Any]) -> str:
    [block] = found["content"]
    assert set(block) == {"type", "text"}
    return str(block["text"])


def require_calls(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = [block for block in found["content"] if block["type"] == "tool_use"]
    assert calls
    assert found["stop_reason"] == "tool_use"
    for call in calls:
        assert set(call) == {"type", "id", "name", "input"}
        jsonschema.validate(call["input"], SCHEMAS[call["name"]])
    assert len({call["id"] for call in calls}) == len(calls)
    return calls


def without_id_and_usage(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("id", "usage")}


CASES: dict[str, tuple[dict[str, Any], str]] = {
    # the fields, and the order of the events of the stream
    "max_tokens": ({"max_tokens": 4}, "start 0 text, text_delta 0, stop 0, message_delta max_tokens"),
    "a stop sequence": (
        {"stop_sequences": ["xyz", " "]},
        "start 0 text, text_delta 0, stop 0, message_delta stop_sequence",
    ),
    "a format": ({"output_config": BOOK_FORMAT}, "start 0 text, text_delta 0, stop 0, message_delta end_turn"),
    "a forced call": (
        {"messages": QUESTION, "tools": TOOLS, "tool_choice": {"type": "tool", "name": "get_weather"}},
        "start 0 tool_use, input_json_delta 0, stop 0, message_delta tool_use",
    ),
    "a call of any tool": (
        {"messages": QUESTION, "tools": TOOLS, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        "start 0 tool_use, input_json_delta 0, stop 0, message_delta tool_use",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stream_tells_the_same_as_the_whole_answer(application: Application, name: str) -> None:
    fields, order = CASES[name]
    whole, events = message(application, **fields), stream(application, **fields)
    assert ", ".join(order_of(events)) == f"message_start, {order}, message_stop"
    assert without_id_and_usage(joined(events)) == without_id_and_usage(whole)
    assert whole["id"].startswith("msg_")
    if "tools" in fields:
        assert len(require_calls(whole)) == 1
    elif "output_config" in fields:
        jsonschema.validate(json.loads(text_of(whole)), BOOK)
    elif "max_tokens" in fields:
        assert whole["usage"]["output_tokens"] == 4


def test_a_text_that_fills_the_context_says_so(model_file: Path) -> None:
    with constrain.Model(model_file, n_ctx=80, n_threads=1, keep_prompts=False) as small:
        asked = {"messages": [{"role": "user", "content": "Tell a long story."}], "max_tokens": 4000}
        found = message(Application(served_as(small, "small"), Settings()), **asked)
    assert found["stop_reason"] == "model_context_window_exceeded"


def test_a_stop_sequence_is_named_and_left_out(application: Application) -> None:
    whole = text_of(message(application, max_tokens=20))
    word = whole.split()[2]
    found = message(application, stop_sequences=["\0never", word])
    assert (found["stop_reason"], found["stop_sequence"]) == ("stop_sequence", word)
    assert text_of(found) == whole[: whole.index(word)]


def test_tools_and_a_format_may_stand_in_one_request(application: Application) -> None:
    found = message(application, tools=TOOLS, output_config=BOOK_FORMAT, tool_choice={"type": "none"}, max_tokens=80)
    jsonschema.validate(json.loads(text_of(found)), BOOK)


def test_a_conversation_goes_on_with_the_results_of_its_calls(application: Application) -> None:
    asked: dict[str, Any] = {"tools": TOOLS, "max_tokens": 100}
    first = message(application, **asked, messages=QUESTION, tool_choice={"type": "tool", "name": "get_weather"})
    [call, *_] = require_calls(first)
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "Snow."}]}]
    turns = [*QUESTION, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": results}]
    second = message(application, **asked, messages=turns, tool_choice={"type": "none"})
    assert text_of(second)
    failed = [*turns[:2], {"role": "user", "content": [{**results[0], "is_error": True}]}]
    assert count(application, messages=failed, tools=TOOLS) > count(application, messages=turns, tools=TOOLS)


def count(application: Application, **fields: Any) -> int:
    response = post(application, COUNT, **{"max_tokens": None, **fields})
    assert response.status_code == 200, response.text
    assert set(response.json()) == {"input_tokens"}
    return int(response.json()["input_tokens"])


@pytest.mark.parametrize(
    "fields", [{}, {"system": "Be brief."}, {"messages": QUESTION, "tools": TOOLS}, {"output_config": BOOK_FORMAT}]
)
def test_the_count_is_that_of_the_prompt_that_is_read(application: Application, fields: dict[str, Any]) -> None:
    usage = message(application, **fields, max_tokens=20)["usage"]
    assert count(application, **fields) == usage["input_tokens"] + usage["cache_read_input_tokens"]
    assert stream(application, **fields, max_tokens=20)[0]["message"]["usage"]["input_tokens"] == count(
        application, **fields
    )


def test_tokens_that_were_read_before_are_counted_apart(application: Application) -> None:
    asked: dict[str, Any] = {"system": "Speak as the keeper of a lighthouse would.", "max_tokens": 2}
    first, second = (message(application, **asked)["usage"] for _ in range(2))
    assert second["cache_read_input_tokens"] > 0
    assert sum(second[name] for name in ("input_tokens", "cache_read_input_tokens")) == sum(
        first[name] for name in ("input_tokens", "cache_read_input_tokens")
    )


def test_a_count_of_a_wrong_request_is_refused(application: Application) -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1e300}}, "required": ["a"]}
    error = error_of(post(application, COUNT, tools=[{"name": "f", "input_schema": schema}]))
    assert (error["status"], error["type"]) == (400, "invalid_request_error")
    assert "/properties/a" in error["message"]


def test_a_conversation_that_does_not_fit_is_refused_and_can_be_counted(application: Application) -> None:
    long = [{"role": "user", "content": "word " * 2000}]
    error = error_of(post(application, messages=long))
    assert (error["status"], error["type"]) == (400, "invalid_request_error")
    assert "context is too small" in error["message"]
    assert count(application, messages=long) > 2000


def test_thinking_is_a_block_of_its_own_within_its_budget(thinker: Application) -> None:
    asked: dict[str, Any] = {"max_tokens": 60, "temperature": 1, "seed": 1}
    found = message(thinker, **asked, thinking={"type": "enabled", "budget_tokens": 16})
    thinking, *rest = found["content"]
    assert [block["type"] for block in found["content"]] in (["thinking"], ["thinking", "text"])
    assert thinking["thinking"]
    assert thinking["signature"]
    events = stream(thinker, **asked, thinking={"type": "enabled", "budget_tokens": 16})
    assert without_id_and_usage(joined(events)) == without_id_and_usage(found)
    hidden = message(thinker, **asked, thinking={"type": "enabled", "budget_tokens": 16, "display": "omitted"})
    assert hidden["content"] == [{**thinking, "thinking": ""}, *rest]


def test_thinking_may_stand_in_front_of_json_and_be_sent_back(thinker: Application) -> None:
    asked: dict[str, Any] = {"thinking": {"type": "adaptive"}, "output_config": BOOK_FORMAT, "max_tokens": 100}
    found = message(thinker, **asked)
    thinking, text = found["content"]
    assert thinking["type"] == "thinking"
    jsonschema.validate(json.loads(text["text"]), BOOK)
    turns = [*QUESTION, {"role": "assistant", "content": found["content"]}, *QUESTION]
    assert message(thinker, messages=turns, max_tokens=10, thinking={"type": "disabled"})["content"]


def test_what_has_no_field_of_its_own_is_in_the_member_constrain(application: Application) -> None:
    asked: dict[str, Any] = {"output_config": BOOK_FORMAT, "confidence": True}
    found = message(application, **asked)["constrain"]["fields"]
    assert "/year" in found
    [end] = [event for event in stream(application, **asked) if event["type"] == "message_delta"]
    assert end["constrain"]["fields"].keys() == found.keys()


def test_headers_of_betas_change_nothing(application: Application) -> None:
    headers = {"anthropic-version": "2099-01-01", "anthropic-beta": "structured-outputs-2025-11-13,other"}
    response = ask(application, "POST", "/v1/messages?beta=true", json=body(max_tokens=3), headers=headers)
    assert response.status_code == 200
    assert response.headers["request-id"] == response.headers["x-request-id"]
