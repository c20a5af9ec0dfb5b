"""``POST /v1/chat/completions``: the dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from constrain.server.chat.request import ChatBody
from constrain.server.chat.stream import ChunkWriter
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import Dialect

if TYPE_CHECKING:
    from constrain.server.serving.endpoint import Serving


def _routes(serving: Serving) -> list[Route]:
    return [Route("/v1/chat/completions", Answering(serving, ChatBody, ChunkWriter), methods=["POST"])]


CHAT = Dialect(_routes, (ChatBody,))
"""OpenAI's chat completions."""
