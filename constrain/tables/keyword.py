"""The keyword ``x-one-of``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ONE_OF = "x-one-of"


class OneOfKeyword(NamedTuple):
    """The value of ``x-one-of``: the digest of a table's values (``Table.digest``), and how many there are."""

    digest: str
    size: int


def read_keyword(value: object) -> OneOfKeyword:
    """Returns the value of ``x-one-of``. Raises TypeError."""
    if isinstance(value, Mapping) and value.keys() == {"digest", "size"}:
        digest, size = value["digest"], value["size"]
        if isinstance(digest, str) and isinstance(size, int):
            return OneOfKeyword(digest, size)
    raise TypeError(f"{ONE_OF} is written by constrain.OneOf, and must not be {value!r:.80}")
