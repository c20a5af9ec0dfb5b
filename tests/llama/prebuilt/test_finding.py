"""Which library llama_cpp gets, and what is said when there is none that fits."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

from constrain.errors import ModelError
from constrain.llama import loading
from constrain.llama.prebuilt import Mismatch, finding
from constrain.llama.prebuilt.table import FITS

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


@pytest.mark.parametrize(
    ("plant", "sentences"),
    [
        (lambda place: carrier(place, "9.9"), (f"library of {FIT.carrier} 9.9: this pair of versions is not known",)),
        (
            lambda place: carrier(place, bindings="9.8"),
            (r"llama-cpp-python 9\.8 cannot use the library of", "not known"),
        ),
        (lambda place: carrier(place, size=5), ("libllama.so.0 has 4 bytes, where its wheel has 5",)),
        (carrier, ("file too short|not a mach-o|slice",)),  # as the system says it
        (
            lambda place: (carrier(place), shutil.rmtree(place / FIT.package)),
            # some versions of Python leave out of the list what is not there
            ("libllama.so.0 has 0 bytes, where its wheel has 4|its list of files names no libllama",),
        ),
    ],
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
