"""Items of several lists, lined up by content: columns of items that stand for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.voting.ballots import write_ballot
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
        merged: list[dict[int, Ballot]] = []
        at = 0
        pairs = align_pair([next(iter(column.values())) for column in columns], items)
        matched = {column: item for column, item, _ in pairs}
        for index, column in enumerate(columns):
            if index in matched:
                merged += [{number: item} for item in items[at : matched[index]]]
                column[number] = items[matched[index]]
                at = matched[index] + 1
            merged.append(column)
        columns = merged + [{number: item} for item in items[at:]]
    return columns


def _most_central_first(lists: Sequence[Sequence[Ballot]]) -> list[int]:
    """Returns the numbers of the lists, the one whose words most others have first."""
    words = [words_of(write_ballot(list(each))) for each in lists]
    central = [sum(common(each, other) for other in words) for each in words]
    return sorted(range(len(lists)), key=lambda number: (-central[number], number))
