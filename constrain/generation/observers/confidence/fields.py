"""The parts of a JSON text, each with its tokens and probabilities."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from constrain.chat.reading.places import Span, byte_positions, spans
from constrain.generation.observers.confidence.alternatives import (
    ALL_QUESTIONS,
    Scalar,
    find_alternatives,
    questions,
)
from constrain.generation.observers.confidence.records import FieldConfidence
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.reading.places import Located
    from constrain.generation.observers.choices import Choice
    from constrain.generation.observers.confidence.alternatives import Replay
    from constrain.generation.observers.confidence.records import Alternative
    from constrain.llama.decoding.answer import Questions
    from constrain.partial.scanner import Path

_LISTED_FIELDS = 10_000
"""Parts of one answer that ``Completion.fields`` lists; of an answer with more, it lists only the whole."""


class Confidence:
    """What is known of a finished answer.

    Args:
        pieces: bytes of each token.
        logprobs: logarithm of the probability of each token in the model's own distribution.
        choices: the choices, in order.
        parts: texts of the answer whose parts are wanted.
        replay: the answer, to be walked through once more for alternatives; None to find none.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        logprobs: Sequence[float],
        choices: Sequence[Choice],
        parts: Sequence[Located],
        replay: Replay | None,
    ) -> None:
        self._data = b"".join(pieces)
        self._bounds = [0, *accumulate(map(len, pieces))]
        self._logprobs = logprobs
        self._choices = choices
        self._indexes = [choice.index for choice in choices]
        self._chosen = set(self._indexes)
        self._replay = replay
        located = [(part, path, span) for part in parts for path, span in spans(part)]
        if len(located) > _LISTED_FIELDS:
            located = [(part, (), Span(0, len(part.text))) for part in parts]
        placed = {id(part): byte_positions(part) for part in parts}
        self._placed = [self._place(part, path, span, placed[id(part)]) for part, path, span in located]
        wanted = {choice.index: choice for each in self._placed if each.is_scalar for choice in each.choices}
        self._leads = {} if replay is None else replay.follow(wanted.values())

    def questions(self) -> Questions[None]:
        """Asks the model about tokens that several alternatives share: see ``alternatives.questions``."""
        if self._replay is None:
            return
        left = ALL_QUESTIONS
        for each in reversed(self._placed):  # what a question replaces is not needed for the next one
            if each.is_scalar:
                left -= yield from questions(self._scalar(each), self._leads, self._replay, left)

    def fields(self) -> dict[Path, FieldConfidence]:
        """Returns the fields of the texts by their paths, in the order in which the text has them."""
        return {(*each.part.path, *each.path): self._field(each) for each in self._placed}

    def _scalar(self, placed: _Placed) -> Scalar:
        return Scalar(self._data, placed.bytes, placed.choices, self._bounds)

    def _place(self, part: Located, path: Path, span: Span, positions: Sequence[int]) -> _Placed:
        """Finds the bytes, the tokens and the choices of a part of a text."""
        begin, end = positions[span.begin], positions[span.end]
        start = part.text[span.begin : span.begin + 1]
        is_scalar = part.is_json and start not in ("{", "[")
        if part.is_whole and (span.begin, span.end) == (0, len(part.text)):
            return _Placed(part, path, span, (begin, end), range(len(self._logprobs)), self._choices, is_scalar)
        first = max(0, bisect_right(self._bounds, begin) - 1)
        tokens = range(first, max(first, bisect_left(self._bounds, end)))
        ends_later = is_scalar and start not in _CLOSED  # the next token tells that a number has ended
        choices = self._choices[
            bisect_left(self._indexes, first) : bisect_left(self._indexes, tokens.stop + ends_later)
        ]
        return _Placed(part, path, span, (begin, end), tokens, choices, is_scalar)

    def _field(self, placed: _Placed) -> FieldConfidence:
        text = placed.part.text[placed.span.begin : placed.span.end]
        choices = placed.choices
        forced = sum(self._logprobs[number] for number in placed.tokens if number not in self._chosen)
        alternatives: tuple[Alternative, ...] = ()
        if placed.is_scalar and self._replay is not None:
            alternatives = find_alternatives(self._scalar(placed), self._leads)
        return FieldConfidence(
            value=read_answer(text) if placed.part.is_json else text,
            begin=placed.span.begin,
            end=placed.span.end,
            tokens=placed.tokens,
            logprob=sum(self._logprobs[number] for number in placed.tokens),
            constrained_logprob=sum(choice.logprob for choice in choices),
            log_mass=forced + sum(choice.mass for choice in choices),
            choices=len(choices),
            alternatives=alternatives,
        )


class _Placed(NamedTuple):
    """A part of a text with its bytes (begin and end), its tokens and the choices that decided on it."""

    part: Located
    path: Path
    span: Span
    bytes: tuple[int, int]
    tokens: range
    choices: Sequence[Choice]
    is_scalar: bool


_CLOSED = frozenset('"tfn')
"""First characters of the scalars that tell by themselves where they end."""
