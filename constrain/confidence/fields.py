"""The parts of a JSON text, each with its tokens and probabilities."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.confidence.alternatives import ALL_QUESTIONS, Scalar, find_alternatives, questions
from constrain.notebooks import cut
from constrain.partial.scanner import Scanner
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.confidence.alternatives import Alternative, Replay
    from constrain.llama.decoding.answer import Questions
    from constrain.llama.decoding.chosen import Choice
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


@dataclass(frozen=True, slots=True)
class Located:
    """A text in an answer: the content, or the arguments of a call.

    Attributes:
        path: path of the text in the value of the answer.
        text: the text.
        begin: position of its first byte in the bytes of all tokens.
        is_json: whether the text is JSON, and its parts are wanted.
        is_whole: whether it is all of the answer.
    """

    path: Path
    text: str
    begin: int
    is_json: bool
    is_whole: bool = False


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
        located = [(part, path, span) for part in parts for path, span in _spans(part)]
        if len(located) > _LISTED_FIELDS:
            located = [(part, (), _Span(0, len(part.text))) for part in parts]
        placed = {id(part): _byte_positions(part) for part in parts}
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

    def _place(self, part: Located, path: Path, span: _Span, positions: Sequence[int]) -> _Placed:
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


def sum_mass(logprobs: Sequence[float], choices: Sequence[Choice]) -> float:
    """Returns the logarithm of the share of the model's probability that the constraint has left of an answer.

    Where a token was chosen, that is the probability of all allowed tokens; of other tokens, it is their own.
    """
    chosen = {choice.index for choice in choices}
    forced = sum(logprob for number, logprob in enumerate(logprobs) if number not in chosen)
    return forced + sum(choice.mass for choice in choices)


class _Span(NamedTuple):
    """Where a part of a text begins and ends, in characters."""

    begin: int
    end: int


class _Placed(NamedTuple):
    """A part of a text with its bytes (begin and end), its tokens and the choices that decided on it."""

    part: Located
    path: Path
    span: _Span
    bytes: tuple[int, int]
    tokens: range
    choices: Sequence[Choice]
    is_scalar: bool


_CLOSED = frozenset('"tfn')
"""First characters of the scalars that tell by themselves where they end."""


def _spans(part: Located) -> list[tuple[Path, _Span]]:
    """Returns the parts of a text with their spans, in the order in which they begin."""
    if not part.is_json:
        return [((), _Span(0, len(part.text)))]
    scanner = Scanner()
    found = [
        (each.path, _Span(each.begin, each.end))
        for each in (*scanner.feed(part.text), *scanner.finish())
        if each.kind == "complete"
    ]
    return sorted(found, key=lambda each: (each[1].begin, -each[1].end))


def paths_at(parts: Sequence[Located], positions: Sequence[int]) -> tuple[Path, ...]:
    """Returns the path of the innermost value at each position in the bytes of an answer, each path once."""
    found: dict[Path, None] = {}
    for position in positions:
        for part in parts:
            at = _byte_positions(part)
            inside = [path for path, span in _spans(part) if at[span.begin] <= position < at[span.end]]
            found |= dict.fromkeys((*part.path, *path) for path in inside[-1:])
    return tuple(found)


def _byte_positions(part: Located) -> Sequence[int]:
    """Returns the position of each character of a text, and of its end, in the bytes of the answer."""
    if part.text.isascii():
        return range(part.begin, part.begin + len(part.text) + 1)
    return list(accumulate((len(character.encode()) for character in part.text), initial=part.begin))
