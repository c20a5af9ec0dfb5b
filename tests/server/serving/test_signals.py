"""Signals to a server under load: every stream that has begun ends whole and valid, and the program ends in time."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.support.server.asking import CHAT, SECONDS
from tests.support.server.process import program
from tests.support.waiting import wait_until_async

if TYPE_CHECKING:
    from tests.support.server.process import Program

GRACE = 6
LONG_GRACE = 40
"""Seconds. The streams take longer than the first of these, and half of the second is more than enough to end them."""


LONG = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 400, "maxLength": 900},
        "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 2},
    },
    "required": ["title", "tags"],
    "additionalProperties": False,
}
"""Takes hundreds of tokens: longer than the time that is given."""

TOOL = {"type": "function", "function": {"name": "note", "parameters": LONG}}
LINES = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: LINE~50..90\nLINE: /[a-z ]{9}/ /;/"}}
CUSTOM = {"type": "custom", "custom": {"name": "lines", "format": LINES}}

KINDS: tuple[dict[str, Any], ...] = (
    {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": LONG}}},
    {"tools": [TOOL], "tool_choice": "required"},
    {"tools": [CUSTOM], "tool_choice": "required"},
    {"max_tokens": 700},
)
STREAMS = 12
WRITTEN = 4
"""So many are written at once; the others wait."""

OPTIONS = ("--parallel", str(WRITTEN), "--ctx", "1024", "--grace")


def require_valid(kind: int, deltas: list[dict[str, Any]], reason: str) -> None:
    calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
    if kind == 0:
        Draft202012Validator(LONG).validate(json.loads("".join(delta.get("content") or "" for delta in deltas)))
    elif kind == 1:
        arguments = "".join(call["function"]["arguments"] for call in calls if not call["index"])
        Draft202012Validator(LONG).validate(json.loads(arguments))
    elif kind == 2:
        lines = "".join(call["custom"]["input"] for call in calls if not call["index"]).split(";")
        assert lines.pop() == ""
        assert 50 <= len(lines) <= 90
        assert all(len(line) == 9 for line in lines)
    assert reason in (("stop",), ("tool_calls",), ("tool_calls",), ("stop", "length"))[kind]


async def compile_all(client: httpx.AsyncClient) -> None:
    """Has every kind compiled: one token is too few for an answer, so that none is written."""
    for kind in KINDS:
        body = {"model": "small", "messages": [{"role": "user", "content": "Write."}], **kind, "max_tokens": 1}
        response = await client.post(CHAT, json=body)
        assert response.status_code == (200 if "max_tokens" in kind else 400), response.text


async def read_stream(client: httpx.AsyncClient, kind: int, began: asyncio.Semaphore) -> None:
    """One whole stream. ``began`` is released when its first bytes are there."""
    body = {"model": "small", "messages": [{"role": "user", "content": "Write."}], "stream": True, **KINDS[kind]}
    async with client.stream("POST", CHAT, json=body) as response:
        assert response.status_code == 200, await response.aread()
        events = []
        async for line in response.aiter_lines():
            if not events:
                began.release()
            events += [line.removeprefix("data: ")] if line else []
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    require_valid(kind, [choice["delta"] for choice in choices], choices[-1]["finish_reason"])


async def require_refused(url: str, idle: httpx.AsyncClient) -> None:
    """Neither a new connection nor one that was open is served any more."""
    for client in (idle, httpx.AsyncClient(base_url=url)):
        with pytest.raises(httpx.TransportError):
            await client.get("/health")
        await client.aclose()


async def stop_under_load(running: Program, signals: tuple[int, ...]) -> float:
    """Sends signals while streams are read, one after the other; seconds from the first one to the program's end."""
    limits = httpx.Limits(max_connections=STREAMS)
    idle = httpx.AsyncClient(base_url=running.url, timeout=SECONDS)
    assert (await idle.get("/health")).status_code == 200  # and the connection stays open
    async with httpx.AsyncClient(base_url=running.url, timeout=SECONDS, limits=limits) as client:
        await compile_all(client)
        began = asyncio.Semaphore(0)
        streams = [asyncio.create_task(read_stream(client, number % len(KINDS), began)) for number in range(STREAMS)]
        for _ in range(WRITTEN):
            await asyncio.wait_for(began.acquire(), SECONDS)
        while f"constrain_answers_admitted {STREAMS}.0" not in (await idle.get("/metrics")).text:
            pass  # the server is asked again
        started = time.monotonic()
        for each in signals:
            running.process.send_signal(each)
            await wait_until_async(lambda: any("Shutting down" in line for line in running.log))
        await require_refused(running.url, idle)
        await asyncio.gather(*streams)
    await asyncio.to_thread(running.process.wait, SECONDS)
    return time.monotonic() - started


@pytest.mark.slow
@pytest.mark.serial
def test_streams_end_valid_and_in_time_at_a_signal_and_a_second_one_of_the_same_kind_changes_nothing() -> None:
    with program(*OPTIONS, str(GRACE)) as running:
        seconds = asyncio.run(stop_under_load(running, (signal.SIGTERM, signal.SIGTERM)))
    assert running.process.returncode == 0, running.log
    assert 0.5 * GRACE < seconds < GRACE, running.log


@pytest.mark.slow
@pytest.mark.serial
def test_a_second_interrupt_ends_all_streams_at_once_and_still_valid() -> None:
    with program(*OPTIONS, str(LONG_GRACE)) as running:
        seconds = asyncio.run(stop_under_load(running, (signal.SIGINT, signal.SIGINT)))
    assert running.process.returncode == 0, running.log
    assert seconds < 0.5 * LONG_GRACE, running.log
