"""Quotes in requests: of the user's messages, and of the sources of a request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.asking import chat, error_of

if TYPE_CHECKING:
    from constrain.server.app import Application

PROMPT = "Ada Lovelace was born in London."
SAID = [{"role": "user", "content": PROMPT}]
SOURCES = {"notes": ["First note.", "Second note."]}


def asked_for(quote: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"quote": {"type": "string", "x-quote": quote}},
        "required": ["quote"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}


def test_quotes_of_given_sources(application: Application) -> None:
    wanted = asked_for({"source": "notes", "min_length": 6})
    (choice,) = chat(application, messages=SAID, response_format=wanted, sources=SOURCES, seed=1).json()["choices"]
    quote = json.loads(choice["message"]["content"])["quote"]
    (place,) = choice["constrain"]["quotes"]
    assert SOURCES["notes"][place["text"]][place["start"] : place["end"]] == quote


def test_a_source_that_is_not_there_is_named(application: Application) -> None:
    error = error_of(chat(application, messages=SAID, response_format=asked_for("notes")))
    assert "there is no source 'notes'" in error["message"]


@pytest.mark.parametrize(
    ("sources", "param"), [([], "sources"), ({"a": 1}, "sources.a"), ({"a": ["", 1]}, "sources.a[1]")]
)
def test_malformed_sources_are_refused(application: Application, sources: Any, param: str) -> None:
    error = error_of(chat(application, messages=SAID, response_format=asked_for("a"), sources=sources))
    assert error["param"] == param


def test_sources_without_a_schema_are_refused(application: Application) -> None:
    for format_ in ({}, {"guided_regex": "[ab]"}):
        error = error_of(chat(application, messages=SAID, sources=SOURCES, **format_))
        assert (error["param"], error["code"]) == ("sources", "invalid_value")


PARAMETERS = {
    "type": "object",
    "properties": {"a/b": {"type": "string", "x-quote": {"min_length": 3}}},
    "required": ["a/b"],
    "additionalProperties": False,
}


def test_quotes_of_arguments_in_a_chat(application: Application) -> None:
    function = {"name": "look_up", "parameters": PARAMETERS, "strict": True}
    tools = [{"type": "function", "function": function}]
    answer = chat(application, messages=SAID, tools=tools, tool_choice="required", seed=1, max_tokens=80).json()
    (choice,) = answer["choices"]
    calls = choice["message"]["tool_calls"]
    places = choice["constrain"]["quotes"]
    assert [place["path"] for place in places] == [f"/calls/{number}/arguments/a~1b" for number in range(len(calls))]
    for place, call in zip(places, calls, strict=True):
        assert PROMPT[place["start"] : place["end"]] == json.loads(call["function"]["arguments"])["a/b"]
