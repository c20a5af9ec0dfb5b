"""HTTP on one connection, with limits on the time and size of unfinished requests."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import h11
from starlette.datastructures import Headers
from uvicorn.protocols.http.h11_impl import H11Protocol

from constrain.server.http.account import Account, current
from constrain.server.http.errors import ApiError, unavailable

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from constrain.server.http.account import ErrorObject

    FormFinder = Callable[[str, Headers], ErrorObject | None]
    """Returns the form of errors for a path and headers; ``None`` for OpenAI's form."""

MAX_HEADER_BYTES = 64 << 10
"""Bytes of the request line and the headers together. Beyond: status 431."""

MAX_CONNECTIONS = 512
"""Connections at the same time: 512, or twice the answers that are admitted at once, if these are more. Beyond it, a
new connection replaces the one that has been idle for longest; if none is idle, it gets status 503.
"""

KEEP_ALIVE_SECONDS = 75
"""Seconds that a connection may be idle between requests: 75, longer than clients keep one (httpx 5 seconds, others up
to 60). If the server closed it first, a request under way at that moment would fail.
"""

_IDLE_SECONDS = 10.0
"""Seconds that a connection may stay open before its first byte arrives; then it is closed."""

_HEADER_SECONDS = 4.0
"""Seconds from the first byte of a request to the end of its headers. More gets status 408."""

_UNREAD_SECONDS = 30.0
"""Seconds that a client may leave sent data unread (about 64 KiB, plus the system's buffers); then it is disconnected.
"""

_LINGER_SECONDS = 1.0
"""Seconds that data is still received and dropped after a refusal: otherwise the client could not read the refusal."""

_NO_LINGER = struct.pack("ii", 1, 0)
"""``struct linger``: on, for 0 seconds."""


class _Connection(h11.Connection):
    """A connection that remembers the beginning of its last request, which may be no HTTP.

    Attributes:
        head: request line and headers, as far as they have arrived; ``b""`` before the first request.
    """

    head = b""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        """Returns the next event; see ``h11.Connection``."""
        if self.their_state is h11.IDLE:
            self.head = self.trailing_data[0]
        return super().next_event()


class Protocol(H11Protocol):
    """uvicorn's protocol with these limits. uvicorn itself limits only the idle time between requests.

    Args:
        find_form: finds the form of errors, by path and headers.
        room: answers that are admitted at once.
    """

    def __init__(self, *args: Any, find_form: FormFinder, room: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_connections = max(MAX_CONNECTIONS, 2 * room)
        self.conn = self._connection = _Connection(h11.SERVER, MAX_HEADER_BYTES)
        self._find_form = find_form
        self._used = time.monotonic()
        self._reading: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None
        self._is_refused = False

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def _has_begun(self) -> bool:
        """Whether the headers of a request have begun to arrive and are incomplete."""
        return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Starts the timer of a new connection. If there are too many, drops an idle one, or refuses the new one."""
        is_full = len(self.connections) >= self._max_connections
        idle = [one for one in self.connections if isinstance(one, Protocol) and one.is_idle] if is_full else []
        if idle:
            longest = min(idle, key=lambda one: one._used)
            longest.transport.abort()
            self.connections.discard(longest)  # its end is noted later, and other connections may come sooner
        super().connection_made(transport)
        if is_full and not idle:
            self._refuse(unavailable(f"The server has {self._max_connections} connections, and each is in use."))
            self.connections.discard(self)
            transport.close()
            return
        self._reading = self._later(_IDLE_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timers of a closed connection; see ``asyncio.Protocol``."""
        self._stop_reading()
        self._stop_sending()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handles received bytes; see ``asyncio.Protocol``."""
        if not self._is_refused:
            had_begun = self._has_begun
            self._used = time.monotonic()
            super().data_received(data)
            self._watch_headers(had_begun=had_begun)

    def _watch_headers(self, *, had_begun: bool) -> None:
        if self._is_refused or (had_begun and self._has_begun):
            return
        self._stop_reading()
        if self._has_begun:
            self._reading = self._later(_HEADER_SECONDS, self._refuse_slow_headers)

    def pause_writing(self) -> None:
        """Starts the timer for unread data; see ``asyncio.Protocol``."""
        super().pause_writing()
        self._stop_sending()
        self._sending = self._later(_UNREAD_SECONDS, self._reset)

    def resume_writing(self) -> None:
        """Stops the timer for unread data; see ``asyncio.Protocol``."""
        self._stop_sending()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answers a malformed request, or one with too long headers."""
        size = len(self.conn.trailing_data[0])
        if size > MAX_HEADER_BYTES:
            self._refuse(ApiError(f"The headers are larger than {MAX_HEADER_BYTES} bytes.", status=431))
        else:
            self._refuse(ApiError(msg))

    def _refuse_slow_headers(self) -> None:
        self._refuse(ApiError("The headers of the request came too slowly.", status=408, code="request_timeout"))

    def _refuse(self, error: ApiError) -> None:
        """Sends an error in place of the application, and ends the connection."""
        self._is_refused = True
        self._stop_reading()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # another response has begun
            self.transport.abort()
            return
        # The current record may be that of the request before, whose task may be what reads this one.
        account = Account(time.monotonic(), status=error.status)
        account.error_object = self._find_form(*_read_head(self._connection.head))
        token = current.set(account)
        try:
            body = json.dumps(error.body()).encode()
        finally:
            current.reset(token)
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        headers += [("x-request-id", account.id), *(error.headers or {}).items()]
        for event in (h11.Response(status_code=error.status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.write_eof()
        self._reading = self._later(_LINGER_SECONDS, self.transport.abort)

    def _reset(self) -> None:
        """Ends the connection at once, so that the system drops unread data that it would keep for minutes."""
        connection: socket.socket = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()

    def _later(self, seconds: float, do: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, do)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None


def _read_head(head: bytes) -> tuple[str, Headers]:
    """Returns the path and the headers that the beginning of a request has, as far as they can be read."""
    line, *lines = head.split(b"\n")
    _, _, target = line.partition(b" ")
    try:
        path = unquote(urlsplit(target.partition(b" ")[0].decode("ascii")).path)
    except ValueError:
        path = ""
    parts = [each.partition(b":") for each in lines]
    return path, Headers(raw=[(name.strip().lower(), value.strip()) for name, is_there, value in parts if is_there])
