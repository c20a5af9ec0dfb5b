"""Alignment of several lists by content: items that correspond to each other form a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.voting.similarity import align_pair, common, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.voting.ballots import Ballot


def align_lists(lists: Sequence[Sequence[Ballot]]) -> list[dict[int, Ballot]]:
    """Returns columns of corresponding items, in the order of the lists; a column maps numbers of lists to items.

    The list that has most in common with all others starts the columns; each further list is aligned with the columns
    so far, and adds columns for its remaining items.
    """
    columns: list[dict[int, Ballot]] = []
    for number in _most_central_first(lists):
        items = lists[number]
        ordered, moved = align_pair([next(iter(column.values())) for column in columns], items)
        new = [{number: item} for item in items]
        merged: list[dict[int, Ballot]] = []
        begin = 0
        for index, column in enumerate(columns):
            if index in ordered:
                merged += _unmatched(new, begin, ordered[index], moved)
                begin = ordered[index] + 1
            at = ordered.get(index, moved.get(index))
            if at is not None:
                column[number] = items[at]
            merged.append(column)
        columns = merged + _unmatched(new, begin, len(new), moved)
    return columns


def _unmatched(new: list[dict[int, Ballot]], begin: int, end: int, moved: dict[int, int]) -> list[dict[int, Ballot]]:
    """Returns the new columns of the items from ``begin`` to ``end`` that do not belong to another column."""
    return [new[at] for at in range(begin, end) if at not in moved.values()]


def _most_central_first(lists: Sequence[Sequence[Ballot]]) -> list[int]:
    """Returns the numbers of the lists, starting with the list that shares most words with the others."""
    words = [words_of(list(each)) for each in lists]
    central = [sum(common(each, other) for other in words) for each in words]
    return sorted(range(len(lists)), key=lambda number: (-central[number], number))
