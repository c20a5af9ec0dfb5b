"""Why an answer ended, and counts of its tokens, in OpenAI's words: facts that several dialects write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from constrain.chat.reading.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.generation.completion import Completion

FinishReason = Literal["stop", "length", "tool_calls", "function_call"]


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of the answers to a request.

    Attributes:
        is_text: whether content is free text, without ``response_format``.
        has_functions: whether a call is written as ``function_call``, the predecessor of ``tool_calls``.
    """

    is_text: bool
    has_functions: bool = False


def finish_reason(completion: Completion, shape: Shape) -> FinishReason:
    """Returns the reason why an answer ended.

    Only free text can be cut: calls and values of a schema are always complete.
    """
    if isinstance(completion.value, Reply) and completion.value.calls:
        return "function_call" if shape.has_functions else "tool_calls"
    return "length" if shape.is_text and completion.finish_reason != "stop" else "stop"


def count_usage(completions: Sequence[Completion], n: int | None = None) -> dict[str, Any]:
    """Returns token counts: each prompt once, the tools that each answer was shown, and all answers.

    ``n``: answers per prompt; ``None`` if all share one prompt.
    """
    prompts = [one.usage for one in completions[:: n or len(completions)]]
    read = sum(one.prompt_tokens - one.introduced_tokens for one in prompts)
    read += sum(one.usage.introduced_tokens for one in completions)
    written = sum(one.usage.completion_tokens for one in completions)
    # Tokens of a model's own reasoning are not counted here, so they are left out; those of drafts are known.
    has_reasoning = any(one.reasoning for one in completions)
    drafted = None if has_reasoning else sum(one.usage.draft_tokens for one in completions)
    return {
        "completion_tokens": written,
        "prompt_tokens": read,
        "total_tokens": read + written,
        "completion_tokens_details": {"reasoning_tokens": drafted},
        "prompt_tokens_details": {"cached_tokens": sum(one.cached_tokens for one in prompts)},
    }
