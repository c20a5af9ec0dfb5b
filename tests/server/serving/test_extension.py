"""The member ``constrain`` of answers: warnings, and JSON that a limit has brought to its end."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain import choice
from constrain.lark.source import Lark
from constrain.server.logs import JsonLines
from constrain.server.serving.extension import MAX_WARNINGS, log_warnings
from tests.support import byte_vocabulary
from tests.support.server.asking import ask, chat, chunks_of
from tests.support.server.response_answers import completion

if TYPE_CHECKING:
    import httpx

    from constrain.server.app import Application

WARNED = {"type": "object", "properties": {"a": {"enum": [1], "format": "shoe-size"}}, "required": ["a"], "x-mine": 1}
LONG = {"type": "array", "items": {"type": "string", "minLength": 8}, "minItems": 1}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": WARNED}}
LONG_FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": LONG}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": WARNED}}
LONG_TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"properties": {"a": LONG}, "required": ["a"]}},
}


def flat(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of chat completions as those of responses."""
    found = dict(fields)
    if form := found.pop("response_format", None):
        found["text"] = {"format": {"type": "json_schema", **form["json_schema"]}}
    if "max_tokens" in found:
        found["max_output_tokens"] = found.pop("max_tokens")
    if "tools" in found:
        found["tools"] = [{"type": "function", **tool["function"]} for tool in found["tools"]]
    return found


def respond(application: Application, **fields: Any) -> httpx.Response:
    body = {"model": "small", "input": "Say hello.", "temperature": 0, **flat(fields)}
    return ask(application, "POST", "/v1/responses", json=body)


def complete(application: Application, **fields: Any) -> httpx.Response:
    body = {"model": "small", "prompt": "Say hello.", "temperature": 0, **fields}
    return ask(application, "POST", "/v1/completions", json=body)


def extensions(application: Application, **fields: Any) -> list[dict[str, Any] | None]:
    """The member of the answers of both endpoints, whole and streamed."""
    whole = chat(application, **fields).json()["choices"][0]
    *others, last = [chunk["choices"][0] for chunk in chunks_of(chat(application, stream=True, **fields))]
    assert last["finish_reason"] == whole["finish_reason"]
    assert not any("constrain" in one for one in others)
    response = respond(application, **fields).json()
    stored = ask(application, "GET", f"/v1/responses/{response['id']}").json()
    assert stored == response
    *_, event, end = respond(application, stream=True, **fields).text.split("\n\n")
    assert end == ""
    streamed = json.loads(event.partition("data: ")[2])
    assert streamed["type"] == f"response.{response['status']}"
    return [one.get("constrain") for one in (whole, last, response, streamed["response"])]


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{"response_format": FORMAT}, {"tools": [TOOL], "tool_choice": "required"}])
def test_warnings_of_a_constraint_are_told_and_logged(
    application: Application, caplog: pytest.LogCaptureFixture, fields: dict[str, Any]
) -> None:
    with caplog.at_level(logging.WARNING, "constrain.server"):
        told = extensions(application, max_tokens=60, parallel_tool_calls=False, **fields)
    for one in told:
        assert one is not None
        assert any("shoe-size" in warning for warning in one["warnings"])
        assert any("x-mine" in warning for warning in one["warnings"])
    lines = [json.loads(JsonLines().format(one)) for one in caplog.records if one.name == "constrain.server"]
    assert [line["event"] for line in lines] == ["constraint_warnings"] * 4
    assert "shoe-size" in lines[0]["message"]
    assert told[0] is not None
    assert lines[0]["warnings"] == told[0]["warnings"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields", [{"response_format": LONG_FORMAT}, {"tools": [LONG_TOOL], "tool_choice": "required"}]
)
def test_json_that_the_limit_has_closed_says_so(application: Application, fields: dict[str, Any]) -> None:
    asked = {**fields, "max_tokens": 40, "parallel_tool_calls": False}
    for one in extensions(application, **asked):
        assert one is not None
        assert one["ended_early"] == "length"


@pytest.mark.slow
def test_completions_have_it_too(application: Application) -> None:
    fields = {"response_format": LONG_FORMAT, "max_tokens": 8}
    assert complete(application, **fields).json()["choices"][0]["constrain"]["ended_early"] == "length"
    last = chunks_of(complete(application, stream=True, **fields))[-1]["choices"][0]
    assert (last["finish_reason"], last["constrain"]["ended_early"]) == ("stop", "length")


@pytest.mark.slow
def test_where_the_api_says_it_nothing_is_added(application: Application) -> None:
    assert extensions(application, max_tokens=2) == [None] * 4
    assert chat(application, max_tokens=2).json()["choices"][0]["finish_reason"] == "length"
    plain = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes"]}}}
    assert extensions(application, response_format=plain) == [None] * 4


def test_an_answer_that_time_has_ended_says_so() -> None:
    from constrain.server.serving.extension import extension

    timed_out = completion("text", "text", finish_reason="timeout")
    assert extension(timed_out, is_cut=True) == {"constrain": {"ended_early": "timeout"}}
    assert extension(completion("text", "text", finish_reason="length"), is_cut=True) == {}


def test_warnings_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "constrain.server"):
        log_warnings(["x" * 10_000] * 50)
    [record] = caplog.records
    assert len(record.getMessage()) < 10_000
    assert record.getMessage().endswith(f"and {50 - MAX_WARNINGS} more")


@pytest.mark.parametrize(
    "source",
    [
        choice(WARNED, "none"),
        Lark(f"start: %json {json.dumps(WARNED)}"),
        Lark(f'start: %json {json.dumps(WARNED)}\n%ignore " "'),
    ],
    ids=["composition", "lark", "lark that ignores"],
)
def test_a_schema_within_a_language_is_warned_of(source: Any) -> None:
    warnings = constrain.compile(source, byte_vocabulary(), cache=False).report.warnings
    assert any("shoe-size" in warning for warning in warnings)
