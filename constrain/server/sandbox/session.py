"""A session: work for one request in a process of its own, next to other requests; a limit or crash becomes an error.

Quick work is done at once. Longer work is paused and continues in turns, one process at a time; while a model writes
answers, turns get half of a processor at first, and a tenth of one after half a second. A lower priority (``nice``)
would not suffice: the model's threads wait for each other at every layer, so any busy process takes one of their cores
away (``constrain.llama.threads.cores``).

The limit on time counts what the process itself computes, so that a busy machine refuses nothing. The clock on the wall
bounds only the wait for turns of other requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import pickle
import time
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from constrain.errors import LimitError
from constrain.server.http.errors import ApiError, failure, too_busy, unavailable
from constrain.server.http.pace import Pace
from constrain.server.sandbox.children import EXIT_CODE
from constrain.server.sandbox.worker import LENGTH, At, Done, Ended, Failed, TooLarge
from constrain.server.sandbox.workers import PATIENCE, workers
from constrain.system import cpu_seconds_of, kill, pause, resume

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable

    from constrain.server.requests.places import Place
    from constrain.server.sandbox.worker import Limits
    from constrain.vocabulary.vocabulary import Vocabulary

T = TypeVar("T")

_Outcome = Done | Failed | TooLarge | Ended
"""The outcome of a call."""

_log = logging.getLogger("constrain.server")

_FIRST_SECONDS = 0.03
"""CPU seconds of a process's first turn: 0.03. 49 of 50 schemas in practice take less."""

_LEAST_WAIT = 0.005
"""Seconds between two looks at the CPU time of a process, at least."""

_TURN_SECONDS = 0.02
"""CPU seconds of every later turn: 0.02."""

_LONGEST_TURN = 1.0
"""Seconds on the clock after which a turn ends, if the process gets no processor or waits for something: 1."""

_WAKING_SECONDS = 0.001
"""CPU seconds that a process which waits for something takes at most in a turn: 0.001, to be woken up and stopped."""

_SHORT_SECONDS = 0.5
"""CPU seconds of later turns during which a process has ``_SHORT_SHARE``. 298 of 299 schemas of MaskBench take less."""

_SHORT_SHARE = 0.5
"""Share of one processor that turns take at first while a model writes answers."""

_BUSY_SHARE = 0.1
"""Share of one processor that turns take after ``_SHORT_SECONDS`` while a model writes answers. A larger share would
slow the model's threads as much, since all of them wait for the interrupted one. With none, a large schema would wait
for the end of all answers.
"""

_FIRST_AT_ONCE = 1
"""Processes in their first turn at the same time."""

_STANDING = 16
"""Processes that wait for a later turn; beyond it, status 429."""

_USUAL_SECONDS = 1.0
"""Seconds that the later turns of one process take together, before any was measured: 1."""

_WAITING_SECONDS = 300.0
"""Seconds that a request may wait for turns of others, unless the server says otherwise: 300; beyond it, status 429."""


class Turns:
    """The turns of all processes. For the thread of one event loop.

    Args:
        is_busy: function that returns whether a model writes answers now.
        waiting_seconds: seconds that one request may wait for turns of others.

    Attributes:
        standing: processes that wait for a later turn, or have one.
        pace: seconds that the later turns of one process take together.
        refusals: errors of constraints that were refused, for those who compile them.
    """

    def __init__(self, is_busy: Callable[[], bool] = lambda: False, waiting_seconds: float = _WAITING_SECONDS) -> None:
        self.is_busy = is_busy
        self.waiting_seconds = waiting_seconds
        self.pace = Pace(_USUAL_SECONDS)
        self.first = asyncio.Semaphore(_FIRST_AT_ONCE)
        self.later = asyncio.Semaphore(1)
        self.standing = 0
        self.refusals: OrderedDict[bytes, ApiError] = OrderedDict()
        self._alone: WeakValueDictionary[bytes, asyncio.Semaphore] = WeakValueDictionary()

    def alone(self, key: bytes) -> asyncio.Semaphore:
        """Returns the semaphore that admits one session at a time for a key."""
        return self._alone.setdefault(key, asyncio.Semaphore(1))

    def busy(self) -> ApiError:
        """Returns the error 429 for a request that finds no turn."""
        return too_busy("it compiles other large schemas", self.pace.seconds * self.standing)


