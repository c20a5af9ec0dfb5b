"""Locations of files: paths of this machine, and URLs of stores such as ``s3://bucket/people.jsonl``."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import secrets
import shutil
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from constrain.batch.disk import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

_ALLOWED_IN_URLS = ":/?[]@!$&'()*+,;=%-._~"
"""Characters of a URL that stay as they are; ``#`` is part of a name here, and is encoded."""

_WITHOUT_FOLDERS = frozenset(("s3", "gcs", "abfs"))
"""Stores in which a folder is part of a name, and is there when a file is."""

_WITHOUT_MOVES = frozenset(("abfs",))
"""Stores that do not move files for all accounts. A file there appears when it is closed, be it too early."""

_S3_COPY_BYTES = 5 << 30
"""Bytes of the largest file that S3 copies; a larger one is read and written again."""

_COPIED_AT_ONCE = 16 << 20
"""Bytes that are read and written again at once."""

_READ_AHEAD = 1 << 20
"""Bytes that are read from a store at once."""


class MissingExtraError(ImportError):
    """A package that tables and stores need, and that is not installed."""


class StoreError(OSError):
    """A failure of a store, with the name of the file."""


def require_pyarrow(what: str) -> None:
    """Raises ``MissingExtraError`` if pyarrow, which a file needs, is not installed."""
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError(f"{what}: pyarrow is missing; pip install 'constrain-llm[tables]'") from error


