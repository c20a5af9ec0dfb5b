"""The request and responses of each path and method, for the OpenAPI description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.server.openapi.bodies import (
    CHAT_COMPLETION,
    CHAT_REQUEST,
    CHUNK,
    COMPLETION,
    COMPLETION_CHUNK,
    COMPLETION_REQUEST,
    EMBEDDING_REQUEST,
    EMBEDDINGS,
    EVENT,
    MODEL_NAME,
    RESPONSE,
    RESPONSES_REQUEST,
)
from constrain.server.openapi.messages import (
    COUNT_REQUEST,
    MESSAGE,
    MESSAGE_EVENT,
    MESSAGES_ERROR,
    MESSAGES_REQUEST,
    MODEL_INFO,
    MODEL_PAGE,
)
from constrain.server.requests.limits import MAX_MODELS_PAGE, MAX_PAGE

if TYPE_CHECKING:
    from constrain.server.openapi.shapes import AnyShape, Schema, WrittenShape


@dataclass(frozen=True, slots=True)
class Operation:
    """The description of one method of a path.

    Attributes:
        name: name of the operation.
        request: body of the request.
        response: body of a response with status 200; ``None`` if there is none.
        event: content of a stream's events, if the request can ask for a stream.
        errors: statuses of errors, in addition to 401 and 403.
        is_open: whether the method needs no key.
        other_errors: forms of errors besides OpenAI's.
        has_usual_errors: whether errors may have OpenAI's form.
    """

    method: str
    path: str
    name: str
    summary: str
    response: AnyShape | Schema | None
    errors: tuple[int, ...] = ()
    request: AnyShape | None = None
    event: AnyShape | None = None
    parameters: tuple[dict[str, Any], ...] = ()
    media_type: str = "application/json"
    is_open: bool = False
    other_errors: tuple[WrittenShape, ...] = ()
    has_usual_errors: bool = True


_WORK = (400, 404, 408, 413, 415, 429, 500, 503)
"""Status codes of errors that a request to a model can get."""


_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 20}


def _in_path(name: str, about: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def _in_query(name: str, about: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _object(**members: Schema) -> Schema:
    return {"type": "object", "properties": members, "required": list(members)}


_MODEL = _object(
    id={"type": "string"}, created={"type": "integer"}, object={"const": "model"}, owned_by={"type": "string"}
)
_MODEL_LIST = _object(object={"const": "list"}, data={"type": "array", "items": _MODEL})
_VERSION: dict[str, Any] = {
    "name": "anthropic-version",
    "in": "header",
    "description": "Sent by Anthropic's clients, with any value.",
    "schema": {"type": "string"},
}

_RESPONSE_ID = _in_path("id", "Of a response that was made with the same key and is still kept.", {"type": "string"})

OPERATIONS = (
    Operation(
        "POST",
        "/v1/chat/completions",
        "createChatCompletion",
        "Answers a conversation.",
        CHAT_COMPLETION,
        _WORK,
        CHAT_REQUEST,
        CHUNK,
    ),
    Operation(
        "POST", "/v1/responses", "createResponse", "Makes a response.", RESPONSE, _WORK, RESPONSES_REQUEST, EVENT
    ),
    Operation(
        "GET",
        "/v1/responses/{id}",
        "getResponse",
        "Returns a kept response.",
        RESPONSE,
        (400, 404),
        parameters=(_RESPONSE_ID, _in_query("stream", "Not to be had.", {"type": "string", "enum": ["false"]})),
    ),
    Operation(
        "DELETE",
        "/v1/responses/{id}",
        "deleteResponse",
        "Forgets a response.",
        _object(id={"type": "string"}, object={"const": "response"}, deleted={"const": True}),
        (404,),
        parameters=(_RESPONSE_ID,),
    ),
    Operation(
        "POST",
        "/v1/responses/{id}",
        "postResponse",
        "Always refused: this server neither compacts nor counts, as others do at such paths.",
        None,
        (404,),
        parameters=(_RESPONSE_ID,),
    ),
    Operation(
        "GET",
        "/v1/responses/{id}/input_items",
        "listInputItems",
        "Lists the items that a response was made from.",
        _object(
            object={"const": "list"},
            data={"type": "array", "items": {"type": "object"}},
            first_id={"type": "string"},
            last_id={"type": "string"},
            has_more={"type": "boolean"},
        ),
        (400, 404),
        parameters=(
            _RESPONSE_ID,
            _in_query("limit", "The most items.", _LIMIT),
            _in_query("order", "By the time they came.", {"type": "string", "enum": ["asc", "desc"]}),
            _in_query("after", "The id of the item before the first.", {"type": "string"}),
        ),
    ),
    Operation(
        "POST",
        "/v1/responses/{id}/cancel",
        "cancelResponse",
        "Always refused: no response runs in the background.",
        None,
        (400, 404),
        parameters=(_RESPONSE_ID,),
    ),
    Operation(
        "POST",
        "/v1/completions",
        "createCompletion",
        "Completes a text.",
        COMPLETION,
        _WORK,
        COMPLETION_REQUEST,
        COMPLETION_CHUNK,
    ),
    Operation(
        "POST",
        "/v1/embeddings",
        "createEmbedding",
        "Returns vectors for texts.",
        EMBEDDINGS,
        _WORK,
        EMBEDDING_REQUEST,
    ),
    Operation(
        "POST",
        "/v1/messages",
        "createMessage",
        "Answers a conversation, as Anthropic's API.",
        MESSAGE,
        _WORK,
        MESSAGES_REQUEST,
        MESSAGE_EVENT,
        other_errors=(MESSAGES_ERROR,),
        has_usual_errors=False,
    ),
    Operation(
        "POST",
        "/v1/messages/count_tokens",
        "countTokens",
        "Counts the tokens of the prompt that the same request to /v1/messages has.",
        _object(input_tokens={"type": "integer", "minimum": 0}),
        _WORK,
        COUNT_REQUEST,
        other_errors=(MESSAGES_ERROR,),
        has_usual_errors=False,
    ),
    Operation(
        "GET",
        "/v1/models",
        "listModels",
        "Lists the models, for clients that send the header anthropic-version in Anthropic's form.",
        {"anyOf": [_MODEL_LIST, MODEL_PAGE]},
        (400,),
        parameters=(
            _VERSION,
            _in_query("limit", f"The most models, 1 to {MAX_MODELS_PAGE}, in Anthropic's form.", {"type": "string"}),
            _in_query("after_id", "The model before the first, in Anthropic's form.", {"type": "string"}),
            _in_query("before_id", "The model behind the last, in Anthropic's form.", {"type": "string"}),
        ),
        other_errors=(MESSAGES_ERROR,),
    ),
    Operation(
        "GET",
        "/v1/models/{name}",
        "getModel",
        "Describes one model.",
        {"anyOf": [_MODEL, MODEL_INFO]},
        (404,),
        parameters=(_in_path("name", "Of the model.", {"anyOf": [MODEL_NAME, {"type": "string"}]}), _VERSION),
        other_errors=(MESSAGES_ERROR,),
    ),
    Operation(
        "GET",
        "/health",
        "getHealth",
        "Says whether the server runs.",
        _object(status={"const": "ok"}),
        (503,),
        is_open=True,
    ),
    Operation(
        "GET", "/metrics", "getMetrics", "Returns metrics for Prometheus.", {"type": "string"}, media_type="text/plain"
    ),
    Operation(
        "GET",
        "/openapi.json",
        "getDescription",
        "Describes the API in OpenAPI 3.1.",
        _object(openapi={"type": "string"}),
    ),
)
