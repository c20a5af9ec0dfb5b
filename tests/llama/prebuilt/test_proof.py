"""Libraries that differ from the bindings by one thing: each is told in a sentence."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import llama_cpp
import pytest

from constrain.llama.prebuilt import Mismatch, proof
from constrain.llama.prebuilt.table import Structure
from tests.support import for_each


class Parameters(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_int32),
        ("weights", ctypes.c_void_p),
        ("wide", ctypes.c_int64),
        ("on", ctypes.c_bool),
    )


KNOWN = Structure(32, {"count": 3, "on": 1})


def writer(size: int) -> Any:
    """A function that writes so many bytes to the address that it gets, as one does that returns a structure."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda address: ctypes.memset(address, 0, size) and None)


def prove_extent(size: int) -> None:
    function = writer(size)
    proof.prove_extent("f", ctypes.cast(function, ctypes.c_void_p).value, Parameters)


def more_fields() -> type[ctypes.Structure]:
    return proof._extended(Parameters, Structure(40, {}, [("weights", "more", ctypes.c_size_t)]))


def test_what_fits_passes() -> None:
    proof.prove_structure("f", Parameters, KNOWN)
    proof.prove_defaults("f", Parameters(3, None, 0, True), KNOWN)
    prove_extent(25)
    assert [field[0] for field in more_fields()._fields_] == ["count", "weights", "more", "wide", "on"]


@for_each(
    "prove, sentence",
    (lambda: proof.prove_structure("f", more_fields(), KNOWN), "f returns 32 bytes, and the bindings declare 40"),
    (lambda: prove_extent(33), "f writes 33 bytes, and the bindings declare 25"),
    (lambda: prove_extent(24), "f writes 24 bytes, and the bindings declare 25"),
    (lambda: proof.prove_defaults("f", Parameters(2, None, 0, True), KNOWN), "f has 2 as count, where 3 is expected"),
    (lambda: proof.prove_defaults("f", Parameters(3, 1, 0, True), KNOWN), "f has 1 as weights, where 0 is expected"),
    (lambda: proof.prove_defaults("f", Parameters(3, None, 1, True), KNOWN), "f has 1 as wide, where 0 is expected"),
    (lambda: proof.prove_defaults("f", Parameters(3, None, 0, False), KNOWN), "f has False as on, where 1 is expected"),
)
def test_a_structure_that_differs_is_told(prove: Callable[[], None], sentence: str) -> None:
    with pytest.raises(Mismatch, match=f"^{sentence}$"):
        prove()


def shifted(batch: Any) -> Any:
    """The same memory, read with a structure that has one pointer more in front."""
    fields = [("more", ctypes.c_void_p), *llama_cpp.llama_batch._fields_]
    moved = type("Moved", (ctypes.Structure,), {"_fields_": fields})
    memory = ctypes.create_string_buffer(bytes(batch), ctypes.sizeof(moved))
    return moved.from_buffer(memory)


@pytest.mark.parametrize("name", ["llama_batch_init", "llama_batch_get_one"])
def test_a_batch_that_differs_is_told(name: str) -> None:
    called = getattr(llama_cpp, name)
    binding = SimpleNamespace(**{**vars(llama_cpp), name: lambda *given: shifted(called(*given))})
    with pytest.raises(Mismatch, match=f"{name} returns another structure"):
        proof._prove_batches(binding)


def test_a_chain_that_loses_samplers_is_told() -> None:
    binding = SimpleNamespace(**{**vars(llama_cpp), "llama_sampler_chain_n": lambda _: 0})
    with pytest.raises(Mismatch, match="counts 0 samplers in a chain of one"):
        proof._prove_samplers(binding)


def test_functions_take_and_return_the_structure_with_inserted_fields() -> None:
    made, taken, other = (ctypes.CDLL(None)["abs"] for _ in range(3))
    made.restype, taken.argtypes, other.argtypes = Parameters, [ctypes.c_int, Parameters], [ctypes.c_int]
    binding = SimpleNamespace(f=made, g=taken, h=other, Parameters=Parameters)
    structure = Structure(40, {}, [("weights", "more", ctypes.c_size_t)])
    proof.adapt(binding, SimpleNamespace(structures={"f": structure}))  # type: ignore[arg-type]
    new = binding.Parameters
    assert ctypes.sizeof(new) == 40
    assert made.restype is new
    assert taken.argtypes == [ctypes.c_int, new]
    assert other.argtypes == [ctypes.c_int]
