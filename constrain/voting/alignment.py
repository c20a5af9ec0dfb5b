"""Items of several lists, lined up by content: columns of items that stand for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.voting.similarity import align_pair, common, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.voting.ballots import Ballot


def align_lists(lists: Sequence[Sequence[Ballot]]) -> list[dict[int, Ballot]]:
    """Returns columns of items that stand for each other, in the order of the lists: in each, items by list.

    The list that has most in common with all others comes first; the others are compared with its items.
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
                merged += _unmoved(new, begin, ordered[index], moved)
                begin = ordered[index] + 1
            at = ordered.get(index, moved.get(index))
            if at is not None:
                column[number] = items[at]
            merged.append(column)
        columns = merged + _unmoved(new, begin, len(new), moved)
    return columns


def _unmoved(new: list[dict[int, Ballot]], begin: int, end: int, moved: dict[int, int]) -> list[dict[int, Ballot]]:
    """Returns the columns of a list's own items in a range: those that stand for no item elsewhere."""
    return [new[at] for at in range(begin, end) if at not in moved.values()]


def _most_central_first(lists: Sequence[Sequence[Ballot]]) -> list[int]:
    """Returns the numbers of the lists, the one whose words most others have first."""
    words = [words_of(list(each)) for each in lists]
    central = [sum(common(each, other) for other in words) for each in words]
    return sorted(range(len(lists)), key=lambda number: (-central[number], number))
