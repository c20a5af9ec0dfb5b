"""How much two values have in common, from 0 (nothing) to 1 (equal), and which items of two lists correspond."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.voting.ballots import Ballot

LEAST_SIMILAR = 0.5
"""Similarity below which two items of lists never correspond."""

_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Kana and Chinese characters, which are written without spaces: each counts as a word."""

_WORDS = re.compile(rf"[{_SINGLE}]|[^\W{_SINGLE}]+|[^\w\s]")


def similarity(one: Ballot, other: Ballot, words: Callable[[Ballot], Counter[Any]] | None = None) -> float:
    """Returns how much two values have in common: of objects the mean of their members, of others the words.

    ``words``: a function like ``words_of`` that remembers its results.
    """
    if type(one) is type(other) and one == other:
        return 1.0
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() | other.keys()
        return sum(similarity(one[key], other[key], words) for key in one.keys() & other.keys()) / len(keys)
    if isinstance(one, list | str) and type(one) is type(other):
        find = words or words_of
        return common(find(one), find(other))
    return 0.0


def words_of(value: Ballot) -> Counter[Any]:
    """Returns the words and other marks of all texts in a value, in any case, and its other parts; with their numbers.

    Keys of objects do not count.
    """
    found: Counter[Any] = Counter()
    pending: list[Ballot] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            pending += each.values()
        elif isinstance(each, list):
            pending += each
        elif isinstance(each, str):
            found.update(_WORDS.findall(each.casefold()))
        else:
            found[each] += 1
    return found


def common(one: Counter[Any], other: Counter[Any]) -> float:
    """Returns the share of words that two values have in common (Dice's coefficient)."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


class Alignment(NamedTuple):
    """The items of two lists that stand for each other: positions in the second list, by position in the first.

    ``ordered``: pairs in the same order in both lists. ``moved``: equal items that stand elsewhere in the other list.
    """

    ordered: dict[int, int]
    moved: dict[int, int]


def align_pair(one: Sequence[Ballot], other: Sequence[Ballot]) -> Alignment:
    """Returns the items of two lists that stand for each other: first as many as possible in the same order."""
    if max(len(one), len(other)) > 100:  # too many to align by content
        return Alignment({at: at for at in range(min(len(one), len(other)))}, {})
    known: dict[int, Counter[Any]] = {}

    def words(value: Ballot) -> Counter[Any]:
        if id(value) not in known:
            known[id(value)] = words_of(value)
        return known[id(value)]

    ordered = _align(len(one), len(other), lambda left, right: similarity(one[left], other[right], words))
    moved: dict[int, int] = {}
    left_over = [at for at in range(len(other)) if at not in ordered.values()]
    for at in range(len(one)):
        found = None if at in ordered else next((right for right in left_over if one[at] == other[right]), None)
        if found is not None:
            moved[at] = found
            left_over.remove(found)
    return Alignment(ordered, moved)


def _align(rows: int, columns: int, score: Callable[[int, int], float]) -> dict[int, int]:
    """Returns the pairs that keep the order and have the greatest sum of scores (Needleman and Wunsch, 1970)."""
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    scores = [[score(row, column) for column in range(columns)] for row in range(rows)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            best[row][column] = max(best[row + 1][column], best[row][column + 1])
            if scores[row][column] >= LEAST_SIMILAR:
                best[row][column] = max(best[row][column], scores[row][column] + best[row + 1][column + 1])
    found = {}
    row = column = 0
    while row < rows and column < columns:
        matched = scores[row][column] >= LEAST_SIMILAR
        if matched and best[row][column] == scores[row][column] + best[row + 1][column + 1]:
            found[row] = column
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return found
