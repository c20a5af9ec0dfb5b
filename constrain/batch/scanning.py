"""Facts about a whole input, found in one reading: its digest, and the number of its rows."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import BinaryIO

OWN_LANGUAGE = frozenset(("schema", "tools", "allow_refusal"))
"""Fields that give the answer to a row a language of its own."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Facts about an input.

    Attributes:
        sha256: digest of the content.
        rows: number of rows.
        own_languages: whether a row may have a schema or tools of its own; if that was not asked for, ``False``.
        id_type: Arrow type of the names of rows, if the input is a table that has them.
    """

    sha256: str
    rows: int
    own_languages: bool
    id_type: Any = None


class HashingFile(io.RawIOBase):
    """A file that computes the digest of what is read from it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash = file, hashlib.sha256()

    def readable(self) -> bool:
        """Returns ``True``."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer; returns the number of bytes."""
        data = self._file.read(len(buffer))
        self._hash.update(data)
        buffer[: len(data)] = data
        return len(data)

    def digest(self) -> str:
        """Reads the rest; returns the digest of the whole content."""
        while piece := self._file.read(1 << 20):
            self._hash.update(piece)
        return self._hash.hexdigest()
