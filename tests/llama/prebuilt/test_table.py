"""The table of versions that fit, against the installed bindings and the extra that pins the versions."""

from __future__ import annotations

import ctypes
import sys
from importlib import metadata
from pathlib import Path

import llama_cpp
import pytest

from constrain.llama.prebuilt import proof
from constrain.llama.prebuilt.finding import _Loader
from constrain.llama.prebuilt.table import FITS, Fit

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[3]

INSTALLED = [fit for fit in FITS if fit.bindings == metadata.version("llama-cpp-python")]


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