class RemoteTracebackError(Exception):
    """The traceback of an error in a process, for the log."""

    def __init__(self, trace: str) -> None:
        super().__init__(f"\n{trace}")


class Session:
    """The process of one request, forked for its first call. ``close`` ends it.

    Attributes:
        limits: limits of the process.
        place: place in the request that the process reported last.
        reached: CPU seconds at the time of that report.
    """

    def __init__(self, turns: Turns, limits: Limits) -> None:
        self.limits = limits
        self.place: Place | None = None
        self.reached = 0.0
        self._turns = turns
        self._left = turns.waiting_seconds
        self._known: frozenset[bytes] = frozenset()
        self._process = 0
        self._report: socket.socket | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._computing = False

    @property
    def refusals(self) -> OrderedDict[bytes, ApiError]:
        """Errors of constraints that were refused, shared by all sessions."""
        return self._turns.refusals

    async def run(self, vocabulary: Vocabulary | None, function: Callable[..., T], *args: Any) -> T:
        """Calls a function in the process, which knows a vocabulary; returns the result. All values must be picklable.

        Raises the function's errors; ``LimitError`` if it exceeds a limit; ``ApiError`` if the server is too busy, or
        if the process ended for another reason, which the log has.
        """
        self.place = None
        match found := await self._call(vocabulary, (function, args)):
            case Done(value):
                result: T = value
                return result
            case Failed(error, trace):
                raise error from RemoteTracebackError(trace) if trace else None
        self.close()
        match found:
            case Ended() if found.has_used_its_time:
                raise self._limit(f"{self.limits.seconds:g} seconds")
            case Ended() if not found.has_used_its_memory:
                raise _log_end(found)
        raise self._limit(f"{self.limits.memory_bytes >> 20} MiB of memory")

    @contextlib.asynccontextmanager
    async def alone(self, key: bytes) -> AsyncIterator[bool]:
        """Keeps other sessions from doing work with the same key; yields whether this session has waited for another.

        Raises ``ApiError`` if the wait takes too long.
        """
        turn = self._turns.alone(key)
        has_waited = turn.locked()
        async with self._turn(turn):
            yield has_waited

    def another(self, share: float) -> Session:
        """Returns a session for the same request, with a share of its time limit."""
        return Session(self._turns, replace(self.limits, seconds=share * self.limits.seconds))

    async def _call(self, vocabulary: Vocabulary | None, call: object) -> _Outcome:
        """Returns the outcome of a call."""
        if vocabulary is not None and vocabulary.fingerprint not in self._known:
            self.close()
        if self._writer is None:
            await self._begin(vocabulary)
        async with self._turn(self._turns.first):
            self._send(call)
            self._computing = True
            outcome = asyncio.ensure_future(self._outcome())
            try:
                await self._compute(outcome, _FIRST_SECONDS)
            except asyncio.CancelledError:
                outcome.cancel()
                raise
        try:
            if not outcome.done():
                await self._take_turns(outcome)
            found: _Outcome = outcome.result()
        finally:
            outcome.cancel()
        self._computing = False
        return found

    async def _compute(self, outcome: asyncio.Future[Any], seconds: float) -> None:
        """Waits until the call is done, or the turn is over: the process has computed for ``seconds`` more."""
        until, end = self._read_cpu_seconds() + seconds, time.monotonic() + _LONGEST_TURN
        while not outcome.done() and (left := until - self._read_cpu_seconds()) > 0 and time.monotonic() < end:
            await asyncio.wait((outcome,), timeout=max(left, _LEAST_WAIT))

    def _read_cpu_seconds(self) -> float:
        """Returns the CPU seconds of the process; infinity once it has ended."""
        if not self._process:
            return math.inf
        try:
            return cpu_seconds_of(self._process)
        except OSError:
            return math.inf

    def close(self) -> None:
        """Ends the process."""
        if self._computing:  # an idle process ends by itself
            self._tell(kill)
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._computing = False
        self._process = 0
        if self._report is not None:
            self._report.close()  # from here on the system may reuse the process id
            self._report = None

    async def _begin(self, vocabulary: Vocabulary | None) -> None:
        try:
            loop = asyncio.get_running_loop()
            forked = await loop.run_in_executor(None, workers().fork, vocabulary)
        except (OSError, RuntimeError) as error:  # the system has no process, no memory, or no thread for the fork
            _log.exception("no process can be made to compile in")
            raise _no_process() from error
        self._known, self._report = forked.known, forked.report
        self._report.settimeout(0)
        self._reader, self._writer = await asyncio.open_connection(sock=forked.calls)
        self._send(self.limits)
        try:
            self._process = await asyncio.wait_for(self._message(), PATIENCE) or 0
        except asyncio.TimeoutError as error:
            _log.error("the program that forks processes to compile in stands still: another one takes its place")
            forked.program.kill()
            forked.program.wait()  # so that the next request starts a new program
            self.close()
            raise _no_process() from error
        if not self._process:
            _log.error("no process can be made to compile in: the program that forks them could not, or has ended")
            self.close()
            raise _no_process()

    def _send(self, value: object) -> None:
        assert self._writer is not None
        data = pickle.dumps(value)
        self._writer.write(LENGTH.pack(len(data)) + data)

    async def _outcome(self) -> _Outcome:
        """Waits for the outcome of a call, and records reported places."""
        while True:
            match message := await self._message():
                case At(place, seconds):
                    self.place, self.reached = place, seconds
                case None:
                    return await self._end()
                case _:
                    found: _Outcome = message
                    return found

    async def _message(self) -> Any:
        """Returns the next message; None if the process has ended."""
        assert self._reader is not None
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            return pickle.loads(await self._reader.readexactly(length))  # noqa: S301 - from our own processes
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def _end(self) -> Ended:
        """Returns how the process, which has closed its socket, has ended."""
        assert self._report is not None
        try:
            data = await asyncio.get_running_loop().sock_recv(self._report, EXIT_CODE.size)
        except ConnectionError:
            data = b""
        return Ended(EXIT_CODE.unpack(data)[0] if data else None)

    async def _take_turns(self, outcome: asyncio.Future[Any]) -> None:
        """Lets the process continue in turns until its call is done."""
        turns, taken, still = self._turns, 0.0, 0.0
        if turns.standing >= _STANDING:
            raise turns.busy()
        turns.standing += 1
        try:
            first = computed = self._read_cpu_seconds()
            while not outcome.done():
                self._tell(pause)
                async with self._turn(turns.later):
                    begun, before = time.monotonic(), computed
                    self._tell(resume)
                    await self._compute(outcome, _TURN_SECONDS)
                    self._tell(pause)
                    computed = self._read_cpu_seconds()
                    waits = computed - before < _WAKING_SECONDS
                    still = still + time.monotonic() - begun if waits else 0.0
                    if not outcome.done() and turns.is_busy():
                        share = _SHORT_SHARE if computed - first < _SHORT_SECONDS else _BUSY_SHARE
                        rest = begun + _TURN_SECONDS / share - time.monotonic()
                        await asyncio.wait((outcome,), timeout=max(0.0, rest))
                    taken += time.monotonic() - begun
                if still > PATIENCE and not outcome.done():
                    _log.error("a process that compiles has computed nothing for %g seconds: it is ended", PATIENCE)
                    raise _no_process()
        finally:
            turns.standing -= 1
            turns.pace.add(taken)
        self._tell(resume)  # ready for the next call

    @contextlib.asynccontextmanager
    async def _turn(self, turn: asyncio.Semaphore) -> AsyncIterator[None]:
        waiting, begun = asyncio.ensure_future(turn.acquire()), time.monotonic()
        try:
            await asyncio.wait((waiting,), timeout=max(0.0, self._left))
            self._left -= time.monotonic() - begun
            if not waiting.done():
                raise self._turns.busy()
            yield
        finally:
            if waiting.done():
                turn.release()
            else:
                waiting.cancel()

    def _tell(self, send: Callable[[int], None]) -> None:
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                send(self._process)

    def _limit(self, limit: str) -> LimitError:
        return LimitError(f"it takes more than {limit} to compile; make it smaller, or simpler")


def _log_end(end: Ended) -> ApiError:
    """Returns the error for a process that ended without exceeding a limit. The log has the reason."""
    _log.error("the process that compiles for this request was ended %s", end, extra={"event": "compile_process_ended"})
    return failure()


def _no_process() -> ApiError:
    return unavailable("The server cannot compile anything now.")
