"""A replica: one process with the whole server, which answers the requests that a ``Front`` sends."""

from __future__ import annotations

import asyncio
import logging.config
from typing import TYPE_CHECKING

from constrain.ray.endpoint.measurements import Measurements
from constrain.server.app import Application
from constrain.server.logs import log_config
from constrain.server.sandbox.workers import workers
from constrain.server.serving.model_files import find_models

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Scope

    from constrain.server.config import ServerConfig
    from constrain.server.settings import Settings


class Replica:
    """The server of one process. Ray calls it in one event loop.

    Args:
        config: configuration, with the models.
        settings: settings that were made from it.

    Raises the errors of ``find_models`` and of loading the only model.
    """

    def __init__(self, config: ServerConfig, settings: Settings) -> None:
        logging.config.dictConfig(log_config(config.log_format))
        workers().start()
        self._models = find_models(config, None, [])
        if len(self._models.states()) == 1:
            self._models.load(next(iter(self._models)))
        self._app = Application(self._models, settings)
        self._measurements = Measurements(self._app.metrics)

    async def answer(self, scope: Scope, body: bytes) -> AsyncIterator[list[Message]]:
        """Yields the ASGI messages of the response to a request, as many at a time as there are.

        A caller that stops reading is a client that left.
        """
        sent: asyncio.Queue[Message | None] = asyncio.Queue()
        left = asyncio.Event()
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if unread:
                return unread.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def work() -> None:
            try:
                await self._app(scope, receive, sent.put)
            finally:
                await sent.put(None)

        working = asyncio.create_task(work())
        try:
            while (first := await sent.get()) is not None:
                messages = [first]
                while not sent.empty():
                    if (each := sent.get_nowait()) is None:
                        sent.put_nowait(None)
                        break
                    messages.append(each)
                yield messages
            await working
        finally:
            left.set()
            await asyncio.gather(working, return_exceptions=True)

    async def check_health(self) -> None:
        """Hands measurements to Ray, which calls this every ten seconds. Raises ``RuntimeError`` without a model."""
        self._measurements.hand_over()
        if all(state.has_failed for state in self._models.states()):
            raise RuntimeError("no model can be loaded; the log says why")

    async def __del__(self) -> None:
        """Frees everything; Ray calls this once all requests are answered."""
        if hasattr(self, "_app"):  # the constructor may have raised
            self._app.close()
            self._models.close()
            workers().close()
