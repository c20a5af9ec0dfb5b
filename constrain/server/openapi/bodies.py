"""The bodies of requests and responses in the OpenAPI description."""

from __future__ import annotations

from openai.types import Completion, CreateEmbeddingResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsNonStreaming as CompletionParams
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as ResponseParams

from constrain.server.chat.request import ChatBody
from constrain.server.completions.request import CompletionBody
from constrain.server.embeddings.request import EmbeddingBody
from constrain.server.openapi.shapes import COUNT, OBJECT, TEXT, Schema, Shape, array_of, object_schema, reference
from constrain.server.requests.tools import KINDS
from constrain.server.responses.input import PREFIXES, SEARCH_ITEMS
from constrain.server.responses.request import ResponseBody

_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_FIELD = object_schema(
    {"alternatives": array_of(object_schema(value={}, probability=_SHARE))},
    begin=COUNT,
    end=COUNT,
    probability=_SHARE,
    logprob={"type": "number", "maximum": 0},
    mass=_SHARE,
    choices=COUNT,
)
"""A part of an answer with its probabilities: see ``constrain.results.FieldConfidence``."""

EXTENSION: dict[str, Schema] = {
    "constrain": {
        "type": "object",
        "properties": {
            "ended_early": {"enum": ["length", "timeout"]},
            "shortened": {"type": "integer", "minimum": 1},
            "early": array_of(TEXT),
            "warnings": array_of(TEXT),
            "limited": object_schema(masks=COUNT, limits=array_of(TEXT)),
            "agreement": {"type": "object", "additionalProperties": _SHARE},
            "introduced": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "fields": {"type": "object", "additionalProperties": _FIELD},
            "certificate": OBJECT,
        },
    }
}
"""The member ``constrain``: see ``constrain.server.serving.extension``."""

_FORMAT_TYPES = ("ResponseFormatText", "ResponseFormatJSONSchema", "ResponseFormatJSONObject")
_RESPONSE_FORMAT: Schema = {"anyOf": [*(reference(f"ChatRequest.{name}") for name in _FORMAT_TYPES), {"type": "null"}]}
"""``response_format`` of text completions, which OpenAI's do not have: the same as that of chat completions."""

_SYNTAX: dict[str, Schema] = {"syntax": {"enum": ["lark", "regex", "sql"]}}
"""A grammar's member. With ``sql``, which OpenAI has not, the definition is the name of a database of this server."""

_CHAT_PARTS = """
    ChatCompletionAllowedToolChoiceParam ChatCompletionAllowedToolsParam ChatCompletionAssistantMessageParam
    ChatCompletionContentPartRefusalParam ChatCompletionContentPartTextParam ChatCompletionCustomToolParam
    ChatCompletionDeveloperMessageParam ChatCompletionFunctionCallOptionParam ChatCompletionFunctionMessageParam
    ChatCompletionFunctionToolParam ChatCompletionMessageCustomToolCallParam
    ChatCompletionMessageFunctionToolCallParam ChatCompletionNamedToolChoiceCustomParam
    ChatCompletionNamedToolChoiceParam ChatCompletionSystemMessageParam ChatCompletionToolMessageParam
    ChatCompletionUserMessageParam Custom CustomFormatGrammar CustomFormatGrammarGrammar CustomFormatText Function
    FunctionCall FunctionDefinition JSONSchema ResponseFormatJSONObject ResponseFormatJSONSchema ResponseFormatText
"""
CHAT_REQUEST = Shape(
    "ChatRequest",
    ChatParams,
    "request",
    _CHAT_PARTS,
    own={"CustomFormatGrammarGrammar": _SYNTAX},
    required={"JSONSchema": ("schema",)},
    open={"tools": KINDS},
    fields=ChatBody,
)
_CHAT_RESPONSE_PARTS = """
    ChatCompletionMessage ChatCompletionMessageCustomToolCall ChatCompletionMessageFunctionToolCall
    ChatCompletionTokenLogprob Choice ChoiceDelta ChoiceDeltaFunctionCall ChoiceDeltaToolCall
    ChoiceDeltaToolCallFunction ChoiceLogprobs CompletionChoice CompletionTokensDetails CompletionUsage Custom
    Function FunctionCall Logprobs PromptTokensDetails TopLogprob
"""
_CUSTOM_DELTA = {"type": ["object", "null"], "properties": {"name": {"type": "string"}, "input": {"type": "string"}}}
_COUNTS = ("total", "cache", "processed", "time_ms")
PROGRESS: Schema = {"prompt_progress": {"type": "object", "properties": {name: {"type": "number"} for name in _COUNTS}}}
"""The member of a chunk that tells how much of the prompt is read, where the request has ``return_progress``."""

