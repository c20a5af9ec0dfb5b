"""Log-probabilities of the tokens of an answer, and of the most likely tokens in their places.

They are the model's own: the softmax of its logits over the whole vocabulary, before masks, biases, penalties and the
temperature. So they say how likely the model itself finds each token, forced tokens included, and can be compared
between requests. Engines such as vLLM and llama.cpp's server report the same by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from constrain.llama.decoding.chosen import log_sum
from constrain.llama.decoding.token_logprob import TokenLogprob

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Logprobs:
    """The log-probabilities of the tokens of one answer.

    Args:
        top: how many of the most likely tokens to record for each place.
        describe: returns the text and the bytes of a token.

    Attributes:
        tokens: one record for each token of the answer that has been scored.
    """

    def __init__(self, top: int, describe: Callable[[int], tuple[str, bytes]]) -> None:
        self.tokens: list[TokenLogprob] = []
        self._top = top
        self._describe = describe

    def add(self, token: int, logits: NDArray[np.float32], total: float | None = None) -> None:
        """Records the next token of the answer; ``logits`` are those before it, float32 of shape (n_vocab,).

        ``total``: ``log_sum(logits)``, if it is known.
        """
        total = log_sum(logits) if total is None else total
        top = tuple(self._one(each, logits, total) for each in largest(logits, self._top))
        self.tokens.append(self._one(token, logits, total, top))

    def _one(
        self, token: int, logits: NDArray[np.float32], total: float, top: tuple[TokenLogprob, ...] = ()
    ) -> TokenLogprob:
        text, data = self._describe(token)
        return TokenLogprob(token, text, data, float(logits[token]) - total, top)


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
