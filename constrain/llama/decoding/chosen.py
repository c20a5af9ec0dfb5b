"""The choices of an answer: how likely each chosen token was among the allowed ones, and what else was likely.

A choice is a place where the mask allows several tokens. Probabilities are those of the model's own distribution,
before biases, penalties and the temperature, restricted to the allowed tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

COMPARED_TOKENS = 4096
"""Allowed tokens of a choice that are looked at one by one; a choice among more is one in the middle of free text."""

_KEPT = 16
"""Likeliest allowed tokens that a choice keeps."""

_LEAST_KEPT = 1e-4
"""Probability below which a token is not kept."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of an answer.

    Attributes:
        index: number of the chosen token in the answer. Where forced text follows, the tokens that stand there in the
            end may be others with the same beginning.
        token: id of the chosen token.
        logprob: natural logarithm of its probability among the allowed tokens.
        mass: natural logarithm of the probability that the model gives to all allowed tokens together.
        likely: ids of the likeliest allowed tokens, with their probabilities among the allowed ones; the likeliest
            first. Empty where more than ``COMPARED_TOKENS`` are allowed.
    """

    index: int
    token: int
    logprob: float
    mass: float
    likely: tuple[tuple[int, float], ...]


class Choices:
    """Records the choices of one answer.

    Attributes:
        made: the choices so far, in order.
    """

    def __init__(self) -> None:
        self.made: list[Choice] = []
        self._mass = self._allowed = 0.0
        self._likely: tuple[tuple[int, float], ...] = ()

    def see(self, candidates: NDArray[Any], total: float) -> None:
        """Takes the allowed tokens of a choice with their logits, an array of ``CANDIDATE``, before a sampler does.

        ``total``: ``log_sum`` of the logits of all tokens.
        """
        allowed = np.ascontiguousarray(candidates["logit"])
        if 1 < len(allowed) <= COMPARED_TOKENS:
            self._likely, self._allowed = likeliest(candidates["id"], allowed)
        else:
            self._likely, self._allowed = (), log_sum(allowed)
        self._mass = min(0.0, self._allowed - total)

    def take(self, index: int, token: int, logits: NDArray[np.float32]) -> None:
        """Records the choice of a token as number ``index`` of the answer; ``logits`` are those of all tokens."""
        logprob = min(0.0, float(logits[token]) - self._allowed)
        self.made.append(Choice(index, token, logprob, self._mass, self._likely))

    def at(self, index: int) -> Choice | None:
        """Returns the choice of the token with this number; ``None`` if it was not chosen. Finds late ones soon."""
        for choice in reversed(self.made):
            if choice.index <= index:
                return choice if choice.index == index else None
        return None

    def cut(self, length: int) -> None:
        """Removes the choices behind the first ``length`` tokens of the answer."""
        while self.made and self.made[-1].index >= length:
            self.made.pop()


def likeliest(tokens: NDArray[Any], logits: NDArray[np.float32]) -> tuple[tuple[tuple[int, float], ...], float]:
    """Returns the likeliest of some tokens, with their probabilities among these, and the ``log_sum`` of the logits.

    ``tokens``, ``logits``: ids and logits of all that are allowed, of one length.
    """
    total = log_sum(logits)
    found = np.flatnonzero(logits >= total + math.log(_LEAST_KEPT))
    order = found[np.argsort(-logits[found], kind="stable")[:_KEPT]]
    return tuple((int(tokens[place]), math.exp(float(logits[place]) - total)) for place in order), total


def log_sum(logits: NDArray[np.float32]) -> float:
    """Returns the logarithm of the sum of the exponentials of some logits, summed in double precision."""
    highest = float(logits.max())
    shifted = logits - highest
    return highest + math.log(float(np.exp(shifted, out=shifted).sum(dtype=np.float64)))
