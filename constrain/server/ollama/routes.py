"""The paths of Ollama's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from constrain.server.http.errors import ApiError
from constrain.server.ollama.endpoint import OllamaAnswering, OllamaEmbeddings, embed_object, old_embeddings_object
from constrain.server.ollama.lines import LINES, AnswerWriter, chat_members, error_object, generate_members
from constrain.server.ollama.models import Library, Pull, Show
from constrain.server.ollama.names import NamedBody
from constrain.server.ollama.request import ChatBody, GenerateBody
from constrain.server.ollama.texts import EmbedBody, OldEmbeddingsBody
from constrain.server.serving.dialect import ChosenRoute, Dialect
from constrain.server.serving.facts import Facts

if TYPE_CHECKING:
    from starlette.requests import Request

    from constrain.server.serving.endpoint import Serving

PREFIX = "/api/"
"""Beginning of the paths of Ollama's API."""

API_VERSION = "0.14.0"
"""Version of Ollama whose API this server has; clients compare it with the least version that they need."""

_SERVE = "start the server with the model's GGUF file instead: constrain serve FILE --alias NAME"

_REFUSED = (
    ("POST", "create", f"This server makes no models; {_SERVE}. Send the settings of a Modelfile as options."),
    ("POST", "copy", "This server copies no models; give the model a second name with --alias instead."),
    ("DELETE", "delete", "This server deletes no models; leave the model out when you start the server instead."),
    ("POST", "push", "This server sends no models anywhere; copy the model's GGUF file instead."),
    ("POST", "blobs/{digest}", f"This server takes no files; {_SERVE}."),
)
"""Methods and paths that are always refused, with the alternative."""


def _routes(serving: Serving) -> list[Route]:
    facts = Facts(serving.generator)
    library = Library(serving, facts)
    chat = OllamaAnswering(serving, ChatBody, chat_members)
    generate = OllamaAnswering(serving, GenerateBody, generate_members)
    return [
        Route(PREFIX + "chat", chat, methods=["POST"]),
        Route(PREFIX + "generate", generate, methods=["POST"]),
        Route(PREFIX + "embed", OllamaEmbeddings(serving, EmbedBody, embed_object), methods=["POST"]),
        Route(
            PREFIX + "embeddings",
            OllamaEmbeddings(serving, OldEmbeddingsBody, old_embeddings_object),
            methods=["POST"],
        ),
        Route(PREFIX + "tags", library.tags, methods=["GET"]),
        Route(PREFIX + "ps", library.running, methods=["GET"]),
        Route(PREFIX + "show", Show(serving, facts), methods=["POST"]),
        Route(PREFIX + "pull", Pull(serving, NamedBody), methods=["POST"]),
        Route(PREFIX + "version", _show_version, methods=["GET"]),
        *(_refuse(method, path, message) for method, path, message in _REFUSED),
        ChosenRoute("/", _probe, lambda method, _: method == "HEAD", methods=["HEAD"]),
    ]


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


OLLAMA = Dialect(
    _routes,
    (ChatBody, GenerateBody, EmbedBody, OldEmbeddingsBody, NamedBody),
    lambda path, _: path.startswith(PREFIX),
    error_object,
    stream_type=LINES,
    stream_error=AnswerWriter.failed,
)
"""Ollama's API."""
