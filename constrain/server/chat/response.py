"""Finished answers as ``chat.completion`` objects, made from the types of the ``openai`` package."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from openai.types import CompletionUsage
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
from openai.types.completion_usage import CompletionTokensDetails, PromptTokensDetails

from constrain.chat.reading.reply import Reply
from constrain.chat.tools.calls import FunctionCall
from constrain.engine.captures import captures_object
from constrain.generation.logprobs import logprob_objects
from constrain.server.serving.extension import extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.completion import Completion

FinishReason = Literal["stop", "length", "tool_calls", "function_call"]


@dataclass(frozen=True, slots=True)
class Heading:
    """Fields shared by a response and all chunks of a stream. ``model``: name that the model is served under."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of the answers to a request.

    Attributes:
        is_text: whether content is free text, without ``response_format``.
        has_functions: whether a call is written as ``function_call``, the predecessor of ``tool_calls``.
    """

    is_text: bool
    has_functions: bool = False


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


def finish_reason(completion: Completion, shape: Shape) -> FinishReason:
    """Returns the reason why an answer ended.

    Only free text can be cut: calls and values of a schema are always complete.
    """
    if isinstance(completion.value, Reply) and completion.value.calls:
        return "function_call" if shape.has_functions else "tool_calls"
    return "length" if shape.is_text and completion.finish_reason != "stop" else "stop"


def count_usage(completions: Sequence[Completion], n: int | None = None) -> CompletionUsage:
    """Returns token counts: each prompt once, and all answers.

    ``n``: answers per prompt; ``None`` if all share one prompt.
    """
    prompts = [one.usage for one in completions[:: n or len(completions)]]
    read, written = sum(one.prompt_tokens for one in prompts), sum(one.usage.completion_tokens for one in completions)
    return CompletionUsage(
        prompt_tokens=read,
        completion_tokens=written,
        total_tokens=read + written,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=sum(one.cached_tokens for one in prompts)),
        # Tokens of a model's own reasoning are not counted here, so they are left out; those of drafts are known.
        completion_tokens_details=CompletionTokensDetails(
            reasoning_tokens=None
            if any(one.reasoning for one in completions)
            else sum(one.usage.draft_tokens for one in completions)
        ),
    )


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
