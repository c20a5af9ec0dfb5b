"""Which library llama_cpp gets, the versions that fit, and what is said of a library that differs."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llama_cpp
import pytest

from constrain.errors import ModelError
from constrain.llama import loading
from constrain.llama.prebuilt import Mismatch, finding, proof
from constrain.llama.prebuilt.finding import _Loader
from constrain.llama.prebuilt.table import FITS, Fit, Structure
from tests.support import each_row, for_each, tomllib

FIT = FITS[0]

COMPILE = r"pip install --force-reinstall --no-cache-dir --no-deps --no-binary llama-cpp-python llama-cpp-python=="


def install(folder: Path, name: str, version: str, files: dict[str, int] | None = None) -> None:
    """Installs an empty distribution, whose record lists files with their sizes."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("".join(f"{file},,{size}\n" for file, size in (files or {}).items()))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where distributions are found first, with bindings that have no library."""
    monkeypatch.syspath_prepend(tmp_path)  # type: ignore[no-untyped-call]
    monkeypatch.delenv("LLAMA_CPP_LIB_PATH", raising=False)
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "__init__.py").write_text("raise AssertionError('no library was loaded before')")
    return tmp_path


def load(place: Path) -> None:
    """Imports the bindings as the hook does, without a place among the modules."""
    spec = finding._Finder().find_spec("llama_cpp", [str(place)])
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def carrier(place: Path, version: str = FIT.versions[0], bindings: str = FIT.bindings, size: int = 4) -> None:
    """Installs bindings and a carrier with libraries of four bytes, which its record says to have another size."""
    install(place, "llama-cpp-python", bindings)
    files = [f"{FIT.package}/{FIT.libraries}/libllama.so.0", f"{FIT.package}/{FIT.backends}/libggml-vulkan.so"]
    install(place, FIT.carrier, version, dict.fromkeys(files, size))
    for file in files:
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).write_bytes(b"\x7fELF")


@each_row(
    "plant, sentences",
    (lambda place: carrier(place, "9.9"), (f"library of {FIT.carrier} 9.9: this pair of versions is not known",)),
    (lambda place: carrier(place, bindings="9.8"), (r"llama-cpp-python 9\.8 cannot use the library of", "not known")),
    (lambda place: carrier(place, size=5), ("libllama.so.0 has 4 bytes, where its wheel has 5",)),
    (carrier, ("file too short|not a mach-o|slice",)),  # as the system says it
    (
        lambda place: (carrier(place), shutil.rmtree(place / FIT.package)),
        # some versions of Python leave out of the list what is not there
        ("libllama.so.0 has 0 bytes, where its wheel has 4|its list of files names no libllama",),
    ),
    ids=["version", "bindings", "truncated", "garbage", "missing"],
)
def test_a_carrier_that_does_not_fit_is_told_with_versions_and_the_command(
    place: Path, plant: Callable[[Path], None], sentences: tuple[str, ...]
) -> None:
    plant(place)
    with pytest.raises(ModelError, match=COMPILE) as raised:
        load(place)
    bindings, version = (metadata.version(each) for each in ("llama-cpp-python", FIT.carrier))
    for sentence in (*sentences, f"llama-cpp-python {bindings}", f"{FIT.carrier} {version}"):
        assert raised.match(sentence)
    assert "LLAMA_CPP_LIB_PATH" not in os.environ


def test_without_library_and_carrier_both_commands_are_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(place, "llama-cpp-python", "0.3.36")
    monkeypatch.setattr(sys, "path", [str(place)])
    with pytest.raises(ModelError, match=r"pip install 'constrain-llm\[prebuilt\]' brings one, and " + COMPILE):
        finding.find_carrier()


@pytest.mark.parametrize(
    ("flags", "missing"),
    [("flags\t: fpu avx2 fma f16c bmi2", None), ("flags\t: fpu avx2", "bmi2, f16c, fma"), ("Features : asimd", None)],
)
def test_a_processor_without_instructions_of_the_library_is_told(
    tmp_path: Path, flags: str, missing: str | None
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor : 0\n{flags}\n")
    if missing is None:
        finding.check_processor(FIT, tmp_path / "cpuinfo")
    else:
        with pytest.raises(Mismatch, match=f"this processor does not have {missing}$"):
            finding.check_processor(FIT, tmp_path / "cpuinfo")


@pytest.mark.parametrize("own", ["libllama.so", "libllama.dylib", "llama.dll"])
def test_bindings_with_a_library_keep_it(place: Path, own: str) -> None:
    (place / "llama_cpp" / "lib").mkdir()
    assert finding._Finder().find_spec("llama_cpp", [str(place)]) is not None
    (place / "llama_cpp" / "lib" / own).touch()
    assert finding._Finder().find_spec("llama_cpp", [str(place)]) is None


def test_other_modules_and_a_named_library_are_left_to_python(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert finding._Finder().find_spec("llama_cpp.llama", [str(place)]) is None
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", "elsewhere")
    assert finding._Finder().find_spec("llama_cpp", [str(place)]) is None


def test_layers_for_a_gpu_that_is_not_there_are_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carrier(place)
    monkeypatch.setattr(finding._Loader, "carrier", metadata.distribution(FIT.carrier))
    monkeypatch.setattr(loading, "gpus", list)
    monkeypatch.setattr(loading, "read_metadata", lambda _: None)
    monkeypatch.setattr(loading, "context_size", lambda *_: 1)
    opened: list[Any] = []
    monkeypatch.setattr(loading, "_open", lambda path, **_: opened.append(path))
    said = (
        r"n_gpu_layers is 3, but llama.cpp found no GPU \(libggml-vulkan.so cannot be loaded: .*\); the processor comp"
    )
    with pytest.warns(RuntimeWarning, match=said):
        loading.load(place, None, 3, 1, verbose=False)
    for n_gpu_layers in (-1, 0):  # as many as there is room for, and none: nothing to tell
        loading.load(place, None, n_gpu_layers, 1, verbose=False)
    assert len(opened) == 3


@pytest.mark.slow  # it loads the real library, and a model
@pytest.mark.skipif(importlib.util.find_spec(FIT.package) is None, reason=f"{FIT.carrier} is not installed")
def test_the_real_carrier_answers_as_known(tmp_path: Path) -> None:
    bindings = Path(llama_cpp.__file__).parent
    shutil.copytree(bindings, tmp_path / "llama_cpp", ignore=shutil.ignore_patterns("lib", "server", "__pycache__"))
    program = (
        "import constrain, llama_cpp; from constrain.llama.canary import prove_forward; "
        "from constrain.llama.prebuilt.finding import library_version; "
        "prove_forward(constrain.Model(n_threads=1)); print(library_version())"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    version = metadata.version(FIT.carrier)
    assert (done.stdout, done.stderr) == (f"{FIT.bindings}+{FIT.carrier}-{version}\n", "")


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
