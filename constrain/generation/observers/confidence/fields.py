"""The parts of a JSON text, each with its tokens and probabilities."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.chat.reading.places import Span, byte_positions, spans
from constrain.generation.observers.choices import find_choices
from constrain.generation.observers.confidence.alternatives import (
    ALL_QUESTIONS,
    Replay,
    Scalar,
    find_alternatives,
    questions,
)
from constrain.generation.observers.observer import Observer
from constrain.notebooks import cut
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.chat.reading.places import Located
    from constrain.chat.reading.progress import Progress
    from constrain.generation.observers.choices import Choice, Choices
    from constrain.generation.observers.confidence.alternatives import Alternative
    from constrain.generation.observers.observer import Observers, Written
    from constrain.generation.plan import Plan
    from constrain.llama.decoding.answer import Answer, Questions
    from constrain.partial.scanner import Path

_LISTED_FIELDS = 10_000
"""Parts of one answer that ``Completion.fields`` lists; of an answer with more, it lists only the whole."""


@dataclass(frozen=True, slots=True, repr=False)
class FieldConfidence:
    """A part of an answer, with its probabilities. All logarithms are natural ones.

    A token that spells the end of one part and the beginning of the next counts for both.

    Attributes:
        value: JSON value of the part; the text of an answer that is not JSON.
        begin, end: span of the part in the text of the answer, in characters.
        tokens: numbers of its tokens in ``Completion.tokens``.
        logprob: logarithm of the probability of the tokens in the model's own distribution.
        constrained_logprob: logarithm of the probability of the choices among what the constraint allows. Forced text
            counts as certain. Of a number, the choice to end it counts, too.
        log_mass: logarithm of the share of the probability that the constraint has left: the sum, over the tokens, of
            the logarithms of the probabilities that the model gives to all allowed tokens together.
        choices: number of tokens that were chosen among several; 0 for a part that was forced.
        alternatives: values that the part might have had, the likeliest first, its own among them: of enums, booleans,
            null and short numbers. Empty where they cannot be told apart.
    """

    value: Any
    begin: int
    end: int
    tokens: range
    logprob: float
    constrained_logprob: float
    log_mass: float
    choices: int
    alternatives: tuple[Alternative, ...] = ()

    def __repr__(self) -> str:
        return f"FieldConfidence(value={cut(self.value)}, probability={self.probability:.4f}, mass={self.mass:.4f})"

    @property
    def probability(self) -> float:
        """The probability of the part, as it was spelled, among what the constraint allows; 1 if it was forced."""
        return math.exp(self.constrained_logprob)

    @property
    def mass(self) -> float:
        """The share of the probability that the constraint left; if it is small, the model wanted something else."""
        return math.exp(min(0.0, self.log_mass))  # rounding may leave a sum slightly above 0

    @property
    def is_forced(self) -> bool:
        """Whether no token of the part was chosen among several."""
        return self.choices == 0


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


class ConfidenceObserver(Observer):
    """Reports ``fields``. Its choices are recorded by another observer, ``choices``."""

    asks = True

    def __init__(self, plan: Plan, choices: Choices) -> None:
        self._plan = plan
        self._choices = choices
        self._known: Confidence | None = None

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer:
        """Returns the observer of a new answer."""
        return cls(plan, find_choices(others))

    def questions(self, answer: Answer, progress: Progress) -> Questions[None]:
        """Asks about the finished answer what its fields need to know: see ``Confidence.questions``."""
        self._known = self._weigh(answer, progress)
        yield from self._known.questions()

    def finish(self, written: Written) -> dict[str, Any]:
        """Returns the parts of the finished answer with their probabilities."""
        return {"fields": (self._known or self._weigh(written.answer, written.progress)).fields()}

    def _weigh(self, answer: Answer, progress: Progress) -> Confidence:
        """Returns what is known of the finished answer."""
        plan, vocabulary, choices = self._plan, self._plan.model.vocabulary, self._choices.finished(answer)
        constraint, replay = plan.constraint, None
        if constraint is not None:
            replay = Replay(
                start=partial(plan.start, answer.limit),
                bitmask=lambda: constraint.allocate_bitmask()[0],
                tokens=answer.tokens,
                token_bytes=vocabulary.token_bytes,
                eos=frozenset(vocabulary.eos),
                take=answer.follow,
                evaluated=answer.evaluated,
                starts=[choice.index for choice in choices],
            )
        pieces = [vocabulary.marked_bytes(token) for token in answer.tokens]
        return Confidence(pieces, self._choices.logprobs, choices, progress.located(), replay)


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
