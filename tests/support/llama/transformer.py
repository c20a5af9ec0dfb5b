"""Tiny models of random weights as GGUF files; the one of this module is a transformer (Llama's architecture)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tests.support import demo_model
from tests.support.gguf_files import BYTE, CONTROL, finish

Tensor = np.ndarray[Any, Any]

WIDTH, INNER, HEADS, LAYERS = 256, 512, 4, 2
SPECIAL = ("<s>", "</s>")


def write_model(
    path: Path,
    architecture: str,
    numbers: Mapping[str, int],
    tensors: Mapping[str, Tensor],
    *,
    special: Sequence[str] = SPECIAL,
    eos: int = 1,
) -> Path:
    """Writes a file with numbers of the architecture. Its tokens are special ones and single bytes."""
    writer = gguf.GGUFWriter(str(path), architecture)
    for name, number in numbers.items():
        writer.add_uint32(f"{architecture}.{name}", number)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*special, *(f"<0x{byte:02X}>" for byte in range(256))])
    writer.add_token_scores([0.0] * (len(special) + 256))
    writer.add_token_types([CONTROL] * len(special) + [BYTE] * 256)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(eos)
    writer.add_add_space_prefix(False)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    finish(writer)
    return path


def sizes(width: int, inner: int, heads: int, layers: int) -> dict[str, int]:
    """The numbers of a file that say how large a transformer is."""
    heads_of = {f"attention.head_count{name}": heads for name in ("", "_kv")}
    lengths = {"embedding_length": width, "feed_forward_length": inner}
    return {"block_count": layers, **lengths, **heads_of, "rope.dimension_count": width // heads}


def llama_tensors(
    make: Callable[[str, int, int], Tensor], n_vocab: int, width: int, inner: int, layers: int, *, tied: bool = False
) -> dict[str, Tensor]:
    """All weights of a transformer; ``make`` makes a matrix with a name."""
    norm = np.ones(width, np.float32)
    found = {"token_embd": make("token_embd", n_vocab, width), "output_norm": norm}
    if not tied:
        found["output"] = make("output", n_vocab, width)
    shapes = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (width, width))
    shapes |= {"ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}
    for layer in range(layers):
        block = {"attn_norm": norm, "ffn_norm": norm, **{name: make(name, *shape) for name, shape in shapes.items()}}
        found |= {f"blk.{layer}.{name}": values for name, values in block.items()}
    return {f"{name}.weight": values for name, values in found.items()}


def write_transformer(path: Path, *, seed: int = 0, tied: bool = False, half: bool = True) -> Path:
    """Writes the file. Its answers are nonsense. ``half``: matrices have 16 bits, not 32."""
    rng = np.random.default_rng(seed)

    def make(_: str, *shape: int) -> Tensor:
        return (0.1 * rng.standard_normal(shape)).astype(np.float16 if half else np.float32)

    tensors = llama_tensors(make, len(SPECIAL) + 256, WIDTH, INNER, LAYERS, tied=tied)
    return write_model(path, "llama", {"context_length": 4096, **sizes(WIDTH, INNER, HEADS, LAYERS)}, tensors)


@cache
def tiny_file() -> Path:
    """A model of this kind, in a package that has the name of the ``demo`` extra's; it answers in milliseconds.

    Where the folder of the package comes first on Python's path, no model named means this one.
    """
    package = kept_folder() / demo_model().parent.name
    package.mkdir()
    (package / "__init__.py").touch()
    return write_transformer(package / demo_model().name)


def kept_folder() -> Path:
    """A folder that is removed when the process ends."""
    _kept.append(tempfile.TemporaryDirectory())
    return Path(_kept[-1].name)


_kept: list[tempfile.TemporaryDirectory[str]] = []
