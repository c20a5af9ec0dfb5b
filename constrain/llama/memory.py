"""The memory that a model will take, estimated from its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import ModelError
from constrain.llama.contexts.slots import STORED_STATES_SHARE
from constrain.llama.loading import context_size
from constrain.llama.prompt_cache.prompts import WAITING_STATES
from constrain.vocabulary.gguf.files import model_files
from constrain.vocabulary.gguf.metadata import read_metadata

if TYPE_CHECKING:
    from pathlib import Path

    from constrain.vocabulary.gguf.metadata import Metadata

_CELL_BYTES = 2
"""Bytes of one number in the KV cache: keys and values are 16-bit floats."""

_OTHER_BYTES = 64 << 20
"""Bytes for the vocabulary and for buffers of evaluation, as measured with small and middle-sized models."""


def memory_needed(path: Path, n_ctx: int | None, parallel: int) -> int:
    """Bytes that ``Model(path, n_ctx=n_ctx, parallel=parallel)`` takes at most: weights and KV caches.

    Counts main memory and GPU memory alike. Raises ``ModelError`` if the file is not a model.
    """
    metadata = read_metadata(path, arrays=_array_keys(read_metadata(path)))
    weights = sum(part.stat().st_size for part in model_files(path))
    extra = 2  # one context for calls that have the model alone, one for embeddings
    tokens = context_size(metadata, n_ctx)
    cells = tokens * (extra + parallel + WAITING_STATES) + tokens * parallel // STORED_STATES_SHARE
    return weights + cells * _cell_bytes(metadata) + _OTHER_BYTES


def _array_keys(metadata: Metadata) -> tuple[str, ...]:
    architecture = metadata.text("general.architecture")
    return (f"{architecture}.attention.head_count_kv", f"{architecture}.attention.head_count")


def _cell_bytes(metadata: Metadata) -> int:
    """Bytes of one token in the KV cache; 0 for models without one."""
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
