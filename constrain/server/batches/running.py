"""Runs the batches of a server in the background, beside the requests of its clients.

The requests of all batches take turns for the places of a model: all but one of the answers that it writes at once, so
that clients who wait find a place. A request that finds the server busy is sent again. When the server ends, by a
signal or a crash, requests without an answer are left, and the next server goes on with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections import defaultdict
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from constrain.batch.lines import read_lines
from constrain.fields.values import FieldError
from constrain.server.batches.asking import Reply
from constrain.server.batches.files import new_file_id
from constrain.server.batches.journal import Journal, outcome
from constrain.server.batches.lines import LineRequest, check_file, name_of, read_request
from constrain.server.batches.record import read_records, write_record
from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from constrain.batch.files import BatchFiles
    from constrain.server.batches.asking import Asking
    from constrain.server.batches.files import FileStore
    from constrain.server.batches.folder import BatchFolder
    from constrain.server.batches.record import BatchRecord, Status

T = TypeVar("T")

_log = logging.getLogger("constrain.server")

_DISK_PAUSE = 30.0
"""Seconds that a batch waits after its files could not be read or written, such as on a full disk."""

KEPT_SECONDS = 90 * 24 * 3600
"""Seconds from the creation of a batch until its record is removed, if it has ended: 90 days. Files expire sooner."""

_GOING_ON: tuple[Status, ...] = ("validating", "in_progress", "finalizing", "cancelling")

_BUSY = 429
_UNAVAILABLE = 503

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a request is sent again, at first and at most; each pause is twice the one before."""

_CLOCK_PAUSE = 60.0
"""Seconds between two looks at the clock: 60. A machine may sleep for hours between them, and its clock may be set."""

_ATTEMPTS = {_BUSY: 60, _UNAVAILABLE: 6}
"""Times a request is sent while the answer is 429 (in half an hour) or 503; beyond, the last answer is its error."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What batches may take of a server.

    Attributes:
        of: function that returns, for any name of a model, its first name and the number of places batches have there.
        most: requests of one batch that are under way at the same time, for all models.
        longest: bytes of a line.
        is_stopping: function that returns whether the server ends answers early.
    """

    of: Callable[[str], tuple[str, int]]
    most: int
    longest: int
    is_stopping: Callable[[], bool] = lambda: False


