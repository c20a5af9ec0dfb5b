"""A tiny recurrent model (Mamba) with random weights, as a GGUF file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.llama.transformer import Tensor, write_model

WIDTH, INNER, STATE, RANK, KERNEL, LAYERS = 64, 128, 16, 8, 4, 2
TOKENS = [b"<s>", b"</s>", *(bytes([byte]) for byte in range(256))]


def write_mamba(path: Path, seed: int = 0) -> None:
    """Writes the file. Its tokens are single bytes, its answers nonsense, but each depends on all tokens before it."""
    rng = np.random.default_rng(seed)

    def made(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    numbers = {"context_length": 1024, "embedding_length": WIDTH, "feed_forward_length": 0, "attention.head_count": 0}
    numbers |= {"block_count": LAYERS, "ssm.conv_kernel": KERNEL, "ssm.inner_size": INNER, "ssm.state_size": STATE}
    norm = np.ones(WIDTH, np.float32)
    tensors = {"token_embd.weight": made(len(TOKENS), WIDTH), "output_norm.weight": norm}
    tensors["output.weight"] = made(len(TOKENS), WIDTH)
    for layer in range(LAYERS):
        block = {
            "attn_norm.weight": norm,
            "ssm_in.weight": made(2 * INNER, WIDTH, scale=0.3),
            "ssm_conv1d.weight": made(INNER, KERNEL),
            "ssm_conv1d.bias": made(INNER, scale=0.1),
            "ssm_x.weight": made(RANK + 2 * STATE, INNER, scale=0.3),
            "ssm_dt.weight": made(INNER, RANK, scale=0.3),
            "ssm_dt.bias": made(INNER, scale=0.1),
            "ssm_a": -np.exp(rng.standard_normal((INNER, STATE))).astype(np.float32),
            "ssm_d": np.ones(INNER, np.float32),
            "ssm_out.weight": made(WIDTH, INNER, scale=0.3),
        }
        tensors |= {f"blk.{layer}.{name}": values for name, values in block.items()}
    write_model(path, "mamba", {**numbers, "ssm.time_step_rank": RANK}, tensors)
