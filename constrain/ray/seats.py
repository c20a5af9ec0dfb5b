"""``Seats``: which actors of a pool answer, how many tasks each has, and which were lost and have not come back."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

LOOK_SECONDS = 1.0
"""Seconds after which a task without an actor looks whether the batch has ended."""


@dataclass(eq=False, slots=True)
class Seat:
    """An actor from its start, or its latest loss, to the next one.

    Attributes:
        actor: handle of the actor.
        tasks: number of tasks that it answers.
        is_reserved: whether one task waits to have it alone, or has it.
    """

    actor: Any
    tasks: int = 0
    is_reserved: bool = False


class Seats:
    """Gives the tasks of a pool to actors. Threads call it.

    Args:
        actors: actors that answer.
        recall: function that calls another one once the successor of a lost actor answers, with whether it can.
        waiting: function that is called with the seconds for which a task had no actor, each time that they double.
    """

    def __init__(
        self,
        actors: Iterable[Any],
        recall: Callable[[Any, Callable[[bool], None]], None],
        waiting: Callable[[float], None],
    ) -> None:
        self._seats = [Seat(actor) for actor in actors]
        self._away = 0
        self._recall = recall
        self._waiting = waiting
        self._changed = threading.Condition()

    def take(self, stop: Future[None], *, alone: bool) -> Seat:
        """Returns the actor with the fewest tasks, or one without other tasks; waits until there is one.

        Raises ``CancelledError`` once ``stop`` is done, and ``RuntimeError`` if no actor will come back.
        """
        told, begun = 60.0, time.monotonic()
        mine: Seat | None = None
        with self._changed:
            try:
                while not stop.done():
                    if mine is not None and mine not in self._seats:
                        mine = None
                    if mine is None:
                        mine = min(self._open(), key=lambda seat: seat.tasks, default=None)
                        if mine is not None:
                            mine.is_reserved = alone
                    if mine is not None and not (alone and mine.tasks):
                        mine.tasks += 1
                        found, mine = mine, None
                        return found
                    if not self._seats and not self._away:
                        raise RuntimeError("all actors have ended, and none can begin again")
                    self._changed.wait(LOOK_SECONDS)
                    if mine is None and time.monotonic() - begun >= told:
                        self._waiting(told)
                        told *= 2
                raise CancelledError
            finally:
                if mine is not None:
                    mine.is_reserved = False

    def give_back(self, seat: Seat, *, alone: bool, lost: bool) -> None:
        """Ends a task. If its actor was lost, no other task gets the actor until its successor answers."""
        with self._changed:
            seat.tasks -= 1
            if alone:
                seat.is_reserved = False
            is_first = lost and seat in self._seats
            if is_first:
                self._seats.remove(seat)
                self._away += 1
            self._changed.notify_all()
        if is_first:
            self._recall(seat.actor, lambda can_answer: self._return(seat.actor, can_answer=can_answer))

    def _open(self) -> list[Seat]:
        return [seat for seat in self._seats if not seat.is_reserved]

    def _return(self, actor: Any, *, can_answer: bool) -> None:
        with self._changed:
            self._away -= 1
            if can_answer:
                self._seats.append(Seat(actor))
            self._changed.notify_all()
