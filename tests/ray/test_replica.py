"""The messages of a replica, which Ray passes on to the front."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ray")

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
"""Warnings of Ray Serve about itself."""

MESSAGES: list[dict[str, Any]] = [
    {"type": "http.response.start", "status": 200, "headers": []},
    {"type": "http.response.body", "body": b"a", "more_body": True},
    {"type": "http.response.body", "body": b"b", "more_body": False},
]


class App:
    """A server that sends messages, and waits for the client between the first and the others."""

    def __init__(self, *, waits: bool) -> None:
        self.waits = waits
        self.received: list[Any] = []

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        self.received.append(await receive())
        await send(MESSAGES[0])
        if self.waits:
            self.received.append(await receive())
            return
        await asyncio.sleep(0)
        for message in MESSAGES[1:]:
            await send(message)


def parts_of(app: App) -> Any:
    from constrain.ray.endpoint.replica import Replica

    return Replica.answer(SimpleNamespace(_app=app), {"type": "http"}, b"body")  # type: ignore[arg-type]


def test_messages_come_in_their_order_as_many_as_there_are() -> None:
    async def read() -> list[Any]:
        return [part async for part in parts_of(App(waits=False))]

    parts = asyncio.run(read())
    assert all(parts)
    assert [message for part in parts for message in part] == MESSAGES


def test_a_caller_that_stops_reading_is_a_client_that_left() -> None:
    app = App(waits=True)

    async def leave() -> Any:
        parts = parts_of(app)
        first = await anext(parts)
        await parts.aclose()
        return first

    assert asyncio.run(leave()) == MESSAGES[:1]
    assert [message["type"] for message in app.received] == ["http.request", "http.disconnect"]
    assert app.received[0]["body"] == b"body"


def test_an_error_of_the_server_is_raised() -> None:
    async def broken(*_: Any) -> None:
        raise OSError("broken")

    async def read() -> list[Any]:
        return [part async for part in parts_of(broken)]  # type: ignore[arg-type]

    with pytest.raises(OSError, match="broken"):
        asyncio.run(read())
