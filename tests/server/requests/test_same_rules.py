"""Both endpoints keep the same rules: each case is asked of chat completions and of responses, each in its spelling.

The table ``refused`` of ``tests/data/recorded`` has the fields that both refuse.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from constrain.server.app import Application
from constrain.server.chat.request import ChatBody
from constrain.server.http.errors import ApiError
from constrain.server.requests.body import parse_body
from constrain.server.requests.limits import MAX_FIELD_NESTING, SCHEMA_NESTING
from constrain.server.responses.request import ResponseBody
from constrain.server.settings import Settings
from tests.support.server.asking import ask, error_of

pytestmark = pytest.mark.slow

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
ENDPOINTS = (CHAT, RESPONSES)

SPELLINGS = {"max_tokens": {CHAT: "max_completion_tokens", RESPONSES: "max_output_tokens"}}
"""Fields that the endpoints call otherwise."""

PERSON = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "additionalProperties": False}


def body(endpoint: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The request for a case. ``format`` is flat, as in responses; so are ``tools``."""
    found: dict[str, Any] = {"model": "small", "temperature": 0}
    found |= {"messages": [{"role": "user", "content": "Hi"}]} if endpoint == CHAT else {"input": "Hi"}
    for name, value in fields.items():
        if name == "format" and endpoint == CHAT:
            nested = isinstance(value, dict) and value.get("type") == "json_schema"
            found["response_format"] = {"type": "json_schema", "json_schema": value} if nested else value
        elif name == "format":
            found["text"] = {"format": value}
        elif name == "tools" and endpoint == CHAT:
            found["tools"] = value and [{"type": tool["type"], tool["type"]: tool} for tool in value]
        else:
            found[SPELLINGS.get(name, {}).get(endpoint, name)] = value
    return found


def asked(application: Application, endpoint: str, fields: dict[str, Any]) -> httpx.Response:
    return ask(application, "POST", endpoint, json=body(endpoint, fields))


def text_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    answer = response.json()
    if "choices" in answer:
        return answer["choices"][0]["message"]["content"]
    [text] = [part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"]]
    return text


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"type": "array", "items": schema}
    return schema


DEEP = nested(SCHEMA_NESTING + 1)


DEEP_TOOL = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": DEEP}}}]
DEEP_CHOICE = {"type": "function", "name": "f", "more": nested(300)}

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    # the fields; the param of chat completions, and that of responses
    "an unknown way to show tools": ({"tools_shown": "some"}, "tools_shown", "tools_shown"),
    "too many stops": ({"stop": ["a"] * 65}, "stop", "stop"),
    "a deep schema": (
        {"format": {"type": "json_schema", "name": "x", "schema": DEEP}},
        "response_format",
        "text.format.schema",
    ),
    "a deep schema of json_object": (
        {"format": {"type": "json_object", "schema": DEEP}},
        "response_format",
        "text.format.schema",
    ),
    "deep parameters": ({"tools": DEEP_TOOL}, "tools[0].function.parameters", "tools[0].parameters"),
    "deep parameters of a tool that is not called": (
        {"tools": DEEP_TOOL, "tool_choice": "none"},
        "tools[0].function.parameters",
        "tools[0].parameters",
    ),
    "deep metadata": ({"metadata": {"a": nested(500)}}, "metadata", "metadata"),
    "a deep choice": (
        {"tools": [{"type": "function", "name": "f"}], "tool_choice": DEEP_CHOICE},
        "tool_choice",
        "tool_choice",
    ),
    "a deep field that nobody knows": ({"some_new_field": nested(300)}, "some_new_field", "some_new_field"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_one_refuses_the_other_refuses_in_its_spelling(application: Application, case: str) -> None:
    fields, *params = REFUSED[case]
    codes = set()
    for endpoint, param in zip(ENDPOINTS, params, strict=True):
        response = asked(application, endpoint, fields)
        assert response.status_code == 400, response.text
        error = error_of(response)
        assert error["param"] == param
        codes.add(error["code"])
    assert len(codes) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {
            "n": 1,
            "min_tokens": 0,
            "repetition_penalty": 1,
            "tfs_z": 1.0,
            "skip_special_tokens": True,
            "n_probs": 0,
            "use_beam_search": False,
            "bad_words": [],
            "guided_json": None,
        },
        {"modalities": ["text"], "some_new_field": {"a": [1]}, "user": "me", "metadata": {"a": "b"}, "store": False},
        {"top_k": 0, "min_p": 0, "repeat_penalty": 1.0, "stop": [], "logit_bias": {}},
        {"format": {"type": "text", "strict": False, "schema": None}},
        dict.fromkeys(
            ("top_k", "min_p", "repeat_penalty", "stop", "logit_bias", "max_tokens", "tools", "seed", "show_schema")
        ),
    ],
    ids=range(5),
)
def test_what_asks_for_nothing_is_accepted_by_both(application: Application, fields: dict[str, Any]) -> None:
    for endpoint in ENDPOINTS:
        assert asked(application, endpoint, {"max_tokens": 2, **fields}).status_code == 200


