"""``POST /v1/messages`` and ``POST /v1/messages/count_tokens``: the writer of answers, and the count of tokens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from constrain.server.messages.request import read_count_request
from constrain.server.messages.response import Heading
from constrain.server.messages.stream import MessageWriter
from constrain.server.serving.endpoint import Endpoint

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Send

    from constrain.server.messages.request import MessagesRequest
    from constrain.server.serving.models import ServedModel


def make_message_writer(request: MessagesRequest, _: ServedModel) -> MessageWriter:
    """Returns the writer of the answer to a request."""
    question = request.question
    return MessageWriter(Heading(request.model, question.content is None, request.shows_thinking))


class TokenCount(Endpoint):
    """The endpoint that counts the tokens of the prompt that a request for a message would have."""

    async def answer(self, body: bytes, request: Request, send: Send) -> None:
        """Answers a request; see ``Endpoint``."""
        generator = self._serving.generator
        with generator.admit(1), generator.session() as session:
            asked = await self.read(body, partial(read_count_request, settings=self._serving.settings), session)
            async with self._serving.models.lease(asked.model) as served:
                count = await generator.count(served, asked.question)
        await JSONResponse({"input_tokens": count})(request.scope, request.receive, send)
