"""Required keys that no property has, but that are spelled nearly like one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIKENESS = 0.75
"""Least similarity (``difflib``, 0 to 1) of a required key to the suggested property: ``nmae`` and ``name`` have it,
``last_name`` and ``first_name`` do not."""

_LONGER = 2
"""Characters by which the lengths of the two may differ: ``repository`` is no misspelt ``npmRepository``."""


def misspelt_keys(schema: object) -> Iterator[tuple[str, str]]:
    """Yields the required keys that no property of a schema has, each with the optional property that seems meant.

    A schema with ``patternProperties`` may name its keys there.

    >>> [*misspelt_keys({"properties": {"name": {}, "size": {}}, "required": ["nmae", "age"]})]
    [('nmae', 'name')]
    """
    match schema:
        case {"patternProperties": _}:
            return
        case {"properties": dict(properties), "required": list(required)}:
            pass
        case _:
            return
    strays = [key for key in required if key not in properties]
    optional = sorted(properties.keys() - set(required))
    if len(strays) * len(optional) <= 10_000:  # pairs, compared in at most 0.1 s
        for key in strays:
            if near := closest(key, [name for name in optional if abs(len(name) - len(key)) <= _LONGER], _LIKENESS):
                yield key, near
