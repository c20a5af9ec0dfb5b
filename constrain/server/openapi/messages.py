"""The bodies of messages, of their errors, and of models in Anthropic's form, in the OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.server.messages.conversation import NOT_TEXT
from constrain.server.messages.request import CountBody, MessagesBody
from constrain.server.openapi.bodies import EXTENSION
from constrain.server.openapi.shapes import (
    COUNT,
    FLAG,
    OBJECT,
    TEXT,
    Schema,
    WrittenShape,
    array_of,
    object_schema,
    of_other_types,
    or_null,
    reference,
)
from constrain.server.requests.tools import MESSAGES_TOOL_NAME

if TYPE_CHECKING:
    from constrain.server.requests.declared import Body

_FLAG: Schema = {"type": ["boolean", "null"]}
_ID: Schema = {"type": "string", "minLength": 1}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _typed(kind: str, /, **members: Schema) -> Schema:
    """Returns the schema of a block or an event."""
    return object_schema(type={"const": kind}, **members)


_TEXT_BLOCK = _typed("text", text=TEXT)
_TOOL_USE_BLOCK = _typed("tool_use", id=_ID, name=TEXT, input=OBJECT)
_TEXT_PART = reference("MessagesRequest.Text")
_RESULT: Schema = {"anyOf": [TEXT, array_of({"anyOf": [_TEXT_PART, of_other_types("text")]})]}


def _message(role: str, *parts: str, least: int, others: Schema) -> Schema:
    """Returns the schema of a message.

    ``parts``: names of its blocks; ``others``: schema of blocks that are left out; ``least``: least number of blocks.
    """
    blocks: Schema = {"anyOf": [*(reference(f"MessagesRequest.{part}") for part in parts), others]}
    return object_schema(role={"const": role}, content={"anyOf": [TEXT, array_of(blocks, minItems=least)]})


_TOOL = object_schema(
    {
        "type": {"enum": ["custom", None]},
        "description": _TEXT_OR_NULL,
        "strict": _FLAG,
        "input_examples": or_null(array_of(OBJECT)),
        "allowed_callers": or_null(array_of({})),
    },
    name={"type": "string", "pattern": f"^{MESSAGES_TOOL_NAME.pattern}$"},
    input_schema=OBJECT,
)
_PARALLEL = {"disable_parallel_tool_use": _FLAG}
_CHOICE: Schema = {
    "anyOf": [
        object_schema(_PARALLEL, type=_one_of("auto", "any", "none")),
        object_schema(_PARALLEL, type={"const": "tool"}, name=TEXT),
    ]
}
_DISPLAY: dict[str, Schema] = {"display": {"enum": ["summarized", "omitted", None]}}
_THINKING: Schema = {
    "anyOf": [
        object_schema(_DISPLAY, type={"const": "enabled"}, budget_tokens={"type": "integer", "minimum": 1}),
        object_schema(_DISPLAY, type=_one_of("adaptive", "disabled")),
    ]
}
_READ_BLOCKS = ("text", "tool_use", "tool_result", "thinking", "redacted_thinking")
_NO_BLOCK = of_other_types(*_READ_BLOCKS, *NOT_TEXT)
_OF_ASSISTANT = ("Text", "ToolUse", "Thinking", "RedactedThinking")
_PARTS: dict[str, Schema] = {
    "MessagesRequest.Message": {
        "anyOf": [
            _message("user", "Text", "ToolResult", least=1, others=_NO_BLOCK),
            _message("assistant", *_OF_ASSISTANT, least=0, others=of_other_types(*_READ_BLOCKS)),
            _message("system", "Text", least=1, others=_NO_BLOCK),
        ]
    },
    "MessagesRequest.Text": _TEXT_BLOCK,
    "MessagesRequest.Thinking": _typed("thinking", thinking=TEXT),
    "MessagesRequest.RedactedThinking": _typed("redacted_thinking"),
    "MessagesRequest.ToolUse": _TOOL_USE_BLOCK,
    "MessagesRequest.ToolResult": object_schema(
        {"content": or_null(_RESULT), "is_error": _FLAG}, type={"const": "tool_result"}, tool_use_id=_ID
    ),
    "MessagesRequest.Tool": _TOOL,
}
_WRITTEN: dict[str, Schema] = {
    "messages": array_of(reference("MessagesRequest.Message"), minItems=1),
    "system": or_null({"anyOf": [TEXT, array_of(_TEXT_PART)]}),
    "thinking": or_null(_THINKING),
    "tool_choice": or_null(_CHOICE),
    "tools": {
        **array_of({"anyOf": [reference("MessagesRequest.Tool"), of_other_types("custom")]}),
        "type": ["array", "null"],
    },
}


def _request(name: str, body: type[Body]) -> WrittenShape:
    described = body.describe()
    return WrittenShape(name, {**described, "properties": {**described["properties"], **_WRITTEN}}, _PARTS)


MESSAGES_REQUEST = _request("MessagesRequest", MessagesBody)
COUNT_REQUEST = _request("CountRequest", CountBody)

_BLOCKS: Schema = {"anyOf": [_TEXT_BLOCK, _typed("thinking", thinking=TEXT, signature=TEXT), _TOOL_USE_BLOCK]}
_REASON: Schema = {
    "enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "model_context_window_exceeded", None]
}
_END: dict[str, Schema] = {"stop_reason": _REASON, "stop_sequence": _TEXT_OR_NULL}
_USAGE = object_schema(
    input_tokens=COUNT, cache_creation_input_tokens=COUNT, cache_read_input_tokens=COUNT, output_tokens=COUNT
)
MESSAGE = WrittenShape(
    "Message",
    object_schema(
        EXTENSION,
        id=TEXT,
        type={"const": "message"},
        role={"const": "assistant"},
        model=TEXT,
        content=array_of(_BLOCKS),
        **_END,
        usage=_USAGE,
    ),
)
_DELTA: Schema = {
    "anyOf": [
        _typed("text_delta", text=TEXT),
        _typed("thinking_delta", thinking=TEXT),
        _typed("signature_delta", signature=TEXT),
        _typed("input_json_delta", partial_json=TEXT),
    ]
}
_ERROR = _typed(
    "error",
    error=object_schema({"details": object_schema(error_code=TEXT)}, type=TEXT, message=_ID),
    request_id=_TEXT_OR_NULL,
)
MESSAGES_ERROR = WrittenShape("MessagesError", _ERROR)
MESSAGE_EVENT = WrittenShape(
    "MessageEvent",
    {
        "anyOf": [
            _typed("message_start", message=reference("Message")),
            _typed("content_block_start", index=COUNT, content_block=_BLOCKS),
            _typed("content_block_delta", index=COUNT, delta=_DELTA),
            _typed("content_block_stop", index=COUNT),
            object_schema(EXTENSION, type={"const": "message_delta"}, delta=object_schema(**_END), usage=_USAGE),
            _typed("message_stop"),
            _ERROR,
        ]
    },
)

MODEL_INFO = object_schema(
    type={"const": "model"},
    id=TEXT,
    display_name=TEXT,
    created_at={"type": "string", "format": "date-time"},
    lifecycle={"const": "active"},
)
MODEL_PAGE = object_schema(data=array_of(MODEL_INFO), has_more=FLAG, first_id=_TEXT_OR_NULL, last_id=_TEXT_OR_NULL)
