"""Cores that other programs leave free for llama.cpp.

Threads of llama.cpp wait for each other some hundred times in each evaluation, and they wait actively. A thread that
shares its core with another program therefore delays all of them, and an evaluation takes up to ten times as long; two
programs that run llama.cpp delay each other. With one thread less, each thread has a core to itself.

    /proc/stat --> cores that others kept busy of late --> threads of the next evaluation

Programs with a lower priority (``nice``), such as the processes in which the server compiles, count as none: they take
a core for a moment now and then, and one thread less would cost more.

Only Linux reports the load of other programs; on other systems thread counts stay as they are.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from constrain.system import CLOCK_TICKS, has_lower_priority, usable_processors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WINDOW = 0.1
"""Seconds between two measurements. Linux counts in hundredths of a second, so a shorter window is inexact."""

_LONG_WINDOW = 0.5
"""Seconds after which a mean is out of date; the load at this moment is measured instead."""

_SHORT_WINDOW = 0.05
"""Seconds that an evaluation waits after a long window to measure the load, if more threads want to compute than there
are cores. An evaluation that shares cores loses more time."""

_GLANCES = 3
_GLANCE_SECONDS = 0.001
"""Looks at the running threads, and seconds between two looks; a thread counts as busy if all looks see it."""

_BUSY = 0.4
"""Share of one core in use by other programs from which on one thread less is faster (measured on two cores)."""

_QUIET = 0.2
"""Share of one core in use by other programs below which llama.cpp uses the core again."""

_FIRST_HOLD, _LAST_HOLD = 0.1, 1.0
"""Seconds until a core is used again. They double, from the first number to the second, after each return that was too
early; otherwise several programs with this rule would delay each other again and again."""

_WAITING_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
"""Environment variables that set how threads wait. If one is set, all threads always compute."""


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU time used up to a moment.

    Attributes:
        at: the moment, in seconds.
        busy: CPU seconds of all programs without a lower priority, on the cores that this process may use.
        own: CPU seconds of this process.
    """

    at: float
    busy: float
    own: float


class Machine(Protocol):
    """The machine's cores and the CPU time that programs use."""

    @property
    def count(self) -> int:
        """The number of cores that this process may use."""

    @property
    def spare(self) -> int:
        """The number of cores that this process may not use."""

    def now(self) -> float:
        """Returns the current time in seconds."""

    def sleep(self, seconds: float) -> None:
        """Waits for some seconds."""

    def sample(self) -> Sample:
        """Returns the CPU time used until now."""

    def others_running(self) -> int:
        """Returns the number of threads of other processes that run or wait for a core now."""


