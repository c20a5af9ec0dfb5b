"""Requests in which one value is something else: they are answered or refused, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from constrain.server.http.errors import ApiError
from constrain.server.responses.memory_store import MemoryStore
from constrain.server.responses.output import ResponseHead, response_json, unfinished_response
from constrain.server.responses.request import read_request

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
        _answer(body)
    except ApiError as error:
        return error
    return None


def _answer(body: dict[str, Any]) -> None:
    """All that is done with a request beside generating."""
    request = read_request(body)
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
