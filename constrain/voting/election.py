"""The value that most samples agree on, field by field, and how many of them do."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from constrain.voting.alignment import align_lists
from constrain.voting.similarity import align_pair, common, similarity, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.voting.ballots import Ballot, Path


Voter = tuple["Ballot", float]
"""A sample, or a part of one, and its weight."""


def elect(ballots: Sequence[Ballot], weights: Sequence[float] | None = None, *, keeps_length: bool = False) -> Ballot:
    """Returns the value that most of some samples (at least one) agree on, field by field.

    ``weights``: how much each sample counts, above 0; ``None`` for equal weights. ``keeps_length``: whether lists of
    one length become a list of this length, by the positions of their items, if their items lined up by content do not.
    """
    return _elect(_voters(ballots, weights), keeps_length=keeps_length)


def nearest(ballots: Sequence[Ballot], winner: Ballot) -> int:
    """Returns the number of the sample that has most in common with a value; the first of several."""

    def nearness(number: int) -> tuple[bool, float, int]:
        return _equal(ballots[number], winner), similarity(ballots[number], winner), -number

    return max(range(len(ballots)), key=nearness)


def agreement_with(
    value: Ballot, ballots: Sequence[Ballot], weights: Sequence[float] | None = None
) -> dict[Path, float]:
    """Returns, by path, the share of samples that have the same part as a value, with items of lists lined up.

    ``weights`` as for ``elect``.
    """
    agreement: dict[Path, float] = {}
    voters = _voters(ballots, weights)
    _count(value, voters, _weight(voters), (), agreement)
    return agreement


def _voters(ballots: Sequence[Ballot], weights: Sequence[float] | None) -> list[Voter]:
    return list(zip(ballots, [1.0] * len(ballots) if weights is None else weights, strict=True))


def _weight(voters: Sequence[tuple[Any, float]]) -> float:
    return sum(weight for _, weight in voters)


def _elect(voters: list[Voter], *, keeps_length: bool) -> Ballot:
    same: list[Any] = _of_one_kind(voters)
    first = same[0][0]
    if isinstance(first, dict):
        return _merge_objects(same, keeps_length=keeps_length)
    if isinstance(first, list):
        return _merge_lists(same, keeps_length=keeps_length)
    winner: Ballot = _most_common(same)
    return winner


def _of_one_kind(voters: Sequence[Voter]) -> list[Voter]:
    """Returns the samples of the most frequent kind; of several such kinds, the one with the most frequent value."""
    kinds: dict[type, list[Voter]] = {}
    for each in voters:
        kinds.setdefault(type(each[0]), []).append(each)
    most = max(map(_weight, kinds.values()))
    leading = [same for same in kinds.values() if _weight(same) == most]
    return leading[0] if len(leading) == 1 else max(leading, key=_most_equal)


def _most_equal(voters: Sequence[Voter]) -> float:
    """Returns the weight of the most frequent value."""
    return max(sum(weight for other, weight in voters if _equal(each, other)) for each, _ in voters)


def _merge_objects(voters: list[tuple[dict[str, Ballot], float]], *, keeps_length: bool) -> dict[str, Ballot]:
    total = _weight(voters)
    keys = _merge_keys([each for each, _ in voters])
    having = {key: [(each[key], weight) for each, weight in voters if key in each] for key in keys}
    return {
        key: _elect(values, keeps_length=keeps_length) for key, values in having.items() if 2 * _weight(values) > total
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


def _merge_lists(voters: list[tuple[list[Ballot], float]], *, keeps_length: bool) -> list[Ballot]:
    total, lists = _weight(voters), [each for each, _ in voters]
    aligned = [[(item, voters[number][1]) for number, item in column.items()] for column in align_lists(lists)]
    columns = [column for column in aligned if 2 * _weight(column) > total]
    if keeps_length and len(columns) != len(lists[0]) and len({len(each) for each in lists}) == 1:
        weights = [weight for _, weight in voters]
        columns = [list(zip(items, weights, strict=True)) for items in zip(*lists, strict=True)]
    return [_elect(items, keeps_length=keeps_length) for items in columns]


def _most_common(voters: list[tuple[Any, float]]) -> Any:
    """Returns the most frequent value; of texts that differ, the one that has most in common with the others."""
    counts: dict[Any, float] = {}
    for each, weight in voters:
        counts[each] = counts.get(each, 0.0) + weight
    most = max(counts.values())
    leading = [each for each, count in counts.items() if count == most]
    if len(leading) == 1 or not isinstance(leading[0], str):
        return leading[0]
    words = {each: words_of(each) for each in counts}
    return max(leading, key=lambda each: sum(n * common(words[each], words[other]) for other, n in counts.items()))


def _count(value: Ballot, voters: list[Voter], total: float, path: Path, agreement: dict[Path, float]) -> None:
    agreement[path] = sum(weight for each, weight in voters if _equal(each, value)) / total
    if isinstance(value, dict):
        for key, item in value.items():
            having = [(each[key], weight) for each, weight in voters if isinstance(each, dict) and key in each]
            _count(item, having, total, (*path, key), agreement)
    elif isinstance(value, list):
        items: list[list[Voter]] = [[] for _ in value]
        for each, weight in voters:
            if isinstance(each, list):
                ordered, moved = align_pair(value, each)
                for number, at in {**ordered, **moved}.items():
                    items[number].append((each[at], weight))
        for number, others in enumerate(items):
            _count(value[number], others, total, (*path, number), agreement)


def _equal(one: Ballot, other: Ballot) -> bool:
    return type(one) is type(other) and one == other
