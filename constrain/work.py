"""The work limit of one compilation, counted in steps, so that it does not depend on the speed of the machine."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from constrain.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_EXPANSION_WORK = 2_000_000
"""Steps of one compilation, about a second; the largest real schemas take 1,200,000. Beyond: LimitError.

Steps are counted by the size of what is made or compared (subschemas, keywords, pairs of alternatives, edges, digits of
bounds), never by time, and they do not depend on what is remembered.
The kernel's derivatives count, too, and differ by a few per cent from process to process, with the seed of its hashes.
"""


class _Work(threading.local):
    """What the compilation under way in this thread may still take; ``depth``: how many are within each other."""

    left = MAX_EXPANSION_WORK
    depth = 0


_work = _Work()


class _Collector(threading.local):
    """How many compilations of this thread, one within the other, keep the garbage collector at rest."""

    depth = 0


_collector = _Collector()
_collector_lock = threading.Lock()
_threads_compiling = 0
_was_enabled = False


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Keeps Python's garbage collector at rest while a grammar is made.

    The collector would traverse all that a compilation has made again and again, which doubles the time of large ones.
    Nothing of that is garbage before the end, and ``MAX_EXPANSION_WORK`` bounds it. When one of several threads ends,
    it collects what is young, so that threads that always compile something do not put that off for ever.
    """
    global _threads_compiling, _was_enabled  # noqa: PLW0603 - the collector is one for the process
    _collector.depth += 1
    if _collector.depth == 1:
        with _collector_lock:
            if _threads_compiling == 0:
                _was_enabled = gc.isenabled()
                gc.disable()
            _threads_compiling += 1
    try:
        yield
    finally:
        _collector.depth -= 1
        if _collector.depth == 0:
            with _collector_lock:
                _threads_compiling -= 1
                if _was_enabled and _threads_compiling == 0:
                    gc.enable()
                elif _was_enabled:
                    gc.collect(0)


@contextmanager
def compilation() -> Iterator[None]:
    """Allows this thread ``MAX_EXPANSION_WORK`` steps, unless a compilation that this one is part of is under way."""
    if _work.depth == 0:
        _work.left = MAX_EXPANSION_WORK
    _work.depth += 1
    try:
        yield
    finally:
        _work.depth -= 1


@contextmanager
def apart() -> Iterator[None]:
    """A budget of its own for what is remembered: what a compilation may take must not depend on what is known."""
    left, _work.left = _work.left, MAX_EXPANSION_WORK
    try:
        yield
    finally:
        _work.left = left


def spend(steps: int) -> None:
    """Adds steps to the compilation under way, if any. Raises ``LimitError`` without a place; callers add the place."""
    _work.left -= steps
    if _work.left < 0 and _work.depth:
        raise LimitError(
            f"to compile this takes more steps than MAX_EXPANSION_WORK = {MAX_EXPANSION_WORK}; "
            "leave parts out, or make it fewer or smaller ones"
        )


def steps_taken() -> int:
    """How many steps the compilation under way in this thread has taken, or the last one."""
    return MAX_EXPANSION_WORK - _work.left
