"""Choices that may take long, each in a thread of its own, so that other sequences go on meanwhile.

Most choices only look a mask up; handing these to a thread would cost more than they do. What has to be computed
mostly takes a moment, which is waited for. What goes on beyond that steps back behind everything else on the machine.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from constrain.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_NICE = 10
"""How far behind others a decision computes that was not made in time."""


class Decision(Generic[T]):
    """Calls ``decide`` at once.

    Attributes:
        outcome: what it returns or raises.

    Raises ``ModelError`` if the system has no thread for it.
    """

    def __init__(self, decide: Callable[[], T]) -> None:
        self.outcome: Future[T] = Future()
        self._is_lowered = False
        # No daemon: it may be in the kernel or in llama.cpp when the interpreter wants to end.
        self._thread = threading.Thread(target=self._run, args=(decide,), name="constrain-decide", daemon=False)
        try:
            self._thread.start()
        except RuntimeError as error:
            raise ModelError(f"the system has no thread to choose the next token in: {error}") from error

    def step_back(self) -> None:
        """Lets everything else on the machine compute first."""
        if self._is_lowered or sys.platform != "linux":  # others know no priorities of single threads
            return
        self._is_lowered = True
        assert self._thread.native_id is not None
        with suppress(OSError):  # the thread has ended
            os.setpriority(os.PRIO_PROCESS, self._thread.native_id, _NICE)

    def join(self) -> None:
        """Waits until the thread has ended."""
        self._thread.join()

    def _run(self, decide: Callable[[], T]) -> None:
        try:
            self.outcome.set_result(decide())
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever asks for the result
            self.outcome.set_exception(error)


def await_all(decisions: Sequence[Decision[T]], seconds: float) -> None:
    """Waits until all are made, no longer than that; those that are not step back."""
    wait([decision.outcome for decision in decisions], seconds)
    for decision in decisions:
        if not decision.outcome.done():
            decision.step_back()


def await_any(decisions: Sequence[Decision[T]], seconds: float) -> None:
    """Waits until one is made, no longer than that."""
    wait([decision.outcome for decision in decisions], seconds, FIRST_COMPLETED)
