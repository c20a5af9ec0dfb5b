"""A session: work for one request in a process of its own, next to other requests; a limit or crash becomes an error.

Calls begin one after the other, and one that takes longer goes on next to others, with a lower priority (``children``).
The limit on time counts what the process itself computes, so that a busy machine refuses nothing. The clock on the wall
bounds only how long a request waits for all its calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import time
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from constrain.errors import LimitError
from constrain.server.http.errors import ApiError, failure, too_busy, unavailable
from constrain.server.http.pace import Pace
from constrain.server.sandbox.children import END, EXIT_CODE, LENGTH
from constrain.server.sandbox.worker import READY, At, Done, Ended, Failed
from constrain.server.sandbox.workers import PATIENCE, workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from constrain.server.requests.places import Place
    from constrain.server.sandbox.worker import Limits
    from constrain.vocabulary.vocabulary import Vocabulary

T = TypeVar("T")

_Outcome = Done | Failed | Ended
"""The outcome of a call."""

_log = logging.getLogger("constrain.server")

_FIRST_SECONDS = 0.05
"""Seconds after which a call lets the next one begin, and goes on next to it: 0.05. 49 of 50 schemas in practice take
less than 0.03.
"""

_MOST_AT_ONCE = 16
"""Calls that go on longer at the same time: 16; beyond it, status 429."""

_USUAL_SECONDS = 1.0
"""Seconds that such a call takes, before any was measured: 1."""

_WAITING_SECONDS = 300.0
"""Seconds that a request may wait for its calls, unless the server says otherwise: 300; beyond it, status 429."""


class Pool:
    """The calls of all sessions at this moment. For the thread of one event loop.

    Args:
        waiting_seconds: seconds that one request may wait for its calls.

    Attributes:
        first: admits one new call at a time.
        computing: calls that take longer.
        pace: seconds that these take.
        refusals: errors of constraints that were refused, for those who compile them.
    """

    def __init__(self, waiting_seconds: float = _WAITING_SECONDS) -> None:
        self.waiting_seconds = waiting_seconds
        self.first = asyncio.Semaphore(1)
        self.computing = 0
        self.pace = Pace(_USUAL_SECONDS)
        self.refusals: OrderedDict[bytes, ApiError] = OrderedDict()
        self._alone: WeakValueDictionary[bytes, asyncio.Semaphore] = WeakValueDictionary()

    def alone(self, key: bytes) -> asyncio.Semaphore:
        """Returns the semaphore that admits one session at a time for a key."""
        return self._alone.setdefault(key, asyncio.Semaphore(1))

    def busy(self) -> ApiError:
        """Returns the error 429 for a request that finds no room."""
        return too_busy("it compiles other large schemas", self.pace.seconds * self.computing)


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

    def __init__(self, pool: Pool, limits: Limits) -> None:
        self.limits = limits
        self.place: Place | None = None
        self.reached = 0.0
        self._pool = pool
        self._left = pool.waiting_seconds
        self._known: frozenset[bytes] = frozenset()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def refusals(self) -> OrderedDict[bytes, ApiError]:
        """Errors of constraints that were refused, shared by all sessions."""
        return self._pool.refusals

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
        if found.has_used_its_time:
            raise self._limit(f"{self.limits.seconds:g} seconds")
        if found.has_used_its_memory:
            raise self._limit(f"{self.limits.memory_bytes >> 20} MiB of memory")
        raise _log_end(found)

    @contextlib.asynccontextmanager
    async def alone(self, key: bytes) -> AsyncIterator[bool]:
        """Keeps other sessions from doing work with the same key; yields whether this session has waited for another.

        Raises ``ApiError`` if the wait takes too long.
        """
        one = self._pool.alone(key)
        has_waited = one.locked()
        async with self._admitted(one):
            yield has_waited

    def another(self, share: float) -> Session:
        """Returns a session for the same request, with a share of its time limit."""
        return Session(self._pool, replace(self.limits, seconds=share * self.limits.seconds))

    def close(self) -> None:
        """Ends the process."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    async def _call(self, vocabulary: Vocabulary | None, call: object) -> _Outcome:
        """Returns the outcome of a call."""
        if vocabulary is not None and vocabulary.fingerprint not in self._known:
            self.close()
        if self._writer is None:
            await self._begin(vocabulary)
        outcome = asyncio.ensure_future(self._outcome())
        try:
            async with self._admitted(self._pool.first):
                self._send(call)
                await self._wait_for(outcome, min(self._left, _FIRST_SECONDS))
            if not outcome.done():
                await self._compute(outcome)
            found: _Outcome = outcome.result()
        finally:
            outcome.cancel()
        return found

    async def _compute(self, outcome: asyncio.Future[_Outcome]) -> None:
        """Waits for the outcome of a call that takes longer. Raises ``ApiError``."""
        pool, begun = self._pool, time.monotonic()
        if pool.computing >= _MOST_AT_ONCE:
            raise pool.busy()
        pool.computing += 1
        try:
            await self._wait_for(outcome, self._left)
        finally:
            pool.computing -= 1
            pool.pace.add(time.monotonic() - begun)
        if not outcome.done():
            raise pool.busy()

    async def _begin(self, vocabulary: Vocabulary | None) -> None:
        try:
            loop = asyncio.get_running_loop()
            forked = await loop.run_in_executor(None, workers().fork, vocabulary)
        except (OSError, RuntimeError) as error:  # the system has no process, no memory, or no thread for the fork
            _log.exception("no process can be made to compile in")
            raise _no_process() from error
        self._known = forked.known
        self._reader, self._writer = await asyncio.open_connection(sock=forked.connection)
        self._send(self.limits)
        try:
            first = await asyncio.wait_for(self._message(), PATIENCE)
        except asyncio.TimeoutError as error:
            _log.error("the program that forks processes to compile in stands still: another one takes its place")
            forked.program.kill()
            forked.program.wait()  # so that the next request starts a new program
            self.close()
            raise _no_process() from error
        if first != READY:
            _log.error("no process can be made to compile in: the program that forks them could not, or has ended")
            self.close()
            raise _no_process()

    def _send(self, value: object) -> None:
        assert self._writer is not None
        data = pickle.dumps(value)
        self._writer.write(LENGTH.pack(len(data)) + data)

    async def _outcome(self) -> _Outcome:
        """Waits for the outcome of a call, and records reported places."""
        while isinstance(message := await self._message(), At):
            self.place, self.reached = message.place, message.seconds
        found: _Outcome = message
        return found

    async def _message(self) -> Any:
        """Returns the next message; ``Ended`` if the process has ended."""
        assert self._reader is not None
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            if length == END:
                return Ended(*EXIT_CODE.unpack(await self._reader.readexactly(EXIT_CODE.size)))
            return pickle.loads(await self._reader.readexactly(length))  # noqa: S301 - from our own processes
        except asyncio.IncompleteReadError as error:  # it has ended within a message, or its program has
            code = error.partial[-EXIT_CODE.size :]
            return Ended(EXIT_CODE.unpack(code)[0] if len(code) == EXIT_CODE.size else None)
        except ConnectionError:
            return Ended(None)

    @contextlib.asynccontextmanager
    async def _admitted(self, semaphore: asyncio.Semaphore) -> AsyncIterator[None]:
        """Waits for a semaphore. Raises ``ApiError`` if the wait takes too long."""
        waiting = asyncio.ensure_future(semaphore.acquire())
        try:
            await self._wait_for(waiting, self._left)
            if not waiting.done():
                raise self._pool.busy()
            yield
        finally:
            if waiting.done():
                semaphore.release()
            else:
                waiting.cancel()

    async def _wait_for(self, future: asyncio.Future[Any], seconds: float) -> None:
        """Waits for a future for some seconds at most, which count as waiting of the request."""
        begun = time.monotonic()
        await asyncio.wait((future,), timeout=max(0.0, seconds))
        self._left -= time.monotonic() - begun

    def _limit(self, limit: str) -> LimitError:
        return LimitError(f"it takes more than {limit} to compile; make it smaller, or simpler")


def _log_end(end: Ended) -> ApiError:
    """Returns the error for a process that ended without exceeding a limit. The log has the reason."""
    _log.error("the process that compiles for this request was ended %s", end, extra={"event": "compile_process_ended"})
    return failure()


def _no_process() -> ApiError:
    return unavailable("The server cannot compile anything now.")
