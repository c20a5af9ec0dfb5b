"""Masks computed by a second thread while llama.cpp, which needs no GIL, computes.

If llama.cpp uses all cores, no mask is prepared: the second thread would take a core from llama.cpp. Most masks are
known and need no second thread.
"""

from __future__ import annotations

from concurrent.futures import wait
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from constrain.system import usable_processors
from constrain.thread_pools import start_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")


class Preparable(Protocol):
    """The method that prepares the next choice (``constrain.llama.decoding.answer.Answer``)."""

    @property
    def is_prepared(self) -> bool:
        """Whether ``prepare`` has nothing to do."""

    def prepare(self) -> None:
        """Computes the next mask."""


def leaves_a_core(n_threads: int) -> bool:
    """Whether a core is free besides ``n_threads`` threads."""
    return n_threads < len(usable_processors())


def while_preparing(answers: Sequence[Preparable], evaluate: Callable[[], T], patience: float | None = None) -> T:
    """Returns the result of ``evaluate``; meanwhile, answers prepare their next masks.

    Preparation that has not begun when ``evaluate`` returns is cancelled; the choice computes its own mask, and meets
    the same error if preparation failed. Preparation that takes ``patience`` seconds longer than the evaluation goes
    on, and the choice waits for it. If the system has no second thread, nothing is prepared.
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
    except RuntimeError:  # no thread is available, or the interpreter is about to exit
        return []


@cache
def _helper() -> ThreadPoolExecutor:
    return start_pool(1, "constrain-mask")
