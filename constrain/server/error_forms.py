"""The form of errors (OpenAI's, Anthropic's or Ollama's), chosen by the path and the headers of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.messages.errors import error_object as message_error
from constrain.server.messages.model_list import is_for_messages
from constrain.server.ollama.errors import error_object as ollama_error
from constrain.server.ollama.routes import PREFIX

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from constrain.server.http.account import ErrorObject

MODELS = "/v1/models"

_BY_PATH: tuple[tuple[str, ErrorObject], ...] = (("/v1/messages", message_error), (PREFIX, ollama_error))
"""Beginnings of paths whose errors have a form of their own, and the function that makes the object of an error."""


def error_object_for(path: str, headers: Headers) -> ErrorObject | None:
    """Returns the function that makes the object of an error for a request; ``None`` for OpenAI's form."""
    if f"{path}/".startswith(f"{MODELS}/") and is_for_messages(headers):
        return message_error
    return next((make for start, make in _BY_PATH if path.startswith(start)), None)
