"""Runs the server on its sockets until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

from constrain.server.dialects import error_object_for
from constrain.server.http.listening import url_of
from constrain.server.http.protocol import KEEP_ALIVE_SECONDS, MAX_HEADER_BYTES, Protocol
from constrain.server.logs import log_config

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from constrain.server.app import Application
    from constrain.server.config import LogFormat

_ENDING = 5.0
"""Seconds at the end of the grace period to end and send unfinished answers: 5, but at most half of the period."""


class Server(uvicorn.Server):
    """Serves an application until ``stop``, SIGINT or SIGTERM.

    Then new requests are refused and running answers are finished, in ``grace_seconds`` at most. A second SIGINT ends
    all answers early, and a third one drops them. Further SIGTERMs have no effect: some supervisors send it both to a
    process and to its group.

    Args:
        app: application to serve.
        sockets: listening sockets (see ``listen``).
        log_format: format of the log.
        grace_seconds: seconds to finish running answers.
        on_start: function that is called with the URL once the server listens.
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
        protocol: Any = partial(  # uvicorn expects a class, and calls it
            Protocol, find_form=error_object_for, room=app.generator.room
        )
        config = uvicorn.Config(
            app,
            http=protocol,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            lifespan="off",
            ws="none",
            access_log=False,  # the application logs requests itself
            log_config=log_config(log_format),
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(grace_seconds)),
        )
        logging.captureWarnings(capture=True)  # such as warnings about a cache that cannot be written to
        super().__init__(config)
        self._app = app
        self._sockets = sockets
        self._grace_seconds = grace_seconds
        self._on_start = on_start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hurries = False

    def serve_until_stopped(self) -> None:
        """Serves until the server is stopped."""
        self.run(self._sockets)

    def stop(self) -> None:
        """Stops the server; any thread may call it."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - see uvicorn.Server
        """Stops the server on a signal; the exit status of the program is 0."""
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
        """Starts the server; see ``uvicorn.Server``."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._on_start(url_of(self._sockets[0]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finishes running answers and stops the server; see ``uvicorn.Server``."""
        if not self._hurries:
            self._app.generator.end_by(self._grace_seconds - min(_ENDING, self._grace_seconds / 2))
        await super().shutdown(sockets)
        self._app.close()
