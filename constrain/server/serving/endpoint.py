"""The common base of all endpoints with a model: bodies come in, responses or streams go out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from constrain.remembering import Memory
from constrain.server.http.connection import while_connected
from constrain.server.http.errors import unavailable
from constrain.server.http.events import EVENT_STREAM
from constrain.server.requests.body import parse_body, read_body
from constrain.server.sandbox.reading import (
    REMEMBERED,
    is_large,
    read_again,
    read_in_sandbox,
    reading_key,
    require_few_values,
)
from constrain.server.serving.models import only_model, require_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from constrain.server.requests.declared import Body
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.generation import Generator
    from constrain.server.serving.metrics import Metrics
    from constrain.server.serving.models import Models, ServedModel
    from constrain.server.settings import Settings

_STREAM_HEADERS = (
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # proxies must pass on data at once
)


@dataclass(frozen=True, slots=True)
class Serving:
    """The shared objects of all endpoints: models by name, the generator, the settings, and what frees resources."""

    models: Models
    generator: Generator
    settings: Settings
    metrics: Metrics
    ends: ExitStack = field(default_factory=ExitStack)


class Endpoint(ABC):
    """An ASGI application that takes JSON. Its work for a client ends when the client leaves.

    Args:
        serving: models, generator and settings.
        body: body of a request.
    """

    def __init__(self, serving: Serving, body: type[Body]) -> None:
        self._serving = serving
        self._ask = partial(body.ask, settings=serving.settings)
        self._readings = Memory(REMEMBERED, REMEMBERED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request. Raises ``ApiError`` if nothing was sent yet."""
        request = Request(scope, receive)
        try:
            generator = self._serving.generator
            async with read_body(request, self._serving.settings.max_body_bytes, generator.admit_body) as body:
                if generator.is_stopping:
                    raise unavailable("The server is shutting down.")
                await while_connected(receive, self.answer(body, request, send))
        except ClientDisconnect:
            self._serving.metrics.abandoned.inc()

    async def read(self, body: bytes, session: Session) -> Any:
        """Returns the request of a body, for a model that exists. Raises ``ApiError``.

        What is slow is read in the process of the session.
        """
        generator, readings = self._serving.generator, self._readings  # keys of requests that are valid
        if is_large(body):
            await require_few_values(body, session)
        document = await generator.run_in_thread(partial(parse_body, body))
        self.name_model(document)
        key = await generator.run_in_thread(partial(reading_key, document))
        name = document.get("model")
        if isinstance(name, str):
            self.find(name)
        if key and readings.find(key) is not True:
            async with session.alone(key):
                if readings.find(key) is not True:
                    found = await read_in_sandbox(self._ask, body, name, session)
                    readings.add(key, result=True, size=1)
                    return found
        return await generator.run_in_thread(partial(read_again, self._ask, document))

    def name_model(self, document: dict[str, Any]) -> None:
        """Adds the only model's name to a parsed body that names none. Raises ``ApiError`` if there are several."""
        if document.get("model") in (None, ""):
            document["model"] = only_model(self._serving.models)

    def find(self, name: str) -> str:
        """Returns the served name of the model that a request names. Raises ``ApiError`` if there is none."""
        return require_name(self._serving.models, name)

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """Answers a request whose body is there. Raises ``ApiError`` if nothing was sent yet."""
        generator = self._serving.generator
        with generator.admit(1), generator.session() as session:
            asked = await self.read(body, session)
            response = await self.respond(asked, session, send)
        if response is not None:
            await response(request.scope, request.receive, send)

    @abstractmethod
    async def respond(self, asked: Any, session: Session, send: Send) -> Response | None:
        """Returns the response to a request that was read; ``None`` if it was sent as a stream. Raises ``ApiError``."""


class Inspecting(Endpoint):
    """An endpoint that answers with JSON, without a text of the model."""

    async def respond(self, asked: Any, session: Session, send: Send) -> JSONResponse:  # noqa: ARG002 - see Endpoint
        """Returns the response to a request that was read; see ``Endpoint``."""
        async with self._serving.models.lease(self.find(asked.model)) as served:
            return JSONResponse(await self.inspect(asked, served, session))

    @abstractmethod
    async def inspect(self, asked: Any, served: ServedModel, session: Session) -> dict[str, Any]:
        """Returns the answer to a request that was read. Raises ``ApiError``."""


async def send_stream(send: Send, texts: AsyncGenerator[str, None], media_type: str = EVENT_STREAM) -> None:
    """Sends the parts of a stream as they come. From now on, errors can appear only as parts in ``texts``."""
    async with aclosing(texts):
        headers = [(b"content-type", media_type.encode()), *_STREAM_HEADERS]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for text in texts:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
