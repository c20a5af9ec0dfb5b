"""What is done for one request in a process of its own, within limits and beside all others.

A request that takes a moment has it at once. What takes longer stands still and goes on in turns, one process at a
time, and while a model writes answers all of them together have a tenth of a processor. To be nicer than the model's
threads would not do: they wait for each other at every layer, so any busy process takes one of their cores away
(``constrain.llama.threads.cores``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import pickle
import signal
import time
from dataclasses import replace
from time import clock_gettime
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from constrain.errors import LimitError
from constrain.server.http.errors import ApiError, failure, too_busy, unavailable
from constrain.server.sandbox.children import EXIT_CODE
from constrain.server.sandbox.worker import LENGTH, At, Done, Ended, Failed, TooLarge
from constrain.server.sandbox.workers import PATIENCE, workers

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable

    from constrain.server.requests.places import Place
    from constrain.server.sandbox.worker import Limits
    from constrain.vocabulary.vocabulary import Vocabulary

T = TypeVar("T")

_Outcome = Done | Failed | TooLarge | Ended
"""What can become of a call."""

_log = logging.getLogger("constrain.server")

_FIRST_SECONDS = 0.03
"""Of computing: the first turn. 49 of 50 schemas that people use take less."""

_LEAST_WAIT = 0.005
"""Seconds between two looks at how much a process has computed."""

_TURN_SECONDS = 0.02
"""Of computing: every later turn."""

_BUSY_SHARE = 0.1
"""Share of one processor that all later turns take together while a model writes answers. Without any, a schema that
takes more than its first turn (one in 50) would be refused whenever an answer is under way. With a tenth, a request
computes for 0.38 of the 3.5 seconds that it may take by default; one that needs more is a 429 until no answer is being
written. A larger share lets more through, and takes as much away from the model's threads, all of which wait for the
one that a turn has interrupted."""

_FIRST_AT_ONCE = 1
"""Processes in their first turn."""

_STANDING = 16
"""Processes that have had their first turn, at most."""

_WAITING_SECONDS = 0.5
"""So much longer than it may compute a request may wait for its turns."""


class Turns:
    """Whose turn it is. For the thread of one event loop.

    Args:
        is_busy: whether a model writes answers now.
    """

    def __init__(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        self.is_busy = is_busy
        self.first = asyncio.Semaphore(_FIRST_AT_ONCE)
        self.later = asyncio.Semaphore(1)
        self.standing = 0
        self._alone: WeakValueDictionary[bytes, asyncio.Semaphore] = WeakValueDictionary()

    def alone(self, key: bytes) -> asyncio.Semaphore:
        """One at a time for each key."""
        return self._alone.setdefault(key, asyncio.Semaphore(1))


class RemoteTracebackError(Exception):
    """The traceback of an error that a process raised, for the log."""

    def __init__(self, trace: str) -> None:
        super().__init__(f"\n{trace}")


class Session:
    """One request's process, made for its first call. ``close`` ends it.

    Attributes:
        limits: what the process may take.
        place: where in the request the process is, or was last.
        reached: seconds that it had computed for when it came there.
    """

    def __init__(self, turns: Turns, limits: Limits) -> None:
        self.limits = limits
        self.place: Place | None = None
        self.reached = 0.0
        self._turns = turns
        self._left = limits.seconds + _WAITING_SECONDS
        self._deadline = 0.0
        self._known: frozenset[bytes] = frozenset()
        self._process = 0
        self._report: socket.socket | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._computing = False

    async def run(self, vocabulary: Vocabulary | None, function: Callable[..., T], *args: Any) -> T:
        """What a function returns, called in the process, which knows a vocabulary. All of it can be pickled.

        Raises what it raises; ``LimitError`` if it takes too much; ``ApiError`` if too much else is going on, or if the
        process has ended for any other reason, which the log tells.
        """
        self._deadline = time.monotonic() + self._left
        self.place = None
        try:
            found = await self._found(vocabulary, (function, args))
        finally:
            self._left = self._deadline - time.monotonic()
        match found:
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
                raise _ended(found)
        raise self._limit(f"{self.limits.memory_bytes >> 20} MiB of memory")

    @contextlib.asynccontextmanager
    async def alone(self, key: bytes) -> AsyncIterator[bool]:
        """Keeps other sessions from doing the same, which has a key; tells whether one was waited for.

        Raises ``ApiError`` if that takes too long.
        """
        turn = self._turns.alone(key)
        has_waited = turn.locked()
        self._deadline = time.monotonic() + self._left
        async with self._turn(turn):
            self._left = self._deadline - time.monotonic()
            yield has_waited

    def another(self, share: float) -> Session:
        """A session for the same request, with a share of the time."""
        return Session(self._turns, replace(self.limits, seconds=share * self.limits.seconds))

    async def _found(self, vocabulary: Vocabulary | None, call: object) -> _Outcome:
        """What became of a call."""
        if vocabulary is not None and vocabulary.fingerprint not in self._known:
            self.close()
        if self._writer is None:
            await self._begin(vocabulary)
        async with self._turn(self._turns.first):
            self._send(call)
            self._computing = True
            outcome = asyncio.ensure_future(self._outcome())
            try:
                await self._compute_first(outcome)
            except asyncio.CancelledError:
                outcome.cancel()
                raise
        try:
            if not outcome.done():
                await self._go_on(outcome)
            found: _Outcome = outcome.result()
        finally:
            outcome.cancel()
        self._computing = False
        return found

    async def _compute_first(self, outcome: asyncio.Future[Any]) -> None:
        """Waits until the process is done, or has had its first turn. A busy machine is not held against it."""
        begun = time.monotonic()
        await self._compute(outcome, _FIRST_SECONDS)
        self._deadline += max(0.0, time.monotonic() - begun - _FIRST_SECONDS)

    async def _compute(self, outcome: asyncio.Future[Any], seconds: float) -> None:
        """Waits until the process is done, has computed so much longer, or has had all its time without doing so."""
        until = self._computed() + seconds
        while not outcome.done() and (left := until - self._computed()) > 0 and time.monotonic() < self._deadline:
            await asyncio.wait((outcome,), timeout=max(left, _LEAST_WAIT))

    def _computed(self) -> float:
        """Seconds that the process has computed for; endless once it has ended."""
        if not self._process:
            return math.inf
        try:
            return clock_gettime(~self._process << 3 | 2)  # Linux's clock of another process
        except OSError:
            return math.inf

    def close(self) -> None:
        """Ends the process."""
        if self._computing:  # else it ends by itself
            self._signal(signal.SIGKILL)
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._computing = False
        self._process = 0
        if self._report is not None:
            self._report.close()  # from here on another process may have the number
            self._report = None

    async def _begin(self, vocabulary: Vocabulary | None) -> None:
        begun = time.monotonic()
        try:
            loop = asyncio.get_running_loop()
            forked = await loop.run_in_executor(None, workers().fork, vocabulary)
        except (OSError, RuntimeError) as error:  # the system has no process, no memory, or no thread to ask for one
            _log.exception("no process can be made to compile in")
            raise _no_process() from error
        self._known, self._report = forked.known, forked.report
        self._report.settimeout(0)
        self._reader, self._writer = await asyncio.open_unix_connection(sock=forked.calls)
        self._send(self.limits)
        try:
            self._process = await asyncio.wait_for(self._message(), PATIENCE) or 0
        except asyncio.TimeoutError as error:
            _log.error("the program that forks processes to compile in stands still: another one takes its place")
            forked.program.kill()
            forked.program.wait()  # so that the next request finds it gone
            self.close()
            raise _no_process() from error
        if not self._process:
            _log.error("no process can be made to compile in: the program that forks them could not, or has ended")
            self.close()
            raise _no_process()
        self._deadline += time.monotonic() - begun  # the first process of all takes a while

    def _send(self, value: object) -> None:
        assert self._writer is not None
        data = pickle.dumps(value)
        self._writer.write(LENGTH.pack(len(data)) + data)

    async def _outcome(self) -> _Outcome:
        """What the process says last of a call."""
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
        """The next message; None if the process has ended."""
        assert self._reader is not None
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            return pickle.loads(await self._reader.readexactly(length))  # noqa: S301 - from our own processes
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def _end(self) -> Ended:
        """How the process, which has closed its socket, has ended."""
        assert self._report is not None
        try:
            data = await asyncio.get_running_loop().sock_recv(self._report, EXIT_CODE.size)
        except ConnectionError:
            data = b""
        return Ended(EXIT_CODE.unpack(data)[0] if data else None)

    async def _go_on(self, outcome: asyncio.Future[Any]) -> None:
        """Lets the process go on in turns until it is done."""
        turns = self._turns
        if turns.standing >= _STANDING:
            raise _busy()
        turns.standing += 1
        try:
            while not outcome.done():
                self._signal(signal.SIGSTOP)
                async with self._turn(turns.later):
                    begun = time.monotonic()
                    self._signal(signal.SIGCONT)
                    await self._compute(outcome, _TURN_SECONDS)
                    self._signal(signal.SIGSTOP)
                    if not outcome.done() and turns.is_busy():
                        rest = begun + _TURN_SECONDS / _BUSY_SHARE - time.monotonic()
                        await asyncio.wait((outcome,), timeout=max(0.0, rest))
                if time.monotonic() > self._deadline and not outcome.done():
                    raise _busy()
        finally:
            turns.standing -= 1
        self._signal(signal.SIGCONT)  # for the next call

    @contextlib.asynccontextmanager
    async def _turn(self, turn: asyncio.Semaphore) -> AsyncIterator[None]:
        waiting = asyncio.ensure_future(turn.acquire())
        try:
            await asyncio.wait((waiting,), timeout=max(0.0, self._deadline - time.monotonic()))
            if not waiting.done():
                raise _busy()
            yield
        finally:
            if waiting.done():
                turn.release()
            else:
                waiting.cancel()

    def _signal(self, number: int) -> None:
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, number)

    def _limit(self, limit: str) -> LimitError:
        return LimitError(f"it takes more than {limit} to compile; make it smaller, or simpler")


def _ended(end: Ended) -> ApiError:
    """What is answered for a process that has ended without having met a limit. The log has the reason."""
    _log.error("the process that compiles for this request was ended %s", end, extra={"event": "compile_process_ended"})
    return failure()


def _no_process() -> ApiError:
    return unavailable("The server cannot compile anything now.")


def _busy() -> ApiError:
    return too_busy("it compiles other large schemas")
