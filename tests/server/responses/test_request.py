"""Requests for responses: what they ask of this library, and which are refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from constrain.server.http.account import Account
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.responses.memory_store import MemoryStore
from constrain.server.responses.output import ResponseHead, response_json, unfinished_response
from constrain.server.responses.request import ResponseBody, ResponsesRequest
from constrain.server.settings import Settings
from tests.support import for_each
from tests.support.server.response_answers import PERSON, TOOLS

FUNCTION, CUSTOM = TOOLS
OPEN = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}


def _read(**body: Any) -> ResponsesRequest:
    return ResponseBody.ask({"model": "tiny", "input": "Hello", **body}, Settings())


def _error(*, subset: Any = "structural", **body: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ResponseBody.ask({"model": "tiny", "input": "Hello", **body}, Settings(strict_subset=subset))
    assert (caught.value.status, caught.value.kind) == (400, "invalid_request_error")
    return caught.value


def _schema(request: ResponsesRequest) -> dict[str, Any]:
    assert request.content is not None
    found: dict[str, Any] = json.loads(request.content.schema)
    return found


def test_a_server_that_keeps_nothing_refuses_to_keep_a_response() -> None:
    body = {"model": "tiny", "input": "Hello"}
    assert not ResponseBody.ask(body, Settings(response_store="none")).store
    with pytest.raises(ApiError) as caught:
        ResponseBody.ask({**body, "store": True}, Settings(response_store="none"))
    assert caught.value.param == "store"


def test_a_text_alone_asks_for_nothing_special() -> None:
    request = _read()
    assert (request.options, request.content, request.custom_tools) == ({}, None, frozenset())
    assert (request.streaming.is_wanted, request.store) == (False, True)
    assert request.messages() == [{"role": "user", "content": "Hello"}]


def test_what_the_agents_sdk_always_sends_means_nothing() -> None:
    always = {"tools": [], "include": [], "instructions": None, "previous_response_id": None, "stream": False}
    assert _read(**always) == _read()


def test_fields_that_are_null_are_as_good_as_absent() -> None:
    names = """
        instructions previous_response_id tools tool_choice text parallel_tool_calls store stream include top_logprobs
        max_output_tokens temperature top_p metadata reasoning background conversation prompt user
    """
    assert _read(**dict.fromkeys(names.split())) == _read()


def test_unknown_fields_are_ignored() -> None:
    ignored = {
        "service_tier": "flex",
        "safety_identifier": "x",
        "prompt_cache_key": "y",
        "max_tool_calls": 1,
        "new": {},
    }
    assert _read(**ignored, truncation="auto", stream_options={"include_obfuscation": False}) == _read()


@pytest.mark.parametrize("metadata", [5, "x", [1], {"a": 1}, {"a": {}}])
def test_what_cannot_be_repeated_is_accepted(metadata: Any, account: Account) -> None:
    request = _read(metadata=metadata, user=metadata, include=["an.item.of.next_year"])
    assert (request.repeated["metadata"], request.options) == ({}, {})
    assert ["'metadata'" in each for each in account.warnings] == [True]


def test_sampling_and_the_limit_are_passed_on() -> None:
    same = {"temperature": 2, "top_p": 0.5, "presence_penalty": 0.5, "frequency_penalty": -2.0}
    assert _read(max_output_tokens=50, **same).options == {"max_tokens": 50, **same}


@for_each("seed, taken", [(7, 7), (-1, None), (-2, 2**32 - 3), (2**32, 1)])
def test_a_seed_is_passed_on(seed: int, taken: int | None) -> None:
    assert _read(seed=seed).options == ({} if taken is None else {"seed": taken})


@for_each(
    "fields, options",
    ({"include": ["message.output_text.logprobs"]}, {"logprobs": True, "top_logprobs": 0}),
    ({"include": ["message.output_text.logprobs"], "top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
    ({"top_logprobs": 20}, {"logprobs": True, "top_logprobs": 20}),
    ({"include": ["reasoning.encrypted_content"], "top_logprobs": 0}, {}),
    ({"include": None, "top_logprobs": None}, {}),
)
def test_log_probabilities_are_told_where_they_are_included_or_counted(
    fields: dict[str, Any], options: dict[str, Any]
) -> None:
    request = _read(**fields)
    assert request.options == options
    assert request.repeated["top_logprobs"] == options.get("top_logprobs", 0)


def test_a_limit_beyond_any_context_is_none_of_the_samplers_concern() -> None:
    request = _read(max_output_tokens=10**40)
    assert (request.options["max_tokens"], request.repeated["max_output_tokens"]) == (2**31 - 1, 10**40)


def test_what_is_not_asked_for_is_repeated_as_it_will_be() -> None:
    repeated = _read().repeated
    assert repeated["top_p"] == 0.95
    assert (repeated["tool_choice"], repeated["parallel_tool_calls"]) == ("auto", True)


def test_reasoning_is_repeated_as_far_as_it_is_known() -> None:
    assert _read(reasoning={"effort": "low"}).repeated["reasoning"] == {"effort": "low", "summary": None}
    assert _read(reasoning={"summary": "none of these"}).repeated["reasoning"] == {"effort": None, "summary": None}


@pytest.mark.parametrize("strict", [True, False, None])
def test_a_schema_is_what_the_text_must_match(strict: bool | None) -> None:
    request = _read(text={"format": {**PERSON, "strict": strict, "description": "Somebody."}})
    assert _schema(request) == PERSON["schema"]
    assert request.repeated["text"]["format"] == {**PERSON, "strict": strict is True, "description": "Somebody."}


def test_a_format_of_text_is_none() -> None:
    request = _read(text={"format": {"type": "text"}, "verbosity": "low"})
    assert (request.content, request.repeated["text"]["verbosity"]) == (None, "low")


def test_tools_are_passed_on_with_their_choice() -> None:
    request = _read(tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    assert [tool.name for tool in request.options["tools"]] == ["weather", "sum"]
    assert (request.options["tool_choice"], request.options["parallel_tool_calls"]) == ("required", False)
    assert request.custom_tools == {"sum"}
    assert request.repeated["tools"] == TOOLS


def test_a_nested_grammar_is_repeated_flat() -> None:
    grammar = {"syntax": "regex", "definition": "[0-9]"}
    tool = {"type": "custom", "name": "digit", "format": {"type": "grammar", "grammar": grammar}}
    assert _read(tools=[tool]).repeated["tools"] == [{**tool, "format": {"type": "grammar", **grammar}}]


def test_a_tool_without_parameters_is_repeated_with_none() -> None:
    (tool,) = _read(tools=[{"type": "function", "name": "now"}]).repeated["tools"]
    assert (tool["parameters"]["properties"], tool["strict"]) == ({}, False)


def test_an_open_schema_of_a_tool_that_is_not_strict_is_taken() -> None:
    tool = {"type": "function", "name": "f", "parameters": {**OPEN, "title": "F", "$defs": {}}, "strict": False}
    assert _read(tools=[tool]).repeated["tools"] == [tool]


@for_each(
    "choice",
    "none",
    "auto",
    "required",
    {"type": "function", "name": "weather"},
    {"type": "custom", "name": "sum"},
    {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "weather"}, {"type": "custom", "name": "sum"}],
    },
)
def test_choices_of_tools_are_passed_on_and_repeated(choice: Any) -> None:
    request = _read(tools=TOOLS, tool_choice=choice)
    assert request.options["tool_choice"] == request.repeated["tool_choice"] == choice


def test_a_forced_tool_and_a_schema_go_together() -> None:
    request = _read(tools=TOOLS, tool_choice="required", text={"format": PERSON})
    assert request.options["tool_choice"] == "required"
    assert _schema(request) == PERSON["schema"]


def test_a_previous_response_stands_before_the_input_and_after_the_instructions() -> None:
    before = _read(input=[{"role": "user", "content": "One?"}, {"role": "assistant", "content": "1"}]).items
    request = _read(instructions="Be brief.", previous_response_id="resp_1")
    assert [message["content"] for message in request.messages(before)] == ["Be brief.", "One?", "1", "Hello"]


def test_a_previous_response_may_be_all_the_input() -> None:
    assert ResponseBody.ask({"model": "tiny", "previous_response_id": "resp_1"}, Settings()).items == ()


def test_all_breaches_of_strict_mode_are_listed_in_openais_words() -> None:
    subject = "Invalid schema for response_format 'person': In context=(),"
    closed = "'additionalProperties' is required to be supplied and to be false."
    every = "'required' is required to be supplied and to be an array including every key in properties. Missing 'b'."
    message = _error(text={"format": {**PERSON, "schema": OPEN}}).message
    assert message == f"{subject} {closed}\n{subject} {every}"


def test_the_breaches_of_a_strict_tool_name_the_function() -> None:
    message = _error(tools=[{**FUNCTION, "parameters": OPEN}]).message
    assert message.startswith("Invalid schema for function 'weather': In context=(), 'additionalProperties'")


def test_keywords_beyond_the_subset_are_refused_on_demand_only() -> None:
    schema = {**PERSON["schema"], "minProperties": 1}
    body = {"text": {"format": {**PERSON, "schema": schema}}}
    assert "'minProperties' is not permitted" in _error(subset="openai", **body).message
    assert _schema(_read(**body)) == schema


def test_strict_mode_can_be_off() -> None:
    body = {"tools": [{**FUNCTION, "parameters": OPEN}], "text": {"format": {**PERSON, "schema": OPEN}}}
    request = ResponseBody.ask({"model": "tiny", "input": "Hello", **body}, Settings(strict_subset="off"))
    assert (_schema(request), request.repeated["tools"][0]["strict"]) == (OPEN, True)


def test_errors_of_a_generation_name_the_fields_of_responses() -> None:
    request = _read(tools=TOOLS, text={"format": PERSON})
    assert request.content is not None
    assert (request.places.prompt, request.places.max_tokens) == ("input", "max_output_tokens")
    assert (request.places.tools, request.content.place.param) == ("tools", "text.format.schema")
    found = {name: (place.param, place.code) for name, place in request.places.of_tools.items()}
    assert found == {
        "weather": ("tools[0].parameters", "invalid_function_parameters"),
        "sum": ("tools[1].format", "invalid_grammar"),
    }


BODY: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "response_request.json").read_text())
"""A request with nearly every field and every kind of item."""

ODD: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "huge": 10**400,
    "negative": -1.5,
    "no text": "",
    "text": "type",
    "half a pair": "\udc00",
    "long": "x" * 10_000,
    "no items": [],
    "items": [None, 1, "a", {}],
    "no members": {},
    "members": {"type": "function", "name": {}, "content": 1, "": []},
}


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _places(each, (*path, index))


def _changed(path: tuple[str | int, ...], odd: Any) -> dict[str, Any]:
    body = copy.deepcopy(BODY)
    place: Any = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = odd
    return body


def _refusal(body: dict[str, Any]) -> ApiError | None:
    try:
        with convert_field_errors():
            _answer(body)
    except ApiError as error:
        return error
    return None


def _answer(body: dict[str, Any]) -> None:
    """All that is done with a request beside generating."""
    request = ResponseBody.ask(body, Settings())
    store = MemoryStore()
    request.messages(() if (previous := store.previous("me", request)) is None else previous.conversation)
    document = response_json(unfinished_response(ResponseHead(request, "resp_1", 0.0, "tiny", 0.8)))
    store.put("me", request, document)


def test_the_request_is_answered_as_it_is() -> None:
    _answer(BODY)


@pytest.mark.slow(only=("text",))
@pytest.mark.parametrize("odd", ODD)
def test_a_request_with_one_odd_value_is_answered_or_refused(odd: str) -> None:
    refusals = [error for path in _places(BODY) if (error := _refusal(_changed(path, ODD[odd])))]
    assert {(error.status, error.kind) for error in refusals} == {(400, "invalid_request_error")}
