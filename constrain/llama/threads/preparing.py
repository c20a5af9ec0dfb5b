"""Masks that a second thread computes while llama.cpp computes, which needs no GIL.

Left out where all cores are llama.cpp's: it would wait for the thread they are taken from. Most masks are known, and
need no second thread.
"""

from __future__ import annotations

import os
from concurrent.futures import wait
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from constrain.thread_pools import start_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")


class Preparable(Protocol):
    """What is prepared: ``constrain.llama.decoding.answer.Answer``."""

    @property
    def is_prepared(self) -> bool:
        """Whether ``prepare`` has nothing to do."""

    def prepare(self) -> None:
        """Computes the next mask."""


def leaves_a_core(n_threads: int) -> bool:
    """Whether another thread can compute beside so many."""
    return n_threads < len(os.sched_getaffinity(0))


def while_preparing(answers: Sequence[Preparable], evaluate: Callable[[], T], patience: float | None = None) -> T:
    """What ``evaluate`` returns. Meanwhile, answers prepare their next choices.

    What has not begun by then is left to the choice itself; so is an error, which it meets again. So is what takes
    ``patience`` seconds longer than the evaluation: it goes on, and the choice has to wait for it. All is left to the
    choices where the system has no second thread.
    """
    preparing = _begin([answer for answer in answers if not answer.is_prepared])
    try:
        return evaluate()
    finally:
        wait([future for future in preparing if not future.cancel()], patience)


def _begin(answers: Sequence[Preparable]) -> list[Future[Any]]:
    if not answers:
        return []
    try:
        helper = _helper()
        return [helper.submit(answer.prepare) for answer in answers]
    except RuntimeError:  # there is no thread for it, or the interpreter is about to end
        return []


@cache
def _helper() -> ThreadPoolExecutor:
    return start_pool(1, "constrain-mask")
