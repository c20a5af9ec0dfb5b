"""The paths of llama-server, and those of LM Studio that are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from constrain.server.llama_server.about import About
from constrain.server.llama_server.endpoint import ApplyTemplate, Continuing, Tokens
from constrain.server.llama_server.request import read_completion, read_detokenize, read_infill, read_tokenize
from constrain.server.llama_server.tokens import describe_text, describe_tokens

if TYPE_CHECKING:
    from constrain.server.serving.endpoint import Serving

CALLED_IN_SANDBOX = (read_completion, read_infill, read_tokenize, read_detokenize)
"""Functions that are called in the processes of the sandbox."""


def llama_server_routes(serving: Serving) -> list[Route]:
    """Returns all routes. ``serving``: models, generator, settings and metrics."""
    about = About(serving)
    return [
        Route("/completion", Continuing(serving, read_completion), methods=["POST"]),
        Route("/infill", Continuing(serving, read_infill), methods=["POST"]),
        Route("/tokenize", Tokens(serving, read_tokenize, describe_tokens), methods=["POST"]),
        Route("/detokenize", Tokens(serving, read_detokenize, describe_text), methods=["POST"]),
        Route("/apply-template", ApplyTemplate(serving), methods=["POST"]),
        Route("/props", about.properties, methods=["GET"]),
        Route("/slots", about.slots, methods=["GET"]),
        Route("/api/v0/models", about.models, methods=["GET"]),
        Route("/api/v0/models/{name:path}", about.model, methods=["GET"]),
    ]
