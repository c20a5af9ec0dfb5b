"""A hook for the import of ``llama_cpp``: where that has no library of its own, it gets a prebuilt one.

llama-cpp-python reads ``LLAMA_CPP_LIB_PATH`` when it is imported, and expects libraries without a version in their
names. So a temporary folder gets links to the libraries of the wheel, and is removed when they are loaded.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from constrain.errors import ModelError
from constrain.llama.prebuilt import Mismatch

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterator, Sequence
    from importlib.metadata import Distribution
    from types import ModuleType

    from constrain.llama.prebuilt.table import Fit

_VARIABLE = "LLAMA_CPP_LIB_PATH"

_OWN = ("libllama.so", "libllama.dylib", "llama.dll", "libllama.dll")
"""Names of a library that llama-cpp-python was built with."""

_CPU = 0
"""Number of ggml's device type that computes with processor and main memory."""


class _Finder:
    """Finds ``llama_cpp`` where it has no library and the environment names none; leaves all else to Python."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "llama_cpp" or _VARIABLE in os.environ:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or has_library(Path(spec.origin).parent / "lib"):
            return None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads ``llama_cpp`` with the library of ``carrier``; that is None while llama-cpp-python has its own."""

    carrier: ClassVar[Distribution | None] = None

    def exec_module(self, module: ModuleType) -> None:
        from constrain.llama.prebuilt.proof import adapt, prove

        carrier, fit = find_carrier()
        try:
            check_processor(fit)
            with loaded_library(carrier, fit):
                super().exec_module(module)
            binding = sys.modules["llama_cpp.llama_cpp"]
            adapt(binding, fit)
            for function in fit.structures:
                structure = getattr(binding, function).restype
                setattr(module, structure.__name__, structure)
            prove(binding, fit)
        except (Mismatch, OSError, RuntimeError, AttributeError) as error:  # the last two: what llama_cpp cannot load
            raise _refusal(fit, carrier, str(error)) from error
        _Loader.carrier = carrier


def install() -> None:
    """Hooks into the import of ``llama_cpp``, once."""
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def has_library(folder: Path) -> bool:
    """Whether a folder has a library that llama-cpp-python finds."""
    return any((folder / name).exists() for name in _OWN)


def library_version() -> str:
    """The version of llama-cpp-python, with that of the wheel whose library it uses, if that is another one."""
    import llama_cpp

    version: str = llama_cpp.__version__
    carrier = _Loader.carrier
    return version if carrier is None else f"{version}+{carrier.name}-{carrier.version}"


def find_carrier(fits: Sequence[Fit] | None = None) -> tuple[Distribution, Fit]:
    """The installed wheel with libraries, and the line of the table that it fits. Raises ``ModelError``."""
    from importlib import metadata

    from constrain.llama.prebuilt.table import FITS

    bindings = metadata.version("llama-cpp-python")
    for fit in fits or FITS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            carrier = metadata.distribution(fit.carrier)
            if fit.bindings != bindings or carrier.version not in fit.versions:
                raise _refusal(fit, carrier, "this pair of versions is not known")
            return carrier, fit
    raise ModelError(
        f"llama-cpp-python {bindings} was installed without llama.cpp's library, and no prebuilt one is there: "
        f"pip install 'constrain-llm[prebuilt]' brings one, and {_compile(bindings)} compiles it"
    )


def _refusal(fit: Fit, carrier: Distribution, reason: str) -> ModelError:
    from importlib import metadata

    bindings = metadata.version("llama-cpp-python")
    return ModelError(
        f"llama-cpp-python {bindings} cannot use the library of {fit.carrier} {carrier.version}: {reason}; "
        f"{fit.carrier} {' or '.join(fit.versions)} fits llama-cpp-python {fit.bindings}, "
        f"and {_compile(bindings)} compiles a library instead"
    )


def _compile(bindings: str) -> str:
    flags = "--force-reinstall --no-cache-dir --no-deps --no-binary llama-cpp-python"
    return f"pip install {flags} llama-cpp-python=={bindings}"


def check_processor(fit: Fit, facts: Path = Path("/proc/cpuinfo")) -> None:
    """Raises ``Mismatch`` if this processor lacks instructions of the library, which would end the process."""
    with contextlib.suppress(FileNotFoundError), facts.open(encoding="utf-8", errors="replace") as lines:
        flags = next((line for line in lines if line.startswith("flags")), None)  # x86; ARM says "Features"
        if flags is not None and (missing := fit.instructions.difference(flags.split())):
            raise Mismatch(f"this processor does not have {', '.join(sorted(missing))}")


def check_files(carrier: Distribution, fit: Fit) -> None:
    """Raises ``Mismatch`` if a library is not as long as its wheel says: loading it would end the process."""
    folders = [(fit.package, each) for each in (fit.libraries, fit.backends)]
    files = [file for file in carrier.files or () if file.parts[:2] in folders]
    if not any(file.name.startswith("libllama.") for file in files):
        raise Mismatch("its list of files names no libllama")
    for file in files:
        path = Path(str(file.locate()))
        size = path.stat().st_size if path.exists() else 0
        if size != file.size:
            raise Mismatch(f"{file} has {size} bytes, where its wheel has {file.size}")


@contextlib.contextmanager
def loaded_library(carrier: Distribution, fit: Fit) -> Iterator[None]:
    """Loads the library and its back-ends, and has llama-cpp-python find it while the block runs."""
    import ctypes
    import tempfile

    check_files(carrier, fit)
    package = Path(str(carrier.locate_file(fit.package)))
    with tempfile.TemporaryDirectory(prefix="constrain-llama-") as name:
        folder = Path(name)
        for file in (package / fit.libraries).iterdir():
            (folder / file.name).symlink_to(file)
            if file.name.startswith("libllama."):  # libllama.so.0, libllama.0.dylib
                (folder / ("libllama" + (".dylib" if file.suffix == ".dylib" else ".so"))).symlink_to(file)
        library = ctypes.CDLL(str(next(folder / each for each in _OWN if (folder / each).exists())))
        library.ggml_version.restype = ctypes.c_char_p
        if (version := library.ggml_version().decode()) != fit.ggml:
            raise Mismatch(f"its ggml is {version}, where {fit.ggml} is expected")
        _load_backends(library, package / fit.backends)
        os.environ[_VARIABLE] = name
        try:
            yield
        finally:
            del os.environ[_VARIABLE]


def _load_backends(library: ctypes.CDLL, folder: Path) -> None:
    """Loads the best back-end for the processor, and those for GPUs whose drivers are there. Silently."""
    import ctypes

    @ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)  # type: ignore[untyped-decorator]
    def ignore(*_: Any) -> None:
        pass

    library.ggml_log_set(ignore, None)
    library.ggml_backend_load_all_from_path(os.fsencode(folder))
    library.ggml_log_set(None, None)
    library.ggml_backend_dev_by_type.restype = ctypes.c_void_p
    if not library.ggml_backend_dev_by_type(_CPU):
        raise Mismatch(f"none of the back-ends in {folder} runs on this processor")


def why_no_gpu() -> str:
    """The reasons why GPUs cannot be used that a prebuilt library has back-ends for; empty for other libraries."""
    import ctypes

    reasons = []
    for file in (_Loader.carrier and _Loader.carrier.files) or ():
        if file.name.startswith(("libggml-vulkan", "libggml-metal")):
            try:
                ctypes.CDLL(str(file.locate()))
                reasons.append(f"{file.name} found no device")
            except OSError as error:
                reasons.append(f"{file.name} cannot be loaded: {error}")
    return "; ".join(reasons)
