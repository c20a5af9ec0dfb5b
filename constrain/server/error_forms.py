"""The form of errors (OpenAI's, Anthropic's or Ollama's), chosen by the path and the headers of a request.

Each endpoint writes the errors of its own streams; ``stream_end`` ends a stream whose writer is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.http.events import data_event
from constrain.server.messages.errors import error_object as message_error
from constrain.server.messages.model_list import is_for_messages
from constrain.server.ollama.errors import error_object as ollama_error
from constrain.server.ollama.lines import LINES, json_line
from constrain.server.ollama.routes import PREFIX
from constrain.server.playground.endpoint import API

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from constrain.server.http.account import ErrorObject
    from constrain.server.http.errors import ApiError

MODELS = "/v1/models"

_BY_PATH: tuple[tuple[str, ErrorObject], ...] = (("/v1/messages", message_error), (PREFIX, ollama_error))
"""Beginnings of paths whose errors have a form of their own, and the function that makes the object of an error."""


def error_object_for(path: str, headers: Headers) -> ErrorObject | None:
    """Returns the function that makes the object of an error for a request; ``None`` for OpenAI's form."""
    if f"{path}/".startswith(f"{MODELS}/") and is_for_messages(headers):
        return message_error
    return next((make for start, make in _BY_PATH if path.startswith(start)), None)


def stream_end(path: str, media_type: str, error: ApiError, sent: int) -> bytes | None:
    """Returns the last part of a stream that an error ends; ``None`` if its media type is not that of a stream.

    Args:
        path: path of the request.
        media_type: media type of the stream, which may have parameters.
        error: error that ends it.
        sent: number of events that were sent before.
    """
    if media_type.startswith(LINES):
        return json_line(ollama_error(error)).encode()
    if not media_type.startswith("text/event-stream"):
        return None
    if path.startswith("/v1/messages"):
        return data_event(message_error(error), "error").encode()
    if path.startswith("/v1/responses"):
        facts = {"code": error.code, "message": error.message, "param": error.param, "sequence_number": sent}
        return data_event({"type": "error", **facts}, "error").encode()
    if path.startswith(API):
        return data_event({"type": "error", **error.body()}).encode()
    return data_event(error.body()).encode()
