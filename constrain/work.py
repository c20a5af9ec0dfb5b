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

Steps are counted by the size of the objects made or compared (subschemas, keywords, pairs of alternatives, edges,
digits of bounds), never by time, and do not depend on caches. The kernel's steps count, too; they differ by a few
per cent from process to process, with the seed of its hashes.
"""


class _Work(threading.local):
    """The steps that the current compilation of this thread may still take; ``depth``: the nesting of compilations."""

    left = MAX_EXPANSION_WORK
    depth = 0


_work = _Work()


class _Collector(threading.local):
    """The nesting of compilations of this thread that pause the garbage collector."""

    depth = 0


_collector = _Collector()
_collector_lock = threading.Lock()
_threads_compiling = 0
_was_enabled = False


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Pauses Python's garbage collector while a grammar is made.

    The collector would traverse all objects of the compilation repeatedly, which doubles the time of large ones. Almost
    all are in use until the end, and ``MAX_EXPANSION_WORK`` limits them. When one of several threads ends, it collects
    the young generation, so that threads that compile all the time cannot postpone collection forever.
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
    """Grants this thread ``MAX_EXPANSION_WORK`` steps, unless it is part of an enclosing compilation."""
    if _work.depth == 0:
        _work.left = MAX_EXPANSION_WORK
    _work.depth += 1
    try:
        yield
    finally:
        _work.depth -= 1


@contextmanager
def apart() -> Iterator[None]:
    """Grants a separate budget to work whose result is cached: the cost of a compilation must not depend on caches."""
    left, _work.left = _work.left, MAX_EXPANSION_WORK
    try:
        yield
    finally:
        _work.left = left


def spend(steps: int) -> None:
    """Counts steps of the current compilation, if any. Raises ``LimitError`` without a place; callers add the place."""
    _work.left -= steps
    if _work.left < 0 and _work.depth:
        raise LimitError(
            f"compiling this takes more steps than MAX_EXPANSION_WORK = {MAX_EXPANSION_WORK}; "
            "leave parts out, or make them smaller"
        )


def steps_taken() -> int:
    """Returns the steps of the current compilation of this thread, or of the last one."""
    return MAX_EXPANSION_WORK - _work.left
