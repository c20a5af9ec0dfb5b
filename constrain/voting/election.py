"""The value that most samples agree on, field by field, and how many of them do."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from constrain.voting.alignment import align_lists
from constrain.voting.similarity import align_pair, common, similarity, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.voting.ballots import Ballot, Path


def elect(ballots: Sequence[Ballot], *, keeps_length: bool = False) -> Ballot:
    """Returns the value that most of some samples (at least one) agree on, field by field.

    ``keeps_length``: whether lists of one length become a list of this length, by the positions of their items, if
    their items lined up by content do not.
    """
    same = _of_one_kind(ballots)
    if isinstance(same[0], dict):
        return _merge_objects(same, keeps_length=keeps_length)
    if isinstance(same[0], list):
        return _merge_lists(same, keeps_length=keeps_length)
    winner: Ballot = _most_common(same)
    return winner


def nearest(ballots: Sequence[Ballot], winner: Ballot) -> int:
    """Returns the number of the sample that has most in common with a value; the first of several."""

    def nearness(number: int) -> tuple[bool, float, int]:
        return _equal(ballots[number], winner), similarity(ballots[number], winner), -number

    return max(range(len(ballots)), key=nearness)


def agreement_with(value: Ballot, ballots: Sequence[Ballot]) -> dict[Path, float]:
    """Returns, by path, the share of samples that have the same part as a value, with items of lists lined up."""
    agreement: dict[Path, float] = {}
    _count(value, list(ballots), len(ballots), (), agreement)
    return agreement


def _of_one_kind(ballots: Sequence[Ballot]) -> list[Any]:
    """Returns the samples of the most frequent kind; of several such kinds, the one with the most frequent value."""
    kinds: dict[type, list[Ballot]] = {}
    for each in ballots:
        kinds.setdefault(type(each), []).append(each)
    most = max(map(len, kinds.values()))
    leading = [same for same in kinds.values() if len(same) == most]
    return leading[0] if len(leading) == 1 else max(leading, key=_most_equal)


def _most_equal(ballots: Sequence[Ballot]) -> int:
    """Returns how often the most frequent value occurs."""
    return max(sum(_equal(each, other) for other in ballots) for each in ballots)


def _merge_objects(ballots: list[dict[str, Ballot]], *, keeps_length: bool) -> dict[str, Ballot]:
    having = {key: [each[key] for each in ballots if key in each] for key in _merge_keys(ballots)}
    return {
        key: elect(values, keeps_length=keeps_length)
        for key, values in having.items()
        if 2 * len(values) > len(ballots)
    }


def _merge_keys(ballots: list[dict[str, Ballot]]) -> list[str]:
    """Returns the keys of all objects in an order that each of them has, if there is one."""
    before: dict[str, set[str]] = {}
    for each in ballots:
        for key in each:
            before.setdefault(key, set())
        for earlier, later in pairwise(each):
            before[later].add(earlier)
    merged: list[str] = []
    while before:
        first = next((key for key, earlier in before.items() if not earlier & before.keys()), next(iter(before)))
        del before[first]
        merged.append(first)
    return merged


def _merge_lists(ballots: list[list[Ballot]], *, keeps_length: bool) -> list[Ballot]:
    columns = [[*column.values()] for column in align_lists(ballots) if 2 * len(column) > len(ballots)]
    if keeps_length and len(columns) != len(ballots[0]) and len({len(each) for each in ballots}) == 1:
        columns = [list(items) for items in zip(*ballots, strict=True)]
    return [elect(items, keeps_length=keeps_length) for items in columns]


def _most_common(ballots: list[Any]) -> Any:
    """Returns the most frequent value; of texts that differ, the one that has most in common with the others."""
    counts = Counter(ballots)
    most = max(counts.values())
    leading = [each for each, count in counts.items() if count == most]
    if len(leading) == 1 or not isinstance(leading[0], str):
        return leading[0]
    words = {each: words_of(each) for each in counts}
    return max(leading, key=lambda each: sum(n * common(words[each], words[other]) for other, n in counts.items()))


def _count(value: Ballot, ballots: list[Ballot], voters: int, path: Path, agreement: dict[Path, float]) -> None:
    agreement[path] = sum(_equal(each, value) for each in ballots) / voters
    if isinstance(value, dict):
        objects = [each for each in ballots if isinstance(each, dict)]
        for key, item in value.items():
            _count(item, [each[key] for each in objects if key in each], voters, (*path, key), agreement)
    elif isinstance(value, list):
        items: list[list[Ballot]] = [[] for _ in value]
        for each in ballots:
            if isinstance(each, list):
                ordered, moved = align_pair(value, each)
                for number, at in {**ordered, **moved}.items():
                    items[number].append(each[at])
        for number, others in enumerate(items):
            _count(value[number], others, voters, (*path, number), agreement)


def _equal(one: Ballot, other: Ballot) -> bool:
    return type(one) is type(other) and one == other
