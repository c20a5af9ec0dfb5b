"""Requests that are refused, accepted, or accepted with a warning before any model is asked; most are in tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from constrain.fields.values import FieldError
from constrain.server.chat.request import ChatRequest, read_chat_request
from constrain.server.completions.request import read_completion_request
from constrain.server.embeddings.request import read_embedding_request
from constrain.server.http.account import Account
from constrain.server.http.errors import ApiError, convert_field_errors
from constrain.server.llama_server.request import read_completion, read_infill
from constrain.server.messages.request import read_messages_request
from constrain.server.ollama.request import read_ollama_chat, read_ollama_generate
from constrain.server.ollama.texts import read_embed
from constrain.server.requests.formats import RESPONSE_FORMAT, read_format
from constrain.server.responses.input import conversation, read_items
from constrain.server.responses.request import read_request
from constrain.server.settings import Settings
from tests.support import for_each
from tests.support.server.tables import require_refused, table

SETTINGS = Settings()
MODEL = {"model": "small"}
CHAT = {**MODEL, "messages": [{"role": "user", "content": "Hello"}]}
GAP = {"input_prefix": "def add(", "input_suffix": "return a + b"}


def read_input(given: Any) -> None:
    with convert_field_errors():
        conversation(read_items(given), None)


def ollama_chat(fields: dict[str, Any]) -> object:
    return read_ollama_chat({**CHAT, **fields}, SETTINGS)


def ollama_generate(fields: dict[str, Any]) -> object:
    return read_ollama_generate({**MODEL, "prompt": "Hi", **fields}, SETTINGS)


def llama_completion(fields: dict[str, Any]) -> object:
    return read_completion({"prompt": "One, two,", **fields}, SETTINGS)


def llama_infill(fields: dict[str, Any]) -> object:
    return read_infill({**GAP, **fields}, SETTINGS)


READERS: dict[str, dict[str, tuple[Callable[[Any], object], ...]]] = {
    "chat_requests": {"refused": (lambda fields: read_chat_request({**CHAT, **fields}, SETTINGS),)},
    "completion_requests": {
        "refused": (lambda fields: read_completion_request({**MODEL, "prompt": "Hello", **fields}, SETTINGS),)
    },
    "embedding_requests": {"refused": (lambda fields: read_embedding_request({**MODEL, "input": "Hello", **fields}),)},
    "messages_requests": {
        "refused": (lambda fields: read_messages_request({**CHAT, "max_tokens": 100, **fields}, SETTINGS),)
    },
    "responses_requests": {
        "refused": (lambda fields: read_request({**MODEL, "input": "Hello", **fields}),),
        "items": (read_input,),
    },
    "ollama_requests": {
        "both": (ollama_chat, ollama_generate),
        "chat": (ollama_chat,),
        "generate": (ollama_generate,),
        "embed": (lambda fields: read_embed({**MODEL, "input": "a", **fields}),),
    },
    "llama_requests": {
        "both": (llama_completion, llama_infill),
        "completion": (llama_completion,),
        "infill": (llama_infill,),
    },
}
"""The readers of each table, by the kind of its cases."""

CASES = [
    (case, reader)
    for name, kinds in READERS.items()
    for kind, readers in kinds.items()
    for case in table(name)[kind]
    for reader in readers
]
ACCEPTED = [(case, kinds["refused"][0]) for name, kinds in READERS.items() for case in table(name).get("accepted", ())]


@for_each("case, read", CASES)
def test_what_cannot_be_had_is_refused_with_its_place(case: dict[str, Any], read: Callable[[Any], object]) -> None:
    require_refused(case, read)


@for_each("case, read", ACCEPTED)
def test_what_clients_send_is_accepted(case: dict[str, Any], read: Callable[[Any], object]) -> None:
    assert read(json.loads(case["fields"])).model == "small"  # type: ignore[attr-defined]


@for_each("case", table("formats")["refused"])
def test_a_format_that_says_nothing_or_two_things_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises((ApiError, FieldError)) as caught:
        read_format(json.loads(case["fields"]), RESPONSE_FORMAT, "structural")
    assert caught.value.param == case["param"]


# Known programs.


READERS_OF_PATHS: dict[str, Callable[[dict[str, Any]], object]] = {
    "/v1/responses": read_request,
    **{
        path: partial(read, settings=Settings())
        for path, read in {
            "/v1/chat/completions": read_chat_request,
            "/v1/completions": read_completion_request,
            "/v1/messages": read_messages_request,
            "/api/chat": read_ollama_chat,
            "/api/generate": read_ollama_generate,
            "/completion": read_completion,
            "/infill": read_infill,
        }.items()
    },
}


@for_each("case", table("clients")["request"])
def test_what_known_programs_send(account: Account, case: dict[str, Any]) -> None:
    account.warnings = ()
    read = partial(READERS_OF_PATHS[case["path"]], json.loads(case["body"]))
    if "refused" in case:
        with pytest.raises(ApiError) as caught:
            read()
        assert caught.value.param == case["refused"]
        return
    told = case.get("told", [])
    read()
    assert len(account.warnings) == len(told), account.warnings
    for part in told:
        assert any(part in warning for warning in account.warnings), account.warnings


# What chat completions ask for.


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
