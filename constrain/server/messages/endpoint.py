"""Anthropic's paths: messages, the count of their tokens, and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from constrain.server.messages.errors import error_object
from constrain.server.messages.model_list import describe_model, is_for_messages, list_models
from constrain.server.messages.request import CountBody, MessagesBody
from constrain.server.messages.response import Heading
from constrain.server.messages.stream import MessageWriter
from constrain.server.serving.answering import Answering
from constrain.server.serving.dialect import ChosenRoute, Dialect
from constrain.server.serving.endpoint import Inspecting
from constrain.server.serving.models import MODELS

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request

    from constrain.server.messages.request import MessagesRequest
    from constrain.server.sandbox.session import Session
    from constrain.server.serving.endpoint import Serving
    from constrain.server.serving.models import ServedModel


_PATH = "/v1/messages"


def _make_writer(request: MessagesRequest, _: ServedModel) -> MessageWriter:
    """Returns the writer of the answer to a request."""
    question = request.question
    return MessageWriter(Heading(request.model, question.content is None, request.shows_thinking))


class TokenCount(Inspecting):
    """The endpoint that counts the tokens of the prompt that a request for a message would have."""

    async def inspect(self, asked: MessagesRequest, served: ServedModel, _: Session) -> dict[str, Any]:
        """Returns the count; see ``Inspecting``."""
        return {"input_tokens": await self._serving.generator.count(served, asked.question)}


def _routes(serving: Serving) -> list[Route]:
    """Returns the routes; those about models are for Anthropic's clients alone."""

    async def every(request: Request) -> JSONResponse:
        return JSONResponse(list_models(serving.models, request.query_params))

    async def one(request: Request) -> JSONResponse:
        name: Any = request.path_params["name"]
        return JSONResponse(describe_model(serving.models, name))

    def is_for(_: str, headers: Headers) -> bool:
        return is_for_messages(headers)

    return [
        Route(_PATH, Answering(serving, MessagesBody, _make_writer), methods=["POST"]),
        Route(f"{_PATH}/count_tokens", TokenCount(serving, CountBody), methods=["POST"]),
        ChosenRoute(MODELS, every, is_for),
        ChosenRoute(f"{MODELS}/{{name:path}}", one, is_for),
    ]


def _owns(path: str, headers: Headers) -> bool:
    return path.startswith(_PATH) or (f"{path}/".startswith(f"{MODELS}/") and is_for_messages(headers))


MESSAGES = Dialect(
    _routes,
    (MessagesBody, CountBody),
    _owns,
    error_object,
    stream_error=MessageWriter.failed,
    id_header="request-id",
)
"""Anthropic's messages."""
