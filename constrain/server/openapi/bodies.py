"""The bodies of requests and responses in the OpenAPI description."""

from __future__ import annotations

from typing import get_args

from openai.types import Completion, CreateEmbeddingResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsNonStreaming as CompletionParams
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as ResponseParams

from constrain.fields.sampling import BIAS_KEY, UNLIMITED
from constrain.generation.options import TOP_LOGPROBS, WHOLE_PROMPT, WITH_PROMPT
from constrain.generation.reasoning import EFFORTS
from constrain.llama.decoding.sampling import LISTS, OPTIONS, SAMPLERS
from constrain.regex.parsing.scanner import Dialect
from constrain.server.openapi.shapes import Schema, Shape, reference
from constrain.server.requests.limits import RANGES
from constrain.server.requests.tools import KINDS
from constrain.server.responses.input import PREFIXES

MODEL_NAME: Schema = {"$ref": "#/components/schemas/ModelName"}


def range_schema(limits: tuple[float, float], kind: str = "") -> Schema:
    """Returns the schema of numbers in a range. ``kind``: type of the number, for fields that OpenAI's types lack."""
    found: Schema = {"minimum": limits[0], "maximum": limits[1]}
    return {"type": [kind, "null"], **found} if kind else found


FLAG: Schema = {"type": ["boolean", "null"]}
_COUNT: Schema = {"minimum": 1}
LIMIT: Schema = {"minimum": UNLIMITED, "not": {"const": 0}}
"""A limit on tokens."""
PENALTY = range_schema(RANGES["presence_penalty"])
_STOP: Schema = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": RANGES["stop"][1]},
        {"type": "null"},
    ]
}
_BIAS: Schema = {
    "type": ["object", "null"],
    "propertyNames": {"pattern": f"^{BIAS_KEY}$"},
    "additionalProperties": {"type": "number", **range_schema(RANGES["logit_bias"])},
}
SAMPLING: dict[str, Schema] = {
    "cache_prompt": {"anyOf": [FLAG, {"enum": [WHOLE_PROMPT]}]},
    "logit_bias": _BIAS,
    "prompt_cache_retention": {"type": ["string", "null"]},
    "stop": _STOP,
    **{
        name: range_schema(RANGES[name], "integer" if option.is_whole else "number")
        for name, option in OPTIONS.items()
        if name not in ("temperature", "top_p", "presence_penalty", "frequency_penalty")  # of OpenAI's types
    },
    "top_k": range_schema((UNLIMITED, RANGES["top_k"][1]), "integer"),
    "dry_sequence_breakers": {
        "type": ["array", "null"],
        "items": {"type": "string"},
        "maxItems": LISTS["dry_sequence_breakers"],
    },
    "samplers": {
        "anyOf": [
            {"type": "array", "items": {"enum": list(SAMPLERS)}, "maxItems": LISTS["samplers"]},
            {"type": ["string", "null"]},
        ]
    },
}
"""Members of all requests that write text, in addition to OpenAI's fields or in their place."""

PROOF: dict[str, Schema] = {"certificate": {"anyOf": [FLAG, {"enum": [WITH_PROMPT]}]}}
"""Members of all requests whose answers can have a certificate."""

