"""Events of a stream: what becomes known of an answer while it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.llama.decoding.token_logprob import TokenLogprob


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text; all pieces together are the text.

    Attributes:
        text: the piece.
        logprobs: log-probabilities of the tokens that begin in it, if they were asked for. A piece may be the rest of a
            token, and then has none.
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


StreamEvent = TextDelta | ReasoningDelta | RefusalDelta | CallStarted | ArgumentsDelta | CallEnded
"""What a stream yields while the answer is written."""
