"""The files of clients: requests that they sent, and the answers of batches."""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import threading
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from openai.types import FileObject

from constrain.batch.disk import write_durably
from constrain.server.http.errors import ApiError
from constrain.server.requests.limits import MAX_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from constrain.server.batches.folder import BatchFolder

_log = logging.getLogger("constrain.server")

INPUT = "batch"
"""Purpose of files that clients send."""

OUTPUT = "batch_output"
"""Purpose of files with the answers, or the errors, of a batch."""

MONTH = 30 * 24 * 3600
"""Seconds that a file is kept if its client does not say how long, as for OpenAI."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The facts about a file.

    Attributes:
        id: name for clients, and of the file on disk.
        owner: name of the owner in files (see ``BatchFolder.tag``).
        filename: name that the client gave it.
        purpose: ``INPUT`` or ``OUTPUT``.
        bytes: its size.
        created_at, expires_at: seconds since 1970; when it expires, it is removed.
    """

    id: str
    owner: str
    filename: str
    purpose: str
    bytes: int
    created_at: int
    expires_at: int

    def describe(self) -> dict[str, Any]:
        """Returns the file as a JSON object for clients."""
        facts = {name: value for name, value in asdict(self).items() if name != "owner"}
        return FileObject(object="file", status="processed", **facts).model_dump(mode="json")


def new_file_id() -> str:
    """Returns the id of a new file."""
    return f"file-{secrets.token_hex(12)}"


class FileStore:
    """The files of clients. Any thread may call it.

    Args:
        folder: folder that keeps them, open.
        limit: bytes of all files together, beyond which none is taken from clients.
        clock: function that returns the seconds since 1970.
    """

    def __init__(self, folder: BatchFolder, limit: int, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._limit = limit
        self._clock = clock
        self._taking = threading.Lock()
        self._files = {each.id: each for each in _read_all(folder.files)}
        for path in folder.files.iterdir():  # contents without facts: the server ended between the two
            if path.suffix != ".json" and path.name not in self._files:
                path.unlink()
        self._all()

    def require_room(self, size: int) -> None:
        """Raises ``ApiError`` if there is no room for one more file of so many bytes."""
        files = self._all()
        if len(files) >= MAX_FILES:
            raise ApiError(
                f"This server keeps {MAX_FILES} files at most. Delete files that you do not need.",
                param="file",
                code="storage_limit_exceeded",
            )
        used = sum(each.bytes for each in files)
        if used + size > self._limit:
            raise ApiError(
                f"The files on this server take {used} bytes, and may take {self._limit} together: there is no room "
                f"for {size} more. Delete files that you do not need.",
                param="file",
                code="storage_limit_exceeded",
            )

    def add(self, owner: str, filename: str, source: BinaryIO, seconds: int) -> StoredFile:
        """Keeps what a client sent, and returns the file. Raises ``ApiError`` and ``OSError``.

        Args:
            owner: name of the owner in files.
            filename: name that the client gave it.
            source: its content, read from the beginning.
            seconds: how long it is kept.
        """
        size = source.seek(0, 2)
        source.seek(0)
        with self._taking:
            self.require_room(size)
            return self._keep(new_file_id(), owner, filename, INPUT, source, seconds)

    def add_output(self, file_id: str, owner: str, filename: str, path: Path, seconds: int) -> None:
        """Keeps a file of answers under the id chosen for it; a second call replaces it. Raises ``OSError``."""
        with path.open("rb") as source:
            self._keep(file_id, owner, filename, OUTPUT, source, seconds)

    def _keep(
        self, file_id: str, owner: str, filename: str, purpose: str, source: BinaryIO, seconds: int
    ) -> StoredFile:
        content = self._folder.files / file_id
        draft = content.with_name(f"{file_id}.new")
        try:
            with draft.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
                size = target.tell()
                target.flush()
                os.fsync(target.fileno())
            draft.replace(content)
        finally:
            draft.unlink(missing_ok=True)
        now = int(self._clock())
        stored = StoredFile(file_id, owner, filename, purpose, size, now, now + seconds)
        facts = content.with_name(f"{file_id}.json")
        try:
            write_durably(facts, json.dumps(asdict(stored)).encode())
        except OSError:
            if purpose == INPUT:  # answers are written again, under the same id
                facts.unlink(missing_ok=True)
                content.unlink(missing_ok=True)
            raise
        self._files[file_id] = stored
        return stored

    def get(self, owner: str, file_id: str) -> StoredFile:
        """Returns a file of this owner. Raises ``ApiError`` if there is none, or if it has expired."""
        stored = self._files.get(file_id)
        if stored is None or stored.owner != owner or stored.expires_at <= self._clock():
            raise ApiError(f"No such File object: {file_id:.80}", status=404, param="id", code="not_found")
        return stored

    def path(self, stored: StoredFile) -> Path:
        """Returns the path of a file's content."""
        return self._folder.files / stored.id

    def of(self, owner: str) -> list[StoredFile]:
        """Returns the files of an owner, oldest first."""
        return [each for each in self._all() if each.owner == owner]

    def delete(self, owner: str, file_id: str) -> dict[str, Any]:
        """Deletes a file and returns the confirmation. Raises ``ApiError``. A batch made from it goes on."""
        self._remove(self.get(owner, file_id))
        return {"id": file_id, "object": "file", "deleted": True}

    def _all(self) -> list[StoredFile]:
        """Returns all files, after removing those whose time is up."""
        now, kept = self._clock(), []
        for stored in list(self._files.values()):
            if stored.expires_at <= now:
                self._remove(stored)
            else:
                kept.append(stored)
        return kept

    def _remove(self, stored: StoredFile) -> None:
        content = self.path(stored)
        content.with_name(f"{stored.id}.json").unlink(missing_ok=True)
        content.unlink(missing_ok=True)
        self._files.pop(stored.id, None)


def _read_all(folder: Path) -> Iterator[StoredFile]:
    """Yields what is known of the files in a folder, oldest first."""
    found = [stored for path in folder.glob("*.json") if (stored := _read_facts(path)) is not None]
    yield from sorted(found, key=lambda each: (each.created_at, each.id))


def _read_facts(path: Path) -> StoredFile | None:
    try:
        return StoredFile(**json.loads(path.read_bytes()))
    except (ValueError, TypeError):
        _log.exception("%s is damaged; its file is not there any more", path)
        return None
