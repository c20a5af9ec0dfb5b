"""Slow choices, each in a thread of its own, so that other sequences go on meanwhile.

Most choices only look up a mask; a thread for each would cost more than the choice. Most computed masks take a moment,
which the scheduler waits for. A choice that takes longer continues at low priority, behind all other programs.
"""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Generic, TypeVar

from constrain.errors import ModelError
from constrain.system import lower_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_NICE = 10
"""Nice value (lower priority) of a thread that did not choose its token in time."""


class Decision(Generic[T]):
    """The choice of a token: a call of ``decide`` in a thread of its own, started at once.

    Attributes:
        outcome: the result or the error of ``decide``.

    Raises ``ModelError`` if the system has no thread for it.
    """

    def __init__(self, decide: Callable[[], T]) -> None:
        self.outcome: Future[T] = Future()
        self._is_lowered = False
        # Not a daemon: the thread may be in the kernel or in llama.cpp when the interpreter wants to exit.
        self._thread = threading.Thread(target=self._run, args=(decide,), name="constrain-decide", daemon=False)
        try:
            self._thread.start()
        except RuntimeError as error:
            raise ModelError(f"the system has no thread to choose the next token in: {error}") from error

    def step_back(self) -> None:
        """Lowers the priority of the thread below everything else on the machine."""
        if not self._is_lowered:
            self._is_lowered = True
            assert self._thread.native_id is not None
            lower_thread(self._thread.native_id, _NICE)

    def join(self) -> None:
        """Waits until the thread has ended."""
        self._thread.join()

    def _run(self, decide: Callable[[], T]) -> None:
        try:
            self.outcome.set_result(decide())
        except BaseException as error:  # noqa: BLE001 - raised where the outcome is read
            self.outcome.set_exception(error)


def await_all(decisions: Sequence[Decision[T]], seconds: float) -> None:
    """Waits until all of these token choices are finished, at most ``seconds``; lowers the priority of the others."""
    wait([decision.outcome for decision in decisions], seconds)
    for decision in decisions:
        if not decision.outcome.done():
            decision.step_back()


def await_any(decisions: Sequence[Decision[T]], seconds: float) -> None:
    """Waits until the first of these token choices is finished, at most ``seconds``."""
    wait([decision.outcome for decision in decisions], seconds, FIRST_COMPLETED)
