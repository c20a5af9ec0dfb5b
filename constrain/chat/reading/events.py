"""Events of a stream: pieces of an answer while it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.notebooks import one_line

if TYPE_CHECKING:
    from constrain.llama.decoding.token_logprob import TokenLogprob


@dataclass(frozen=True, slots=True)
class TextDelta:
    """An event of a stream: a piece of the answer's text. All pieces together are the text.

    Attributes:
        text: the piece.
        logprobs: log-probabilities of the tokens that begin in the piece, with the option ``logprobs``. A piece that is
            the rest of a token has none.
    """

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()

    __repr__ = one_line


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """An event of a stream: a piece of the text that a model writes before its answer: its reasoning, or a ``draft``.

    Attributes:
        text: the piece.
    """

    text: str

    __repr__ = one_line


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """An event of a stream: a piece of the text of a refusal, with ``allow_refusal``.

    Attributes:
        text: the piece.
    """

    text: str

    __repr__ = one_line


@dataclass(frozen=True, slots=True)
class CallStarted:
    """An event of a stream: a tool call begins.

    Attributes:
        index: number of the call in the answer, from 0.
        id: id of the call.
        name: name of the tool.
    """

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """An event of a stream: a piece of the input of a tool call.

    Attributes:
        index: number of the call in the answer, from 0.
        text: the piece: of the arguments as JSON text, or of the input of a custom tool.
    """

    index: int
    text: str

    __repr__ = one_line


@dataclass(frozen=True, slots=True)
class CallEnded:
    """An event of a stream: a tool call is complete.

    Attributes:
        index: number of the call in the answer, from 0.
    """

    index: int


class ReportDelta:
    """An event of a stream that an observer of the answer makes: ``TraceDelta``."""

    __slots__ = ()


StreamEvent = ReportDelta | TextDelta | ReasoningDelta | RefusalDelta | CallStarted | ArgumentsDelta | CallEnded
"""The events of a stream before the last one, ``Finished``."""
