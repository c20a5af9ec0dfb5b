"""Log-probabilities of both endpoints: whole and streamed, as OpenAI's client reads them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from constrain.generation.logprobs import logprob_objects
from constrain.results import TokenLogprob
from constrain.server.app import Application
from tests.support.server.asking import ask, chat, chunks_of

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "maximum": 130}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}
EMOJI = {"type": "json_schema", "json_schema": {"name": "emoji", "schema": {"const": "🙂é☃"}}}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]},
    },
}


def text_of(tokens: list[dict[str, Any]]) -> str:
    """What tokens say together, of whose bytes some may be parts of a character."""
    return b"".join(bytes(token["bytes"]) for token in tokens).decode()


def require_sound(tokens: list[dict[str, Any]], top: int) -> None:
    assert tokens
    for token in tokens:
        assert set(token) == {"token", "logprob", "bytes", "top_logprobs"}
        assert -9999 <= token["logprob"] <= 0
        assert len(token["top_logprobs"]) == top
        likeliest = [other["logprob"] for other in token["top_logprobs"]]
        assert likeliest == sorted(likeliest, reverse=True)
        for other in token["top_logprobs"]:
            assert set(other) == {"token", "logprob", "bytes"}
        assert top == 0 or token["logprob"] <= likeliest[0]


def test_parts_of_a_character_have_their_bytes_and_a_name(application: Application) -> None:
    [choice] = chat(application, logprobs=True, response_format=EMOJI).json()["choices"]
    parts = [token for token in choice["logprobs"]["content"] if "\\x" in token["token"]]
    assert parts
    for part in parts:
        assert bytes(part["bytes"]).decode("utf-8", "backslashreplace") == part["token"]


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{"response_format": FORMAT}, {"response_format": EMOJI}, {"max_tokens": 6, "n": 2}])
def test_streams_tell_every_token_once_with_its_text(application: Application, fields: dict[str, Any]) -> None:
    asked = {"logprobs": True, "top_logprobs": 1, **fields}
    whole = chat(application, **asked).json()["choices"]
    found: dict[int, list[dict[str, Any]]] = {choice["index"]: [] for choice in whole}
    for chunk in chunks_of(chat(application, **asked, stream=True)):
        for choice in chunk["choices"]:
            if choice["delta"].get("content"):
                assert choice["logprobs"]["refusal"] is None
                found[choice["index"]] += choice["logprobs"]["content"]
            else:
                assert choice["logprobs"] is None
    for choice in whole:
        assert set(choice["logprobs"]) == {"content", "refusal"}
        assert choice["logprobs"]["refusal"] is None
        told = choice["logprobs"]["content"]
        require_sound(told, 1)
        assert text_of(told) == choice["message"]["content"]
        assert [token["bytes"] for token in found[choice["index"]]] == [token["bytes"] for token in told]
        streamed = [token["logprob"] for token in found[choice["index"]]]
        assert streamed == pytest.approx([token["logprob"] for token in told], abs=0.05)


def test_nothing_is_told_where_nobody_asks(application: Application) -> None:
    [choice] = chat(application, logprobs=False, max_tokens=3).json()["choices"]
    assert choice["logprobs"] is None
    chunks = chunks_of(chat(application, max_tokens=3, stream=True))
    assert all(choice["logprobs"] is None for chunk in chunks for choice in chunk["choices"])


def test_a_stop_text_is_not_told(application: Application) -> None:
    free = chat(application, max_tokens=8).json()["choices"][0]["message"]["content"]
    stop = free[4:7]
    [choice] = chat(application, max_tokens=8, stop=stop, logprobs=True).json()["choices"]
    content = choice["message"]["content"]
    assert content == free[: free.index(stop)]
    told = text_of(choice["logprobs"]["content"])
    assert told.startswith(content)
    last = choice["logprobs"]["content"][-1]["bytes"]
    assert len(told.encode()) - len(last) < len(content.encode())


def test_calls_are_not_told(application: Application) -> None:
    asked = {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False, "logprobs": True}
    [choice] = chat(application, **asked).json()["choices"]
    assert choice["message"]["tool_calls"]
    assert choice["logprobs"] == {"content": [], "refusal": None}
    chunks = chunks_of(chat(application, **asked, stream=True))
    assert all(choice["logprobs"] is None for chunk in chunks for choice in chunk["choices"])


RESPONSE = {
    "model": "small",
    "input": "Ada is 36.",
    "temperature": 0,
    "text": {"format": {"type": "json_schema", "name": "person", "strict": True, "schema": PERSON}},
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 2,
}


@pytest.mark.slow
def test_events_of_responses_tell_every_token_once(application: Application) -> None:
    body = ask(application, "POST", "/v1/responses", json=RESPONSE).json()
    assert body["top_logprobs"] == 2
    [part] = body["output"][0]["content"]
    assert text_of(part["logprobs"]) == part["text"]
    kept = ask(application, "GET", f"/v1/responses/{body['id']}").json()
    assert kept["output"] == body["output"]
    sent = ask(application, "POST", "/v1/responses", json={**RESPONSE, "stream": True}).text.split("\n\n")
    events = [json.loads(each.partition("data: ")[2]) for each in sent if each]
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    told = [token for event in deltas for token in event["logprobs"]]
    require_sound(told, 2)
    assert text_of(told) == "".join(event["delta"] for event in deltas)
    [done] = [event for event in events if event["type"] == "response.output_text.done"]
    assert done["logprobs"] == told
    [closed] = [event for event in events if event["type"] == "response.content_part.done"]
    assert closed["part"]["logprobs"] == told
    [opened] = [event for event in events if event["type"] == "response.content_part.added"]
    assert opened["part"]["logprobs"] == []
    assert events[-1]["response"]["output"][0]["content"] == [closed["part"]]


def test_what_is_impossible_has_openais_number() -> None:
    [told] = logprob_objects([TokenLogprob(1, "a", b"a", -math.inf, (TokenLogprob(2, "<|x|>", b"", -0.5),))])
    assert told == {
        "token": "a",
        "logprob": -9999.0,
        "bytes": [97],
        "top_logprobs": [{"token": "<|x|>", "logprob": -0.5, "bytes": []}],
    }
