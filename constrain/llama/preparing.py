"""Masks that a second thread computes while llama.cpp computes, which needs no GIL.

Left out where all cores are llama.cpp's: it would wait for the thread they are taken from. Most masks are known, and
need no second thread.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


class Preparable(Protocol):
    """What is prepared: ``constrain.llama.answer.Answer``."""

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
    ``patience`` seconds longer than the evaluation: it goes on, and the choice has to wait for it.
    """
    unprepared = [answer for answer in answers if not answer.is_prepared]
    preparing = [_helper().submit(answer.prepare) for answer in unprepared]
    try:
        return evaluate()
    finally:
        wait([future for future in preparing if not future.cancel()], patience)


@cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="constrain-mask")
