"""``POST /v1/chat/completions``: the dialect, and the writer of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from constrain.server.chat.request import ChatBody
from constrain.server.chat.response import Heading
from constrain.server.chat.stream import ChunkWriter
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import Dialect
from constrain.server.serving.ended import Shape

if TYPE_CHECKING:
    from constrain.server.chat.request import ChatRequest
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.models import ServedModel


def _make_writer(request: ChatRequest, _: ServedModel) -> ChunkWriter:
    """Returns the writer of the answers to a request."""
    return ChunkWriter(
        Heading(request.model),
        request.tools,
        Shape(is_text=request.question.content is None, has_functions=request.has_functions),
        include_usage=request.streaming.include_usage,
        logprobs=request.question.options.get("logprobs", False),
    )


def _routes(serving: Serving) -> list[Route]:
    return [Route("/v1/chat/completions", Answering(serving, ChatBody, _make_writer), methods=["POST"])]


CHAT = Dialect(_routes, (ChatBody,))
"""OpenAI's chat completions."""
