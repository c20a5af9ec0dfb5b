"""Facts about a whole input, found in one reading: the digest and number of its rows, and ids that are not unique."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constrain.batch.lines import Id

OWN_LANGUAGE = frozenset(("schema", "tools", "allow_refusal"))
"""Fields that give the answer to a row a language of its own."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Facts about an input.

    Attributes:
        sha256: digest of the rows and their numbers, without those of ``unfinished``.
        rows: number of rows.
        own_languages: whether a row may have a schema or tools of its own; if that was not asked for, ``False``.
        repeated_ids: ids of more than one row, with the numbers of these rows.
        id_type: Arrow type of the names of rows, if the input is a table that has them.
        unfinished: 1 if the last row may still be being written, so that it can be another one later; else 0.
    """

    sha256: str
    rows: int
    own_languages: bool
    repeated_ids: Mapping[Id, list[int]] = field(default_factory=dict)
    id_type: Any = None
    unfinished: int = 0

    @property
    def settled(self) -> dict[str, object]:
        """Digest and number of the rows that later runs must find again, for the note."""
        return {"sha256": self.sha256, "rows": self.rows - self.unfinished}


class Survey:
    """Facts about rows that are added one by one.

    Attributes:
        rows: number of rows.
        repeated_ids: as in ``Scan``.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.repeated_ids: dict[Id, list[int]] = {}
        self._first: dict[Id, int] = {}
        self._hash = self._before_last = hashlib.sha256()

    def add(self, number: int, row: object, name: Id = None) -> None:
        """Adds a row with its number and its id."""
        self.rows += 1
        self._before_last = self._hash.copy()
        self._hash.update(repr((number, row)).encode())
        if name is not None and (first := self._first.setdefault(name, number)) != number:
            self.repeated_ids.setdefault(name, [first]).append(number)

    def digest(self, unfinished: int = 0) -> str:
        """Returns the digest of the rows so far; with ``unfinished`` as in ``Scan``, it leaves out the last one."""
        return (self._before_last if unfinished else self._hash).hexdigest()


def begins_with(rows: Iterable[tuple[int, object]], count: int, sha256: str) -> bool:
    """Returns whether the first ``count`` rows have a digest."""
    survey = Survey()
    for number, row in islice(rows, count):
        survey.add(number, row)
    return survey.digest() == sha256
