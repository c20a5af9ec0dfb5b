"""The paths of Ollama's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from constrain.server.http.errors import ApiError
from constrain.server.ollama.embeddings import OllamaEmbeddings, embed_object, old_embeddings_object
from constrain.server.ollama.endpoint import OllamaAnswering
from constrain.server.ollama.lines import chat_members, generate_members
from constrain.server.ollama.models import Library, Pull, Show
from constrain.server.ollama.names import read_named
from constrain.server.ollama.request import read_ollama_chat, read_ollama_generate
from constrain.server.ollama.texts import read_embed, read_old_embeddings

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from constrain.server.serving.endpoint import Serving

PREFIX = "/api/"
"""Beginning of the paths of Ollama's API."""

API_VERSION = "0.14.0"
"""Version of Ollama whose API this server has; clients compare it with the least version that they need."""

CALLED_IN_SANDBOX = (read_ollama_chat, read_ollama_generate, read_embed, read_old_embeddings, read_named)
"""Functions that are called in the processes of the sandbox."""

_SERVE = "start the server with the model's GGUF file instead: constrain serve FILE --alias NAME"

_REFUSED = (
    ("POST", "create", f"This server makes no models; {_SERVE}. Send the settings of a Modelfile as options."),
    ("POST", "copy", "This server copies no models; give the model a second name with --alias instead."),
    ("DELETE", "delete", "This server deletes no models; leave the model out when you start the server instead."),
    ("POST", "push", "This server sends no models anywhere; copy the model's GGUF file instead."),
    ("POST", "blobs/{digest}", f"This server takes no files; {_SERVE}."),
)
"""Methods and paths that are always refused, with the alternative."""


def ollama_routes(serving: Serving) -> list[Route]:
    """Returns all routes of Ollama's API. ``serving``: models, generator, settings and metrics."""
    library = Library(serving)
    chat = OllamaAnswering(serving, read_ollama_chat, chat_members)
    generate = OllamaAnswering(serving, read_ollama_generate, generate_members)
    return [
        Route(PREFIX + "chat", chat, methods=["POST"]),
        Route(PREFIX + "generate", generate, methods=["POST"]),
        Route(PREFIX + "embed", OllamaEmbeddings(serving, read_embed, embed_object), methods=["POST"]),
        Route(
            PREFIX + "embeddings",
            OllamaEmbeddings(serving, read_old_embeddings, old_embeddings_object),
            methods=["POST"],
        ),
        Route(PREFIX + "tags", library.tags, methods=["GET"]),
        Route(PREFIX + "ps", library.running, methods=["GET"]),
        Route(PREFIX + "show", Show(serving, library), methods=["POST"]),
        Route(PREFIX + "pull", Pull(serving), methods=["POST"]),
        Route(PREFIX + "version", _show_version, methods=["GET"]),
        *(_refuse(method, path, message) for method, path, message in _REFUSED),
        _HeadRoute("/", _probe, methods=["HEAD"]),
    ]


class _HeadRoute(Route):
    """A route for HEAD alone; other methods get a 404."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns whether a request takes this route."""
        return super().matches(scope) if scope.get("method") == "HEAD" else (Match.NONE, {})


async def _show_version(_: Request) -> Response:
    return JSONResponse({"version": API_VERSION})


async def _probe(_: Request) -> Response:
    """Answers clients that look whether a server is there."""
    return Response(media_type="text/plain")


def _refuse(method: str, path: str, message: str) -> Route:
    """Returns the route of a request that is always refused."""

    async def refuse(_: Request) -> Response:
        raise ApiError(message, code="unsupported_parameter")

    return Route(PREFIX + path, refuse, methods=[method])
