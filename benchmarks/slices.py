"""Loops compared in short slices that alternate, so that all of them meet the same disturbances of the machine.

A round runs a slice of every loop, in an order that changes from round to round. What is compared are the times within
one round; of these ratios the median is taken. Each loop has a context of its own, so that it goes on in its next
slice where it was.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def alternate(
    loops: Mapping[str, Callable[[], Iterator[object]]], rounds: int, tokens: int, done: Callable[[], None]
) -> dict[str, list[float]]:
    """Seconds per token of each loop, one number a round; ``done`` is called after each slice.

    A slice is ``tokens`` tokens or a few more. A loop that ends is begun again, and its prompt is not timed. The first
    round warms up and is left out.
    """
    running = {name: begin() for name, begin in loops.items()}
    for steps in running.values():
        next(steps)
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(rounds + 1):
        order = list(loops) if number % 2 else list(reversed(loops))
        for name in order:
            spent, count = 0.0, 0
            while count < tokens:
                started = time.perf_counter()
                if next(running[name], None) is None:
                    running[name] = loops[name]()
                    next(running[name])
                    continue
                spent += time.perf_counter() - started
                count += 1
            if number:
                seconds[name].append(spent / count)
            done()
    return seconds


def ratio(of: list[float], to: list[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(one / other for one, other in zip(of, to, strict=True))
