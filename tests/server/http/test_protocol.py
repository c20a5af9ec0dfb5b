"""The cap on connections, without sockets: idle ones make room, and without them a new one is refused."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from constrain.server.error_forms import error_object_for
from constrain.server.http import protocol
from constrain.server.http.listening import listen
from constrain.server.http.protocol import Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


class Transport(asyncio.Transport):
    """A connection that keeps what is sent, and says how it ended."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.sent = b""
        self.end = ""

    def write(self, data: Any) -> None:
        self.sent += data

    def write_eof(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return bool(self.end)

    def close(self) -> None:
        self.end = self.end or "close"

    def abort(self) -> None:
        self.end = "abort"


async def read_on(_: Scope, receive: Receive, __: Send) -> None:
    """An application that waits for the rest of a body, and answers nothing."""
    while (await receive())["type"] != "http.disconnect":
        pass


def run(scenario: Callable[[Callable[[bytes], Transport], set[Any]], None], *, room: int = 0) -> None:
    """Runs a scenario with a function that opens a connection and sends bytes, and the open connections."""

    async def ran() -> None:
        state = ServerState()
        config = uvicorn.Config(read_on, lifespan="off", log_config=None)
        config.load()
        made: list[Protocol] = []

        def connect(data: bytes) -> Transport:
            one = Protocol(config, state, {}, asyncio.get_running_loop(), find_form=error_object_for, room=room)
            made.append(one)
            transport = Transport()
            one.connection_made(transport)
            if data and not transport.end:
                one.data_received(data)
            return transport

        try:
            scenario(connect, state.connections)
        finally:
            for each in made:
                each.connection_lost(None)
            await asyncio.gather(*state.tasks)

    asyncio.run(ran())


@pytest.fixture(autouse=True)
def _three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 3)


def test_a_connection_too_many_is_refused_where_none_is_idle() -> None:
    def scenario(connect: Callable[[bytes], Transport], connections: set[Any]) -> None:
        busy = [connect(HEAD) for _ in range(3)]
        refused = [connect(HEAD) for _ in range(5)]
        assert {one.end for one in busy} == {""}
        assert {one.end for one in refused} == {"close"}
        assert len(connections) == 3
        head, _, body = refused[0].sent.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5" in head.lower()
        assert json.loads(body)["error"]["code"] == "service_unavailable"

    run(scenario)


def test_idle_connections_make_room_each_for_one() -> None:
    def scenario(connect: Callable[[bytes], Transport], connections: set[Any]) -> None:
        busy, idle = connect(HEAD), [connect(data) for data in (b"", HEAD[:9])]
        others = [connect(HEAD) for _ in range(3)]  # before the loop hears of any end
        assert [one.end for one in (busy, *idle)] == ["", "abort", "abort"]
        assert [one.end for one in others] == ["", "", "close"]
        assert len(connections) == 3

    run(scenario)


def test_answers_that_wait_have_connections() -> None:
    def scenario(connect: Callable[[bytes], Transport], connections: set[Any]) -> None:
        made = [connect(HEAD) for _ in range(11)]
        assert [one.end for one in made] == [""] * 10 + ["close"]
        assert len(connections) == 10

    run(scenario, room=5)


def test_connections_send_small_pieces_without_delay() -> None:
    async def accepted_has_no_delay() -> bool:
        connected: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            connected.set_result(bool(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            writer.close()

        (listening,) = listen("127.0.0.1", 0)
        server = await asyncio.start_server(on_connection, sock=listening)
        async with server:
            _, writer = await asyncio.open_connection(*listening.getsockname())
            found = await connected
            writer.close()
            await writer.wait_closed()
        return found

    assert asyncio.run(accepted_has_no_delay())
