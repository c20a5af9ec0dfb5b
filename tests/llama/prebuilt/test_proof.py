"""Libraries that differ from the bindings by one thing are told in a sentence; those of the table fit."""

from __future__ import annotations

import ctypes
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import llama_cpp
import pytest

from constrain.llama.prebuilt import Mismatch, proof
from constrain.llama.prebuilt.finding import _Loader
from constrain.llama.prebuilt.table import FITS, Fit, Structure

if TYPE_CHECKING:
    from collections.abc import Callable


class Parameters(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_int32),
        ("weights", ctypes.c_void_p),
        ("wide", ctypes.c_int64),
        ("on", ctypes.c_bool),
    )


if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[3]
INSTALLED = [fit for fit in FITS if fit.bindings == metadata.version("llama-cpp-python")]
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


@pytest.mark.parametrize(
    ("prove", "sentence"),
    [
        (lambda: proof.prove_structure("f", more_fields(), KNOWN), "f returns 32 bytes, and the bindings declare 40"),
        (lambda: prove_extent(33), "f writes 33 bytes, and the bindings declare 25"),
        (lambda: prove_extent(24), "f writes 24 bytes, and the bindings declare 25"),
        (
            lambda: proof.prove_defaults("f", Parameters(2, None, 0, True), KNOWN),
            "f has 2 as count, where 3 is expected",
        ),
        (
            lambda: proof.prove_defaults("f", Parameters(3, 1, 0, True), KNOWN),
            "f has 1 as weights, where 0 is expected",
        ),
    ],
)
def test_a_structure_that_differs_is_told(prove: Callable[[], None], sentence: str) -> None:
    with pytest.raises(Mismatch, match=f"^{sentence}$"):
        prove()


def test_a_chain_that_loses_samplers_is_told() -> None:
    binding = SimpleNamespace(**{**vars(llama_cpp), "llama_sampler_chain_n": lambda _: 0})
    with pytest.raises(Mismatch, match="counts 0 samplers in a chain of one"):
        proof._prove_samplers(binding)


def test_the_extra_pins_versions_that_fit() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    pins = {pin.partition(";")[0].strip() for pin in extras["prebuilt"]}
    best = FITS[0]
    assert pins == {f"llama-cpp-python=={best.bindings}", *(f"{best.carrier}=={each}" for each in best.versions)}


@pytest.mark.parametrize("fit", INSTALLED, ids=lambda fit: fit.bindings)
def test_structures_of_the_bindings_are_those_of_the_table(fit: Fit) -> None:
    for name, structure in fit.structures.items():
        declared = getattr(llama_cpp, name).restype
        if structure.inserted and _Loader.carrier is None:  # the bindings' own library has fewer fields
            declared = proof._extended(declared, structure)
        proof.prove_structure(name, declared, structure)
        assert set(structure.defaults) <= {field[0] for field in declared._fields_}


@pytest.mark.parametrize("fit", INSTALLED, ids=lambda fit: fit.bindings)
def test_defaults_of_the_table_are_those_of_the_bindings_own_library(fit: Fit) -> None:
    for name, structure in fit.structures.items():
        function = getattr(llama_cpp, name)
        proof.prove_defaults(name, function(), structure)
        if proof._HIDDEN_POINTER and ctypes.sizeof(function.restype) > proof._LARGE:
            proof.prove_extent(name, ctypes.cast(function, ctypes.c_void_p).value, function.restype)
    proof._prove_batches(llama_cpp)
    proof._prove_samplers(llama_cpp)
