"""A tiny LLaMA of random weights with the vocabulary and the chat template of the ``demo`` extra's model.

Its answers are nonsense, and each token depends on all before it, the prompt too: that of `small` depends little on
prompts. A token takes about a millisecond.
"""

from __future__ import annotations

import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import constrain
from tests.support import demo_model

WIDTH, INNER, HEADS, LAYERS, VOCABULARY = 64, 128, 2, 2, 49_152
NUMBERS = {
    "llama.block_count": LAYERS,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": HEADS,
    "llama.rope.dimension_count": WIDTH // HEADS,
    "general.file_type": 0,
}
ALIGNMENT = 32


def babbler(*, n_ctx: int = 1024, parallel: int = 1, **options: object) -> constrain.Model:
    """A model that babbles, new at every call."""
    return constrain.Model(babbler_file(), n_ctx=n_ctx, n_threads=1, parallel=parallel, **options)  # type: ignore[arg-type]


@cache
def shared_babbler() -> constrain.Model:
    """The model that the tests of a process share, where none of them closes it."""
    return babbler()


@cache
def babbler_file() -> Path:
    """The file of the model, written once for a process."""
    folder = tempfile.TemporaryDirectory()
    _kept.append(folder)
    return write_demo_like(Path(folder.name) / "babbler.gguf", NUMBERS, _tensors())


_kept: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that are removed when the process ends."""


def write_demo_like(path: Path, numbers: dict[str, int], tensors: dict[str, np.ndarray]) -> Path:
    """Writes the metadata of the ``demo`` extra's model, with other numbers, and other tensors of 16 or 32 bits."""
    with demo_model().open("rb") as file:
        head = bytearray(file.read(4_000_000))
    del head[head.index(_string("token_embd.weight")) :]
    struct.pack_into("<Q", head, 8, len(tensors))
    for key, number in numbers.items():
        struct.pack_into("<I", head, head.index(_string(key)) + len(_string(key)) + 4, number)
    data = bytearray()
    for name, values in tensors.items():
        kind = 0 if values.dtype == np.float32 else 1
        sizes = values.shape[::-1]
        head += _string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, len(data))
        data += values.tobytes() + bytes(-values.nbytes % ALIGNMENT)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + data)
    return path


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _tensors() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    rng = np.random.default_rng(0)

    def matrix(rows: int, columns: int, scale: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return scale * rng.standard_normal((rows, columns), np.float32)

    ones = np.ones(WIDTH, np.float32)
    found = {"token_embd.weight": matrix(VOCABULARY, WIDTH, 1.0), "output_norm.weight": ones}
    found["output.weight"] = matrix(VOCABULARY, WIDTH, 0.6)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        found[f"{block}.attn_norm.weight"] = found[f"{block}.ffn_norm.weight"] = ones
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            found[f"{block}.{name}.weight"] = matrix(WIDTH, WIDTH, 0.25)
        for name, rows, columns in (("gate", INNER, WIDTH), ("up", INNER, WIDTH), ("down", WIDTH, INNER)):
            found[f"{block}.ffn_{name}.weight"] = matrix(rows, columns, 0.2)
    return found
