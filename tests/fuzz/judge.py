"""What is expected of any input, however odd: an answer or a declared error, in little time and memory.

The same judgement is passed while fuzzing and when kept inputs are replayed.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from constrain import LimitError

MAX_SECONDS = 2.0
"""Of computing that a call may take, unless it ends in a ``LimitError``."""

MAX_LIMITED_SECONDS = 10.0
"""Of computing after which a ``LimitError`` comes too late to be of use."""

MAX_BYTES = 500 << 20
"""By which an input may make the process grow at most, unless it ends in a ``LimitError``."""


class BrokenPromiseError(AssertionError):
    """A target found that the package does something other than what it promises."""


@dataclass
class Meter:
    """Tells which calls take how long.

    ``slowest``: seconds of computing, in all threads, of the call that took most, and its name.
    """

    slowest: tuple[float, str] = (0.0, "")
    total: float = 0.0

    @contextlib.contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Times what is done within it."""
        begun = time.process_time()
        try:
            yield
        finally:
            took = time.process_time() - begun
            self.total += took
            self.slowest = max(self.slowest, (took, name))


@dataclass(frozen=True)
class Verdict:
    """What became of an input.

    ``outcome``: "answered", or the name of the error; ``problem``: what is wrong with that, ``""`` for nothing;
    ``signature``: the same for problems of one cause; ``excess``: what it took too much of, by this build.
    """

    outcome: str
    problem: str = ""
    signature: str = ""
    excess: str = ""
    seconds: float = 0.0
    bytes: int = field(default=0)


def judge(target: ModuleType, data: bytes) -> Verdict:
    """Has a target read an input."""
    meter, before = Meter(), _begin_measuring()
    problem = signature = ""
    limited = False
    try:
        outcome = target.run(data, meter) or "answered"
    except target.DECLARED as error:
        outcome, limited = type(error).__name__, isinstance(error, LimitError)
        if not str(error).strip():
            problem, signature = f"{outcome} without a message", f"{outcome} empty"
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        outcome = type(error).__name__
        problem = "".join(traceback.format_exception(error, limit=-40))[-6000:]
        signature = _signature(error)
    grown = _grown(before)
    seconds, name = meter.slowest
    excess = ""
    if seconds > (MAX_LIMITED_SECONDS if limited else MAX_SECONDS):
        excess = f"{name} took {seconds:.2f} s and ended as {outcome}"
    elif grown > MAX_BYTES and not limited:
        excess = f"the process grew by {grown >> 20} MiB, ended as {outcome}"
    return Verdict(outcome, problem, signature, excess, seconds, grown)


def _signature(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/constrain/" in frame.filename] or list(frames)
    last = own[-1]
    return f"{type(error).__name__} {Path(last.filename).name}:{last.lineno} {str(error)[:60]}"


_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def _begin_measuring() -> int:
    """Forgets the peak of memory so far; bytes in memory now. 0 where the system does not tell."""
    try:
        _CLEAR.write_text("5")
        return _kilobytes("VmRSS:") << 10
    except OSError:
        return 0


def _grown(before: int) -> int:
    try:
        return max(0, (_kilobytes("VmHWM:") << 10) - before) if before else 0
    except OSError:
        return 0


def _kilobytes(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise OSError(f"no {name}")
