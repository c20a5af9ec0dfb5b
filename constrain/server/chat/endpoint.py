"""``POST /v1/chat/completions``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from constrain.server.chat.request import read_chat_request
from constrain.server.chat.response import Heading, Shape
from constrain.server.chat.stream import ChunkWriter
from constrain.server.requests.functions import with_old_names
from constrain.server.serving.answering import Asked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.server.chat.request import ChatRequest
    from constrain.server.serving.models import ServedModel
    from constrain.server.settings import Settings


def read_chat(body: Mapping[str, Any], settings: Settings) -> Asked:
    """What a chat completion asks. Raises ``ApiError``."""
    asked = read_chat_request(body, settings)
    renamed = with_old_names if asked.has_functions else None
    return Asked(asked.model, (asked.question,), asked.stream, partial(_writer, asked), renamed)


def _writer(asked: ChatRequest, _: ServedModel) -> ChunkWriter:
    shape = Shape(is_text=asked.question.schema is None, has_functions=asked.has_functions)
    return ChunkWriter(
        Heading(asked.model),
        asked.tools,
        shape,
        include_usage=asked.include_usage,
        logprobs=asked.question.options.get("logprobs", False),
    )
