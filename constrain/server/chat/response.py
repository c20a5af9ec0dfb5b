"""Finished answers as ``chat.completion`` objects of OpenAI's API."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.reply import Reply
from constrain.chat.tools.calls import FunctionCall
from constrain.engine.captures import captures_object
from constrain.generation.logprobs import logprob_objects
from constrain.server.serving.ended import count_usage, finish_reason
from constrain.server.serving.extension import extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.completion import Completion
    from constrain.llama.decoding.token_logprob import TokenLogprob
    from constrain.server.serving.ended import Shape


@dataclass(frozen=True, slots=True)
class Heading:
    """Fields shared by a response and all chunks of a stream. ``model``: name that the model is served under."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))

    def object(self, kind: str, choices: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Returns a response or a chunk."""
        head = {"id": self.id, "choices": choices, "created": self.created, "model": self.model}
        return {**head, "object": kind, **more}


def chat_completion(heading: Heading, completions: Sequence[Completion], shape: Shape) -> dict[str, Any]:
    """Returns the response."""
    choices = [
        {
            "finish_reason": (reason := finish_reason(completion, shape)),
            "index": index,
            "logprobs": logprobs_object(completion.text_logprobs),
            "message": _message(completion, shape),
            **extension(completion, is_cut=reason == "length"),
        }
        for index, completion in enumerate(completions)
    ]
    return heading.object("chat.completion", choices, usage=count_usage(completions))


def logprobs_object(tokens: Sequence[TokenLogprob] | None) -> dict[str, Any] | None:
    """Returns the log-probabilities of a choice, if there are any."""
    return None if tokens is None else {"content": [*map(_ordered, logprob_objects(tokens))], "refusal": None}


def _ordered(token: dict[str, Any]) -> dict[str, Any]:
    """Returns the object of a token with its members in the order of OpenAI's."""
    top = {"top_logprobs": [*map(_ordered, token["top_logprobs"])]} if "top_logprobs" in token else {}
    return {"token": token["token"], "bytes": token["bytes"], "logprob": token["logprob"], **top}


def _message(completion: Completion, shape: Shape) -> dict[str, Any]:
    reply = completion.value
    calls = reply.calls if isinstance(reply, Reply) else ()
    content = None if calls and not completion.text else completion.text
    message: dict[str, Any] = {"content": content, "refusal": None, "role": "assistant"}
    if calls and shape.has_functions:
        message["function_call"] = {"arguments": calls[0].text, "name": calls[0].name}
    elif calls:
        message["tool_calls"] = [_tool_call(call) for call in calls]
    if completion.thoughts:
        message["reasoning_content"] = completion.thoughts
    return message


def _tool_call(call: ToolCall) -> dict[str, Any]:
    if isinstance(call, FunctionCall):
        return {"id": call.id, "function": {"arguments": call.text, "name": call.name}, "type": "function"}
    custom = {"input": call.text, "name": call.name, **captures_object(call.captures)}
    return {"id": call.id, "custom": custom, "type": "custom"}
