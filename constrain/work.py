"""What one compilation may take, counted in steps: the same on every machine, whatever was compiled before."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from constrain.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_EXPANSION_WORK = 2_000_000
"""Steps of one compilation, about a second; ``LimitError`` beyond. The largest real schemas take 1,200,000.

Steps are counted by the size of what is made or compared (subschemas, keywords, pairs of alternatives, edges, digits of
bounds), never by time, and they do not depend on what is remembered.
"""


class _Work(threading.local):
    """What the compilation under way in this thread may still take; ``depth``: how many are within each other."""

    left = MAX_EXPANSION_WORK
    depth = 0


_work = _Work()


class _Collector:
    """The garbage collector rests while anything is compiled.

    It would look through all that a compilation has made again and again, which doubles the time of large ones. Nothing
    of that is garbage before the end, and ``MAX_EXPANSION_WORK`` bounds it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resting = 0
        self._was_enabled = False

    def rest(self) -> None:
        with self._lock:
            if self._resting == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._resting += 1

    def go_on(self) -> None:
        with self._lock:
            self._resting -= 1
            if self._resting == 0 and self._was_enabled:
                gc.enable()
            elif self._was_enabled:  # threads that always compile something would put it off for ever
                gc.collect(0)


_collector = _Collector()


@contextmanager
def compilation() -> Iterator[None]:
    """Allows this thread ``MAX_EXPANSION_WORK`` steps, unless a compilation that this one is part of is under way."""
    if _work.depth == 0:
        _work.left = MAX_EXPANSION_WORK
        _collector.rest()
    _work.depth += 1
    try:
        yield
    finally:
        _work.depth -= 1
        if _work.depth == 0:
            _collector.go_on()


@contextmanager
def apart() -> Iterator[None]:
    """A budget of its own for what is remembered: what a compilation may take must not depend on what is known."""
    left, _work.left = _work.left, MAX_EXPANSION_WORK
    try:
        yield
    finally:
        _work.left = left


def spend(steps: int) -> None:
    """Counts steps of the compilation under way, if one is. Raises ``LimitError``; whoever knows the place adds it."""
    _work.left -= steps
    if _work.left < 0 and _work.depth:
        raise LimitError(
            f"to compile this takes more steps than MAX_EXPANSION_WORK = {MAX_EXPANSION_WORK}; "
            "leave parts out, or make it fewer or smaller ones"
        )


def is_spent() -> bool:
    """Whether the compilation under way in this thread has met its limit."""
    return _work.left < 0


def steps_taken() -> int:
    """How many steps the compilation under way in this thread has taken, or the last one."""
    return MAX_EXPANSION_WORK - _work.left
