"""The value that most samples agree on, field by field, and how many of them do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from constrain.voting.alignment import align_lists
from constrain.voting.similarity import similarity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.voting.ballots import Ballot, Path


def elect(ballots: Sequence[Ballot]) -> Ballot:
    """Returns the value that most of some samples (at least one) agree on, field by field."""
    kind, _ = Counter(map(_kind, ballots)).most_common(1)[0]
    same: list[Any] = [each for each in ballots if _kind(each) == kind]
    if kind == "object":
        return _merge_objects(same)
    return _merge_lists(same) if kind == "array" else _most_common(same)


def nearest(ballots: Sequence[Ballot], winner: Ballot) -> int:
    """Returns the number of the sample that has most in common with a value; the first of several."""
    return max(range(len(ballots)), key=lambda number: (similarity(ballots[number], winner), -number))


def agreement_with(value: Ballot, ballots: Sequence[Ballot]) -> dict[Path, float]:
    """Returns, by path, the share of samples that have the same part as a value, with items of lists lined up."""
    agreement: dict[Path, float] = {}
    _count(value, list(ballots), len(ballots), (), agreement)
    return agreement


def _merge_objects(ballots: list[dict[str, Ballot]]) -> dict[str, Ballot]:
    keys: dict[str, None] = {}
    for each in sorted(ballots, key=len, reverse=True):
        keys.update(dict.fromkeys(each))
    having = {key: [each[key] for each in ballots if key in each] for key in keys}
    return {key: elect(having[key]) for key in keys if 2 * len(having[key]) > len(ballots)}


def _merge_lists(ballots: list[list[Ballot]]) -> list[Ballot]:
    return [elect([*column.values()]) for column in align_lists(ballots) if 2 * len(column) > len(ballots)]


def _most_common(ballots: list[Any]) -> Any:
    """Returns the most frequent value; of texts that differ, the one that has most in common with the others."""
    counts = Counter(ballots)
    most = max(counts.values())
    leading = [each for each, count in counts.items() if count == most]
    if len(leading) == 1 or not isinstance(leading[0], str):
        return leading[0]
    return max(leading, key=lambda each: sum(similarity(each, other) for other in ballots))


def _count(value: Ballot, ballots: list[Ballot], voters: int, path: Path, agreement: dict[Path, float]) -> None:
    agreement[path] = sum(type(each) is type(value) and each == value for each in ballots) / voters
    if isinstance(value, dict):
        objects = [each for each in ballots if isinstance(each, dict)]
        for key, item in value.items():
            _count(item, [each[key] for each in objects if key in each], voters, (*path, key), agreement)
    elif isinstance(value, list):
        lists = [value, *(each for each in ballots if isinstance(each, list))]
        columns = [column for column in align_lists(lists) if 0 in column]
        for number, column in enumerate(columns):
            others = [item for voter, item in column.items() if voter]
            _count(value[number], others, voters, (*path, number), agreement)


def _kind(value: Ballot) -> str:
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    return type(value).__name__
