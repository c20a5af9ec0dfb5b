"""The folder of all evaluated prompts of one user: one folder in it for each identity, bounded together in bytes.

    CACHE/prompts-v1/secret                      32 random bytes, with which names are made
    CACHE/prompts-v1/IDENTITY/BEGIN-LENGTH-ALL   a file of an evaluated prompt (``files``)

IDENTITY is a keyed digest of model, context, build and partition (the owner of an API key), BEGIN a digest of the first
tokens, and ALL one of all tokens. So a look at the names finds the files that can serve a prompt.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from constrain.llama.prompt_cache.files import FORMAT, write_state
from constrain.private_folders import make_room, make_secret
from constrain.system import why_not_private

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

PROMPT_CACHE_BYTES = 2 << 30
"""Bytes that the files of all evaluated prompts may have together, if the caller gives no number: 2 GiB."""

_SECRET_BYTES = 32


class PromptFolder:
    """The folder of a cache directory. Reading creates nothing; errors of files become one warning.

    Attributes:
        path: path of the folder.
        limit: bytes that all files may have together; beyond them, the least recently used are removed.
        has_failed: whether a file could not be written, so that nothing more is.
    """

    def __init__(self, directory: str, limit: int) -> None:
        self.path = Path(directory) / f"prompts-v{FORMAT}"
        self.limit = limit
        self.has_failed = False
        self._name = str(self.path)
        self._secret: bytes | None = None
        self._warned = False
        self._lock = threading.Lock()

    def find(self, identity: bytes, partition: str) -> tuple[str, bytes] | None:
        """The path of the folder for an identity, and the identity that its files have; None without a folder."""
        if not self.open():
            return None
        assert self._secret is not None
        owner = hmac.digest(self._secret, identity + partition.encode(), "sha256")
        return f"{self._name}/{owner.hex()[:32]}", owner

    def open(self) -> bool:
        """Whether there is a folder that is the user's alone."""
        if self._secret is not None:
            return True
        try:
            why = why_not_private(os.lstat(self._name), self.path.parent)
            secret = b"" if why else (self.path / "secret").read_bytes()
        except FileNotFoundError:
            return False
        except OSError as error:
            self.warn_unused(error)
            return False
        if not why and len(secret) != _SECRET_BYTES:
            why = "its secret is damaged; remove the folder"
        if why:
            self.warn_unused(why)
            return False
        self._secret = secret
        return True

    def write(
        self, identity: bytes, partition: str, name: str, tokens: NDArray[np.intc], state: NDArray[np.uint8]
    ) -> None:
        """Writes a file and makes room for it. Any error becomes the one warning, and nothing more is written."""
        try:
            try:
                path = self._place(identity, partition, name, tokens, state)
            except FileNotFoundError:  # the folder was removed, or another process has removed an empty one
                self._secret = None
                path = self._place(identity, partition, name, tokens, state)
            make_room(self._files(), self.limit, path)
            self._remove_empty_folders()
        except (OSError, MemoryError) as error:
            self.has_failed = True
            self.warn_unused(error)

    def _place(
        self, identity: bytes, partition: str, name: str, tokens: NDArray[np.intc], state: NDArray[np.uint8]
    ) -> Path:
        """Writes a file; returns its path. Raises OSError."""
        self._make()
        found = self.find(identity, partition)
        if found is None:
            raise OSError("it cannot be used")
        path = Path(found[0]) / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_state(path, found[1], tokens, state)
        return path

    def _make(self) -> None:
        """Creates the folder. Raises OSError if that fails or the folder is not the user's alone."""
        if self.open():
            return
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if why := why_not_private(os.lstat(self._name), self.path.parent):
            raise OSError(why)
        make_secret(self.path / "secret", secrets.token_bytes(_SECRET_BYTES))

    def _files(self) -> Iterator[Path]:
        for folder in self.path.iterdir():
            if folder.name.endswith(".tmp"):
                yield folder
            elif folder.is_dir() and not folder.is_symlink():
                with contextlib.suppress(FileNotFoundError):
                    yield from folder.iterdir()

    def _remove_empty_folders(self) -> None:
        for folder in self.path.iterdir():
            with contextlib.suppress(OSError):
                folder.rmdir()

    def discard(self, path: str, why: object) -> None:
        """Removes a file that cannot be used, with the one warning."""
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
        self._warn(f"{why}; it was removed, and its prompt is evaluated again")

    def warn_unused(self, why: object) -> None:
        """Warns, once, that the folder cannot be used."""
        self._warn(f"evaluated prompts are not kept in {self.path}: {why or 'there is too little memory'}")

    def _warn(self, message: str) -> None:
        with self._lock:
            is_first, self._warned = not self._warned, True
        if is_first:
            warnings.warn(message, RuntimeWarning, stacklevel=4)
