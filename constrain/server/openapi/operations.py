"""The request and responses of each path and method, for the OpenAPI description."""

from __future__ import annotations

from functools import partial
from typing import Any

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
    RESPONSE,
    RESPONSES_REQUEST,
)
from constrain.server.openapi.llama_server import LLAMA_SERVER_OPERATIONS
from constrain.server.openapi.messages import (
    COUNT_REQUEST,
    MESSAGE,
    MESSAGE_EVENT,
    MESSAGES_ERROR,
    MESSAGES_REQUEST,
    MODEL_INFO,
    MODEL_PAGE,
)
from constrain.server.openapi.ollama import OLLAMA_OPERATIONS
from constrain.server.openapi.operation import Operation, asks, in_path, in_query
from constrain.server.openapi.playground import PLAYGROUND_OPERATIONS
from constrain.server.openapi.shapes import COUNT, FLAG, OBJECT, TEXT, Schema, array_of, object_schema, reference
from constrain.server.requests.limits import MESSAGE_RANGES, RANGES

_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": RANGES["limit"][1], "default": 20}


_MODEL = object_schema(id=TEXT, created={"type": "integer"}, object={"const": "model"}, owned_by=TEXT)
_MODEL_LIST = object_schema(object={"const": "list"}, data=array_of(_MODEL))
_VERSION: dict[str, Any] = {
    "name": "anthropic-version",
    "in": "header",
    "description": "Sent by Anthropic's clients, with any value.",
    "schema": TEXT,
}
_MODELS_ERRORS = ("Error", MESSAGES_ERROR.name)
_MOST = f"The most models, 1 to {MESSAGE_RANGES['limit'][1]}, in Anthropic's form."

_RESPONSE_ID = in_path("id", "Of a response that was made with the same key and is still kept.", TEXT)
_PAGE = object_schema(object={"const": "list"}, data=array_of(OBJECT), first_id=TEXT, last_id=TEXT, has_more=FLAG)

_of_response = partial(Operation, parameters=(_RESPONSE_ID,))
_of_messages = partial(asks, error_forms=(MESSAGES_ERROR.name,))

OPERATIONS = (
    asks(
        "/v1/chat/completions", "createChatCompletion", "Answers a conversation.", CHAT_COMPLETION, CHAT_REQUEST, CHUNK
    ),
    asks("/v1/responses", "createResponse", "Makes a response.", RESPONSE, RESPONSES_REQUEST, EVENT),
    asks(
        "/v1/responses/input_tokens", "countInputTokens",
        "Counts the tokens of the prompt that the same request to /v1/responses has.",
        object_schema(object={"const": "response.input_tokens"}, input_tokens=COUNT),
        RESPONSES_REQUEST,
    ),
    Operation(
        "GET", "/v1/responses/{id}", "getResponse", "Returns a kept response.", RESPONSE, (400, 404),
        parameters=(_RESPONSE_ID, in_query("stream", "Not to be had.", {"type": "string", "enum": ["false"]})),
    ),
    _of_response(
        "DELETE", "/v1/responses/{id}", "deleteResponse", "Forgets a response.",
        object_schema(id=TEXT, object={"const": "response"}, deleted={"const": True}),
        (404,),
    ),
    _of_response(
        "POST", "/v1/responses/{id}", "postResponse",
        "Always refused: this server compacts no conversations, as others do at such a path.",
        None, (404,),
    ),
    Operation(
        "GET", "/v1/responses/{id}/input_items", "listInputItems",
        "Lists the items that a response was made from.", _PAGE, (400, 404),
        parameters=(
            _RESPONSE_ID,
            in_query("limit", "The most items.", _LIMIT),
            in_query("order", "By the time they came.", {"type": "string", "enum": ["asc", "desc"]}),
            in_query("after", "The id of the item before the first.", TEXT),
        ),
    ),
    _of_response(
        "POST", "/v1/responses/{id}/cancel", "cancelResponse",
        "Always refused: no response runs in the background.", None, (400, 404),
    ),
    asks("/v1/completions", "createCompletion", "Completes a text.", COMPLETION, COMPLETION_REQUEST, COMPLETION_CHUNK),
    asks("/v1/embeddings", "createEmbedding", "Returns vectors for texts.", EMBEDDINGS, EMBEDDING_REQUEST),
    _of_messages(
        "/v1/messages", "createMessage", "Answers a conversation, as Anthropic's API.",
        MESSAGE, MESSAGES_REQUEST, MESSAGE_EVENT,
    ),
    _of_messages(
        "/v1/messages/count_tokens", "countTokens",
        "Counts the tokens of the prompt that the same request to /v1/messages has.",
        object_schema(input_tokens=COUNT), COUNT_REQUEST,
    ),
    Operation(
        "GET", "/v1/models", "listModels",
        "Lists the models, for clients that send the header anthropic-version in Anthropic's form.",
        {"anyOf": [_MODEL_LIST, MODEL_PAGE]}, (400,),
        parameters=(
            _VERSION,
            in_query("limit", _MOST, TEXT),
            in_query("after_id", "The model before the first, in Anthropic's form.", TEXT),
            in_query("before_id", "The model behind the last, in Anthropic's form.", TEXT),
        ),
        error_forms=_MODELS_ERRORS,
    ),
    Operation(
        "GET", "/v1/models/{name}", "getModel", "Describes one model.", {"anyOf": [_MODEL, MODEL_INFO]}, (404,),
        parameters=(in_path("name", "Of the model.", {"anyOf": [reference("ModelName"), TEXT]}), _VERSION),
        error_forms=_MODELS_ERRORS,
    ),
    *OLLAMA_OPERATIONS,
    *LLAMA_SERVER_OPERATIONS,
    *PLAYGROUND_OPERATIONS,
    Operation(
        "GET", "/health", "getHealth", "Says whether the server runs.", object_schema(status={"const": "ok"}),
        (503,),
        is_open=True,
    ),
    Operation("GET", "/metrics", "getMetrics", "Returns metrics for Prometheus.", TEXT, media_type="text/plain"),
    Operation(
        "GET", "/openapi.json", "getDescription", "Describes the API in OpenAPI 3.1.", object_schema(openapi=TEXT),
    ),
)  # fmt: skip
