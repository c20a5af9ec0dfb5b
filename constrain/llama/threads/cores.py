"""Cores that other programs leave to llama.cpp.

Threads of llama.cpp wait for each other some hundred times in each evaluation, and they wait by computing. So a thread
that has to share its core with another program stops all of them, and evaluations take up to ten times as long; two
programs that run llama.cpp stop each other. One thread less, and each has a core to itself.

    /proc/stat --> cores that others kept busy of late --> threads of the next evaluation

Only Linux tells what other programs do; elsewhere thread counts stay as they are.
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WINDOW = 0.1
"""Seconds between two looks at the machine. Linux counts in hundredths of a second: a shorter window tells little."""

_LONG_WINDOW = 0.5
"""Seconds; the mean over a longer window says little about the present, which is looked at instead."""

_SHORT_WINDOW = 0.05
"""Seconds that an evaluation is held back, after a long window, to see what others do, if more threads want to compute
than there are cores. An evaluation that others stop takes longer by more than that."""

_GLANCES = 3
_GLANCE_SECONDS = 0.001
"""Looks at the threads that run now, and seconds between two looks; a thread that all of them see counts as busy."""

_BUSY = 0.4
"""Share of one core that other programs use; from there on, one thread less is faster (measured on two cores)."""

_QUIET = 0.2
"""Share of one core that other programs use; below it, the core is taken back."""

_FIRST_HOLD, _LAST_HOLD = 0.1, 1.0
"""Seconds until cores are taken back. They double, from the first number to the second, each time that this was too
early: several programs that all do so would stop each other again and again."""

_WAITING_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
"""Environment variables that say how threads wait. Whoever sets one has chosen, and gets all threads, always."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was computed until some time.

    Attributes:
        at: that time, in seconds.
        busy: CPU seconds of all programs, on the cores that this process may use.
        own: CPU seconds of this process.
    """

    at: float
    busy: float
    own: float


class Machine(Protocol):
    """Where samples come from."""

    @property
    def count(self) -> int:
        """Cores that this process may use."""

    @property
    def spare(self) -> int:
        """Cores that this process may not use."""

    def now(self) -> float:
        """A time in seconds."""

    def sleep(self, seconds: float) -> None:
        """Waits."""

    def sample(self) -> Sample:
        """What was computed until now."""

    def others_running(self) -> int:
        """Threads of other processes that compute now, or would if there were a core."""


class Cores:
    """How many threads evaluations of this process may use. Any thread may ask.

    >>> with Cores(machine).claim(8) as threads:  # doctest: +SKIP
    ...     evaluate(threads)
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._in_use = 0  # by evaluations under way
        self._last = machine.sample()
        self._limit: int | None = None  # Cores left by others, once that is known.
        self._hold = _FIRST_HOLD
        self._held_until = self._raised_at = -math.inf

    @contextlib.contextmanager
    def claim(self, wanted: int) -> Iterator[int]:
        """Threads for one evaluation: ``wanted`` or fewer, one at least. They count as in use inside."""
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
        """Whether others left so many cores, when last looked at."""
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
        """Cores that are free for so many threads, after a window that is too long or too short to tell."""
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
        """Whether so many threads more than compute already would have to share cores.

        One that computes for a moment only is not there at each glance. While others have been busy, one glance that
        finds them is enough.
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
    """This machine, if Linux tells what its cores do."""

    _PER_SECOND = os.sysconf("SC_CLK_TCK") if sys.platform == "linux" else 100

    @property
    def count(self) -> int:
        """See ``Machine``."""
        return len(os.sched_getaffinity(0))

    @property
    def spare(self) -> int:
        """See ``Machine``."""
        return max(0, (os.cpu_count() or 1) - self.count)

    def now(self) -> float:
        """See ``Machine``."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See ``Machine``."""
        time.sleep(seconds)

    def sample(self) -> Sample:
        """See ``Machine``."""
        text = Path("/proc/stat").read_text("ascii")
        cores = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        if len(cores) == os.cpu_count():
            cores = {"cpu"}  # Their sum is rounded once.
        ticks = 0
        for line in text.splitlines():
            if not line.startswith("cpu"):
                break
            name, *counts = line.split()
            if name in cores:
                user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = map(int, counts[:8])
                ticks += user + nice + system + interrupts + soft_interrupts + stolen
        return Sample(time.monotonic(), ticks / self._PER_SECOND, time.process_time())

    def others_running(self) -> int:
        """See ``Machine``."""
        own = 0
        for task in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):  # that thread has ended
                own += (task / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"R"
        text = Path("/proc/stat").read_text("ascii")
        running = int(text.rpartition("procs_running ")[2].split()[0])
        return max(0, running - own)


@cache
def shared_cores() -> Cores | None:
    """What evaluations of this process share; ``None`` where all threads are to be used always."""
    return Cores(Linux()) if sys.platform == "linux" and _may_choose(os.environ) and _tells() else None


def _may_choose(environment: Mapping[str, str]) -> bool:
    return not any(name in environment for name in _WAITING_VARIABLES)


def _tells() -> bool:
    """Whether ``/proc/stat`` is there and counts: in some sandboxes all its numbers are zero."""
    try:
        return Linux().sample().busy > 0 and Linux().others_running() >= 0
    except (OSError, ValueError, IndexError):
        return False
