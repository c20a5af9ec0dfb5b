"""Sets of code points as ascending, disjoint, non-adjacent ranges, and their algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.language.tree import MAX_CODE_POINT, Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

ANY: Ranges = ((0, MAX_CODE_POINT),)


def normalize(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the same set in normal form; the given ranges may overlap and come in any order. O(n log n)."""
    ordered = sorted(ranges)
    if not ordered:
        return ()
    result = []
    first, last = ordered[0]
    for low, high in ordered:
        if low > last + 1:
            result.append((first, last))
            first, last = low, high
        elif high > last:
            last = high
    result.append((first, last))
    return tuple(result)


def complement(ranges: Ranges) -> Ranges:
    """Returns all other code points."""
    result, start = [], 0
    for low, high in ranges:
        if low > start:
            result.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE_POINT:
        result.append((start, MAX_CODE_POINT))
    return tuple(result)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """Returns the code points in both. O(n + m)."""
    result = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            result.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


def difference(left: Ranges, right: Ranges) -> Ranges:
    """Returns the code points in ``left`` only."""
    return intersection(left, complement(right))