class Cores:
    """The number of threads that evaluations of this process may use. Any thread may ask.

    >>> with Cores(machine).claim(8) as threads:  # doctest: +SKIP
    ...     evaluate(threads)
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._in_use = 0  # threads of running evaluations
        self._last = machine.sample()
        self._limit: int | None = None  # cores free of other programs, once measured
        self._hold = _FIRST_HOLD
        self._held_until = self._raised_at = -math.inf

    @contextlib.contextmanager
    def claim(self, wanted: int) -> Iterator[int]:
        """Claims threads for one evaluation: at most ``wanted``, at least one. Inside, they count as in use."""
        if wanted == 1:
            granted = 1
        else:
            with self._lock:
                granted = max(1, min(wanted, self._current_limit(wanted) - self._in_use))
        self._change_use(granted)
        try:
            yield granted
        finally:
            self._change_use(-granted)

    def are_free(self, count: int) -> bool:
        """Whether other programs left ``count`` cores free at the last measurement."""
        return count <= (self._machine.count if self._limit is None else self._limit)

    def _change_use(self, threads: int) -> None:
        with self._lock:
            self._in_use += threads

    def _current_limit(self, wanted: int) -> int:
        age = self._machine.now() - self._last.at
        if self._limit is None or age >= _LONG_WINDOW:
            self._limit = self._next_limit(self._free_now(age, wanted))
        elif age >= _WINDOW:
            self._limit = self._next_limit(self._free_since_last())
        return self._limit

    def _free_now(self, age: float, wanted: int) -> float:
        """Returns the free cores for ``wanted`` threads, after a window that is too long or too short for a mean."""
        free = self._free_since_last() if age >= _WINDOW else float(self._machine.count)
        if not self._is_crowded(wanted):
            return float(self._machine.count)
        if free < wanted - _BUSY:
            return free
        self._machine.sleep(_SHORT_WINDOW)
        return self._free_since_last()

    def _free_since_last(self) -> float:
        before, self._last = self._last, self._machine.sample()
        seconds = self._last.at - before.at
        others = (self._last.busy - before.busy) - (self._last.own - before.own)
        return self._machine.count - max(0.0, others) / seconds

    def _is_crowded(self, wanted: int) -> bool:
        """Whether ``wanted`` more threads would have to share cores.

        A thread that runs only for a moment is not there at every look. If other programs were busy before, one look
        that sees them is enough.
        """
        machine = self._machine
        expected = self._limit is not None and self._limit < wanted
        for glance in range(_GLANCES):
            if glance:
                machine.sleep(_GLANCE_SECONDS)
            if (machine.others_running() + wanted > machine.count + machine.spare) is expected:
                return expected
        return not expected

    def _next_limit(self, free: float) -> int:
        limit, now = self._machine.count if self._limit is None else self._limit, self._machine.now()
        if (lower := math.floor(free + _BUSY)) < limit:
            too_early = now - self._raised_at < 10 * self._hold
            self._hold = min(2 * self._hold, _LAST_HOLD) if too_early else _FIRST_HOLD
            self._held_until = now + self._hold
            return max(1, lower)
        if (higher := math.floor(free + _QUIET)) > limit and now >= self._held_until:
            self._raised_at = now
            return higher
        return limit


class Linux:
    """This machine, as Linux reports the load of its cores."""

    @property
    def count(self) -> int:
        """The number of cores that this process may use."""
        return len(usable_processors())

    @property
    def spare(self) -> int:
        """The number of cores that this process may not use."""
        return max(0, (os.cpu_count() or 1) - self.count)

    def now(self) -> float:
        """Returns the current time in seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits for some seconds."""
        time.sleep(seconds)

    def sample(self) -> Sample:
        """Returns the CPU time used until now."""
        text = Path("/proc/stat").read_text("ascii")
        cores = {f"cpu{number}" for number in usable_processors()}
        if len(cores) == os.cpu_count():
            cores = {"cpu"}  # the system's own sum is rounded only once
        ticks, is_lower = 0, has_lower_priority()
        for line in text.splitlines():
            if not line.startswith("cpu"):
                break
            name, *counts = line.split()
            if name in cores:
                user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = map(int, counts[:8])
                ticks += user + is_lower * nice + system + interrupts + soft_interrupts + stolen
        return Sample(time.monotonic(), ticks / CLOCK_TICKS, time.process_time())

    def others_running(self) -> int:
        """Returns the number of threads of other processes that run or wait for a core now."""
        own = 0
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):  # the thread has ended
                own += (task / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"R"
        text = Path("/proc/stat").read_text("ascii")
        running = int(text.rpartition("procs_running ")[2].split()[0])
        return max(0, running - own)


@cache
def shared_cores() -> Cores | None:
    """The cores that evaluations of this process share; ``None`` if all threads always compute."""
    return Cores(Linux()) if sys.platform == "linux" and _may_choose(os.environ) and _has_counts() else None


def _may_choose(environment: Mapping[str, str]) -> bool:
    return not any(name in environment for name in _WAITING_VARIABLES)


def _has_counts() -> bool:
    """Whether ``/proc/stat`` exists and counts; in some sandboxes all its numbers are zero."""
    try:
        return Linux().sample().busy > 0 and Linux().others_running() >= 0
    except (OSError, ValueError, IndexError):
        return False
