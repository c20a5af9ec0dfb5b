"""The bodies of messages, of their errors, and of models in Anthropic's form, in the OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.messages.conversation import NOT_TEXT
from constrain.server.messages.request import CountBody, MessagesBody
from constrain.server.openapi.bodies import EXTENSION
from constrain.server.openapi.shapes import Schema, WrittenShape, of_other_types, reference
from constrain.server.requests.tools import MESSAGES_TOOL_NAME

if TYPE_CHECKING:
    from constrain.server.requests.declared import Body

_FLAG: Schema = {"type": ["boolean", "null"]}
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_OBJECT: Schema = {"type": "object"}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _array(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _block(kind: str, **members: Schema) -> Schema:
    return _object({"type": {"const": kind}, **members})


def _event(kind: str, **members: Schema) -> Schema:
    return _object({"type": {"const": kind}, **members})


_TEXT_BLOCK = _block("text", text=_TEXT)
_THINKING_BLOCK = _block("thinking", thinking=_TEXT)
_TOOL_USE_BLOCK = _block("tool_use", id={"type": "string", "minLength": 1}, name=_TEXT, input=_OBJECT)
_TEXTS: Schema = {"anyOf": [_TEXT, _array(reference("MessagesRequest.Text"))]}
_RESULT: Schema = {"anyOf": [_TEXT, _array({"anyOf": [reference("MessagesRequest.Text"), of_other_types("text")]})]}
_RESULT_BLOCK = _object(
    {"type": {"const": "tool_result"}, "tool_use_id": {"type": "string", "minLength": 1}},
    {"content": _or_null(_RESULT), "is_error": _FLAG},
)


def _message(role: str, *parts: str, least: int, others: Schema) -> Schema:
    """Returns the schema of a message.

    ``parts``: names of its blocks; ``others``: schema of blocks that are left out; ``least``: least number of blocks.
    """
    blocks: Schema = {"anyOf": [*(reference(f"MessagesRequest.{part}") for part in parts), others]}
    content: Schema = {"anyOf": [_TEXT, {**_array(blocks), "minItems": least}]}
    return _object({"role": {"const": role}, "content": content})


_TOOL = _object(
    {"name": {"type": "string", "pattern": f"^{MESSAGES_TOOL_NAME.pattern}$"}, "input_schema": _OBJECT},
    {
        "type": {"enum": ["custom", None]},
        "description": {"type": ["string", "null"]},
        "strict": _FLAG,
        "input_examples": _or_null(_array(_OBJECT)),
        "allowed_callers": _or_null(_array({})),
    },
)
_CHOICE: Schema = {
    "anyOf": [
        _object({"type": _one_of("auto", "any", "none")}, {"disable_parallel_tool_use": _FLAG}),
        _object({"type": {"const": "tool"}, "name": _TEXT}, {"disable_parallel_tool_use": _FLAG}),
    ]
}
_DISPLAY: dict[str, Schema] = {"display": {"enum": ["summarized", "omitted", None]}}
_THINKING: Schema = {
    "anyOf": [
        _object({"type": {"const": "enabled"}, "budget_tokens": {"type": "integer", "minimum": 1}}, _DISPLAY),
        _object({"type": _one_of("adaptive", "disabled")}, _DISPLAY),
    ]
}
_READ_BLOCKS = ("text", "tool_use", "tool_result", "thinking", "redacted_thinking")
_NO_BLOCK = of_other_types(*_READ_BLOCKS, *NOT_TEXT)
_PARTS: dict[str, Schema] = {
    "MessagesRequest.Message": {
        "anyOf": [
            _message("user", "Text", "ToolResult", least=1, others=_NO_BLOCK),
            _message(
                "assistant",
                "Text",
                "ToolUse",
                "Thinking",
                "RedactedThinking",
                least=0,
                others=of_other_types(*_READ_BLOCKS),
            ),
            _message("system", "Text", least=1, others=_NO_BLOCK),
        ]
    },
    "MessagesRequest.Text": _TEXT_BLOCK,
    "MessagesRequest.Thinking": _THINKING_BLOCK,
    "MessagesRequest.RedactedThinking": _block("redacted_thinking"),
    "MessagesRequest.ToolUse": _TOOL_USE_BLOCK,
    "MessagesRequest.ToolResult": _RESULT_BLOCK,
    "MessagesRequest.Tool": _TOOL,
}


_WRITTEN: dict[str, Schema] = {
    "messages": {**_array(reference("MessagesRequest.Message")), "minItems": 1},
    "system": _or_null(_TEXTS),
    "thinking": _or_null(_THINKING),
    "tool_choice": _or_null(_CHOICE),
    "tools": {
        "type": ["array", "null"],
        "items": {"anyOf": [reference("MessagesRequest.Tool"), of_other_types("custom")]},
    },
}


def _request(name: str, body: type[Body]) -> WrittenShape:
    described = body.describe()
    return WrittenShape(name, {name: {**described, "properties": {**described["properties"], **_WRITTEN}}, **_PARTS})


MESSAGES_REQUEST = _request("MessagesRequest", MessagesBody)
COUNT_REQUEST = _request("CountRequest", CountBody)

_BLOCKS: Schema = {"anyOf": [_TEXT_BLOCK, _block("thinking", thinking=_TEXT, signature=_TEXT), _TOOL_USE_BLOCK]}
_REASON: Schema = {
    "enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "model_context_window_exceeded", None]
}
_END: dict[str, Schema] = {"stop_reason": _REASON, "stop_sequence": {"type": ["string", "null"]}}
_USAGE = _object(
    {
        "input_tokens": _COUNT,
        "cache_creation_input_tokens": _COUNT,
        "cache_read_input_tokens": _COUNT,
        "output_tokens": _COUNT,
    }
)
_ANSWER = _object(
    {
        "id": _TEXT,
        "type": {"const": "message"},
        "role": {"const": "assistant"},
        "model": _TEXT,
        "content": _array(_BLOCKS),
        **_END,
        "usage": _USAGE,
    },
    EXTENSION,
)
MESSAGE = WrittenShape("Message", {"Message": _ANSWER})
_DELTA: Schema = {
    "anyOf": [
        _block("text_delta", text=_TEXT),
        _block("thinking_delta", thinking=_TEXT),
        _block("signature_delta", signature=_TEXT),
        _block("input_json_delta", partial_json=_TEXT),
    ]
}
_ERROR = _object(
    {
        "type": {"const": "error"},
        "error": _object(
            {"type": _TEXT, "message": {"type": "string", "minLength": 1}}, {"details": _object({"error_code": _TEXT})}
        ),
        "request_id": {"type": ["string", "null"]},
    }
)
MESSAGES_ERROR = WrittenShape("MessagesError", {"MessagesError": _ERROR})
MESSAGE_EVENT = WrittenShape(
    "MessageEvent",
    {
        "MessageEvent": {
            "anyOf": [
                _event("message_start", message=reference("Message")),
                _event("content_block_start", index=_COUNT, content_block=_BLOCKS),
                _event("content_block_delta", index=_COUNT, delta=_DELTA),
                _event("content_block_stop", index=_COUNT),
                _object({"type": {"const": "message_delta"}, "delta": _object(_END), "usage": _USAGE}, EXTENSION),
                _event("message_stop"),
                _ERROR,
            ]
        }
    },
)

MODEL_INFO = _object(
    {
        "type": {"const": "model"},
        "id": _TEXT,
        "display_name": _TEXT,
        "created_at": {"type": "string", "format": "date-time"},
        "lifecycle": {"const": "active"},
    }
)
MODEL_PAGE = _object(
    {
        "data": _array(MODEL_INFO),
        "has_more": {"type": "boolean"},
        "first_id": {"type": ["string", "null"]},
        "last_id": {"type": ["string", "null"]},
    }
)
