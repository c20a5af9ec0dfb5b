"""The server as a program: on a socket, until a signal ends it."""

from __future__ import annotations

import asyncio
import copy
import signal
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from constrain.server.app import Application

_WRITING = 0.7
"""The part of the grace period after which answers are brought to their ends. The rest is for sending them."""


class Server(uvicorn.Server):
    """Serves an application. ``stop`` ends it, and so do SIGINT and SIGTERM.

    What is being written then is finished, in ``grace_seconds`` at most; what is new is refused. A second SIGINT brings
    all answers to their ends at once, and a third one leaves them as they are. More than one SIGTERM says no more than
    one: some supervisors send it to a process and to the group that it is in.

    Args:
        app: what to serve.
        host: name or address to listen on.
        port: number to listen on; 0 for any that is free.
        grace_seconds: to finish in.
        on_start: called with the URL once it listens.
    """

    def __init__(
        self, app: Application, host: str, port: int, *, grace_seconds: float, on_start: Callable[[str], None]
    ) -> None:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            lifespan="off",
            ws="none",
            log_level="info",
            log_config=_logging(),
            server_header=False,
            timeout_graceful_shutdown=max(1, round(grace_seconds)),
        )
        super().__init__(config)
        self._app = app
        self._grace_seconds = grace_seconds
        self._on_start = on_start
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hurries = False

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
            host, port, *_ = self.servers[0].sockets[0].getsockname()
            self._on_start(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See ``uvicorn.Server``."""
        if not self._hurries:
            self._app.generator.end_by(_WRITING * self._grace_seconds)
        await super().shutdown(sockets)
        self._app.generator.close()


def _logging() -> dict[str, Any]:
    """Requests are logged where all the rest is: on standard error."""
    config = copy.deepcopy(LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    config["loggers"]["constrain.server"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config
