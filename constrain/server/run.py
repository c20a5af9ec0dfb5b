"""The server as a program: on a socket, until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

import uvicorn

from constrain.server.http.listening import url_of
from constrain.server.http.protocol import KEEP_ALIVE_SECONDS, MAX_HEADER_BYTES, Protocol
from constrain.server.logs import log_config

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from constrain.server.app import Application
    from constrain.server.settings import LogFormat

_ENDING = 5.0
"""Seconds of the grace period, but no more than half of it, in which answers are brought to their ends and sent."""


class Server(uvicorn.Server):
    """Serves an application. ``stop`` ends it, and so do SIGINT and SIGTERM.

    What is being written then is finished, in ``grace_seconds`` at most; what is new is refused. A second SIGINT brings
    all answers to their ends at once, and a third one leaves them as they are. More than one SIGTERM says no more than
    one: some supervisors send it to a process and to the group that it is in.

    Args:
        app: what to serve.
        sockets: to listen on (``listen``).
        log_format: of what is logged.
        grace_seconds: to finish in.
        on_start: called with the URL once it listens.
    """

    def __init__(
        self,
        app: Application,
        sockets: list[socket.socket],
        *,
        log_format: LogFormat = "text",
        grace_seconds: float,
        on_start: Callable[[str], None],
    ) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            lifespan="off",
            ws="none",
            access_log=False,  # the application has its own
            log_config=log_config(log_format),
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(grace_seconds)),
        )
        logging.captureWarnings(capture=True)  # such as those of a cache that cannot be written to
        super().__init__(config)
        self._app = app
        self._sockets = sockets
        self._grace_seconds = grace_seconds
        self._on_start = on_start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hurries = False

    def serve_until_stopped(self) -> None:
        """Serves until it is stopped."""
        self.run(self._sockets)

    def stop(self) -> None:
        """Ends it, from any thread."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - see uvicorn.Server
        """A signal that ends it. That it came is no error: the program's exit status is 0."""
        if not self.should_exit:
            self.should_exit = True
        elif sig != signal.SIGINT:
            return
        elif self._hurries:
            self.force_exit = True
        elif self._loop is not None:
            self._hurries = True
            self._loop.call_soon_threadsafe(self._app.generator.end_by, 0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See ``uvicorn.Server``."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._on_start(url_of(self._sockets[0]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See ``uvicorn.Server``."""
        if not self._hurries:
            self._app.generator.end_by(self._grace_seconds - min(_ENDING, self._grace_seconds / 2))
        await super().shutdown(sockets)
        self._app.generator.close()
