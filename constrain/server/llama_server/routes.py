"""The paths of llama-server, and those of LM Studio that are its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.routing import Route

from constrain.server.llama_server.about import About
from constrain.server.llama_server.endpoint import ApplyTemplate, Continuing, Tokenize, Tokens
from constrain.server.llama_server.request import CompletionBody, DetokenizeBody, InfillBody, TokenizeBody
from constrain.server.llama_server.tokens import describe_text
from constrain.server.llama_server.writer import ContinuationWriter
from constrain.server.serving.dialect import Dialect

if TYPE_CHECKING:
    from constrain.server.requests.declared import Body
    from constrain.server.serving.endpoint import Serving


def llama_server(chat: type[Body]) -> Dialect:
    """Returns llama-server's dialect. ``chat``: body of a chat completion, whose prompt is shown or counted."""
    return Dialect(partial(_routes, chat), (CompletionBody, InfillBody, TokenizeBody, DetokenizeBody))


def _routes(chat: type[Body], serving: Serving) -> list[Route]:
    about = About(serving)
    return [
        Route("/completion", Continuing(serving, CompletionBody, ContinuationWriter), methods=["POST"]),
        Route("/infill", Continuing(serving, InfillBody, ContinuationWriter), methods=["POST"]),
        Route("/tokenize", Tokenize(serving, chat), methods=["POST"]),
        Route("/detokenize", Tokens(serving, DetokenizeBody, describe_text), methods=["POST"]),
        Route("/apply-template", ApplyTemplate(serving, chat), methods=["POST"]),
        Route("/props", about.properties, methods=["GET"]),
        Route("/slots", about.slots, methods=["GET"]),
        Route("/api/v0/models", about.models, methods=["GET"]),
        Route("/api/v0/models/{name:path}", about.model, methods=["GET"]),
    ]
