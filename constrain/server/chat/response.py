"""Finished answers as ``chat.completion`` objects, made from the types of the ``openai`` package."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessage,
    ChatCompletionMessageCustomToolCall,
    ChatCompletionMessageFunctionToolCall,
)
from openai.types.chat.chat_completion import Choice, ChoiceLogprobs
from openai.types.chat.chat_completion_message import FunctionCall as OldFunctionCall
from openai.types.chat.chat_completion_message_custom_tool_call import Custom
from openai.types.chat.chat_completion_message_function_tool_call import Function

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
    from constrain.server.serving.ended import Shape


@dataclass(frozen=True, slots=True)
class Heading:
    """Fields shared by a response and all chunks of a stream. ``model``: name that the model is served under."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))


def chat_completion(heading: Heading, completions: Sequence[Completion], shape: Shape) -> dict[str, Any]:
    """Returns the response."""
    response = ChatCompletion(
        id=heading.id,
        created=heading.created,
        model=heading.model,
        object="chat.completion",
        choices=[
            Choice(
                index=index,
                message=_message(completion, shape),
                finish_reason=finish_reason(completion, shape),
                logprobs=_logprobs(completion),
                **extension(completion, is_cut=finish_reason(completion, shape) == "length"),
            )
            for index, completion in enumerate(completions)
        ],
        usage=count_usage(completions),
    )
    return response.model_dump(mode="json", exclude_unset=True)


def _message(completion: Completion, shape: Shape) -> ChatCompletionMessage:
    reply = completion.value
    calls = reply.calls if isinstance(reply, Reply) else ()
    members: dict[str, Any] = {"content": None if calls and not completion.text else completion.text, "refusal": None}
    if calls and shape.has_functions:
        members["function_call"] = OldFunctionCall(name=calls[0].name, arguments=calls[0].text)
    elif calls:
        members["tool_calls"] = [_tool_call(call) for call in calls]
    if completion.thoughts:
        members["reasoning_content"] = completion.thoughts
    return ChatCompletionMessage(role="assistant", **members)


def _logprobs(completion: Completion) -> ChoiceLogprobs | None:
    if completion.text_logprobs is None:
        return None
    return ChoiceLogprobs.model_validate({"content": logprob_objects(completion.text_logprobs), "refusal": None})


def _tool_call(call: ToolCall) -> ChatCompletionMessageFunctionToolCall | ChatCompletionMessageCustomToolCall:
    if isinstance(call, FunctionCall):
        function = Function(name=call.name, arguments=call.text)
        return ChatCompletionMessageFunctionToolCall(id=call.id, type="function", function=function)
    return ChatCompletionMessageCustomToolCall(
        id=call.id,
        type="custom",
        custom=Custom(name=call.name, input=call.text, **captures_object(call.captures)),
    )
