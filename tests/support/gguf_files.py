"""GGUF files that hold a vocabulary and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gguf

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def write_gguf(
    path: Path,
    model: str,
    tokens: Sequence[bytes],
    types: Sequence[int] | None = None,
    *,
    numbers: dict[str, int] | None = None,
    pre: str | None = None,
    rows: int = 0,
) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(list(tokens))
    if types is not None:
        writer.add_token_types(list(types))
    for key, number in (numbers or {"tokenizer.ggml.eos_token_id": len(tokens) - 1}).items():
        writer.add_uint32(key, number)
    if rows:
        import numpy as np

        writer.add_tensor("token_embd.weight", np.zeros((rows, 4), np.float32))
    finish(writer)
    return path


def finish(writer: gguf.GGUFWriter) -> None:
    """Writes all that was added, and closes the file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
