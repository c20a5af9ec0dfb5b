"""``POST /v1/chat/completions``: makes the writer for the answers to a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.chat.response import Heading, Shape
from constrain.server.chat.stream import ChunkWriter

if TYPE_CHECKING:
    from constrain.server.chat.request import ChatRequest
    from constrain.server.serving.models import ServedModel


def make_chat_writer(request: ChatRequest, _: ServedModel) -> ChunkWriter:
    """Returns the writer of the answers to a request."""
    return ChunkWriter(
        Heading(request.model),
        request.tools,
        Shape(is_text=request.question.content is None, has_functions=request.has_functions),
        include_usage=request.streaming.include_usage,
        logprobs=request.question.options.get("logprobs", False),
    )
