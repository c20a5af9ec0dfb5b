"""Proofs that a library of llama.cpp is the one that the bindings and the table of versions describe."""

from __future__ import annotations

import ctypes
import platform
from typing import TYPE_CHECKING, Any

from constrain.llama.prebuilt import Mismatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.llama.prebuilt.table import Fit, Structure

_HIDDEN_POINTER = platform.machine() in ("x86_64", "AMD64")
"""Whether a function that returns a large structure gets the address for it as its first argument."""

_LARGE = 16
"""Bytes up to which x86-64 returns structures in registers."""

_ROOM = 1024
"""Bytes for a structure of any size."""


def adapt(binding: Any, fit: Fit) -> None:
    """Inserts fields that only the library has into the structures of ``llama_cpp.llama_cpp``."""
    for function, structure in fit.structures.items():
        if structure.inserted:
            known = getattr(binding, function).restype
            _replace(binding, known, _extended(known, structure))


def _extended(known: type[ctypes.Structure], structure: Structure) -> type[ctypes.Structure]:
    fields = list(known._fields_)
    for before, name, kind in structure.inserted:
        fields.insert([each[0] for each in fields].index(before) + 1, (name, kind))
    return type(known.__name__, (ctypes.Structure,), {"_fields_": fields, "__module__": known.__module__})


def _replace(binding: Any, known: type, new: type) -> None:
    """Has every function of the bindings take and return the new structure."""
    for name, value in list(vars(binding).items()):
        if value is known:
            setattr(binding, name, new)
        elif isinstance(value, ctypes._CFuncPtr):  # type: ignore[attr-defined]
            if value.restype is known:
                value.restype = new
            if value.argtypes and known in value.argtypes:
                value.argtypes = [new if each is known else each for each in value.argtypes]


def prove(binding: Any, fit: Fit) -> None:
    """Compares the library that ``llama_cpp.llama_cpp`` has loaded with the table. Raises ``Mismatch``."""
    for name, structure in fit.structures.items():
        function = getattr(binding, name)
        prove_structure(name, function.restype, structure)
        if _HIDDEN_POINTER and structure.size > _LARGE:
            prove_extent(name, ctypes.cast(function, ctypes.c_void_p).value, function.restype)
        prove_defaults(name, function(), structure)
    _prove_batches(binding)
    _prove_samplers(binding)


def prove_structure(name: str, declared: type[ctypes.Structure], expected: Structure) -> None:
    """Compares the size of a structure in the bindings with the table."""
    if (size := ctypes.sizeof(declared)) != expected.size:
        raise Mismatch(f"{name} returns {expected.size} bytes, and the bindings declare {size}")


def prove_extent(name: str, address: int | None, declared: type[ctypes.Structure]) -> None:
    """Compares the bytes that a function of the library writes with the end of the declared structure."""
    write: Callable[[Any], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address or 0)
    written = 0
    for color in (0xA5, 0x5A):  # a written byte may have one of them
        memory = (ctypes.c_ubyte * _ROOM)(*[color] * _ROOM)
        write(memory)
        written = max([written, *(at + 1 for at, byte in enumerate(memory) if byte != color)])
    last = getattr(declared, declared._fields_[-1][0])
    if written != last.offset + last.size:
        raise Mismatch(f"{name} writes {written} bytes, and the bindings declare {last.offset + last.size}")


def prove_defaults(name: str, made: ctypes.Structure, expected: Structure) -> None:
    """Compares the values of a structure from the library with the table."""
    for field in made._fields_:
        value, known = getattr(made, field[0]), expected.defaults.get(field[0], 0)
        if (value or 0) != known if isinstance(value, int | float | None) else bool(value) != bool(known):
            raise Mismatch(f"{name} has {value!r:.40} as {field[0]}, where {known} is expected")


def _prove_batches(binding: Any) -> None:
    """Compares a batch that the library allocates, and one that it makes of tokens, with the declared structure."""
    batch = binding.llama_batch_init(3, 0, 2)
    pointers = (batch.token, batch.pos, batch.n_seq_id, batch.seq_id, batch.logits)
    # The list of sequences has a null pointer at its end.
    if batch.n_tokens or batch.embd or not all(pointers) or not all(batch.seq_id[:3]) or batch.seq_id[3]:
        raise Mismatch("llama_batch_init returns another structure than the bindings declare")
    binding.llama_batch_free(batch)
    tokens = (binding.llama_token * 2)(5, 6)
    batch = binding.llama_batch_get_one(tokens, 2)
    if batch.n_tokens != len(tokens) or batch.token[:2] != tokens[:] or batch.embd or batch.logits:
        raise Mismatch("llama_batch_get_one returns another structure than the bindings declare")


def _prove_samplers(binding: Any) -> None:
    """Makes a chain of samplers from parameters that are passed by value."""
    chain = binding.llama_sampler_chain_init(binding.llama_sampler_chain_default_params())
    binding.llama_sampler_chain_add(chain, binding.llama_sampler_init_greedy())
    count = binding.llama_sampler_chain_n(chain)
    binding.llama_sampler_free(chain)
    if count != 1:
        raise Mismatch(f"llama_sampler_chain_n counts {count} samplers in a chain of one")
