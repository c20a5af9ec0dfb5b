"""Masks on logits: the kernel's against NumPy's, in every width and with every kind of word."""

from __future__ import annotations

import numpy as np
import pytest

from constrain.kernel import mask_logits
from tests.support import for_each


def masked_by_numpy(logits: np.ndarray, bitmask: np.ndarray) -> np.ndarray:
    rows, width = logits.shape
    bits = np.zeros((rows, width), bool)
    known = np.unpackbits(bitmask.view(np.uint8).reshape(rows, -1), axis=1, bitorder="little")[:, :width]
    bits[:, : known.shape[1]] = known
    return np.where(bits, logits, np.float32("-inf"))


@for_each("width", [1, 31, 32, 33, 64, 100, 1000])
@for_each("words", [0, 1, 2, 4, 32])
@for_each("rows", [1, 3])
def test_logits_are_masked_as_numpy_masks_them(rows: int, width: int, words: int) -> None:
    random = np.random.default_rng(rows * width + words)
    for density in (0.0, 0.01, 0.5, 1.0):
        logits = random.normal(size=(rows, width)).astype(np.float32)
        logits[random.random((rows, width)) < 0.2] = -np.inf
        bits = random.random((rows, words * 32)) < density
        bitmask = np.packbits(bits, axis=1, bitorder="little").view(np.uint32).reshape(rows, words)
        masked = np.full((rows, width), 7, np.float32)
        empty = mask_logits(logits.ravel(), bitmask.ravel(), masked.ravel(), rows, width, words)
        expected = masked_by_numpy(logits, bitmask)
        assert np.array_equal(masked, expected)
        without = np.flatnonzero(np.isneginf(expected).all(axis=1))
        assert empty == (without[0] if len(without) else -1)


def test_what_is_no_number_counts_as_left() -> None:
    logits = np.array([np.nan, 1], np.float32)
    masked = np.zeros(2, np.float32)
    assert mask_logits(logits, np.array([1], np.uint32), masked, 1, 2, 1) == -1
    assert np.isnan(masked[0])
    assert np.isneginf(masked[1])


def test_other_buffers_are_refused() -> None:
    logits, bitmask, masked = np.zeros(4, np.float32), np.zeros(1, np.uint32), np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="logits must have shape"):
        mask_logits(logits, bitmask, masked, 2, 4, 1)
    with pytest.raises(ValueError, match="bitmask must have shape"):
        mask_logits(logits, bitmask, masked, 1, 4, 2)
    with pytest.raises(ValueError, match="float32"):
        mask_logits(logits.astype(np.float64), bitmask, masked, 1, 4, 1)
    masked.flags.writeable = False
    with pytest.raises(TypeError, match="writable"):
        mask_logits(logits, bitmask, masked, 1, 4, 1)