SHOWING: dict[str, Schema] = {
    "confidence": FLAG,
    "draft": {"type": ["boolean", "integer", "null"], "minimum": 1},
    "show_schema": FLAG,
    "sources": {
        "type": ["object", "null"],
        "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    },
}
"""Members of requests with a conversation: on probabilities, a draft, the schema in the prompt, texts to quote."""

_VOTING: dict[str, Schema] = {"vote": FLAG, "unbias": FLAG}
"""Members of requests whose answers can vote."""

_TEXT: Schema = {"type": ["string", "null"]}
BEGINNING: dict[str, Schema] = {"add_generation_prompt": FLAG, "continue_final_message": FLAG}
"""Members of requests whose last message may be the beginning of the answer."""

_EFFORT: Schema = {"anyOf": [{"enum": [*EFFORTS]}, {"type": "null"}]}
_REASONING: dict[str, Schema] = {
    "effort": _EFFORT,
    "enabled": FLAG,
    "max_tokens": {"type": ["integer", "null"], "minimum": 0},
}
THINKING: dict[str, Schema] = {
    "chat_template_kwargs": {"type": ["object", "null"]},
    "enable_thinking": FLAG,
    "reasoning": {"type": ["object", "null"], "properties": _REASONING},
    "reasoning_effort": _EFFORT,
    "think": {"anyOf": [{"enum": [*EFFORTS]}, FLAG]},
    "thinking": {"type": ["boolean", "object", "null"]},
    "thinking_budget": {"type": ["integer", "null"], "minimum": 0},
}
"""Members of requests about reasoning before the answer."""

_PATTERN: Schema = {
    "type": ["object", "string", "null"],
    "properties": {"pattern": {"type": "string"}, "dialect": {"enum": [*get_args(Dialect)]}},
    "required": ["pattern"],
}
_SCHEMA: Schema = {"type": ["object", "string", "null"]}
_TAG: Schema = {"type": ["object", "string", "null"]}
_TEXTS: Schema = {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": RANGES["choice"][1]}
CONTENT: dict[str, Schema] = {
    "ebnf": _TEXT,
    "grammar": {"type": ["object", "string", "null"]},
    "guided_choice": _TEXTS,
    "guided_grammar": _TEXT,
    "guided_json": _SCHEMA,
    "guided_regex": _PATTERN,
    "json_schema": _SCHEMA,
    "regex": _PATTERN,
    "structural_tag": _TAG,
    "structured_outputs": {
        "type": ["object", "null"],
        "properties": {
            "json": _SCHEMA,
            "regex": _PATTERN,
            "choice": _TEXTS,
            "grammar": _TEXT,
            "json_object": FLAG,
            "structural_tag": _TAG,
        },
    },
}
"""Fields of other servers that say what an answer is: see ``constrain.server.requests.peers``."""

_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_FIELD: Schema = {
    "type": "object",
    "properties": {
        "begin": {"type": "integer", "minimum": 0},
        "end": {"type": "integer", "minimum": 0},
        "probability": _SHARE,
        "logprob": {"type": "number", "maximum": 0},
        "mass": _SHARE,
        "choices": {"type": "integer", "minimum": 0},
        "alternatives": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"value": {}, "probability": _SHARE},
                "required": ["value", "probability"],
            },
        },
    },
    "required": ["begin", "end", "probability", "logprob", "mass", "choices"],
}
"""A part of an answer with its probabilities: see ``constrain.FieldConfidence``."""

