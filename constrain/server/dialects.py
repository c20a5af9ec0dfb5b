"""The dialects of HTTP that the server speaks, each named once; none imports another.

A new dialect is a folder and one line here. Each writes the errors of its own streams; ``stream_end`` ends a stream
whose writer is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from constrain.server.chat.endpoint import CHAT
from constrain.server.chat.request import ChatBody
from constrain.server.completions.endpoint import COMPLETIONS
from constrain.server.embeddings.endpoint import EMBEDDINGS
from constrain.server.llama_server.routes import llama_server
from constrain.server.messages.endpoint import MESSAGES
from constrain.server.ollama.routes import OLLAMA
from constrain.server.playground.endpoint import PLAYGROUND
from constrain.server.responses.endpoint import RESPONSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.server.http.account import ErrorObject
    from constrain.server.http.errors import ApiError
    from constrain.server.serving.dialect import Dialect

DIALECTS = (
    CHAT,
    RESPONSES,
    COMPLETIONS,
    EMBEDDINGS,
    MESSAGES,
    llama_server(ChatBody),
    OLLAMA,
    PLAYGROUND,
)
"""All dialects. Where several have a route for a request, the first one takes it."""


def find_dialect(path: str, headers: Headers, dialects: Sequence[Dialect] = DIALECTS) -> Dialect:
    """Returns the dialect whose form the errors of a request have; by default, OpenAI's form."""
    return next((each for each in dialects if each.owns(path, headers)), CHAT)


def error_object_for(path: str, headers: Headers) -> ErrorObject | None:
    """Returns the function that makes the JSON object of a request's errors; ``None`` for OpenAI's form."""
    return find_dialect(path, headers).error_object


def stream_end(path: str, media_type: str, error: ApiError, sent: int) -> bytes | None:
    """Returns the last part of a stream that an error ends; ``None`` if its media type is not that of a stream.

    Args:
        path: path of the request.
        media_type: media type of the stream, which may have parameters.
        error: error that ends it.
        sent: number of events that were sent before.
    """
    dialect = find_dialect(path, Headers())
    return dialect.stream_error(error, sent).encode() if media_type.startswith(dialect.stream_type) else None
