"""How far a copy of a model is from the original, measured on texts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from constrain.llama.weights.evaluating import TextEvaluator

if TYPE_CHECKING:
    from collections.abc import Iterable

    import llama_cpp
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Comparison:
    """A copy of a model against the original.

    Attributes:
        perplexity: of the original on the texts, and of the copy: the lower, the better the text was expected.
        agreement: share of tokens after which both find the same next token likeliest.
        divergence: mean Kullback-Leibler divergence of the copy's probabilities from the original's, in nats a token.
        n_tokens: tokens that were compared.
    """

    perplexity: tuple[float, float]
    agreement: float
    divergence: float
    n_tokens: int


def compare(
    original: llama_cpp.Llama, copy: llama_cpp.Llama, texts: Iterable[str], max_tokens: int | None = None
) -> Comparison:
    """Compares two loaded models with the same vocabulary. Raises ``ModelError`` as ``TextEvaluator`` does.

    ``max_tokens``: tokens after which no further text is read; ``None`` for no limit.
    """
    losses = np.zeros(2)
    equal = tokens = predicted = 0
    divergence = 0.0
    with TextEvaluator(original) as one, TextEvaluator(copy) as other:
        for text in texts:
            if max_tokens is not None and tokens >= max_tokens:
                break
            read = one.tokens(text)
            done = 0
            for logits, copied in zip(one.logits(read), other.logits(read), strict=True):
                expected, found = _log_probabilities(logits), _log_probabilities(copied)
                following = read[done + 1 : done + 1 + len(logits)]
                rows = np.arange(len(following))
                losses -= expected[rows, following].sum(), found[rows, following].sum()
                divergence += float((np.exp(expected) * (expected - found)).sum())
                equal += int((expected.argmax(1) == found.argmax(1)).sum())
                tokens += len(logits)
                predicted += len(following)
                done += len(logits)
    means = losses / max(1, predicted)
    return Comparison(
        (math.exp(means[0]), math.exp(means[1])), equal / max(1, tokens), divergence / max(1, tokens), tokens
    )


def _log_probabilities(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logarithms of the probabilities of logits, of the same shape (n, n_vocab)."""
    shifted = logits - logits.max(1, keepdims=True)
    result: NDArray[np.float32] = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return result
