"""How much memory a model is going to take, reckoned from its file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrain.errors import ModelError
from constrain.llama.contexts.slots import ASIDE_PART
from constrain.llama.loading import context_size
from constrain.vocabulary.gguf.metadata import read_metadata

if TYPE_CHECKING:
    from pathlib import Path

    from constrain.vocabulary.gguf.metadata import Metadata

_CELL_BYTES = 2
"""Keys and values are 16-bit floats."""

_BESIDE = 64 << 20
"""Bytes for the vocabulary, and for what evaluating takes: what small and middle-sized models were seen to have."""

_FIRST_PART = re.compile(r"(.*)-00001-of-(\d{5})\.gguf")


def memory_needed(path: Path, n_ctx: int | None, parallel: int) -> int:
    """Bytes that ``Model(path, n_ctx=n_ctx, parallel=parallel)`` takes at most: weights, and KV caches.

    Wherever these are, in main memory or a GPU's. Raises ``ModelError`` if the file is no model.
    """
    metadata = read_metadata(path, arrays=_array_keys(read_metadata(path)))
    weights = sum(part.stat().st_size for part in _parts(path))
    beside = 2  # for calls that have the model alone, and for embeddings
    tokens = context_size(metadata, n_ctx)
    cells = tokens * (beside + parallel) + tokens * parallel // ASIDE_PART
    return weights + cells * _cell_bytes(metadata) + _BESIDE


def _parts(path: Path) -> list[Path]:
    """The files of a model, which may have been split."""
    split = _FIRST_PART.fullmatch(path.name)
    if split is None:
        return [path]
    name, count = split.groups()
    parts = [path.with_name(f"{name}-{number:05}-of-{count}.gguf") for number in range(1, int(count) + 1)]
    return [part for part in parts if part.is_file()]


def _array_keys(metadata: Metadata) -> tuple[str, ...]:
    architecture = metadata.text("general.architecture")
    return (f"{architecture}.attention.head_count_kv", f"{architecture}.attention.head_count")


def _cell_bytes(metadata: Metadata) -> int:
    """Bytes of one token in the KV cache; 0 for models that have none."""
    architecture = metadata.text("general.architecture")

    def number(key: str) -> int:
        return metadata.integer(f"{architecture}.{key}") or 0

    layers = number("block_count")
    heads_key, kv_key = (f"{architecture}.attention.{name}" for name in ("head_count", "head_count_kv"))
    heads = metadata.integers(heads_key) or 0
    kv_heads = metadata.integers(kv_key)
    if kv_heads is None:
        kv_heads = heads
    most_heads = heads if isinstance(heads, int) else max(heads)
    if not most_heads:
        return 0
    in_all_layers = layers * kv_heads if isinstance(kv_heads, int) else sum(kv_heads)
    width = number("embedding_length") // most_heads
    keys, values = number("attention.key_length") or width, number("attention.value_length") or width
    least = kv_heads if isinstance(kv_heads, int) else min(kv_heads, default=0)
    if min(layers, most_heads, least, keys, values) < 0:
        raise ModelError(f"{metadata.path}: damaged: a negative number of layers or heads, or a negative width")
    return in_all_layers * (keys + values) * _CELL_BYTES
