"""``POST /v1/chat/completions``: from the body of a request to its response or stream."""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from constrain._completion import Finished
from constrain._errors import ConstrainError
from constrain.server.chat_request import read_chat_request
from constrain.server.chat_response import Heading, Shape, chat_completion
from constrain.server.chat_stream import ChunkWriter
from constrain.server.endpoint import Endpoint, send_stream
from constrain.server.errors import ApiError, failure
from constrain.server.events import data_event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.types import Send

    from constrain.server.chat_request import ChatRequest
    from constrain.server.generation import Answers

_log = logging.getLogger("constrain.server")


class ChatCompletions(Endpoint):
    """The endpoint."""

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """See ``Endpoint``."""
        generator = self._serving.generator
        with generator.admit(1), generator.session() as session:
            asked = await self.read(body, partial(read_chat_request, settings=self._serving.settings), session)
            if asked.question.n > generator.room:
                raise ApiError(
                    f"Invalid 'n': integer above maximum value. Expected a value <= {generator.room}, but got "
                    f"{asked.question.n} instead.",
                    param="n",
                    code="integer_above_max_value",
                )
            with generator.admit(asked.question.n - 1):
                async with self._serving.models.lease(asked.model) as served:
                    answers = await generator.start(served, asked.question, session)
                    with contextlib.closing(answers):
                        if asked.stream:
                            await send_stream(send, self._chunks(answers, asked))
                            return
                        response = await self._response(answers, asked)
        await response(request.scope, request.receive, send)

    async def _response(self, answers: Answers, asked: ChatRequest) -> JSONResponse:
        try:
            completions = await answers.completions()
        except ConstrainError as error:
            _log.exception("a generation failed")
            raise failure() from error
        for completion in completions:
            self._serving.metrics.add(completion)
        return JSONResponse(chat_completion(Heading(asked.model), completions, _shape(asked)))

    async def _chunks(self, answers: Answers, asked: ChatRequest) -> AsyncGenerator[str, None]:
        """The answers as they are written, as server-sent events."""
        writer = ChunkWriter(
            Heading(asked.model),
            asked.tools,
            _shape(asked),
            include_usage=asked.include_usage,
            logprobs=asked.question.options.get("logprobs", False),
        )
        try:
            for chunk in writer.begin(asked.question.n):
                yield chunk
            async with contextlib.aclosing(answers.events()) as events:
                async for number, event in events:
                    if isinstance(event, Finished):
                        self._serving.metrics.add(event.completion)
                    for chunk in writer.write(number, event):
                        yield chunk
            for chunk in writer.end():
                yield chunk
        except Exception:  # noqa: BLE001 - the client has to hear of it, whatever it is
            _log.exception("a generation failed")
            yield data_event(failure().body())


def _shape(asked: ChatRequest) -> Shape:
    return Shape(is_text=asked.question.schema is None, has_functions=asked.has_functions)
