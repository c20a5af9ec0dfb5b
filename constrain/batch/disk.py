"""Durable writes to the disk of this machine: files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from constrain.system import flush_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO


@contextlib.contextmanager
def write_file(path: Path) -> Iterator[BinaryIO]:
    """Yields a file for the content of a path. At the end it takes the place of an older one, and is on the disk.

    After an error, the older file stays as it was. Behind a symbolic link, the file that it names is written.
    """
    path = path.resolve()
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    flush_folder(path.parent)


def write_durably(path: Path, data: bytes) -> None:
    """Writes a file atomically, in place of an older one: it appears whole or not at all, and is then on the disk."""
    with write_file(path) as file:
        file.write(data)