def test_sampling_is_read_alike() -> None:
    fields = {"top_k": 3, "min_p": 0.2, "top_p": 0.9, "repeat_penalty": 1.3, "presence_penalty": 0.5, "seed": -1}
    fields |= {"frequency_penalty": 0.25, "stop": "x", "logit_bias": {"5": -100}, "max_tokens": 10**40}
    chat = ChatBody.ask(body(CHAT, fields), Settings()).question.options
    responses = ResponseBody.ask(body(RESPONSES, fields), Settings())
    assert chat == responses.options
    assert chat["repeat_penalty"] == 1.3


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_schema_beside_json_object_is_kept(application: Application, endpoint: str) -> None:
    response = asked(application, endpoint, {"format": {"type": "json_object", "schema": PERSON}})
    assert json.loads(text_of(response)) == {"a": 1}
    if endpoint == RESPONSES:
        assert response.json()["text"]["format"] == {"type": "json_object", "schema": PERSON}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_only_model_needs_no_name(application: Application, endpoint: str) -> None:
    for none in ({}, {"model": None}, {"model": ""}):
        given = {**body(endpoint, {"max_tokens": 1}), **none}
        if not none:
            del given["model"]
        response = ask(application, "POST", endpoint, json=given)
        assert response.status_code == 200, response.text
        assert response.json()["model"] == "small"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_schema_that_is_not_shown_takes_no_room(application: Application, endpoint: str) -> None:
    schema = {"type": "object", "properties": {f"key_{index}": {"type": "integer"} for index in range(300)}}
    asking = {"format": {"type": "json_schema", "name": "x", "schema": schema}, "max_tokens": 12}
    error = error_of(asked(application, endpoint, asking))
    assert error["code"] == "context_length_exceeded"
    assert "'show_schema': false" in error["message"]
    assert isinstance(json.loads(text_of(asked(application, endpoint, {**asking, "show_schema": False}))), dict)


@pytest.mark.parametrize(("endpoint", "stream"), [(CHAT, False), (RESPONSES, True)])
def test_the_deepest_schema_is_answered(application: Application, endpoint: str, stream: bool) -> None:
    form = {"type": "json_schema", "name": "x", "schema": nested(SCHEMA_NESTING)}
    response = asked(application, endpoint, {"format": form, "max_tokens": 40, "stream": stream})
    assert response.status_code == 200, response.text
    assert "error" not in response.text.rpartition("data:")[2].replace('"error":null', "")


@pytest.mark.parametrize(("endpoint", "stream"), [(CHAT, True), (CHAT, False), (RESPONSES, True)])
def test_an_answer_that_is_too_deep_says_so(
    application: Application,
    endpoint: str,
    stream: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("constrain.types.answer_text.MAX_ANSWER_NESTING", 5)
    form = {"type": "json_schema", "name": "x", "schema": {"const": [[[[[[]]]]]]}}
    with caplog.at_level("INFO", "constrain.server.requests"):
        response = asked(application, endpoint, {"format": form, "stream": stream})
    assert response.status_code == (200 if stream else 400)
    assert "because: The answer cannot be read: the answer is nested more than 5 levels" in caplog.text
    assert "nested more than 5 levels deep (MAX_ANSWER_NESTING)" in response.text
    assert "invalid_value" in response.text


def test_a_field_is_measured_without_recursion() -> None:
    with pytest.raises(ApiError) as caught:
        parse_body(b'{"a": ' + b"[" * (MAX_FIELD_NESTING + 1) + b"]" * (MAX_FIELD_NESTING + 1) + b"}")
    assert caught.value.param == "a"
    assert parse_body(b'{"a": ' + b"[" * MAX_FIELD_NESTING + b"]" * MAX_FIELD_NESTING + b"}")


_FIND = {"name": "find", "description": "Finds.", "parameters": {"type": "object", "properties": {"text": {}}}}
_SAID = [{"role": "user", "content": "Find it."}]
_NESTED = {"messages": _SAID, "tools": [{"type": "function", "function": _FIND}], "tool_choice": "required"}
TOOLS_SHOWN: dict[str, dict[str, Any]] = {
    CHAT: {**_NESTED, "max_tokens": 80},
    RESPONSES: {"input": "Find it.", "tools": [{"type": "function", **_FIND}], "tool_choice": "required"},
    "/v1/messages": {
        "messages": _SAID,
        "max_tokens": 80,
        "tools": [{"name": "find", "input_schema": _FIND["parameters"]}],
        "tool_choice": {"type": "any"},
    },
    "/api/chat": {**_NESTED, "stream": False, "options": {"num_predict": 80}},
}


@pytest.mark.parametrize("endpoint", TOOLS_SHOWN)
def test_a_request_says_what_is_shown_of_its_tools(application: Application, endpoint: str) -> None:
    found = {}
    for shown in ("names", "all"):
        fields = {"model": "small", **TOOLS_SHOWN[endpoint], "tools_shown": shown}
        response = ask(application, "POST", endpoint, json=fields)
        assert response.status_code == 200, response.text
        found[shown] = '"introduced":{"find":true}' in response.text.replace(" ", "")
    assert found == {"names": True, "all": False}
