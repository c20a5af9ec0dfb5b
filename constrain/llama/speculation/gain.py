"""How many guesses are worth their cost: by measured costs, and by how many guesses came true so far.

If each guess comes true with probability p, given those before it, then k guesses save p + p² + ... + pᵏ evaluations of
one token, and they make one evaluation dearer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.llama.costs.table import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

_BELIEFS = {3: (9.0, 10.0), 2: (5.0, 10.0)}
"""Guesses that count as right, and as made, before the first one, by the number of tokens that were found."""

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
        self._right = {length: right for length, (right, _) in _BELIEFS.items()}
        self._made = {length: made for length, (_, made) in _BELIEFS.items()}

    def best(self, length: int, n_tokens: int, most: int) -> int:
        """The number of guesses, at most ``most``, that saves most time; 0 if none saves any.

        ``length``: number of tokens that were found; ``n_tokens``: tokens that are evaluated in any case.
        """
        one, plain = self._every[1], estimate(self._every, n_tokens)
        probability = self._right[length] / self._made[length]
        best, highest, saved = 0, _LEAST_GAIN * one, 0.0
        for count in range(1, most + 1):
            saved += probability**count * one
            gain = saved - (estimate(self._every, n_tokens + count) - plain)
            if gain > highest:
                best, highest = count, gain
        return best

    def record(self, length: int, n_guessed: int, n_right: int) -> None:
        """Counts the guesses of one evaluation; those behind the first wrong one tell nothing."""
        self._right[length] += n_right
        self._made[length] += min(n_guessed, n_right + 1)
