"""A tiny LLaMA of random weights with the vocabulary and the chat template of the ``demo`` extra's model.

Its answers are nonsense, and each token depends on all before it. A token takes about a millisecond.
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
    path = Path(folder.name) / "babbler.gguf"
    tensors = _tensors()
    with path.open("wb") as file:
        file.write(_metadata(len(tensors)))
        offset = 0
        for name, values in tensors.items():
            sizes = values.shape[::-1]
            file.write(struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(sizes)))
            file.write(struct.pack(f"<{len(sizes)}QIQ", *sizes, 0, offset))
            offset += -(-values.nbytes // ALIGNMENT) * ALIGNMENT
        for values in tensors.values():
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(values.tobytes())
    return path


_kept: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that are removed when the process ends."""


def _metadata(tensors: int) -> bytes:
    """What stands in front of the tensors of the ``demo`` extra's model, with other numbers."""
    with demo_model().open("rb") as file:
        head = bytearray(file.read(4_000_000))
    first = b"token_embd.weight"
    del head[head.index(struct.pack("<Q", len(first)) + first) :]
    struct.pack_into("<Q", head, 8, tensors)
    for key, number in NUMBERS.items():
        struct.pack_into("<I", head, head.index(struct.pack("<Q", len(key)) + key.encode()) + 8 + len(key) + 4, number)
    return bytes(head)


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
