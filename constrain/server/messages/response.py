"""Finished answers as messages of Anthropic's API."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from constrain.chat.reading.reply import Refusal, Reply
from constrain.server.http.errors import ApiError
from constrain.server.serving.extension import extension

if TYPE_CHECKING:
    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.completion import Completion, Usage

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "model_context_window_exceeded"]


@dataclass(frozen=True, slots=True)
class Heading:
    """The facts about a message that are known before its answer.

    Attributes:
        model: name that the model is served under.
        is_text: whether the content is free text, without a format.
        shows_thinking: whether blocks of thinking have their text.
        id: id of the message.
    """

    model: str
    is_text: bool
    shows_thinking: bool = True
    id: str = field(default_factory=lambda: f"msg_{secrets.token_hex(12)}")

    def message(self, **members: Any) -> dict[str, Any]:
        """Returns a message with these members."""
        return {"id": self.id, "type": "message", "role": "assistant", "model": self.model, **members}


def finished_message(heading: Heading, completion: Completion) -> dict[str, Any]:
    """Returns the message of an answer. Raises ``ApiError`` for an input with a number that is no JSON number."""
    message = heading.message(
        content=_blocks(heading, completion),
        **stop_members(heading, completion),
        usage=usage_object(completion.usage),
        **facts(heading, completion),
    )
    try:
        json.dumps(message, allow_nan=False)
    except ValueError as error:
        raise ApiError("The answer cannot be read: a number is too large.", code="invalid_value") from error
    return message


def stop_members(heading: Heading, completion: Completion) -> dict[str, Any]:
    """Returns the reason why an answer ended, and the stop sequence that ended it."""
    reason = _stop_reason(heading, completion)
    return {"stop_reason": reason, "stop_sequence": completion.stop if reason == "stop_sequence" else None}


def facts(heading: Heading, completion: Completion) -> dict[str, Any]:
    """Returns the member ``constrain`` of a message; empty if there is nothing to say."""
    return extension(completion, is_cut=_is_cut(heading, completion))


def usage_object(usage: Usage) -> dict[str, Any]:
    """Returns the token counts of an answer. Tokens of the prompt that were read from the cache are counted apart."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
    }


def signature(thinking: str) -> str:
    """Returns the signature of a block of thinking: a digest of its text. Nobody checks it when it comes back."""
    return base64.b64encode(hashlib.sha256(thinking.encode()).digest()).decode()


def call_id(identifier: str) -> str:
    """Returns the id of a call as Anthropic's clients know ids, unless the model wrote it itself."""
    return f"toolu_{identifier.removeprefix('call_')}" if identifier.startswith("call_") else identifier


def _blocks(heading: Heading, completion: Completion) -> list[dict[str, Any]]:
    """Returns the content: thinking, text and calls. In every form of calls, this is the order of writing."""
    blocks: list[dict[str, Any]] = []
    value, thoughts = completion.value, completion.thoughts
    if thoughts:
        shown = thoughts if heading.shows_thinking else ""
        blocks.append({"type": "thinking", "thinking": shown, "signature": signature(thoughts)})
    text = _refusal(value) or completion.text
    if text:
        blocks.append({"type": "text", "text": text})
    return [*blocks, *map(_tool_use, value.calls if isinstance(value, Reply) else ())]


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id(call.id), "name": call.name, "input": json.loads(call.text)}


def _stop_reason(heading: Heading, completion: Completion) -> StopReason:
    """Returns the reason why an answer ended. Only free text can be cut: calls and values are always complete."""
    if isinstance(completion.value, Reply) and completion.value.calls:
        return "tool_use"
    if _refusal(completion.value) is not None:
        return "refusal"
    if _is_cut(heading, completion):
        return "model_context_window_exceeded" if completion.ended_by == "context" else "max_tokens"
    return "end_turn" if completion.stop is None else "stop_sequence"


def _is_cut(heading: Heading, completion: Completion) -> bool:
    has_calls = isinstance(completion.value, Reply) and bool(completion.value.calls)
    return heading.is_text and not has_calls and completion.finish_reason != "stop"


def _refusal(value: object) -> str | None:
    """Returns the text of a refusal; ``None`` if the answer is none."""
    if isinstance(value, Refusal):
        return value.text
    return value.refusal if isinstance(value, Reply) else None
