"""How much two values have in common, from 0 (nothing) to 1 (equal), and which items of two lists correspond."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.voting.ballots import Ballot

LEAST_SIMILAR = 0.5
"""Similarity below which two items of lists never stand for each other."""

MAX_ALIGNED_ITEMS = 100
"""Items of a list that are lined up by content in a vote. Beyond: items stand for each other by their positions."""

_WORDS = re.compile(r"\w+|[^\w\s]")


def similarity(one: Ballot, other: Ballot) -> float:
    """Returns what two values have in common: of objects and lists, the mean of their members or aligned items."""
    if type(one) is type(other) and one == other:
        return 1.0
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() | other.keys()
        return sum(similarity(one[key], other[key]) for key in one.keys() & other.keys()) / len(keys)
    if isinstance(one, list) and isinstance(other, list):
        longer = max(len(one), len(other))
        return sum(score for _, _, score in align_pair(one, other)) / longer
    if isinstance(one, str) and isinstance(other, str):
        return common(words_of(one), words_of(other))
    return 0.0


def words_of(text: str) -> Counter[str]:
    """Returns the words and other marks of a text, in any case, with their numbers."""
    return Counter(_WORDS.findall(text.casefold()))


def common(one: Counter[str], other: Counter[str]) -> float:
    """Returns the share of words that two texts have in common (Dice's coefficient)."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def align_pair(one: Sequence[Ballot], other: Sequence[Ballot]) -> list[tuple[int, int, float]]:
    """Returns the pairs of positions of items that stand for each other, in order, each with its similarity."""
    return _align(len(one), len(other), lambda left, right: similarity(one[left], other[right]))


def _align(rows: int, columns: int, score: Callable[[int, int], float]) -> list[tuple[int, int, float]]:
    """Returns the pairs that keep the order and have the greatest sum of scores (Needleman and Wunsch, 1970)."""
    if max(rows, columns) > MAX_ALIGNED_ITEMS:
        return [(at, at, score(at, at)) for at in range(min(rows, columns))]
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    scores = [[score(row, column) for column in range(columns)] for row in range(rows)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            best[row][column] = max(best[row + 1][column], best[row][column + 1])
            if scores[row][column] >= LEAST_SIMILAR:
                best[row][column] = max(best[row][column], scores[row][column] + best[row + 1][column + 1])
    found = []
    row = column = 0
    while row < rows and column < columns:
        matched = scores[row][column] >= LEAST_SIMILAR
        if matched and best[row][column] == scores[row][column] + best[row + 1][column + 1]:
            found.append((row, column, scores[row][column]))
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return found
