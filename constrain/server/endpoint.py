"""What the endpoints that have a model write have in common: bodies come in, responses or streams go out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request

from constrain.server.body import read_body
from constrain.server.connection import while_connected

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from constrain.server.generation import Generator
    from constrain.server.metrics import Metrics
    from constrain.server.models import Models
    from constrain.server.settings import Settings

_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # proxies shall pass on what comes at once
)


@dataclass(frozen=True, slots=True)
class Serving:
    """What all endpoints answer with: models by name, what runs them, and how."""

    models: Models
    generator: Generator
    settings: Settings
    metrics: Metrics


class Endpoint(ABC):
    """An ASGI application that takes JSON. What it does for a client ends when the client leaves."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request. Raises ``ApiError`` where nothing was sent yet."""
        request = Request(scope, receive)
        try:
            body = await read_body(request, self._serving.settings.max_body_bytes)
            await while_connected(receive, self.answer(body, request, send))
        except ClientDisconnect:
            self._serving.metrics.abandoned.inc()

    @abstractmethod
    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """Answers a request whose body was read. Raises ``ApiError`` where nothing was sent yet."""


async def send_stream(send: Send, texts: AsyncGenerator[str, None]) -> None:
    """Sends server-sent events as they come. What goes wrong now can only be said in the stream: by ``texts``."""
    async with aclosing(texts):
        await send({"type": "http.response.start", "status": 200, "headers": list(_STREAM_HEADERS)})
        async for text in texts:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
