"""Whether llama.cpp computes several tokens at once as it computes them one by one, on this processor."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np

import constrain

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALIKE = 1e-3
"""Differences of logits that may come from the order of sums."""

COARSE = 0.1
"""Difference of probabilities that other roundings may cause: weights of 4 bits magnify them."""


@cache
def rounds_alike() -> bool:
    """Whether the default model's logits are the same for tokens evaluated at once and one by one.

    On processors where they are not (seen with AVX512_BF16), results of trees and batches differ from those alone by
    more than the order of sums does, so that tests can only compare them coarsely.
    """
    with constrain.Model(n_ctx=256, n_threads=1) as model:
        assert model.vocabulary.encode is not None
        tokens = model.vocabulary.encode(b"The colours of the sky and of the grass are blue, grey and green.")
        return all(
            bool(np.abs(_logits(model, tokens, 1) - _logits(model, tokens, size)).max() < _ALIKE) for size in (4, 16)
        )


def tolerance(exact: float) -> float:
    """The tolerance of a comparison of probabilities: the exact one where llama.cpp rounds alike, or a coarse one."""
    return exact if rounds_alike() else COARSE


def _logits(model: constrain.Model, tokens: list[int], size: int) -> NDArray[np.float32]:
    """The logits after the tokens, evaluated so many at once."""
    model.llama.reset()
    for begin in range(0, len(tokens), size):
        model.llama.eval(tokens[begin : begin + size])
    pointer = llama_cpp.llama_get_logits_ith(model.llama.ctx, -1)
    logits = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (model.vocabulary.n_vocab,))
    return logits.copy()
