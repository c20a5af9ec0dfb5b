"""What a generation returns: the finished answer, and the events of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import builtins

    from constrain.engine.constraint import Report
    from constrain.llama.decoding.answer import FinishReason


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens: of the prompt, how many of these were known from the call before, and of the answer."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall-clock seconds: compiling the schema, waiting for the model, reading the prompt, writing the answer."""

    compile: float
    queue: float
    prompt: float
    generation: float


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    r"""How likely a token was where it stands (``logprobs``).

    Attributes:
        token: its id.
        text: what it says; bytes that are no whole character as ``\xe2``; of a special token its name.
        bytes: the bytes that it adds to the text; none of a special token.
        logprob: the natural logarithm of its probability in the model's own distribution over the whole vocabulary,
            before masks, biases, penalties and the temperature.
        top: the most likely tokens in its place, most likely first (``top_logprobs`` of them).
    """

    token: int
    text: str
    bytes: builtins.bytes
    logprob: float
    top: tuple[TokenLogprob, ...] = ()


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


def told_limits(completion: Completion) -> dict[str, Any]:
    """The member ``limited`` of an answer as JSON: how many masks were limited, and by what; empty where none was."""
    if not completion.limited_masks:
        return {}
    return {"limited": {"masks": completion.limited_masks, "limits": list(completion.limits_met)}}


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text; all pieces together are the text.

    ``logprobs``: of the tokens that begin in it, if they were asked for. A piece may be the rest of a token, and then
    has none.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the reasoning that a model writes before its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """A piece of a refusal (``allow_refusal``)."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call of a tool begins: the ``index``-th of the answer, from 0."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of the JSON text of a call's arguments, or of the text for a custom tool."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """All of a call is there."""

    index: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream: the whole answer."""

    completion: Completion


StreamEvent = TextDelta | ReasoningDelta | RefusalDelta | CallStarted | ArgumentsDelta | CallEnded
"""What a stream yields while the answer is written."""
