"""SHA-256 of whole model files: computed once for a file, and kept in the cache directory.

    CACHE/hashes-v1/NAME.json     the hash of one file

NAME is a digest of the file's path, size and time of change.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from constrain.errors import ModelError
from constrain.private_folders import make_private, replace_file

if TYPE_CHECKING:
    import os

_BLOCK = 1 << 24
"""Bytes that are read at once: 16 MiB."""

_known: dict[tuple[str, int, int], str] = {}
"""Hashes by path, size and time of change."""

_lock = threading.Lock()


def file_sha256(path: Path, directory: str | None) -> str:
    """Returns the SHA-256 of a file in hexadecimal; ``directory``: the cache directory, ``None`` for none.

    The first call for a file reads all of it: some seconds for several gigabytes. Raises ``ModelError``.
    """
    try:
        whole = path.resolve()
        key = _key(whole, whole.stat())
        with _lock:
            if (known := _known.get(key)) is None:
                kept = None if directory is None else Path(directory) / "hashes-v1" / f"{_name(key)}.json"
                known = None if kept is None else _read(kept)
                if known is None:
                    known = _hash(whole)
                    if _key(whole, whole.stat()) != key:
                        raise ModelError(f"{path} has changed while it was read")
                    if kept is not None:
                        _write(kept, known)
                _known[key] = known
            return known
    except OSError as error:
        raise ModelError(f"{path}: its hash cannot be computed: {error.strerror or error}") from error


def _key(path: Path, status: os.stat_result) -> tuple[str, int, int]:
    return str(path), status.st_size, status.st_mtime_ns


def _name(key: tuple[str, int, int]) -> str:
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _read(path: Path) -> str | None:
    """Returns the hash in a kept file; ``None`` if there is none, or one that cannot be used."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        if isinstance(found, str) and len(found) == hashlib.sha256().digest_size * 2:
            return found
    return None


def _write(path: Path, found: str) -> None:
    try:
        make_private(path.parent)
        replace_file(path, json.dumps(found).encode())
    except OSError as error:
        warnings.warn(f"the hash of a model cannot be kept: {error}", RuntimeWarning, stacklevel=2)