class BatchRunner:
    """All batches of a server. Only the thread of the event loop may use it.

    Args:
        folder: folder that keeps them, open.
        files: files of clients.
        asking: sends requests to endpoints.
        owners: names of the owners whose batches run, by the name in files. Those of others, whose key was taken
            away, wait until their key is back or their time is up.
        shares: what batches may take of the server.
        clock: function that returns the seconds since 1970.
    """

    def __init__(
        self,
        folder: BatchFolder,
        files: FileStore,
        asking: Asking,
        owners: Mapping[str, str],
        shares: Shares,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._files = files
        self._asking = asking
        self._owners = owners
        self._shares = shares
        self._clock = clock
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._records = {each.id: each for each in read_records(folder.batches)}
        self._saving: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._cancelled: dict[str, asyncio.Event] = {}
        self._stopped = False

    def start(self) -> None:
        """Goes on with the batches that have not ended."""
        self._forget()
        for record in self._records.values():
            if record.has_ended:
                self._remove_journal(record)  # the last server may have ended before it did
            else:
                record.completed, record.failed = self._journal(record).count()
                self._begin(record)

    async def stop(self) -> None:
        """Stops all batches where they are, and begins none from now on. The next server goes on with them."""
        self._stopped = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def running(self) -> int:
        """Number of batches that have not ended."""
        return len(self._tasks)

    @property
    def fewest_left(self) -> int:
        """Number of unanswered requests of the batch that has the fewest, among those that have not ended."""
        records = [self._records[name] for name in self._tasks]
        return min((each.total - each.completed - each.failed for each in records if each.total), default=0)

    def of(self, owner: str) -> dict[str, BatchRecord]:
        """Returns the batches of an owner by their ids, oldest first. ``owner``: its name in files."""
        return {each.id: each for each in self._records.values() if each.owner == owner}

    async def add(self, record: BatchRecord) -> None:
        """Takes a new batch and begins it. Raises ``OSError``; then there is no such batch."""
        source = self._files.path(self._files.get(record.owner, record.input_file_id))
        await _in_thread(self._journal(record).create, source, record)
        self._records[record.id] = record
        self._begin(record)
        self._forget()

    async def cancel(self, record: BatchRecord) -> None:
        """Ends a batch early; what was answered is kept. Raises ``OSError``, and the batch goes on then."""
        ids = {"output_file_id": new_file_id(), "error_file_id": new_file_id()}
        after: tuple[Status, ...] = ("validating", "in_progress")
        if await self._enter(record, "cancelling", after=after, reason="cancelled", **ids):
            self._cancelled.get(record.id, asyncio.Event()).set()  # there is none if the server stops

    def _forget(self) -> None:
        """Removes the batches that ended long ago."""
        for record in list(self._records.values()):
            if record.has_ended and record.created_at + KEPT_SECONDS <= self._clock():
                del self._records[record.id]
                try:
                    shutil.rmtree(self._folder.batches / record.id)
                except OSError as error:
                    _log.warning("batch %s cannot be removed: %s", record.id, error)

    def _remove_journal(self, record: BatchRecord) -> None:
        """Removes what is left of a batch that has ended, but for its record."""
        try:
            self._journal(record).remove()
        except OSError as error:
            _log.warning("batch %s: leftovers stay: %s", record.id, error)

    def _begin(self, record: BatchRecord) -> None:
        if self._stopped:
            return
        self._cancelled[record.id] = asyncio.Event()
        task = Context().run(asyncio.get_running_loop().create_task, self._run(record))  # not that of a request
        self._tasks[record.id] = task
        task.add_done_callback(lambda _: self._end_task(record))

    def _end_task(self, record: BatchRecord) -> None:
        del self._tasks[record.id], self._cancelled[record.id]
        self._saving.pop(record.id, None)

    def _journal(self, record: BatchRecord) -> Journal:
        return Journal(self._folder.batches / record.id)

    async def _enter(self, record: BatchRecord, status: Status, *, after: Sequence[Status], **facts: Any) -> bool:
        """Changes the state of a batch, first on the disk; returns whether its state was one of ``after``.

        Raises ``OSError``; the batch is as before then.
        """
        async with self._saving[record.id]:
            if record.status not in after:
                return False
            changed = record.entering(status, self._clock(), **facts)
            writing = asyncio.ensure_future(asyncio.to_thread(write_record, self._folder.batches / record.id, changed))
            try:
                await finished(writing)
            finally:
                if not writing.cancelled() and writing.exception() is None:  # also if the caller was cancelled
                    for name in {"completed", "failed"} - facts.keys():  # more may have come meanwhile
                        setattr(changed, name, getattr(record, name))
                    record.become(changed)
            return True

    async def _run(self, record: BatchRecord) -> None:
        """Runs a batch to its end."""
        while not record.has_ended:
            await self._try(record)

    async def _try(self, record: BatchRecord) -> None:
        """Brings a batch to its end, or waits a while if its files cannot be used now."""
        try:
            await self._advance(record)
        except OSError as error:
            _log.error("batch %s waits %g seconds: its files cannot be used: %s", record.id, _DISK_PAUSE, error)
            await asyncio.sleep(_DISK_PAUSE)
        except Exception:  # noqa: BLE001 - the client has to hear of it, whatever it is
            _log.exception("batch %s failed", record.id)
            message = "The server had an error while it ran this batch; its log has the cause."
            fault = {"code": "internal_error", "line": None, "message": message, "param": None}
            facts: dict[str, Any] = {"errors": [fault], "output_file_id": None, "error_file_id": None}
            try:
                await self._enter(record, "failed", after=_GOING_ON, **facts)
            except OSError:  # the next server runs it again
                record.become(record.entering("failed", self._clock(), **facts))

    async def _advance(self, record: BatchRecord) -> None:
        """Brings a batch from its state to its end. Raises ``OSError``."""
        if record.status == "validating":
            await self._check(record)
        if record.status == "in_progress":
            reason = await self._answer(record)
            ids = {"output_file_id": new_file_id(), "error_file_id": new_file_id()}
            await self._enter(record, "finalizing", after=("in_progress",), reason=reason, **ids)
        if record.status in ("finalizing", "cancelling"):
            facts = await _in_thread(self._journal(record).finish, record, self._files, self._shares.longest)
            await self._enter(record, record.reason, after=("finalizing", "cancelling"), **facts)
            _log.info("batch %s: %s, %d of %d answered", record.id, record.status, record.completed, record.total)
        if record.has_ended:
            await _in_thread(self._remove_journal, record)

    async def _check(self, record: BatchRecord) -> None:
        """Checks the file of a batch, and begins or ends the batch."""
        path = self._journal(record).input
        checked = await asyncio.to_thread(check_file, path, record.endpoint, self._shares.longest)
        facts = {"total": checked.total, "model": checked.model, "errors": checked.errors}
        await self._enter(record, "failed" if checked.errors else "in_progress", after=("validating",), **facts)

    async def _answer(self, record: BatchRecord) -> Status:
        """Answers the requests of a batch; returns the state that it ends in."""
        if record.owner not in self._owners or record.expires_at <= self._clock():
            return await self._end(record)
        journal = self._journal(record)
        async with _opened(journal, record) as journaled:
            record.completed, record.failed = len(journaled.answered), len(journaled.failed)
            known = journaled.answered | journaled.failed
            lines = read_lines(journal.input, self._shares.longest)
            remaining = (each for each in lines if each[0] not in known)
            ending = asyncio.create_task(self._end(record))
            waiting: set[asyncio.Task[Any]] = set()
            try:
                async for number, text in _read(remaining):
                    waiting.add(asyncio.create_task(self._answer_line(record, number, text, journaled)))
                    while len(waiting) >= self._shares.most:
                        waiting = await _first_done(waiting, ending)
                        if ending.done():
                            return ending.result()
                while waiting:
                    waiting = await _first_done(waiting, ending)
                    if ending.done():
                        return ending.result()
            finally:
                for task in (*waiting, ending):
                    task.cancel()
                await asyncio.gather(*waiting, ending, return_exceptions=True)
        return "completed"

    async def _end(self, record: BatchRecord) -> Status:
        """Waits until a batch has to end early; returns the state that it ends in."""
        cancelled = asyncio.ensure_future(self._cancelled[record.id].wait())
        try:
            while not cancelled.done() and (left := record.expires_at - self._clock()) > 0:
                await asyncio.wait((cancelled,), timeout=min(left, _CLOCK_PAUSE))
            return "cancelled" if cancelled.done() else "expired"
        finally:
            cancelled.cancel()

    async def _answer_line(self, record: BatchRecord, number: int, text: bytes, journal: BatchFiles) -> None:
        """Answers one request, and writes the answer to the journal."""
        read = partial(read_request, number, text, record.endpoint, self._shares.longest)
        try:
            request = await asyncio.to_thread(read)
            reply = await self._ask(record, request)
        except FieldError as error:  # the rules have changed since the file was checked
            request = LineRequest(number, name_of(text), "", b"")
            reply = Reply(400, "", ApiError(error.message, param=error.param, code=error.code).body())
        if self._shares.is_stopping():  # the answer may have been cut: the next server asks again
            await asyncio.Event().wait()
        is_answer = 200 <= reply.status < 300
        line = {"line": number, **outcome(request.custom_id, reply.describe(), None)}
        await _in_thread(journal.answer if is_answer else journal.error, line)
        if is_answer:
            record.completed += 1
        else:
            record.failed += 1

    async def _ask(self, record: BatchRecord, request: LineRequest) -> Reply:
        """Returns the reply to a request, which is sent again, up to a bound, if the server has no room."""
        owner, left, pause = self._owners[record.owner], _ATTEMPTS.copy(), _FIRST_PAUSE
        name, places = self._shares.of(request.model)
        turns = self._turns.setdefault(name, asyncio.Semaphore(places))
        while True:
            async with turns:
                asking = self._asking.ask(record.endpoint, request.body, owner, client=record.id)
                reply = await asyncio.create_task(asking)  # a task, since the record of a request is in its context
            if reply.status not in left or left[reply.status] == 1:
                return reply
            left[reply.status] -= 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


@contextlib.asynccontextmanager
async def _opened(journal: Journal, record: BatchRecord) -> AsyncGenerator[BatchFiles, None]:
    """Opens a journal in a thread. Raises ``OSError``."""
    opening = asyncio.ensure_future(asyncio.to_thread(journal.open, record))
    try:
        files = await finished(opening)
    except asyncio.CancelledError:
        if opening.done() and opening.exception() is None:
            with opening.result():
                pass
        raise
    with files:
        yield files


async def _first_done(waiting: set[asyncio.Task[Any]], ending: asyncio.Task[Any]) -> set[asyncio.Task[Any]]:
    """Waits for one of the tasks and returns the others, without ``ending``. Raises the error of a task."""
    done, left = await asyncio.wait({*waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return left - {ending}


async def finished(writing: asyncio.Future[T]) -> T:
    """Waits for an operation to end, even if the caller is cancelled, and returns its result."""
    cancelled: asyncio.CancelledError | None = None
    while not writing.done():  # there may be more than one cancellation
        cancelled = await _wait(writing) or cancelled
    if cancelled is not None:
        if not writing.cancelled():
            writing.exception()  # so that asyncio does not take it for forgotten
        raise cancelled
    return writing.result()


async def _wait(writing: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Waits for an operation to end; returns the cancellation that ends the waiting instead, if there is one."""
    try:
        await asyncio.wait((writing,))
    except asyncio.CancelledError as error:
        return error
    return None


async def _in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Does work in a thread; it ends even if the caller is cancelled."""
    return await finished(asyncio.ensure_future(asyncio.to_thread(work, *arguments)))


async def _read(items: Iterator[T]) -> AsyncGenerator[T, None]:
    """Yields the items of an iterator that reads from the disk."""
    step = partial(next, items, None)
    while (item := await asyncio.to_thread(step)) is not None:
        yield item
