"""Results of a generation: the finished answer, and the last event of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrain.engine.constraint import Report
    from constrain.llama.decoding.answer import FinishReason
    from constrain.llama.decoding.token_logprob import TokenLogprob


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens of one answer.

    Attributes:
        prompt_tokens: tokens of the prompt.
        cached_tokens: tokens of the prompt that the model had read before.
        completion_tokens: tokens of the answer, without the end of generation.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall-clock seconds of one answer, by what they were spent on.

    Attributes:
        compile: compiling the schema.
        queue: waiting for the model.
        prompt: reading the prompt.
        generation: writing the answer.
    """

    compile: float
    queue: float
    prompt: float
    generation: float


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished answer.

    Attributes:
        value: the answer as the type asked for; parsed JSON for a JSON Schema; otherwise the text. With ``tools`` a
            ``Reply``, with ``allow_refusal`` perhaps a ``Refusal``.
        text: the answer as the model wrote it, without calls, reasoning and special tokens.
        tokens: the ids of its tokens, without the end of generation.
        usage: numbers of tokens.
        timings: where the time went.
        finish_reason: ``"stop"`` (the answer ended by itself or at a ``stop`` text), ``"length"`` (``max_tokens`` had a
            say in what it could be; without a schema: it was cut there) or ``"timeout"``.
        report: ``Constraint.report`` of the schema, ``None`` without one.
        shortened: how many strings and numbers of the answer reached ``max_string_tokens`` or ``max_number_tokens`` and
            were brought to their ends. It says nothing about ``finish_reason``: the model went on after them.
        limited_masks: how many masks of the answer left out tokens because a limit of the kernel was met. The answer
            is whole and in the language all the same, but the model had less to choose from.
        limits_met: the names of these limits, such as ``"MAX_MASK_WORK"``.
        reasoning: what a model that reasons wrote before its answer, ``""`` for nothing.
        logprobs: of each of ``tokens``; ``None`` if they were not asked for.
        text_logprobs: of those of them that ``text`` is made of.
    """

    value: Any
    text: str
    tokens: tuple[int, ...]
    usage: Usage
    timings: Timings
    finish_reason: FinishReason
    report: Report | None
    shortened: int = 0
    limited_masks: int = 0
    limits_met: tuple[str, ...] = ()
    reasoning: str = ""
    logprobs: tuple[TokenLogprob, ...] | None = None
    text_logprobs: tuple[TokenLogprob, ...] | None = None


def limits_object(completion: Completion) -> dict[str, Any]:
    """Returns the member ``limited`` of an answer as JSON: limited masks and the limits met; empty if none."""
    if not completion.limited_masks:
        return {}
    return {"limited": {"masks": completion.limited_masks, "limits": list(completion.limits_met)}}


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream: the whole answer."""

    completion: Completion
