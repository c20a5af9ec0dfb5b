"""Ways to ask for messages, and to read their streams and errors."""

from __future__ import annotations

import json
from typing import Any

import httpx

from constrain.server.app import Application
from tests.support.server.asking import ask

PATH = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
VERSION = {"anthropic-version": "2023-06-01"}

Event = dict[str, Any]


def body(**fields: Any) -> dict[str, Any]:
    """The body of a request; fields that are ``None`` are left out."""
    found = {
        "model": "small",
        "max_tokens": 60,
        "messages": [{"role": "user", "content": "Say hello."}],
        "temperature": 0,
        **fields,
    }
    return {name: value for name, value in found.items() if value is not None}


def post(application: Application, path: str = PATH, **fields: Any) -> httpx.Response:
    return ask(application, "POST", path, json=body(**fields), headers=VERSION)


def message(application: Application, **fields: Any) -> dict[str, Any]:
    """The message that a request gets, checked for its members."""
    response = post(application, **fields)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    members = {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
    assert set(found) - {"constrain"} == members
    assert (found["type"], found["role"], found["model"]) == ("message", "assistant", "small")
    return found


def error_of(response: httpx.Response) -> dict[str, Any]:
    """What an error says, checked for Anthropic's form."""
    assert response.headers["content-type"] == "application/json"
    found = response.json()
    assert set(found) == {"type", "error", "request_id"}
    assert found["type"] == "error"
    assert set(found["error"]) == {"type", "message"}
    assert found["error"]["message"]
    assert found["request_id"] == response.headers["request-id"] == response.headers["x-request-id"]
    return {"status": response.status_code, **found["error"]}


def events_of(text: str) -> list[Event]:
    """The events of a stream, whose names are their types."""
    parts = text.split("\n\n")
    assert parts.pop() == ""
    events = []
    for part in parts:
        first, second = part.split("\n")
        event = json.loads(second.removeprefix("data: "))
        assert first == f"event: {event['type']}"
        events.append(event)
    return events


def stream(application: Application, **fields: Any) -> list[Event]:
    response = post(application, stream=True, **fields)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    return events_of(response.text)


def order_of(events: list[Event]) -> list[str]:
    """The order of events: their types, with those of blocks and pieces; equal ones in a row are one."""
    order: list[str] = []
    for event in events:
        kind = event["type"]
        if kind == "content_block_start":
            kind = f"start {event['index']} {event['content_block']['type']}"
        elif kind == "content_block_delta":
            kind = f"{event['delta']['type']} {event['index']}"
        elif kind == "content_block_stop":
            kind = f"stop {event['index']}"
        elif kind == "message_delta":
            kind = f"message_delta {event['delta']['stop_reason']}"
        if not order or order[-1] != kind:
            order.append(kind)
    return order


def joined(events: list[Event]) -> dict[str, Any]:
    """The message that a client makes of the events."""
    found: dict[str, Any] = {}
    inputs: dict[int, str] = {}
    for event in events:
        match event:
            case {"type": "message_start", "message": begun}:
                found = {**begun, "content": []}
            case {"type": "content_block_start", "index": index, "content_block": block}:
                assert index == len(found["content"])
                found["content"].append(dict(block))
                inputs[index] = ""
            case {"type": "content_block_delta", "index": index, "delta": delta}:
                if delta["type"] == "input_json_delta":
                    inputs[index] += delta["partial_json"]
                    continue
                [name] = set(delta) - {"type"}
                found["content"][index][name] += delta[name]
            case {"type": "content_block_stop", "index": index}:
                if found["content"][index]["type"] == "tool_use":
                    found["content"][index]["input"] = json.loads(inputs[index])
            case {"type": "message_delta", "delta": delta, "usage": usage}:
                found |= {**delta, "usage": usage}
                found |= {"constrain": event["constrain"]} if "constrain" in event else {}
    assert events[-1] == {"type": "message_stop"}
    return found
