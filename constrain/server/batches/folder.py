"""The folder with the files and batches of a server. One server at a time uses it.

    FOLDER/lock                   locked by the server that uses the folder
    FOLDER/secret                 32 random bytes, with which the owners of files and batches are named
    FOLDER/files/ID.json, ID      what is known of a file, and its content
    FOLDER/batches/ID/            a batch: its record, its input, and its journal

The folder is created by the first request for files or batches.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
from typing import TYPE_CHECKING

from constrain.private_folders import make_private, make_secret
from constrain.system import lock_file

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_SECRET_BYTES = 32


class FolderInUseError(OSError):
    """Another server uses the folder."""


class BatchFolder:
    """The folder, private to the user who runs the server.

    Args:
        path: path of the folder; it need not exist.

    Attributes:
        files: folder of the files of clients.
        batches: folder with one folder for each batch.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = path / "files"
        self.batches = path / "batches"
        self._lock: BinaryIO | None = None
        self._secret = b""

    @property
    def is_open(self) -> bool:
        """Whether this server uses the folder."""
        return self._lock is not None

    def exists(self) -> bool:
        """Whether a server has used the folder before."""
        return (self.path / "secret").exists()

    def open(self) -> None:
        """Creates the folder if need be, and locks it until ``close``.

        Raises ``FolderInUseError``, and ``OSError`` if the folder cannot be used.
        """
        if self._lock is not None:
            return
        make_private(self.path)
        with contextlib.ExitStack() as opened:
            lock = opened.enter_context((self.path / "lock").open("ab"))
            try:
                lock_file(lock)
            except BlockingIOError as error:
                raise FolderInUseError(f"another server uses {self.path}") from error
            make_secret(self.path / "secret", secrets.token_bytes(_SECRET_BYTES))
            self._secret = (self.path / "secret").read_bytes()
            if len(self._secret) != _SECRET_BYTES:
                raise OSError(f"{self.path / 'secret'} is damaged; remove the folder to start anew")
            for folder in (self.files, self.batches):
                make_private(folder)
            _remove_drafts(self.files)
            opened.pop_all()
            self._lock = lock

    def close(self) -> None:
        """Leaves the folder to the next server."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def tag(self, owner: str) -> str:
        """Returns the name of an owner in files. Only the secret leads from one to the other."""
        return hmac.new(self._secret, owner.encode(), "sha256").hexdigest()


def _remove_drafts(folder: Path) -> None:
    """Removes files that a server did not finish writing."""
    for path in folder.glob("*.new"):
        path.unlink()
