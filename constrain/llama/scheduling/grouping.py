"""Which sequences are evaluated together, so that a step costs least.

llama.cpp evaluates sequences together only if their numbers are adjacent; others it evaluates one group after another.
An idle sequence between two groups can take a token along, which is removed afterwards: one evaluation of five tokens
may cost less than two of two. Formats that are computed four rows at a time may make four tokens cheaper than three;
formats without fast kernels may make two tokens dearer than two evaluations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from constrain.llama.costs.table import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORTH_CHANGING = 0.95
"""Share of the cost of the plain groups below which other groups are taken: measurements differ by some per cent."""

_WIDENED = 8
"""Sizes of a group that are compared: layouts have up to eight rows."""


class Group(NamedTuple):
    """Adjacent sequences that are evaluated together.

    Attributes:
        first, last: numbers of the first and of the last sequence.
        members: how many of them have a token to evaluate; the others take one along.
    """

    first: int
    last: int
    members: int


class Grouping:
    """Finds groups by measured costs, and remembers them.

    Args:
        together: seconds by number of sequences with one token each.
    """

    def __init__(self, together: Mapping[int, float]) -> None:
        self._together = together
        self._find = lru_cache(maxsize=4096)(self._search)

    def groups(self, needed: tuple[int, ...], spare: tuple[int, ...], length: int = 1) -> tuple[Group, ...]:
        """Returns the cheapest groups that contain all ``needed`` sequences.

        ``needed``: ascending numbers of the sequences with tokens to evaluate. ``spare``: those of idle sequences that
        may take tokens along. ``length``: tokens of each sequence.
        """
        return self._find(needed, spare, length)

    def seconds(self, groups: tuple[Group, ...], length: int = 1) -> float:
        """The estimated seconds of groups of sequences with ``length`` tokens each."""
        return sum(self._cost(group, length) for group in groups)

    def _cost(self, group: Group, length: int) -> float:
        return estimate(self._together, (group.last - group.first + 1) * length)

    def _search(self, needed: tuple[int, ...], spare: tuple[int, ...], length: int) -> tuple[Group, ...]:
        plain = _adjacent(needed)
        best: list[tuple[float, tuple[Group, ...]]] = [(0.0, ())]  # for the first sequences
        free = set(spare)
        usable = free.union(needed)
        for end in range(1, len(needed) + 1):
            options = []
            for begin in range(end - 1, -1, -1):
                if begin < end - 1 and not usable.issuperset(range(needed[begin], needed[begin + 1])):
                    break
                group = self._widened(Group(needed[begin], needed[end - 1], end - begin), free, length)
                seconds, before = best[begin]
                options.append((seconds + self._cost(group, length), (*before, group)))
            best.append(min(options, key=lambda option: option[0]))
        seconds, found = best[-1]
        return found if seconds < _WORTH_CHANGING * self.seconds(plain, length) else plain

    def _widened(self, group: Group, free: set[int], length: int) -> Group:
        """The cheapest group that consists of this one and adjacent free sequences."""
        options = [group]
        while len(options) < _WIDENED and (group.last + 1 in free or group.first - 1 in free):
            is_behind = group.last + 1 in free
            group = group._replace(last=group.last + 1) if is_behind else group._replace(first=group.first - 1)
            options.append(group)
        return min(options, key=lambda option: self._cost(option, length))


def _adjacent(needed: tuple[int, ...]) -> tuple[Group, ...]:
    """Groups as llama.cpp would make them."""
    groups: list[Group] = []
    for number in needed:
        if groups and groups[-1].last == number - 1:
            groups[-1] = Group(groups[-1].first, number, groups[-1].members + 1)
        else:
            groups.append(Group(number, number, 1))
    return tuple(groups)
