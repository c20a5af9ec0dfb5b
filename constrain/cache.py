r"""Constraints on disk: the cache directory, its files, and the checks before a file is used.

A cache directory belongs to its user alone, so a file in it is trusted after its checksum is verified. It holds the
seed of the kernel's hashes and one folder for each vocabulary and build of this package. A folder has one file for each
constraint, and one for the context-independent tokens that all constraints of the vocabulary share. Files are written
and read as ``constrain.private_folders`` says. ``Constraint._keep`` and ``Constraint._kept`` are the callers.

    offset  bytes
         0      8  "CONSTRN\n"
         8      4  FORMAT
        12      4  zero
        16     16  checksum of the rest of the file
        32     16  bytes of the tables, bytes of the notes
        48     32  the writer: version and build of this package
        80     32  the vocabulary: SHA-256 of all tokens
       112     32  the source: SHA-256 of schema or grammar and policies
       144         tables (constrain/kernel/base/archive.h), then notes (JSON)
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import warnings
from dataclasses import dataclass
from functools import cache as remembered
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from constrain import kernel
from constrain.private_folders import find_directory, make_room, make_secret, replace_file, touch
from constrain.system import map_file, why_not_private

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.private_folders import Directory

FORMAT = 2
"""Version of the format of files and directories; directories of other versions are left alone."""

CACHE_BYTES = 1 << 30
"""Bytes that a cache directory may hold; beyond them the least recently used files are removed."""

TOUCH_SECONDS = 3600
"""Seconds between two updates of a used file's modification time."""

_MAGIC = b"CONSTRN\n"
_START = struct.Struct("<8sII16s")
_REST = struct.Struct("<QQ32s32s32s")
_TABLES = _START.size + _REST.size
_NOT_COMPILING = {"__pycache__", "batch", "certificates", "cli", "llama", "server"}
"""Folders of this package whose modules do not affect constraints; ``producer`` ignores them."""

_INDEPENDENT_TOKENS = b"mask parts".ljust(32)
_SEED_BYTES = 16


class Cached(Protocol):
    """The part of a ``Vocabulary`` that the cache needs: its fingerprint, and its tables in the kernel."""

    _core: kernel.Vocabulary

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of all tokens and of the ids that are special."""


class RejectedFileError(Exception):
    """A file that must not be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of a checked cache file.

    ``tables``: the kernel's tables, a view of the mapped file that must stay mapped while the kernel uses them.
    ``notes``: a line of JSON with policies and warnings of the constraint, then JSON with the places of its terminals.
    """

    tables: memoryview
    notes: bytes


class Cache:
    """One cache directory. Reading creates nothing; an unreadable file counts as missing, with one warning."""

    def __init__(self, path: Path) -> None:
        self.path = path / f"v{FORMAT}"
        self._name = str(self.path)  # saves each compilation the cost of path objects
        self._seed_name = f"{self._name}/seed"
        self.seed: bytes | None = None
        self._warned = False

    def open(self) -> bool:
        """Checks whether a trusted directory exists; if so, offers its seed to the kernel."""
        if self.seed is not None:
            return True
        try:
            os.stat(self._seed_name)  # noqa: PTH116 - first, as most compilations find none
            why = why_not_private(os.lstat(self._name), self.path.parent)
            seed = Path(self._seed_name).read_bytes()
        except FileNotFoundError:
            return False
        except OSError as error:
            self._warn(str(error))
            return False
        if why:
            self._warn(why)
            return False
        if len(seed) != _SEED_BYTES:
            self._warn("its seed is damaged; remove the directory")
            return False
        kernel.offer_seed(seed)
        self.seed = seed
        return True

    def make(self) -> None:
        """Creates the directory. Raises OSError if that fails or the directory is not private to the user."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_secret(Path(self._seed_name), kernel.seed())
        if not self.open():
            raise OSError(f"{self.path} cannot be used as a cache")

    def has(self, vocabulary: Cached) -> bool:
        """Whether the cache has a folder for a vocabulary."""
        return self.open() and os.path.isdir(self._folder_name(vocabulary))  # noqa: PTH112

    def has_of_another_build(self, vocabulary: Cached, key: bytes) -> bool:
        """Whether another version or build of this package has stored a constraint under a key (32 bytes)."""
        if not self.open():
            return False
        own, begin = os.path.basename(self._folder_name(vocabulary)), vocabulary.fingerprint.hex()[:32]  # noqa: PTH119
        with os.scandir(self._name) as folders:
            others = [each.path for each in folders if each.name.startswith(begin) and each.name != own]
        return any(os.path.exists(f"{path}/{key.hex()[:32]}") for path in others)  # noqa: PTH110

    def load(self, vocabulary: Cached, key: bytes) -> Stored | None:
        """The content of the file for a key (32 bytes); None if there is no file.

        Raises RejectedFileError for a damaged file, and for a file of another vocabulary or version.
        """
        path = self._file_name(vocabulary, key)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(str(error))
            return None
        try:
            found = os.fstat(descriptor)
            if found.st_size < _TABLES:
                raise RejectedFileError(f"{path} is cut off")
            content = map_file(descriptor, found.st_size)
        except OSError as error:
            self._warn(str(error))
            return None
        finally:
            os.close(descriptor)
        stored = _checked(path, memoryview(content), vocabulary.fingerprint, key)
        touch(path, found.st_mtime, TOUCH_SECONDS)
        return stored

    def store(self, vocabulary: Cached, key: bytes, tables: bytes, notes: bytes = b"") -> Path:
        """Stores tables and notes under a key (32 bytes). Raises OSError if that fails."""
        self.make()
        rest = _REST.pack(len(tables), len(notes), producer(), vocabulary.fingerprint, key) + tables + notes
        start = _START.pack(_MAGIC, FORMAT, 0, kernel.checksum(rest))
        if len(start) + len(rest) > CACHE_BYTES:
            raise OSError(f"{len(rest)} bytes are more than the cache {self.path} may hold")
        path = Path(self._file_name(vocabulary, key))
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, start, rest)
        make_room(self._files(), CACHE_BYTES, path)
        return path

    def warn_rejected(self, error: RejectedFileError) -> None:
        """Warns that a file cannot be used."""
        warnings.warn(f"{error}; it is made anew", RuntimeWarning, stacklevel=3)

    def warn_not_stored(self, error: OSError | MemoryError) -> None:
        """Warns, once, that nothing can be stored."""
        self._warn(str(error) or "there is too little memory to write to it")

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"the cache {self.path} is not used: {why}", RuntimeWarning, stacklevel=4)

    def _folder_name(self, vocabulary: Cached) -> str:
        return f"{self._name}/{vocabulary.fingerprint.hex()[:32]}-{producer().hex()[:16]}"

    def _file_name(self, vocabulary: Cached, key: bytes) -> str:
        return f"{self._folder_name(vocabulary)}/{'parts' if key == _INDEPENDENT_TOKENS else key.hex()[:32]}"

    def _files(self) -> Iterator[Path]:
        for folder in self.path.iterdir():
            if folder.is_dir():
                yield from folder.iterdir()


