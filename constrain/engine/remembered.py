"""The constraints that ``compile`` remembers."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.language.digest import spell_source
from constrain.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.engine.constraint import Constraint
    from constrain.vocabulary.vocabulary import Vocabulary

CACHED_CONSTRAINTS = 128
"""Constraints that ``compile`` remembers; beyond them it drops the least recently used one."""

CACHED_BYTES = 256 << 20
"""Bytes, of tables and schemas, that all remembered constraints may take together; beyond them ``compile`` drops the
least recently used ones. A caller can go on using a dropped constraint. A single constraint above the limit is not
remembered."""

CALLS_BETWEEN_COUNTS = 16
"""Calls of ``compile`` after which it measures all remembered constraints again, because masks add to their tables.
Other calls measure only the constraint that they find or make."""


@dataclass(slots=True)
class CacheCounts:
    """How often ``compile`` found a remembered constraint (``known``), and how often it did not (``new``)."""

    known: int = 0
    new: int = 0


class _Kept:
    """A remembered constraint, with its size: the bytes of its description, its key and its tables."""

    __slots__ = ("_source_bytes", "_tables", "bytes_counted", "constraint")

    def __init__(self, constraint: Constraint, key: tuple[object, ...]) -> None:
        self.constraint = constraint
        self._tables = constraint._core
        self._source_bytes = _source_bytes(key[0])
        self.bytes_counted = self.memory_bytes

    @property
    def memory_bytes(self) -> int:
        """Bytes that the constraint takes now; masks add to its tables."""
        staged = self.constraint.staged
        stages = 0 if staged is None else staged.memory_bytes
        return self._source_bytes + self.constraint._bytes_beside + self._tables.memory_bytes + stages


class Remembered:
    """The constraints that ``compile`` remembers, by its arguments. All methods may be called by any thread.

    Attributes:
        counts: how often ``find`` found a constraint, and how often it did not.
    """

    def __init__(self) -> None:
        self.counts = CacheCounts()
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()  # the least recently used one first
        self._bytes = 0  # the sum of bytes_counted
        self._calls_until_count = CALLS_BETWEEN_COUNTS

    def values(self) -> Iterable[_Kept]:
        """The remembered constraints."""
        return self._kept.values()

    def find(self, key: tuple[object, ...], vocabulary: Vocabulary) -> Constraint | None:
        """Finds the constraint for a key and makes it the most recently used one."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.constraint.vocabulary is not vocabulary:
                self.counts.new += 1
                return None
            self.counts.known += 1
            self._kept.move_to_end(key)
            self._count(kept)
            self._drop_oldest()
            return kept.constraint

    def add(self, key: tuple[object, ...], constraint: Constraint) -> None:
        """Remembers a constraint for the next equal ``compile``, unless it alone takes more than ``CACHED_BYTES``."""
        with self._lock:
            self._forget(key)
            kept = _Kept(constraint, key)
            if kept.bytes_counted <= CACHED_BYTES:
                self._kept[key] = kept
                self._bytes += kept.bytes_counted
            self._drop_oldest()

    def forget(self, vocabulary: Vocabulary) -> None:
        """Frees the constraints of a vocabulary that will not be used again."""
        with self._lock:
            for key in [key for key, kept in self._kept.items() if kept.constraint.vocabulary is vocabulary]:
                self._forget(key)

    def _forget(self, key: tuple[object, ...]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.bytes_counted

    def _count(self, kept: _Kept) -> None:
        """Measures a constraint again."""
        now = kept.memory_bytes
        self._bytes += now - kept.bytes_counted
        kept.bytes_counted = now

    def _drop_oldest(self) -> None:
        """Drops the least recently used constraints until the others are within the limits."""
        self._calls_until_count -= 1
        if self._calls_until_count == 0:
            self._calls_until_count = CALLS_BETWEEN_COUNTS
            for kept in self._kept.values():
                self._count(kept)
        while len(self._kept) > CACHED_CONSTRAINTS or self._bytes > CACHED_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.bytes_counted


def _source_bytes(source: object) -> int:
    """Bytes of the source of a constraint, which is part of its key: a ``Source`` or the text of a JSON Schema."""
    return len(spell_source(source)) if isinstance(source, Source) else sys.getsizeof(source)


remembered_constraints = Remembered()
"""The constraints of this process."""