EXTENSION: dict[str, Schema] = {
    "constrain": {
        "type": "object",
        "properties": {
            "ended_early": {"enum": ["length", "timeout"]},
            "shortened": {"type": "integer", "minimum": 1},
            "early": {"type": "array", "items": {"type": "string"}},
            "warnings": {"type": "array", "items": {"type": "string"}},
            "limited": {
                "type": "object",
                "properties": {
                    "masks": {"type": "integer", "minimum": 0},
                    "limits": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["masks", "limits"],
            },
            "agreement": {"type": "object", "additionalProperties": _SHARE},
            "fields": {"type": "object", "additionalProperties": _FIELD},
            "certificate": {"type": "object"},
        },
    }
}
"""The member ``constrain``: see ``constrain.server.serving.extension``."""

_FORMAT_TYPES = ("ResponseFormatText", "ResponseFormatJSONSchema", "ResponseFormatJSONObject")
_RESPONSE_FORMAT: Schema = {"anyOf": [*(reference(f"ChatRequest.{name}") for name in _FORMAT_TYPES), {"type": "null"}]}
"""``response_format`` of text completions, which OpenAI's do not have: the same as that of chat completions."""

_STREAM_OPTIONS: dict[str, dict[str, Schema]] = {"ChatCompletionStreamOptionsParam": {"include_obfuscation": {}}}
"""``stream_options.include_obfuscation``: accepted, without effect."""

_CHAT_PARTS = frozenset(
    {
        "ChatCompletionAllowedToolChoiceParam",
        "ChatCompletionAllowedToolsParam",
        "ChatCompletionAssistantMessageParam",
        "ChatCompletionContentPartRefusalParam",
        "ChatCompletionContentPartTextParam",
        "ChatCompletionCustomToolParam",
        "ChatCompletionDeveloperMessageParam",
        "ChatCompletionFunctionCallOptionParam",
        "ChatCompletionFunctionMessageParam",
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
        "FunctionCall",
        "FunctionDefinition",
        "JSONSchema",
        "ResponseFormatJSONObject",
        "ResponseFormatJSONSchema",
        "ResponseFormatText",
    }
)
CHAT_REQUEST = Shape(
    "ChatRequest",
    ChatParams,
    "request",
    _CHAT_PARTS,
    members={
        "messages": {"minItems": 1},
        "frequency_penalty": PENALTY,
        "function_call": {},
        "functions": {"maxItems": RANGES["functions"][1]},
        "max_completion_tokens": LIMIT,
        "max_tokens": LIMIT,
        "n": range_schema(RANGES["n"]),
        "parallel_tool_calls": {},
        "presence_penalty": PENALTY,
        "response_format": {},
        "stream_options": {},
        "temperature": range_schema(RANGES["temperature"]),
        "tool_choice": {},
        "tools": {"maxItems": RANGES["tools"][1]},
        "top_logprobs": range_schema(TOP_LOGPROBS),
        "top_p": range_schema(RANGES["top_p"]),
    },
    own={
        "": {
            **SAMPLING,
            **PROOF,
            **SHOWING,
            **_VOTING,
            **CONTENT,
            **BEGINNING,
            **THINKING,
            "logprobs": FLAG,
            "model": MODEL_NAME,
            "stream": FLAG,
        },
        **_STREAM_OPTIONS,
    },
    required={"": ("model",), "JSONSchema": ("schema",)},
    open={"tools": KINDS},
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
_CUSTOM_DELTA = {
    "type": ["object", "null"],
    "properties": {"name": {"type": "string"}, "input": {"type": "string"}},
}
CHUNK = Shape(
    "ChatCompletionChunk",
    ChatCompletionChunk,
    "response",
    _CHAT_RESPONSE_PARTS,
    own={
        "Choice": EXTENSION,
        "ChoiceDeltaToolCall": {"type": {"enum": ["function", "custom", None]}, "custom": _CUSTOM_DELTA},
    },
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
RESPONSES_REQUEST = Shape(
    "ResponsesRequest",
    ResponseParams,
    "request",
    _RESPONSES_PARTS,
    members={
        "include": {},
        "input": {},
        "instructions": {},
        "max_output_tokens": LIMIT,
        "metadata": {},
        "parallel_tool_calls": {},
        "previous_response_id": {},
        "store": {},
        "temperature": range_schema(RANGES["temperature"]),
        "text": {},
        "tool_choice": {},
        "tools": {"maxItems": RANGES["tools"][1]},
        "top_logprobs": range_schema(TOP_LOGPROBS),
        "top_p": range_schema(RANGES["top_p"]),
        "truncation": {},
        "user": {},
    },
    own={
        "": {
            **SAMPLING,
            **PROOF,
            **SHOWING,
            **_VOTING,
            **CONTENT,
            "frequency_penalty": range_schema(RANGES["presence_penalty"], "number"),
            "model": MODEL_NAME,
            "n": range_schema(RANGES["n"], "integer"),
            "presence_penalty": range_schema(RANGES["presence_penalty"], "number"),
            **THINKING,
            "stream": FLAG,
        }
    },
    required={"": ("model",), "FunctionCallOutput": ("call_id",)},
    open={"input": tuple(PREFIXES), "tools": KINDS},
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
        "NamespaceTool",
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
        "ToolFunction",
    }
)
RESPONSE = Shape("Response", Response, "response", _RESPONSE_PARTS, own={"": EXTENSION})
EVENT = Shape(
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
COMPLETION_REQUEST = Shape(
    "CompletionRequest",
    CompletionParams,
    "request",
    frozenset({"ChatCompletionStreamOptionsParam"}),
    members={
        "prompt": {},
        "best_of": range_schema(RANGES["best_of"]),
        "echo": {},
        "frequency_penalty": PENALTY,
        "logprobs": range_schema(RANGES["logprobs"]),
        "max_tokens": {"minimum": UNLIMITED},
        "n": range_schema(RANGES["n"]),
        "presence_penalty": PENALTY,
        "stream_options": {},
        "temperature": range_schema(RANGES["temperature"]),
        "top_p": range_schema(RANGES["top_p"]),
    },
    own={
        "": {
            **SAMPLING,
            **PROOF,
            **_VOTING,
            **CONTENT,
            "model": MODEL_NAME,
            "response_format": _RESPONSE_FORMAT,
            "stream": FLAG,
        },
        **_STREAM_OPTIONS,
    },
    required={"": ("model",)},
)
_VECTOR: Schema = {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string", "format": "byte"}]}
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
    frozenset({"Embedding", "Usage"}),
    own={"Embedding": {"embedding": _VECTOR}},
)
EMBEDDING_REQUEST = Shape(
    "EmbeddingRequest",
    EmbeddingCreateParams,
    "request",
    members={"input": {}, "encoding_format": {}, "dimensions": _COUNT},
    own={"": {"model": MODEL_NAME}},
)