@dataclass(frozen=True)
class StoredFile:
    """A file in a store.

    Attributes:
        shown: URL for messages, without keys and options.
        path: path in the store.
        store: ``pyarrow.fs.FileSystem``.
    """

    shown: str
    path: str
    store: Any

    def __str__(self) -> str:
        return self.shown

    @property
    def name(self) -> str:
        """Last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def stem(self) -> str:
        """Name without its suffix."""
        return PurePosixPath(self.path).stem

    @property
    def suffix(self) -> str:
        """End of the name from its last dot."""
        return PurePosixPath(self.path).suffix

    def with_name(self, name: str) -> StoredFile:
        """Returns the file with another name in the same folder."""
        before, _, _ = self.shown.rpartition("/")
        return replace(self, shown=f"{before}/{name}", path=str(PurePosixPath(self.path).with_name(name)))

    def child(self, name: str) -> StoredFile:
        """Returns a file in the folder of this name."""
        return replace(self, shown=f"{self.shown}/{name}", path=f"{self.path}/{name}")

    def size(self) -> int | None:
        """Returns the number of bytes; ``None`` if there is no such file. Raises ``StoreError``."""
        with self.name_failures("found"):
            info = self.store.get_file_info(self.path)
        return info.size if info.is_file else None

    def is_folder(self) -> bool:
        """Returns whether the path is a folder, in a store that has folders. Raises ``StoreError``."""
        if self.store.type_name in _WITHOUT_FOLDERS:
            return False
        with self.name_failures("found"):
            return bool(self.store.get_file_info(self.path).type.name == "Directory")

    def children(self) -> list[StoredFile]:
        """Returns the files in the folder of this name, sorted by name. Raises ``StoreError``."""
        fs = importlib.import_module("pyarrow.fs")
        with self.name_failures("listed"):
            found = self.store.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return [self.child(name) for name in sorted(each.base_name for each in found if each.is_file)]

    def open_read(self) -> BinaryIO:
        """Returns the content as a file. Raises ``StoreError``, also while it is read."""
        with self.name_failures("read"):
            stream = self.store.open_input_stream(self.path, compression=None)
        return io.BufferedReader(_Reading(self, stream), _READ_AHEAD)

    def read(self) -> bytes | None:
        """Returns the content; ``None`` if there is no such file. Raises ``StoreError``."""
        if self.size() is None:
            return None
        with self.open_read() as file:
            return file.read()

    def write(self, data: bytes) -> None:
        """Writes the whole content. Raises ``StoreError``."""
        with _write_stored(self) as file:
            file.write(data)

    def delete(self) -> None:
        """Deletes the file. Raises ``StoreError``."""
        with self.name_failures("deleted"):
            self.store.delete_file(self.path)

    def require_folder(self) -> None:
        """Makes the folder of this name in a store that has folders. Raises ``StoreError``."""
        if self.store.type_name not in _WITHOUT_FOLDERS:
            with self.name_failures("made"):
                self.store.create_dir(self.path, recursive=False)

    @contextlib.contextmanager
    def name_failures(self, done: str) -> Iterator[None]:
        """Raises a ``StoreError`` with the name of the file in place of other errors of the system."""
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            reason = " ".join(str(error.strerror or error).split())
            raise StoreError(f"{self}: it could not be {done}: {reason}") from error


Location: TypeAlias = Path | StoredFile


class _Reading(io.RawIOBase):
    """The content of a stored file, with its name in errors."""

    def __init__(self, file: StoredFile, stream: Any) -> None:
        self._file, self._stream = file, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._file.name_failures("read"):
            count: int = self._stream.readinto(buffer)
        return count

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def locate(text: str) -> Location:
    """Returns the location of a path or URL. Raises ``MissingExtraError``, ``ValueError`` and ``StoreError``."""
    if not _URL.match(text):
        return Path(text)
    shown = re.sub(r"//[^/@]*@", "//", text.partition("?")[0], count=1)
    require_pyarrow(shown)
    fs = importlib.import_module("pyarrow.fs")
    try:
        store, path = fs.FileSystem.from_uri(quote(text, safe=_ALLOWED_IN_URLS))
    except ValueError as error:
        reason = str(error).partition(":")[0]  # the rest repeats the URL, perhaps with a key
        raise ValueError(f"{shown}: this is not the URL of a file: {reason}") from error
    except (OSError, ImportError, NotImplementedError) as error:
        raise StoreError(f"{shown}: its store cannot be used: {' '.join(str(error).split())}") from error
    if not PurePosixPath(path).name or shown.endswith("/") or (store.type_name == "local" and "?" in text):
        raise ValueError(f"{shown}: this is not the URL of a file; write ? in a name as %3F")
    if store.type_name == "s3" and "/" not in path:
        raise ValueError(f"{shown}: this names a bucket, not a file in it")
    return StoredFile(shown, path, store)


def key_of(location: Location) -> str:
    """Returns a text that is the same for two names of one file."""
    if isinstance(location, Path):
        return str(location.resolve())
    if location.store.type_name == "local":
        return str(Path(location.path).resolve())
    return f"{location.store.type_name}:{location.path}"


def open_read(location: Location) -> BinaryIO:
    """Returns the content of a location as a file. Raises ``OSError``."""
    return location.open("rb") if isinstance(location, Path) else location.open_read()


def size_of(location: Location) -> int | None:
    """Returns the bytes of a file; ``None`` if there is no such file. Raises ``OSError``."""
    if isinstance(location, StoredFile):
        return location.size()
    return location.stat().st_size if location.is_file() else None


def remove(location: Location) -> None:
    """Deletes a file, if it is there. Raises ``OSError``."""
    if isinstance(location, Path):
        location.unlink(missing_ok=True)
    elif location.size() is not None:
        location.delete()


@contextlib.contextmanager
def write_whole(location: Location) -> Iterator[BinaryIO]:
    """Yields a file for the content of a location, which appears whole or not at all. Raises ``OSError``."""
    if isinstance(location, StoredFile):
        with _write_stored(location) as file:
            yield file
        return
    try:
        with write_file(location) as file:
            yield file
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{location}: it could not be written: {error.strerror or error}") from error


@contextlib.contextmanager
def _write_stored(file: StoredFile) -> Iterator[BinaryIO]:
    """Yields a stream for the content of a stored file, which takes the place of an older one when it is whole."""
    at_once = file.store.type_name in _WITHOUT_MOVES
    target = file if at_once else file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
    stream = None
    with file.name_failures("written"):
        try:
            stream = file.store.open_output_stream(target.path)
            yield stream
            size = stream.tell()
            stream.close()
            if not at_once:
                _move(target, file, size)
        except BaseException as error:
            _discard(stream, target, is_there=stream is not None or not isinstance(error, OSError))
            raise


def _move(source: StoredFile, target: StoredFile, size: int) -> None:
    """Moves a file. One that the store cannot copy is written again; broken off, the target is missing."""
    store = source.store
    if store.type_name != "s3" or size <= _S3_COPY_BYTES:
        store.move(source.path, target.path)
        return
    stream = store.open_output_stream(target.path)
    try:
        with source.open_read() as content:
            shutil.copyfileobj(content, stream, _COPIED_AT_ONCE)
        stream.close()
    except BaseException:
        _discard(stream, target, is_there=True)
        raise
    store.delete_file(source.path)


def _discard(stream: Any, target: StoredFile, *, is_there: bool) -> None:
    """Deletes what a broken-off writing left. Its failures are no news: the error that broke it off is raised."""
    with contextlib.suppress(OSError):
        if stream is not None and not stream.closed:
            stream.close()  # publishes what was written so far, in stores where nothing else ends a stream
        if is_there:
            target.store.delete_file(target.path)
