"""How many guesses are worth their cost: by measured costs, and by how many guesses came true so far.

If each guess comes true with probability p, given those before it, then k guesses save p + p² + ... + pᵏ evaluations of
one token, and they make one evaluation more expensive. A draft model takes time of its own for every guess, right or
wrong.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from constrain.llama.costs.table import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Kind(Enum):
    """How a token was guessed: guesses of one kind come true about equally often."""

    FOUND_AFTER_THREE = auto()
    """It followed the last three tokens when they occurred before."""

    FOUND_AFTER_TWO = auto()
    DRAFTED_BELOW_HALF = auto()
    """A draft model found it the likeliest, with a probability below one half."""

    DRAFTED_BELOW_FOUR_FIFTHS = auto()
    DRAFTED_BELOW_19_OF_20 = auto()
    DRAFTED_SURELY = auto()


_PRIORS = {
    Kind.FOUND_AFTER_THREE: 0.85,
    Kind.FOUND_AFTER_TWO: 0.5,
    Kind.DRAFTED_BELOW_HALF: 0.3,
    Kind.DRAFTED_BELOW_FOUR_FIFTHS: 0.6,
    Kind.DRAFTED_BELOW_19_OF_20: 0.85,
    Kind.DRAFTED_SURELY: 0.95,
}
"""The probability with which guesses come true, before any was made."""

_PRIOR_WEIGHT = 5.0
"""Guesses that these probabilities count for."""

_DRAFTED = {
    0.5: Kind.DRAFTED_BELOW_HALF,
    0.8: Kind.DRAFTED_BELOW_FOUR_FIFTHS,
    0.95: Kind.DRAFTED_BELOW_19_OF_20,
}
"""Kinds of drafted tokens by the probability below which they are of that kind, ascending."""

_DRAFTED_KINDS = (*_DRAFTED.values(), Kind.DRAFTED_SURELY)

_LEAST_GAIN = 0.05
"""Part of the cost of one token that guesses must be expected to save: measured costs differ by some per cent."""


_CREDIT = 4.0
"""Evaluations of one token that a draft model may lose before it is not asked any more."""


def drafted(probability: float) -> Kind:
    """The kind of a token that a draft model found the likeliest, with this probability."""
    return next((kind for below, kind in _DRAFTED.items() if probability < below), Kind.DRAFTED_SURELY)


class Gain:
    """Decides for one answer.

    Args:
        every: seconds of an evaluation by the number of tokens, with the logits after each.

    Attributes:
        most: the most tokens of one evaluation, guesses included: more were not measured.
    """

    def __init__(self, every: Mapping[int, float]) -> None:
        self._every = every
        self._credit = _CREDIT * every[1]
        self.most = max(every)
        self._right = {kind: _PRIOR_WEIGHT * probability for kind, probability in _PRIORS.items()}
        self._made = dict.fromkeys(_PRIORS, _PRIOR_WEIGHT)

    def probability(self, kind: Kind) -> float:
        """The probability with which a guess of this kind comes true, if those before it did."""
        return self._right[kind] / self._made[kind]

    def best(self, kinds: Sequence[Kind], n_tokens: int) -> int:
        """The number of guesses, from the first on, that saves most time; 0 if none saves any.

        ``kinds``: those of the guesses; ``n_tokens``: tokens that are evaluated in any case.
        """
        return self._best([self.probability(kind) for kind in kinds], n_tokens, 0.0)

    @property
    def can_pay(self) -> bool:
        """Whether any number of guesses saves time if all of them come true."""
        return self._best([1.0] * (self.most - 1), 1, 0.0) > 0

    def is_draft_worthwhile(self, n_tokens: int, most: int, seconds: float) -> bool:
        """Whether at most ``most`` guesses that take ``seconds`` each are expected to save more than they cost.

        Not once a draft model has lost much time in this answer.
        """
        if self._credit < 0:
            return False
        right, made = (sum(each[kind] for kind in _DRAFTED_KINDS) for each in (self._right, self._made))
        mean = right / made
        return self._best([mean] * most, n_tokens, seconds) > 0

    def pays_to_draft(self, probability: float, seconds: float) -> bool:
        """Whether a guess that takes ``seconds`` could pay, if all before it come true with this probability."""
        return probability * self._every[1] > seconds

    def _best(self, probabilities: Sequence[float], n_tokens: int, seconds: float) -> int:
        """The best number of guesses that come true with these probabilities and cost so many seconds each to make."""
        one, plain = self._every[1], estimate(self._every, n_tokens)
        best, highest, saved, all_right = 0, _LEAST_GAIN * one, 0.0, 1.0
        for count, probability in enumerate(probabilities, 1):
            all_right *= probability
            saved += all_right * one
            gain = saved - (estimate(self._every, n_tokens + count) - plain) - count * seconds
            if gain > highest:
                best, highest = count, gain
        return best

    def spend(self, seconds: float) -> None:
        """Counts the time in which a draft model guessed."""
        self._credit -= seconds

    def record(self, kinds: Sequence[Kind], n_tokens: int, n_right: int) -> None:
        """Counts how many guesses of one evaluation came true.

        Nothing follows from the guesses after the first wrong one. ``n_tokens``: tokens that were evaluated in any
        case.
        """
        if kinds and kinds[0] in _DRAFTED_KINDS:
            costs = estimate(self._every, n_tokens + len(kinds)) - estimate(self._every, n_tokens)
            self._credit = min(_CREDIT * self._every[1], self._credit + n_right * self._every[1] - costs)
        for number, kind in enumerate(kinds[: n_right + 1]):
            self._right[kind] += number < n_right
            self._made[kind] += 1
