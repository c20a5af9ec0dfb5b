"""Masks on torch tensors are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from constrain.engine.torch_masks import apply_token_bitmask

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow  # imports torch


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("width", [1, 31, 32, 33, 96, 100, 140])
def test_bits_that_are_0_become_minus_infinity(dtype: str, width: int) -> None:
    rng = np.random.default_rng(width)
    words = rng.integers(0, 1 << 32, (5, 3), dtype=np.uint32)
    allowed = np.zeros((5, 160), bool)
    allowed[:, :96] = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")
    scores = torch.randn(5, width).to(getattr(torch, dtype))
    before = scores.clone()
    masked = apply_token_bitmask(scores, torch.from_numpy(words.view(np.int32)))
    kept = torch.from_numpy(allowed[:, :width])
    assert (masked.dtype, masked.shape) == (scores.dtype, scores.shape)
    assert torch.equal(masked[kept], scores[kept])
    assert torch.isneginf(masked[~kept]).all()
    assert torch.equal(scores, before)


def test_rows_that_are_parts_of_other_tensors() -> None:
    words = torch.tensor([[1, -1], [2, 0], [-1, -1]], dtype=torch.int32)[::2]
    scores = torch.zeros(4, 128)[::2, ::2]
    masked = apply_token_bitmask(scores, words)
    assert torch.isfinite(masked).sum(-1).tolist() == [33, 64]


def test_other_types_and_shapes_are_named() -> None:
    words = torch.zeros(2, 1, dtype=torch.int32)
    with pytest.raises(TypeError, match=r"scores are torch\.int64; they must be floats"):
        apply_token_bitmask(torch.zeros(2, 32, dtype=torch.int64), words)
    with pytest.raises(TypeError, match=r"bitmask is torch\.int64; it must be torch\.int32"):
        apply_token_bitmask(torch.zeros(2, 32), words.long())
    with pytest.raises(ValueError, match="one row for each row of the scores"):
        apply_token_bitmask(torch.zeros(3, 32), words)