def find_cache(given: Directory = None) -> Cache | None:
    """The cache for an argument ``cache``; None for no cache. See ``find_directory``."""
    path = find_directory(given)
    return None if path is None else _cache_of(path)


@remembered
def _cache_of(path: str) -> Cache:
    return Cache(Path(path))


def restore_independent_tokens(cache: Cache, vocabulary: Cached) -> None:
    """Loads a vocabulary's context-independent tokens from the cache, if it has them."""
    if not cache.has(vocabulary):
        return
    try:
        stored = cache.load(vocabulary, _INDEPENDENT_TOKENS)
    except RejectedFileError as error:
        cache.warn_rejected(error)
        return
    if stored is None:
        return
    try:
        vocabulary._core.restore(stored.tables)
    except kernel.StorageError as error:
        cache.warn_rejected(RejectedFileError(f"{cache.path}: {error}"))


def store_independent_tokens(cache: Cache, vocabulary: Cached) -> None:
    """Stores a vocabulary's context-independent tokens, joined with those in the cache. Raises OSError."""
    cache.make()
    if cache.seed != kernel.seed():
        return  # this process hashed before it saw this cache, so others could not find its tokens
    restore_independent_tokens(cache, vocabulary)
    cache.store(vocabulary, _INDEPENDENT_TOKENS, vocabulary._core.store())


@remembered
def producer() -> bytes:
    """32 bytes that identify this version and build of the package.

    A version number is not enough: a developer changes sources without changing it, and old tables would be wrong.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        known = version("constrain-llm")
    except PackageNotFoundError:  # the package runs from its sources
        known = ""
    parts = [known, sys.byteorder, str(sys.maxsize)]
    package = Path(__file__).parent
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(set(folders) - _NOT_COMPILING)
        for name in sorted(files):
            if name.endswith((".py", ".so", ".pyd", ".lark")):
                status = os.stat(f"{folder}/{name}")  # noqa: PTH116 - hundreds of files
                parts.append(f"{folder[len(str(package)) :]}/{name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).digest()


def _checked(path: str, content: memoryview, fingerprint: bytes, key: bytes) -> Stored:
    magic, format_, zero, checksum = _START.unpack_from(content)
    if magic != _MAGIC or format_ != FORMAT or zero != 0:
        raise RejectedFileError(f"{path} is not a file of this format")
    if kernel.checksum(content[_START.size :]) != checksum:
        raise RejectedFileError(f"{path} is damaged")
    tables, notes, wrote, vocabulary, what = _REST.unpack_from(content, _START.size)
    if wrote != producer():
        raise RejectedFileError(f"{path} was written by another version")
    if vocabulary != fingerprint:
        raise RejectedFileError(f"{path} is of another vocabulary")
    if what != key or _TABLES + tables + notes != len(content):
        raise RejectedFileError(f"{path} is of another schema or grammar")
    return Stored(content[_TABLES : _TABLES + tables], bytes(content[_TABLES + tables :]))
