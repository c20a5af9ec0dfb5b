"""The tables of a large database that a question needs: those that share words with it, and those joined to them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.queries.schema import Table

_WORD = re.compile(r"[^\W\d_a-z]?[a-z]+|[^\W\d_a-z]+|\d+")
_OWN_NAME = 3.0
"""Weight of a word in the name of a table; one in the name of a column has 1. Rare words weigh more."""


def needed_tables(tables: Sequence[Table], question: str, size: Callable[[Table], int], most: int) -> frozenset[str]:
    """Returns the names of tables, of at most ``most`` characters together, but at least one.

    ``size``: returns the number of characters of a table.
    """
    weights = [_weights(table) for table in tables]
    frequency = Counter(word for each in weights for word in each)
    asked = _words(question)
    scores = {
        table.name: sum(each[word] / frequency[word] for word in asked & each.keys())
        for table, each in zip(tables, weights, strict=True)
    }
    by_name = {table.name: table for table in tables}
    joined: dict[str, list[str]] = {name: [] for name in by_name}
    for table in tables:
        for key in table.foreign:
            if key.table in by_name:
                joined[table.name].append(key.table)
                joined[key.table].append(table.name)
    shown: dict[str, int] = {}
    for name in sorted(by_name, key=lambda name: -scores[name]):
        for each in (name, *sorted(joined[name], key=lambda other: -scores[other])) if scores[name] else (name,):
            if each not in shown and (not shown or sum(shown.values()) + size(by_name[each]) <= most):
                shown[each] = size(by_name[each])
    return frozenset(shown)


def _weights(table: Table) -> dict[str, float]:
    own = dict.fromkeys(_words(table.name), _OWN_NAME)
    return dict.fromkeys((word for name in table.names for word in _words(name)), 1.0) | own


def _words(text: str) -> set[str]:
    """Returns the words of a text or name, in small letters, without the ending of the plural."""
    found = (word.casefold() for word in _WORD.findall(text))
    return {re.sub(r"(?<=\w\w)(?:(?<=[sxz])es|(?<!s)s)$", "", re.sub(r"ies$", "y", word)) for word in found}
