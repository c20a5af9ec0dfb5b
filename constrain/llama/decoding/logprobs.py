"""Log-probabilities of the tokens of an answer, and of the tokens most likely in their places.

They are the model's own: the softmax of its logits over the whole vocabulary, before masks, biases, penalties and the
temperature. So they say how likely the model itself finds what it was made to write, forced tokens included, and they
can be compared between requests. Engines such as vLLM and llama.cpp's server tell the same unless asked otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from constrain.llama.decoding.token_logprob import TokenLogprob

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Logprobs:
    """What the model said of the tokens of one answer.

    Args:
        top: how many of the most likely tokens to tell for each place.
        describe: the text and the bytes of a token.

    Attributes:
        tokens: one for each token of the answer, as far as they are known.
    """

    def __init__(self, top: int, describe: Callable[[int], tuple[str, bytes]]) -> None:
        self.tokens: list[TokenLogprob] = []
        self._top = top
        self._describe = describe

    def add(self, token: int, logits: NDArray[np.float32]) -> None:
        """Notes the next token of the answer, before which the model said these logits (n_vocab of them)."""
        highest = float(logits.max())
        total = highest + float(np.log(np.exp(logits - highest).sum(dtype=np.float64)))
        top = tuple(self._one(each, logits, total) for each in _largest(logits, self._top))
        self.tokens.append(self._one(token, logits, total, top))

    def _one(
        self, token: int, logits: NDArray[np.float32], total: float, top: tuple[TokenLogprob, ...] = ()
    ) -> TokenLogprob:
        text, data = self._describe(token)
        return TokenLogprob(token, text, data, float(logits[token]) - total, top)


def _largest(logits: NDArray[np.float32], count: int) -> list[int]:
    """The tokens with the largest logits, largest first; of equal ones the smaller id."""
    if count == 0:
        return []
    count = min(count, len(logits))
    least = np.partition(logits, -count)[-count]
    found = np.flatnonzero(logits >= least)
    order = np.argsort(-logits[found], kind="stable")
    return [int(token) for token in found[order[:count]]]
