"""A tiny transformer (Llama's architecture) with random weights, as a GGUF file."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import gguf
import numpy as np

from tests.support import demo_model

WIDTH, INNER, HEADS, LAYERS = 256, 512, 4, 2


def write_transformer(path: Path, *, seed: int = 0, tied: bool = False, half: bool = True) -> Path:
    """Writes the file. Its tokens are single bytes, its answers nonsense. ``half``: matrices have 16 bits, not 32."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_block_count(LAYERS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    texts = ["<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    writer.add_token_list(texts)
    writer.add_token_scores([0.0] * len(texts))
    writer.add_token_types([gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_space_prefix(False)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, (0.1 * rng.standard_normal(shape)).astype(np.float16 if half else np.float32))

    def add_norm(name: str) -> None:
        writer.add_tensor(name, np.ones(WIDTH, np.float32))

    add("token_embd.weight", len(texts), WIDTH)
    add_norm("output_norm.weight")
    if not tied:
        add("output.weight", len(texts), WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        add_norm(f"{block}.attn_norm.weight")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"{block}.{name}.weight", WIDTH, WIDTH)
        add_norm(f"{block}.ffn_norm.weight")
        add(f"{block}.ffn_gate.weight", INNER, WIDTH)
        add(f"{block}.ffn_up.weight", INNER, WIDTH)
        add(f"{block}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@cache
def tiny_file() -> Path:
    """A model of this kind, in a package that has the name of the ``demo`` extra's; it answers in milliseconds.

    Where the folder of the package comes first on Python's path, no model named means this one.
    """
    folder = tempfile.TemporaryDirectory()
    _kept.append(folder)
    package = Path(folder.name) / demo_model().parent.name
    package.mkdir()
    (package / "__init__.py").touch()
    return write_transformer(package / demo_model().name)


_kept: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that are removed when the process ends."""
