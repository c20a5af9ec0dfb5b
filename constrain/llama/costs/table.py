"""The costs of one context: a table of seconds by the number of tokens, and estimates between its entries."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of one evaluation, by the number of tokens. A table may be empty if nothing is decided by it.

    Attributes:
        n_threads: threads that computed one token, and several.
        every: tokens of one sequence, with the logits after each of them.
        last: tokens of one sequence, with the logits after the last one only.
        together: sequences that are evaluated together, one token each, with all logits.
    """

    n_threads: tuple[int, int]
    every: Mapping[int, float]
    last: Mapping[int, float]
    together: Mapping[int, float]


def estimate(table: Mapping[int, float], count: int) -> float:
    """Returns the seconds for ``count`` tokens: linear between measured numbers, and in proportion beyond the last.

    ``table``: seconds by number of tokens, ascending; not empty.
    """
    if (known := table.get(count)) is not None:
        return known
    sizes = [*table]
    if count > sizes[-1]:
        return table[sizes[-1]] * count / sizes[-1]
    return float(np.interp(count, sizes, [*table.values()]))


ASSUMED = Costs((1, 1), {1: 1.0, 32: 8.0}, {1: 1.0, 32: 8.0}, {1: 1.0, 32: 8.0})
"""Costs that stand for those of a context that nobody has measured. Only their ratios matter."""
