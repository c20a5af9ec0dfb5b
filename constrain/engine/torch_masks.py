"""Masks on torch tensors: bits that are 0 become minus infinity, on the device of the logits."""

from __future__ import annotations

from typing import Any

from constrain.kernel import mask_logits


def apply_token_bitmask(scores: Any, bitmask: Any) -> Any:
    """Returns scores with minus infinity for each token whose bit is 0.

    Only the bitmask is copied to the device of the scores, an eighth of a byte for each token.

    Args:
        scores: a tensor of floats, shape (..., V), on any device.
        bitmask: a contiguous int32 tensor, shape (..., words), on any device: bit ``t % 32`` of word ``t // 32`` stands
            for token ``t``, as ``Matcher.fill_bitmask`` writes it. Tokens beyond the words are masked.

    Returns:
        A new tensor with the shape, type and device of ``scores``.

    Raises ``TypeError`` for scores that are not floats or a bitmask of another type, ``ValueError`` for other shapes.
    """
    return mask_rows(scores, bitmask)[0]


def mask_rows(scores: Any, bitmask: Any) -> tuple[Any, int | None]:
    """Returns what ``apply_token_bitmask`` returns, and the number of a row without a token left; ``None`` for none.

    Rows count from 0, over all dimensions but the last.
    """
    import torch

    if not scores.is_floating_point():
        raise TypeError(f"scores are {scores.dtype}; they must be floats, since masked ones are minus infinity")
    if bitmask.dtype != torch.int32:
        raise TypeError(f"the bitmask is {bitmask.dtype}; it must be torch.int32")
    if scores.shape[:-1] != bitmask.shape[:-1]:
        raise ValueError(
            f"scores have the shape {tuple(scores.shape)}, but the bitmask has {tuple(bitmask.shape)}: "
            f"it needs one row for each row of the scores"
        )
    if scores.device.type == "cpu" and scores.dtype == torch.float32 and not scores.requires_grad:
        return _mask_in_kernel(scores, bitmask)
    width = scores.shape[-1]
    packed = bitmask.to(scores.device).contiguous().view(torch.uint8).unsqueeze(-1)
    places = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=scores.device)
    masked = (packed & places).eq(0).flatten(-2)[..., :width]
    beyond = width - masked.shape[-1]
    if beyond:
        masked = torch.nn.functional.pad(masked, (0, beyond), value=True)
    filled = scores.masked_fill(masked, float("-inf"))
    empty = filled.amax(-1).eq(float("-inf")).flatten()
    return filled, int(empty.nonzero()[0]) if empty.any() else None


def _mask_in_kernel(scores: Any, bitmask: Any) -> tuple[Any, int | None]:
    """Returns what ``mask_rows`` returns, for floats of 32 bits in main memory: one pass over them, without torch."""
    import torch

    masked = torch.empty_like(scores, memory_format=torch.contiguous_format)
    width, words = scores.shape[-1], bitmask.shape[-1]
    before, bits, after = (each.contiguous().cpu().numpy().reshape(-1) for each in (scores, bitmask, masked))
    empty = mask_logits(before, bits, after, scores.numel() // max(width, 1), width, words)
    return masked, None if empty < 0 else empty
