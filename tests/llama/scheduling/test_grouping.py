"""Which sequences are evaluated together: the cheapest groups, compared with every other division."""

from __future__ import annotations

import random
from itertools import product

from constrain.llama.costs.table import estimate
from constrain.llama.scheduling.grouping import Group, Grouping
from tests.support import for_each

FOURS = {1: 1.0, 2: 1.4, 3: 1.9, 4: 1.5, 6: 2.6, 8: 2.3}
"""Four rows at a time: three tokens cost more than four, six more than eight."""

DEAR = {1: 1.0, 2: 2.5, 8: 10.0}
"""Two tokens cost more than two evaluations."""


@for_each(
    "costs, needed, spare, groups",
    (FOURS, (0, 1, 2), (3, 4), [Group(0, 3, 3)]),
    (FOURS, (1, 2, 3), (0,), [Group(0, 3, 3)]),
    (FOURS, (0, 1, 2), (), [Group(0, 2, 3)]),
    (FOURS, (0, 2, 4, 6), (1, 3, 5, 7), [Group(0, 7, 4)]),
    (FOURS, (0, 7), (1, 2, 3, 4, 5, 6), [Group(0, 0, 1), Group(7, 7, 1)]),
    (DEAR, (0, 1, 2), (), [Group(0, 0, 1), Group(1, 1, 1), Group(2, 2, 1)]),
)
def test_groups(costs: dict[int, float], needed: tuple[int, ...], spare: tuple[int, ...], groups: list[Group]) -> None:
    assert list(Grouping(costs).groups(needed, spare)) == groups


def test_measurements_that_differ_by_noise_change_nothing() -> None:
    assert Grouping({1: 1.0, 2: 2.02, 3: 3.0, 4: 2.98}).groups((0, 1, 2), (3,)) == (Group(0, 2, 3),)


def least(costs: dict[int, float], needed: tuple[int, ...], spare: tuple[int, ...]) -> float:
    """The least cost of all divisions, each group as wide as it may be: found by trying all."""
    best = float("inf")
    usable = {*needed, *spare}
    for ends in product([False, True], repeat=len(needed) - 1):
        cost, begin = 0.0, 0
        for end, is_end in enumerate([*ends, True]):
            if not is_end:
                continue
            first, last = needed[begin], needed[end]
            begin = end + 1
            if not usable.issuperset(range(first, last + 1)):
                cost = float("inf")
                break
            lower, upper = first, last
            while lower - 1 in spare:
                lower -= 1
            while upper + 1 in spare:
                upper += 1
            cost += min(estimate(costs, size) for size in range(last - first + 1, upper - lower + 2))
        best = min(best, cost)
    return best


@for_each("seed", range(200))
def test_no_other_division_costs_less(seed: int) -> None:
    rng = random.Random(seed)
    costs = {size: rng.uniform(0.5, 2) * size**0.7 for size in (1, 2, 3, 4, 6, 8)}
    numbers = list(range(8))
    rng.shuffle(numbers)
    needed = tuple(sorted(numbers[: rng.randint(1, 7)]))
    spare = tuple(
        sorted(rng.sample([each for each in range(8) if each not in needed], rng.randint(0, 8 - len(needed))))
    )
    grouping = Grouping(costs)
    groups = grouping.groups(needed, spare)
    assert grouping.seconds(groups) <= least(costs, needed, spare) / 0.95 + 1e-9
    covered = [number for group in groups for number in range(group.first, group.last + 1)]
    assert {*needed} <= {*covered} <= {*needed, *spare}
    assert [sum(group.first <= each <= group.last for each in needed) for group in groups] == [
        group.members for group in groups
    ]
