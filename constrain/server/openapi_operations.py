"""What each path and method takes and answers, for the server's description of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openai.types import Completion, CreateEmbeddingResponse
from openai.types import Model as ModelObject
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsNonStreaming as CompletionParams
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as ResponseParams

from constrain.server.openapi_shapes import Schema, Shape

_ANY: Schema = {}
_MODEL: Schema = {"$ref": "#/components/schemas/ModelName"}
_FLAG: Schema = {"type": ["boolean", "null"]}
_COUNT: Schema = {"minimum": 1}
_PENALTY: Schema = {"minimum": -2, "maximum": 2}
_SEED: Schema = {"type": ["integer", "null"], "minimum": -(2**63), "maximum": 2**63 - 1}
_STOP: Schema = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 4},
        {"type": "null"},
    ]
}
_BIAS: Schema = {
    "type": ["object", "null"],
    "propertyNames": {"pattern": "^[0-9]{1,9}$"},
    "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
}
_CHAT_PARTS = frozenset(
    {
        "ChatCompletionAllowedToolChoiceParam",
        "ChatCompletionAllowedToolsParam",
        "ChatCompletionAssistantMessageParam",
        "ChatCompletionContentPartRefusalParam",
        "ChatCompletionContentPartTextParam",
        "ChatCompletionCustomToolParam",
        "ChatCompletionDeveloperMessageParam",
        "ChatCompletionFunctionToolParam",
        "ChatCompletionMessageCustomToolCallParam",
        "ChatCompletionMessageFunctionToolCallParam",
        "ChatCompletionNamedToolChoiceCustomParam",
        "ChatCompletionNamedToolChoiceParam",
        "ChatCompletionStreamOptionsParam",
        "ChatCompletionSystemMessageParam",
        "ChatCompletionToolMessageParam",
        "ChatCompletionUserMessageParam",
        "Custom",
        "CustomFormatGrammar",
        "CustomFormatGrammarGrammar",
        "CustomFormatText",
        "Function",
        "FunctionDefinition",
        "JSONSchema",
        "ResponseFormatJSONObject",
        "ResponseFormatJSONSchema",
        "ResponseFormatText",
    }
)
_CHAT_REQUEST = Shape(
    "ChatRequest",
    ChatParams,
    "request",
    _CHAT_PARTS,
    members={
        "messages": {"minItems": 1},
        "frequency_penalty": _PENALTY,
        "max_completion_tokens": _COUNT,
        "max_tokens": _COUNT,
        "n": {"minimum": 1, "maximum": 128},
        "parallel_tool_calls": {},
        "presence_penalty": _PENALTY,
        "response_format": {},
        "stream_options": {},
        "temperature": {"minimum": 0, "maximum": 2},
        "tool_choice": {},
        "tools": {"maxItems": 128},
        "top_logprobs": {"minimum": 0, "maximum": 20},
        "top_p": {"minimum": 0, "maximum": 1},
    },
    own={
        "logit_bias": _BIAS,
        "logprobs": _FLAG,
        "min_p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "model": _MODEL,
        "seed": _SEED,
        "stop": _STOP,
        "stream": _FLAG,
        "top_k": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**31 - 1},
    },
    required={"": ("model",), "JSONSchema": ("schema",)},
)
_CHAT_RESPONSE_PARTS = frozenset(
    {
        "ChatCompletionMessage",
        "ChatCompletionMessageCustomToolCall",
        "ChatCompletionMessageFunctionToolCall",
        "ChatCompletionTokenLogprob",
        "Choice",
        "ChoiceDelta",
        "ChoiceDeltaFunctionCall",
        "ChoiceDeltaToolCall",
        "ChoiceDeltaToolCallFunction",
        "ChoiceLogprobs",
        "CompletionChoice",
        "CompletionTokensDetails",
        "CompletionUsage",
        "Custom",
        "Function",
        "FunctionCall",
        "Logprobs",
        "PromptTokensDetails",
        "TopLogprob",
    }
)
_RESPONSES_PARTS = frozenset(
    {
        "Content",
        "CustomToolParam",
        "EasyInputMessageParam",
        "FunctionCallOutput",
        "FunctionToolParam",
        "Grammar",
        "Message",
        "ResponseCustomToolCallOutputParam",
        "ResponseCustomToolCallParam",
        "ResponseFormatJSONObject",
        "ResponseFormatText",
        "ResponseFormatTextJSONSchemaConfigParam",
        "ResponseFunctionToolCallParam",
        "ResponseInputTextContentParam",
        "ResponseInputTextParam",
        "ResponseOutputMessageParam",
        "ResponseOutputRefusalParam",
        "ResponseOutputTextParam",
        "ResponseReasoningItemParam",
        "ResponseTextConfigParam",
        "Summary",
        "Text",
        "ToolChoiceAllowedParam",
        "ToolChoiceCustomParam",
        "ToolChoiceFunctionParam",
    }
)
_RESPONSES_REQUEST = Shape(
    "ResponsesRequest",
    ResponseParams,
    "request",
    _RESPONSES_PARTS,
    members={
        "include": {},
        "input": {},
        "instructions": {},
        "max_output_tokens": _COUNT,
        "metadata": {"maxProperties": 16},
        "parallel_tool_calls": {},
        "previous_response_id": {},
        "store": {},
        "temperature": {"minimum": 0, "maximum": 2},
        "text": {},
        "tool_choice": {},
        "tools": {"maxItems": 128},
        "top_logprobs": {"minimum": 0, "maximum": 20},
        "top_p": {"minimum": 0, "maximum": 1},
        "user": {},
    },
    own={"model": _MODEL, "seed": _SEED, "stream": _FLAG},
    required={"": ("model",), "FunctionCallOutput": ("call_id",)},
)
_RESPONSE_PARTS = frozenset(
    {
        "Content",
        "CustomTool",
        "FunctionTool",
        "Grammar",
        "IncompleteDetails",
        "InputTokensDetails",
        "Logprob",
        "LogprobTopLogprob",
        "OutputTokensDetails",
        "Reasoning",
        "ResponseCustomToolCall",
        "ResponseError",
        "ResponseFormatJSONObject",
        "ResponseFormatText",
        "ResponseFormatTextJSONSchemaConfig",
        "ResponseFunctionToolCall",
        "ResponseOutputMessage",
        "ResponseOutputRefusal",
        "ResponseOutputText",
        "ResponseReasoningItem",
        "ResponseTextConfig",
        "ResponseUsage",
        "Summary",
        "Text",
        "ToolChoiceAllowed",
        "ToolChoiceCustom",
        "ToolChoiceFunction",
    }
)
_RESPONSE = Shape("Response", Response, "response", _RESPONSE_PARTS)
_EVENT = Shape(
    "ResponseStreamEvent",
    ResponseStreamEvent,
    "response",
    _RESPONSE_PARTS
    | {
        "PartReasoningText",
        "Response",
        "ResponseCompletedEvent",
        "ResponseContentPartAddedEvent",
        "ResponseContentPartDoneEvent",
        "ResponseCreatedEvent",
        "ResponseCustomToolCallInputDeltaEvent",
        "ResponseCustomToolCallInputDoneEvent",
        "ResponseErrorEvent",
        "ResponseFailedEvent",
        "ResponseFunctionCallArgumentsDeltaEvent",
        "ResponseFunctionCallArgumentsDoneEvent",
        "ResponseInProgressEvent",
        "ResponseIncompleteEvent",
        "ResponseOutputItemAddedEvent",
        "ResponseOutputItemDoneEvent",
        "ResponseReasoningTextDeltaEvent",
        "ResponseReasoningTextDoneEvent",
        "ResponseRefusalDeltaEvent",
        "ResponseRefusalDoneEvent",
        "ResponseTextDeltaEvent",
        "ResponseTextDoneEvent",
    },
)
_COMPLETION_REQUEST = Shape(
    "CompletionRequest",
    CompletionParams,
    "request",
    frozenset({"ChatCompletionStreamOptionsParam"}),
    members={
        "prompt": {},
        "echo": {},
        "frequency_penalty": _PENALTY,
        "logprobs": {"minimum": 0, "maximum": 5},
        "max_tokens": {"minimum": 0},
        "n": {"minimum": 1, "maximum": 128},
        "presence_penalty": _PENALTY,
        "stream_options": {},
        "temperature": {"minimum": 0, "maximum": 2},
        "top_p": {"minimum": 0, "maximum": 1},
    },
    own={"logit_bias": _BIAS, "model": _MODEL, "seed": _SEED, "stop": _STOP, "stream": _FLAG},
    required={"": ("model",)},
)
_VECTOR: Schema = {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string", "format": "byte"}]}
"""Numbers, or the base64 of them."""

_COMPLETION_CHUNK = Shape(
    "CompletionChunk",
    Completion,
    "response",
    _CHAT_RESPONSE_PARTS,
    own_of_parts={"CompletionChoice": {"finish_reason": {"enum": ["stop", "length", None]}}},
)
_COMPLETION = Shape("Completion", Completion, "response", _CHAT_RESPONSE_PARTS)
_MODEL_OBJECT = Shape("Model", ModelObject, "response")


@dataclass(frozen=True, slots=True)
class Operation:
    """What a method of a path does.

    Attributes:
        name: of the operation.
        request: the body that it takes.
        response: what it answers with status 200; ``None`` if it never does.
        event: what the events of a stream hold, where the request can ask for one.
        errors: statuses of errors, beside 401.
        is_open: whether it needs no key.
    """

    method: str
    path: str
    name: str
    summary: str
    response: Shape | Schema | None
    errors: tuple[int, ...] = ()
    request: Shape | None = None
    event: Shape | None = None
    parameters: tuple[dict[str, Any], ...] = ()
    media_type: str = "application/json"
    is_open: bool = False


_WORK = (400, 404, 408, 413, 429, 500, 503)
"""What can be wrong where a model is asked."""


def _in_path(name: str, about: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def _in_query(name: str, about: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _object(**members: Schema) -> Schema:
    return {"type": "object", "properties": members, "required": list(members)}


_RESPONSE_ID = _in_path("id", "Of a response that was made with the same key and is still kept.", {"type": "string"})

OPERATIONS = (
    Operation(
        "POST",
        "/v1/chat/completions",
        "createChatCompletion",
        "Answers a conversation.",
        Shape("ChatCompletion", ChatCompletion, "response", _CHAT_RESPONSE_PARTS),
        _WORK,
        _CHAT_REQUEST,
        Shape("ChatCompletionChunk", ChatCompletionChunk, "response", _CHAT_RESPONSE_PARTS),
    ),
    Operation(
        "POST", "/v1/responses", "createResponse", "Makes a response.", _RESPONSE, _WORK, _RESPONSES_REQUEST, _EVENT
    ),
    Operation(
        "GET",
        "/v1/responses/{id}",
        "getResponse",
        "A response that is kept.",
        _RESPONSE,
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
        "GET",
        "/v1/responses/{id}/input_items",
        "listInputItems",
        "What a response was made from.",
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
            _in_query("limit", "The most items.", {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}),
            _in_query("order", "By the time they came.", {"type": "string", "enum": ["asc", "desc"]}),
            _in_query("after", "The id of the item before the first.", {"type": "string"}),
        ),
    ),
    Operation(
        "POST",
        "/v1/responses/{id}/cancel",
        "cancelResponse",
        "Only responses in the background can be cancelled, and there are none.",
        None,
        (400, 404),
        parameters=(_RESPONSE_ID,),
    ),
    Operation(
        "POST",
        "/v1/completions",
        "createCompletion",
        "Goes on with a text.",
        _COMPLETION,
        _WORK,
        _COMPLETION_REQUEST,
        _COMPLETION_CHUNK,
    ),
    Operation(
        "POST",
        "/v1/embeddings",
        "createEmbedding",
        "Vectors for texts.",
        Shape(
            "Embeddings",
            CreateEmbeddingResponse,
            "response",
            frozenset({"Embedding", "Usage"}),
            own_of_parts={"Embedding": {"embedding": _VECTOR}},
        ),
        _WORK,
        Shape(
            "EmbeddingRequest",
            EmbeddingCreateParams,
            "request",
            members={"input": {}, "encoding_format": {}, "dimensions": _COUNT},
            own={"model": _MODEL},
        ),
    ),
    Operation(
        "GET",
        "/v1/models",
        "listModels",
        "The models.",
        _object(object={"const": "list"}, data={"type": "array", "items": {"$ref": "#/components/schemas/Model"}}),
    ),
    Operation(
        "GET",
        "/v1/models/{name}",
        "getModel",
        "A model.",
        _MODEL_OBJECT,
        (404,),
        parameters=(_in_path("name", "Of the model.", {"anyOf": [_MODEL, {"type": "string"}]}),),
    ),
    Operation("GET", "/health", "getHealth", "Whether it runs.", _object(status={"const": "ok"}), is_open=True),
    Operation("GET", "/metrics", "getMetrics", "Metrics for Prometheus.", {"type": "string"}, media_type="text/plain"),
    Operation("GET", "/openapi.json", "getDescription", "This description.", _object(openapi={"type": "string"})),
)
