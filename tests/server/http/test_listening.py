"""Sockets that listen: small pieces of a response leave at once."""

from __future__ import annotations

import asyncio
import socket

from constrain.server.http.listening import listen


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
