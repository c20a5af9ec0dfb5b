"""Runs the batches of a server in the background, beside the requests of its clients.

The requests of all batches take turns for a few places, at most all but one of the answers that a model writes at once,
so that clients who wait find a place. A request that finds the server busy is sent again. When the server ends, by a
signal or a crash, requests without an answer are left, and the next server goes on with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from constrain.batch.lines import read_lines
from constrain.server.batches.files import new_file_id
from constrain.server.batches.journal import Journal, outcome
from constrain.server.batches.lines import check_file, read_request
from constrain.server.batches.record import read_records, write_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

    from constrain.batch.files import BatchFiles
    from constrain.server.batches.asking import Asking, Reply
    from constrain.server.batches.files import FileStore
    from constrain.server.batches.folder import BatchFolder
    from constrain.server.batches.lines import LineRequest
    from constrain.server.batches.record import BatchRecord, Status

T = TypeVar("T")

_log = logging.getLogger("constrain.server")

_DISK_PAUSE = 30.0
"""Seconds until a batch goes on whose files could not be written, such as on a full disk."""

KEPT_SECONDS = 90 * 24 * 3600
"""Seconds that a batch is shown: 90 days. Its files are removed earlier."""

_BUSY = 429
_UNAVAILABLE = 503

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a request is sent again, at first and at most; each pause is twice the one before."""

_CLOCK_PAUSE = 60.0
"""Seconds between two looks at the clock: 60. A machine may sleep for hours between them, and its clock may be set."""

_ATTEMPTS = 6
"""How often a request is sent whose model is not available. A busy server is asked until the batch ends."""


