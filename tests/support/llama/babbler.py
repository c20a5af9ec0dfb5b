"""A tiny LLaMA of random weights with the vocabulary and the chat template of the ``demo`` extra's model.

Its answers are nonsense, and each token depends on all before it, the prompt too: that of `small` depends little on
prompts. A token takes about a millisecond.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

import numpy as np

import constrain
from tests.support import demo_model
from tests.support.llama.transformer import Tensor, kept_folder, llama_tensors, sizes

WIDTH, INNER, HEADS, LAYERS, VOCABULARY = 64, 128, 2, 2, 49_152
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
    rng = np.random.default_rng(0)
    scales = {"token_embd": 1.0, "output": 0.6}

    def make(name: str, *shape: int) -> Tensor:
        return scales.get(name, 0.25 if name.startswith("attn") else 0.2) * rng.standard_normal(shape, np.float32)

    numbers = {**sizes(WIDTH, INNER, HEADS, LAYERS), "general.file_type": 0}
    tensors = llama_tensors(make, VOCABULARY, WIDTH, INNER, LAYERS)
    return write_demo_like(kept_folder() / "babbler.gguf", numbers, tensors)


def write_demo_like(path: Path, numbers: dict[str, int], tensors: dict[str, Tensor]) -> Path:
    """Writes the metadata of the ``demo`` extra's model, with other numbers, and other tensors of 16 or 32 bits."""
    with demo_model().open("rb") as file:
        head = bytearray(file.read(4_000_000))
    del head[head.index(_string("token_embd.weight")) :]
    struct.pack_into("<Q", head, 8, len(tensors))
    for name, number in numbers.items():
        key = name if name.startswith("general.") else f"llama.{name}"
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
