"""How many guesses are worth their cost: by measured costs, and by how many guesses came true so far.

If each guess comes true with probability p, given those before it, then k guesses save p + p² + ... + pᵏ evaluations of
one token, and they make one evaluation more expensive.
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


_PRIORS = {
    Kind.FOUND_AFTER_THREE: 0.85,
    Kind.FOUND_AFTER_TWO: 0.5,
}
"""The probability with which guesses come true, before any was made."""

_PRIOR_WEIGHT = 5.0
"""Guesses that these probabilities count for."""

_LEAST_GAIN = 0.05
"""Part of the cost of one token that guesses must be expected to save: measured costs differ by some per cent."""


class Gain:
    """Decides for one answer.

    Args:
        every: seconds of an evaluation by the number of tokens, with the logits after each.

    Attributes:
        most: the most tokens of one evaluation, guesses included: more were not measured.
    """

    def __init__(self, every: Mapping[int, float]) -> None:
        self._every = every
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
        return self._best([self.probability(kind) for kind in kinds], n_tokens)

    @property
    def can_pay(self) -> bool:
        """Whether any number of guesses saves time if all of them come true."""
        return self._best([1.0] * (self.most - 1), 1) > 0

    def _best(self, probabilities: Sequence[float], n_tokens: int) -> int:
        """The best number of guesses that come true with these probabilities."""
        one, plain = self._every[1], estimate(self._every, n_tokens)
        best, highest, saved, all_right = 0, _LEAST_GAIN * one, 0.0, 1.0
        for count, probability in enumerate(probabilities, 1):
            all_right *= probability
            saved += all_right * one
            gain = saved - (estimate(self._every, n_tokens + count) - plain)
            if gain > highest:
                best, highest = count, gain
        return best

    def record(self, kinds: Sequence[Kind], n_right: int) -> None:
        """Counts how many guesses of one evaluation came true.

        Nothing follows from the guesses after the first wrong one.
        """
        for number, kind in enumerate(kinds[: n_right + 1]):
            self._right[kind] += number < n_right
            self._made[kind] += 1