CHUNK = Shape(
    "ChatCompletionChunk",
    ChatCompletionChunk,
    "response",
    _CHAT_RESPONSE_PARTS,
    own={
        "": PROGRESS,
        "Choice": EXTENSION,
        "ChoiceDeltaToolCall": {"type": {"enum": ["function", "custom", None]}, "custom": _CUSTOM_DELTA},
    },
)
_RESPONSES_PARTS = """
    Content CustomToolParam EasyInputMessageParam FunctionCallOutput FunctionToolParam Grammar Message
    ResponseCustomToolCallOutputParam ResponseCustomToolCallParam ResponseFormatJSONObject ResponseFormatText
    ResponseFormatTextJSONSchemaConfigParam ResponseFunctionToolCallParam ResponseInputTextContentParam
    ResponseInputTextParam ResponseOutputMessageParam ResponseOutputRefusalParam ResponseOutputTextParam
    ResponseReasoningItemParam ResponseTextConfigParam Summary Text ToolChoiceAllowedParam ToolChoiceCustomParam
    ToolChoiceFunctionParam
"""
RESPONSES_REQUEST = Shape(
    "ResponsesRequest",
    ResponseParams,
    "request",
    _RESPONSES_PARTS,
    own={"Grammar": _SYNTAX},
    open={"input": tuple(kind for kind in PREFIXES if kind not in SEARCH_ITEMS), "tools": KINDS},
    fields=ResponseBody,
)
_RESPONSE_PARTS = """
    Content CustomTool FunctionTool Grammar IncompleteDetails InputTokensDetails Logprob LogprobTopLogprob
    NamespaceTool OutputTokensDetails Reasoning ResponseCustomToolCall ResponseError ResponseFormatJSONObject
    ResponseFormatText ResponseFormatTextJSONSchemaConfig ResponseFunctionToolCall ResponseOutputMessage
    ResponseOutputRefusal ResponseOutputText ResponseReasoningItem ResponseTextConfig ResponseUsage Summary Text
    ToolChoiceAllowed ToolChoiceCustom ToolChoiceFunction ToolFunction
"""
RESPONSE = Shape("Response", Response, "response", _RESPONSE_PARTS, own={"": EXTENSION})
_EVENT_PARTS = f"""
    {_RESPONSE_PARTS}
    PartReasoningText Response ResponseCompletedEvent ResponseContentPartAddedEvent ResponseContentPartDoneEvent
    ResponseCreatedEvent ResponseCustomToolCallInputDeltaEvent ResponseCustomToolCallInputDoneEvent
    ResponseErrorEvent ResponseFailedEvent ResponseFunctionCallArgumentsDeltaEvent
    ResponseFunctionCallArgumentsDoneEvent ResponseInProgressEvent ResponseIncompleteEvent
    ResponseOutputItemAddedEvent ResponseOutputItemDoneEvent ResponseReasoningTextDeltaEvent
    ResponseReasoningTextDoneEvent ResponseRefusalDeltaEvent ResponseRefusalDoneEvent ResponseTextDeltaEvent
    ResponseTextDoneEvent
"""
EVENT = Shape("ResponseStreamEvent", ResponseStreamEvent, "response", _EVENT_PARTS)
COMPLETION_REQUEST = Shape(
    "CompletionRequest",
    CompletionParams,
    "request",
    own={"": {"response_format": _RESPONSE_FORMAT}},
    fields=CompletionBody,
)
_VECTOR: Schema = {"anyOf": [array_of({"type": "number"}), {"type": "string", "format": "byte"}]}
"""A vector: numbers, or their base64."""

COMPLETION_CHUNK = Shape(
    "CompletionChunk",
    Completion,
    "response",
    _CHAT_RESPONSE_PARTS,
    own={"CompletionChoice": {"finish_reason": {"enum": ["stop", "length", None]}, **EXTENSION}},
)
COMPLETION = Shape("Completion", Completion, "response", _CHAT_RESPONSE_PARTS, own={"CompletionChoice": EXTENSION})
CHAT_COMPLETION = Shape("ChatCompletion", ChatCompletion, "response", _CHAT_RESPONSE_PARTS, own={"Choice": EXTENSION})
EMBEDDINGS = Shape(
    "Embeddings",
    CreateEmbeddingResponse,
    "response",
    "Embedding Usage",
    own={"Embedding": {"embedding": _VECTOR}},
)
EMBEDDING_REQUEST = Shape("EmbeddingRequest", EmbeddingCreateParams, "request", fields=EmbeddingBody)
