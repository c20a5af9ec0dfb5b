"""``POST /v1/chat/completions``: from the body of a request to its response or stream."""

from __future__ import annotations

import contextlib
import json
import logging
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from constrain._completion import Finished
from constrain._errors import ConstrainError
from constrain.server.body import parse_body, read_body
from constrain.server.chat_request import read_chat_request
from constrain.server.chat_response import Heading, chat_completion
from constrain.server.chat_stream import ChunkWriter
from constrain.server.connection import while_connected
from constrain.server.errors import ApiError, failure
from constrain.server.models import find_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from constrain.server.chat_request import ChatRequest
    from constrain.server.generation import Answers, Generator
    from constrain.server.metrics import Metrics
    from constrain.server.models import ServedModel
    from constrain.server.settings import Settings

_log = logging.getLogger("constrain.server")

STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # proxies shall pass on what comes at once
)


class ChatCompletions:
    """The endpoint, an ASGI application."""

    def __init__(
        self, models: Mapping[str, ServedModel], generator: Generator, settings: Settings, metrics: Metrics
    ) -> None:
        self._models = models
        self._generator = generator
        self._settings = settings
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request. Raises ``ApiError`` where nothing was sent yet."""
        try:
            body = await read_body(Request(scope, receive), self._settings.max_body_bytes)
            await while_connected(receive, self._answer(body, scope, receive, send))
        except ClientDisconnect:
            self._metrics.abandoned.inc()

    async def _answer(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        generator = self._generator
        with generator.admit(1):
            request = await generator.aside(partial(_read, body, self._models, self._settings))
            if request.n > generator.room:
                raise ApiError(
                    f"Invalid 'n': integer above maximum value. Expected a value <= {generator.room}, but got "
                    f"{request.n} instead.",
                    param="n",
                    code="integer_above_max_value",
                )
            with generator.admit(request.n - 1):
                answers = await generator.start(self._models[request.model], request)
                with contextlib.closing(answers):
                    if request.stream:
                        await self._stream(answers, request, send)
                        return
                    response = await self._response(answers, request)
        await response(scope, receive, send)

    async def _response(self, answers: Answers, request: ChatRequest) -> JSONResponse:
        try:
            completions = await answers.completions()
        except ConstrainError as error:
            _log.exception("a generation failed")
            raise failure() from error
        for completion in completions:
            self._metrics.add(completion)
        return JSONResponse(chat_completion(Heading(request.model), completions, is_text=request.schema is None))

    async def _stream(self, answers: Answers, request: ChatRequest, send: Send) -> None:
        """Sends the answers as they are written. What goes wrong now can only be said in the stream."""
        writer = ChunkWriter(
            Heading(request.model),
            request.tools,
            is_text=request.schema is None,
            include_usage=request.include_usage,
        )

        async def show(chunk: str, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": chunk.encode(), "more_body": more})

        await send({"type": "http.response.start", "status": 200, "headers": list(STREAM_HEADERS)})
        try:
            for chunk in writer.begin(request.n):
                await show(chunk)
            async with contextlib.aclosing(answers.events()) as events:
                async for number, event in events:
                    if isinstance(event, Finished):
                        self._metrics.add(event.completion)
                    for chunk in writer.write(number, event):
                        await show(chunk)
            for chunk in writer.end():
                await show(chunk)
        except Exception:  # noqa: BLE001 - the client has to hear of it, whatever it is
            _log.exception("a generation failed")
            await show(f"data: {json.dumps(failure().body())}\n\n")
        await show("", more=False)


def _read(body: bytes, models: Mapping[str, ServedModel], settings: Settings) -> ChatRequest:
    """The request that a body is, for a model that there is. Raises ``ApiError``."""
    document = parse_body(body)
    if isinstance(model := document.get("model"), str):
        find_model(models, model)
    return read_chat_request(document, settings)
