"""The model's own distribution in one place of an answer, before masks, biases, penalties and the temperature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Distribution:
    """The softmax of the logits of one place over the whole vocabulary.

    Attributes:
        logits: float32 of shape (n_vocab,).
    """

    __slots__ = ("_total", "logits")

    def __init__(self, logits: NDArray[np.float32]) -> None:
        self.logits = logits
        self._total: float | None = None

    @property
    def total(self) -> float:
        """The ``log_sum`` of the logits, computed at first use."""
        if self._total is None:
            self._total = log_sum(self.logits)
        return self._total

    def logprob(self, token: int) -> float:
        """Returns the natural logarithm of a token's probability."""
        return float(self.logits[token]) - self.total


def log_sum(logits: NDArray[np.float32]) -> float:
    """Returns the logarithm of the sum of the exponentials of some logits, summed in double precision."""
    highest = float(logits.max())
    shifted = logits - highest
    return highest + math.log(float(np.exp(shifted, out=shifted).sum(dtype=np.float64)))


_BLOCK = 64
"""Logits of a block, of which only the largest is looked at first: a vocabulary has hundreds of blocks."""


def largest(logits: NDArray[np.float32], count: int) -> list[int]:
    """Returns the places of the largest logits, largest first; of equal logits the smaller place first."""
    count = min(count, len(logits))
    if count == 0:
        return []
    found = np.flatnonzero(logits >= _bound(logits, count))
    order = np.argsort(-logits[found], kind="stable")
    return [int(place) for place in found[order[:count]]]


def _bound(logits: NDArray[np.float32], count: int) -> np.float32:
    """Returns a number that ``count`` logits or more reach, and hardly more than that.

    It is the smallest of the largest logits of the blocks that have the ``count`` greatest ones.
    """
    blocks = len(logits) // _BLOCK
    values = logits[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1) if blocks >= count else logits
    bound: np.float32 = np.partition(values, -count)[-count]
    return bound
