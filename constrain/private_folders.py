"""Folders that belong to one user alone, and their files: constraints and evaluated prompts are kept in such folders.

A file is written under a temporary name and then renamed, so readers see all of it or nothing and need no lock; the
last writer wins. Files are mapped, not copied, so no program may write to a file in use.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from functools import cache as remembered
from typing import TYPE_CHECKING, Literal, Union

from constrain.system import why_not_private

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from typing_extensions import Buffer

Directory = Union[str, "os.PathLike[str]", Literal[False], None]
"""The argument of callers that names a cache: a directory; False for none; None for the default."""

ABANDONED_SECONDS = 3600
"""Seconds after which an unfinished temporary file is removed."""


def find_directory(given: Directory = None) -> str | None:
    """The absolute path of the cache directory for an argument of callers; None for no cache.

    The default is the directory in the environment variable ``CONSTRAIN_CACHE`` (no cache if it is empty or "0"), or
    the user's own cache directory if the variable is not set.
    """
    if given is False:
        return None
    if given is None:
        given = os.environ.get("CONSTRAIN_CACHE")
        if given is None:
            given = _users_own()
        elif given in ("", "0"):
            return None
    return os.path.abspath(given)  # noqa: PTH100 - every compilation comes by


@remembered
def _users_own() -> str:
    import platformdirs

    return platformdirs.user_cache_dir("constrain-llm", appauthor=False)


def make_private(folder: Path) -> Path:
    """Creates a folder for the user alone, unless it is there. Raises OSError if that fails or others may use it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if why := why_not_private(os.lstat(folder), folder.parent):
        raise OSError(f"{folder} cannot be used: {why}")
    return folder


def make_secret(path: Path, content: bytes) -> None:
    """Writes a file that is written only once for a directory; keeps the file of another process that was first."""
    draft = _draft_beside(path)
    try:
        write_new(draft, content)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def replace_file(path: Path, *parts: Buffer) -> None:
    """Writes a file, in place of an older one. Raises OSError; the older one stays then."""
    draft = _draft_beside(path)
    try:
        write_new(draft, *parts)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _draft_beside(path: Path) -> Path:
    return path.parent / f".{uuid.uuid4().hex}.tmp"


def write_new(path: Path, *parts: Buffer) -> None:
    """Writes a file that only the user may read. Raises FileExistsError if there is one, and other OSErrors."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for part in parts:
            file.write(part)


def touch(path: str, modified: float, seconds: float) -> None:
    """Marks a file as used now, unless that was done less than so many seconds ago (``modified``)."""
    if time.time() - modified > seconds:
        with contextlib.suppress(OSError):  # the directory may be read-only
            os.utime(path)


def make_room(files: Iterable[Path], limit: int, kept: Path) -> None:
    """Removes the least recently used files beyond a number of bytes, and abandoned temporary files; never ``kept``."""
    found = []
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # other processes remove files, too
            status = path.stat()
            if path.name.endswith(".tmp"):
                if time.time() - status.st_mtime > ABANDONED_SECONDS:
                    path.unlink()
            else:
                found.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            return
        if path != kept:
            path.unlink(missing_ok=True)
            total -= size
