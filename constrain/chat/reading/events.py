"""Events of a stream: pieces of an answer while it is written."""

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
    """The beginning of a tool call: the ``index``-th of the answer, from 0."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of a call's arguments as JSON text, or of a custom tool's input."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The end of a call: all of its arguments have been sent."""

    index: int


StreamEvent = TextDelta | ReasoningDelta | RefusalDelta | CallStarted | ArgumentsDelta | CallEnded
"""The events of a stream before the last one, ``Finished``."""