class BatchRunner:
    """All batches of a server. Only the thread of the event loop may use it.

    Args:
        folder: folder that keeps them, open.
        files: files of clients.
        asking: sends requests to endpoints.
        owners: names of the owners whose batches run, by the name in files. Those of others, whose key was taken
            away, wait until their key is back or their time is up.
        places: requests of batches that are answered at the same time.
        clock: function that returns the seconds since 1970.
    """

    def __init__(
        self,
        folder: BatchFolder,
        files: FileStore,
        asking: Asking,
        owners: Mapping[str, str],
        places: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._files = files
        self._asking = asking
        self._owners = owners
        self._places = places
        self._clock = clock
        self._turns = asyncio.Semaphore(places)
        self._records = {each.id: each for each in read_records(folder.batches)}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._cancelled: dict[str, asyncio.Event] = {}

    def start(self) -> None:
        """Goes on with the batches that have not ended."""
        for record in list(self._records.values()):
            if not record.has_ended:
                self._begin(record)
            elif record.created_at + KEPT_SECONDS <= self._clock():
                shutil.rmtree(self._folder.batches / record.id)
                del self._records[record.id]

    async def stop(self) -> None:
        """Stops all batches where they are. The next server goes on with them."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def running(self) -> int:
        """Number of batches that have not ended."""
        return len(self._tasks)

    def of(self, owner: str) -> list[BatchRecord]:
        """Returns the batches of an owner, oldest first. ``owner``: its name in files."""
        return [each for each in self._records.values() if each.owner == owner]

    async def add(self, record: BatchRecord) -> None:
        """Takes a new batch and begins it. Raises ``OSError``; then there is no such batch."""
        await asyncio.to_thread(self._create, record)
        self._records[record.id] = record
        self._begin(record)

    async def cancel(self, record: BatchRecord) -> None:
        """Ends a batch early; what was answered is kept. Raises ``OSError``."""
        record.reason = "cancelled"
        record.enter("cancelling", self._clock())
        await self._save(record)
        self._cancelled[record.id].set()

    def _create(self, record: BatchRecord) -> None:
        source = self._files.path(self._files.get(record.owner, record.input_file_id))
        journal = self._journal(record)
        journal.create(source)
        write_record(journal.folder, record)

    def _begin(self, record: BatchRecord) -> None:
        self._cancelled[record.id] = asyncio.Event()
        if record.status == "cancelling":
            self._cancelled[record.id].set()
        task = Context().run(asyncio.get_running_loop().create_task, self._run(record))  # not that of a request
        self._tasks[record.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(record.id, None))

    def _journal(self, record: BatchRecord) -> Journal:
        return Journal(self._folder.batches / record.id)

    async def _save(self, record: BatchRecord) -> None:
        await asyncio.to_thread(write_record, self._folder.batches / record.id, record)

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
            record.errors = [{"code": "internal_error", "line": None, "message": message, "param": None}]
            record.enter("failed", self._clock())
            with contextlib.suppress(OSError):
                await self._save(record)

    async def _advance(self, record: BatchRecord) -> None:
        """Brings a batch from its state to its end. Raises ``OSError``."""
        if record.status == "validating":
            await self._check(record)
        if record.status == "in_progress":
            reason = await self._answer(record)
            if record.status == "in_progress":  # not cancelled meanwhile
                record.reason = reason
                record.enter("finalizing", self._clock())
        if record.status in ("finalizing", "cancelling"):
            record.output_file_id = record.output_file_id or new_file_id()
            record.error_file_id = record.error_file_id or new_file_id()
            await self._save(record)
            journal = self._journal(record)
            await asyncio.to_thread(journal.finish, record, self._files)
            record.enter(record.reason, self._clock())
            await self._save(record)
            await asyncio.to_thread(journal.remove)
            _log.info("batch %s: %s, %d of %d answered", record.id, record.status, record.completed, record.total)

    async def _check(self, record: BatchRecord) -> None:
        """Checks the file of a batch, and begins or ends the batch."""
        checked = await asyncio.to_thread(check_file, self._journal(record).input, record.endpoint)
        record.total, record.model, record.errors = checked.total, checked.model, checked.errors
        if record.status == "validating":
            record.enter("failed" if checked.errors else "in_progress", self._clock())
            await self._save(record)
        if record.has_ended:
            await asyncio.to_thread(self._journal(record).remove)

    async def _answer(self, record: BatchRecord) -> Status:
        """Answers the requests of a batch; returns the state that it ends in."""
        if record.owner not in self._owners or record.expires_at <= self._clock():
            return await self._end(record)
        journal = self._journal(record)
        async with _opened(journal, record) as journaled:
            record.completed, record.failed = len(journaled.answered), 0
            remaining = (each for each in read_lines(journal.input) if each[0] not in journaled.answered)
            ending = asyncio.create_task(self._end(record))
            waiting: set[asyncio.Task[Any]] = set()
            try:
                async for number, text in _in_thread(remaining):
                    waiting.add(asyncio.create_task(self._answer_line(record, number, text, journaled)))
                    while len(waiting) >= self._places:
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
        request = read_request(number, text, record.endpoint)
        async with self._turns:
            reply = await self._ask(record, request)
        is_answer = 200 <= reply.status < 300
        line = {"line": number, **outcome(request.custom_id, reply.describe(), None)}
        writing = asyncio.ensure_future(asyncio.to_thread(journal.answer if is_answer else journal.error, line))
        await _finished(writing)
        if is_answer:
            record.completed += 1
        else:
            record.failed += 1

    async def _ask(self, record: BatchRecord, request: LineRequest) -> Reply:
        """Returns the reply to a request, which is sent again if the server has no room."""
        owner, attempts, pause = self._owners[record.owner], 0, _FIRST_PAUSE
        while True:
            asking = self._asking.ask(record.endpoint, request.body, owner, client=record.id)
            reply = await asyncio.create_task(asking)  # a task, since the record of a request is in its context
            attempts += reply.status == _UNAVAILABLE
            if reply.status not in (_BUSY, _UNAVAILABLE) or attempts == _ATTEMPTS:
                return reply
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


@contextlib.asynccontextmanager
async def _opened(journal: Journal, record: BatchRecord) -> AsyncGenerator[BatchFiles, None]:
    """Opens a journal in a thread. Raises ``OSError``."""
    opening = asyncio.ensure_future(asyncio.to_thread(journal.open, record))
    try:
        files = await _finished(opening)
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


async def _finished(writing: asyncio.Future[T]) -> T:
    """Returns the result of something that is under way, and that ends even if the caller is cancelled."""
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait((writing,))
        raise


async def _in_thread(items: Iterator[T]) -> AsyncGenerator[T, None]:
    """Yields the items of an iterator that reads from the disk."""
    step = partial(next, items, None)
    while (item := await asyncio.to_thread(step)) is not None:
        yield item
