"""The paths of llama-server, and those of LM Studio that are its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from constrain.server.llama_server.about import About
from constrain.server.llama_server.endpoint import ApplyTemplate, Continuing, Tokens
from constrain.server.llama_server.request import read_completion, read_detokenize, read_infill, read_tokenize
from constrain.server.llama_server.tokens import describe_text, describe_tokens
from constrain.server.serving.dialect import Dialect

if TYPE_CHECKING:
    from constrain.server.serving.answering import Reads
    from constrain.server.serving.endpoint import Serving


def llama_server(read_chat: Reads[Any]) -> Dialect:
    """Returns llama-server's dialect. ``read_chat``: reads the body of a chat completion, whose prompt is shown."""
    return Dialect(partial(_routes, read_chat), (read_completion, read_infill, read_tokenize, read_detokenize))


def _routes(read_chat: Reads[Any], serving: Serving) -> list[Route]:
    about, read = About(serving), partial(read_chat, settings=serving.settings)
    return [
        Route("/completion", Continuing(serving, read_completion), methods=["POST"]),
        Route("/infill", Continuing(serving, read_infill), methods=["POST"]),
        Route("/tokenize", Tokens(serving, read_tokenize, describe_tokens), methods=["POST"]),
        Route("/detokenize", Tokens(serving, read_detokenize, describe_text), methods=["POST"]),
        Route("/apply-template", ApplyTemplate(serving, read), methods=["POST"]),
        Route("/props", about.properties, methods=["GET"]),
        Route("/slots", about.slots, methods=["GET"]),
        Route("/api/v0/models", about.models, methods=["GET"]),
        Route("/api/v0/models/{name:path}", about.model, methods=["GET"]),
    ]
