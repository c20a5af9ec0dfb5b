"""A tiny recurrent model (Mamba) with random weights, as a GGUF file."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, INNER, STATE, RANK, KERNEL, LAYERS = 64, 128, 16, 8, 4, 2
TOKENS = [b"<s>", b"</s>", *(bytes([byte]) for byte in range(256))]


def write_mamba(path: Path, seed: int = 0) -> None:
    """Writes the file. Its tokens are single bytes, its answers nonsense, but each depends on all tokens before it."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), "mamba")
    writer.add_context_length(1024)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(LAYERS)
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(RANK)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    texts = ["<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    writer.add_token_list(texts)
    writer.add_token_scores([0.0] * len(texts))
    kinds = [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    writer.add_token_types(kinds)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_space_prefix(False)

    def add(name: str, *shape: int, scale: float = 1.0) -> None:
        writer.add_tensor(name, (scale * rng.standard_normal(shape)).astype(np.float32))

    add("token_embd.weight", len(texts), WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    add("output.weight", len(texts), WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        writer.add_tensor(f"{block}.attn_norm.weight", np.ones(WIDTH, np.float32))
        add(f"{block}.ssm_in.weight", 2 * INNER, WIDTH, scale=0.3)
        add(f"{block}.ssm_conv1d.weight", INNER, KERNEL)
        add(f"{block}.ssm_conv1d.bias", INNER, scale=0.1)
        add(f"{block}.ssm_x.weight", RANK + 2 * STATE, INNER, scale=0.3)
        add(f"{block}.ssm_dt.weight", INNER, RANK, scale=0.3)
        add(f"{block}.ssm_dt.bias", INNER, scale=0.1)
        writer.add_tensor(f"{block}.ssm_a", -np.exp(rng.standard_normal((INNER, STATE))).astype(np.float32))
        writer.add_tensor(f"{block}.ssm_d", np.ones(INNER, np.float32))
        add(f"{block}.ssm_out.weight", WIDTH, INNER, scale=0.3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
