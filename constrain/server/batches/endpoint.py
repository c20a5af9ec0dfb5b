"""``/v1/files`` and ``/v1/batches``: the HTTP side of batches."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse
from starlette.routing import Route

from constrain.fields.values import FieldError, one_of, required_text
from constrain.server.batches.files import FileStore, StoredFile
from constrain.server.batches.folder import BatchFolder, FolderInUseError
from constrain.server.batches.record import BatchRecord, new_batch_id
from constrain.server.batches.running import BatchRunner, Shares, finished
from constrain.server.batches.uploads import read_expiry, read_upload
from constrain.server.http.account import current
from constrain.server.http.auth import owners_of
from constrain.server.http.errors import ApiError, convert_field_errors, too_busy, unavailable
from constrain.server.requests.body import parse_body, read_body
from constrain.server.requests.limits import (
    COMPLETION_HOURS,
    MAX_BATCH_BYTES,
    MAX_BATCHES,
    MAX_FILES_PAGE,
    MAX_PAGE,
)
from constrain.server.requests.metadata import read_metadata
from constrain.server.requests.pages import read_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from constrain.server.batches.asking import Asking
    from constrain.server.serving.endpoint import Serving

T = TypeVar("T")

_log = logging.getLogger("constrain.server")

_FILES = "/v1/files"
_BATCHES = "/v1/batches"

_WINDOW = re.compile(r"(\d{1,4})(h|d)")
_HOURS = {"h": 1, "d": 24}

_ID: Callable[[Any], str] = attrgetter("id")

_CANCELLABLE = ("validating", "in_progress", "cancelling")


class Batches:
    """The endpoints for files and batches. Only the thread of the event loop may use it.

    Args:
        serving: models, generator and settings.
        asking: sends the requests of batches to endpoints.
        clock: function that returns the seconds since 1970.
    """

    def __init__(self, serving: Serving, asking: Asking, clock: Callable[[], float] = time.time) -> None:
        self._serving = serving
        self._settings = serving.settings
        self._asking = asking
        self._clock = clock
        folder = serving.settings.batch_folder
        self._folder = None if folder is None else BatchFolder(folder)
        self._opened: tuple[FileStore, BatchRunner] | None = None
        self._has_stopped = False
        self._writes: set[asyncio.Future[Any]] = set()
        self._copying = ThreadPoolExecutor(1, thread_name_prefix="constrain-files")

    def routes(self) -> list[Route]:
        """Returns the routes of all paths."""
        return [
            Route(_FILES, _Taking(self._create_file, self._serving), methods=["POST"]),
            Route(_FILES, self._list_files, methods=["GET"]),
            Route(_FILES + "/{id}", self._show_file, methods=["GET"]),
            Route(_FILES + "/{id}", self._delete_file, methods=["DELETE"]),
            Route(_FILES + "/{id}/content", self._send_file, methods=["GET"]),
            Route(_BATCHES, _Taking(self._create_batch, self._serving), methods=["POST"]),
            Route(_BATCHES, self._list_batches, methods=["GET"]),
            Route(_BATCHES + "/{id}", self._show_batch, methods=["GET"]),
            Route(_BATCHES + "/{id}/cancel", self._cancel_batch, methods=["POST"]),
        ]

    def start(self) -> None:
        """Goes on with the batches of an earlier server, if there are any."""
        if self._folder is None:
            return
        try:
            if self._folder.exists():
                self._open()
        except ApiError as error:
            _log.warning("no batches: %s", error.message)
        except OSError as error:
            _log.warning("no batches: %s", error)

    async def stop(self) -> None:
        """Stops all batches where they are, and begins none from now on. The next server goes on with them."""
        self._has_stopped = True
        if self._opened is not None:
            assert self._folder is not None
            await self._opened[1].stop()
            while self._writes:
                await asyncio.wait(set(self._writes))
            self._folder.close()
        self._copying.shutdown(wait=False)

    def _open(self) -> tuple[FileStore, BatchRunner]:
        """Returns the files and batches; opens the folder if need be.

        Raises ``ApiError`` with ``--no-batches``, at the end of the server, and if the folder cannot be used.
        """
        if self._folder is None:
            raise ApiError(
                "This server keeps no files and runs no batches: it was started with --no-batches.",
                status=404,
                code="not_supported",
            )
        if self._has_stopped or self._serving.generator.is_stopping:
            raise unavailable("The server is shutting down.")
        if self._opened is None:
            try:
                self._folder.open()
                store = FileStore(self._folder, self._settings.batch_bytes, self._clock)
                owners = {self._folder.tag(owner): owner for owner in owners_of(self._settings.api_keys)}
                runner = BatchRunner(self._folder, store, self._asking, owners, self._shares(), self._clock)
                runner.start()
            except OSError as error:
                self._folder.close()
                why = "its log says why"
                if isinstance(error, FolderInUseError):
                    why = "another server uses the same folder; start this one with another --batch-folder"
                _log.warning("files and batches cannot be kept: %s", error)
                raise unavailable(f"This server cannot keep files and batches: {why}.") from error
            self._opened = store, runner
        return self._opened

    async def _write(self, work: Coroutine[Any, Any, T]) -> T:
        """Does work that writes to the folder; it ends before the folder is left to the next server.

        Raises ``ApiError`` if the server has left it.
        """
        if self._has_stopped:
            work.close()
            raise unavailable("The server is shutting down.")
        task = asyncio.ensure_future(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await finished(task)  # a client that leaves does not end it

    async def _copy(self, add: Callable[[], StoredFile]) -> StoredFile:
        return await asyncio.get_running_loop().run_in_executor(self._copying, add)

    def _shares(self) -> Shares:
        """Returns the share of batches: the places of each model (``--parallel``) less one, and at least one."""
        models = self._serving.models

        def of(name: str) -> tuple[str, int]:
            source = models.find(name)
            return ("", 1) if source is None else (source.names[0], max(1, source.parallel - 1))

        return Shares(of, models.parallel, self._settings.max_body_bytes, lambda: self._serving.generator.is_stopping)

    def _mine(self) -> tuple[FileStore, BatchRunner, str]:
        """Returns files, batches, and the name of the request's owner in files. Raises ``ApiError``."""
        store, runner = self._open()
        assert self._folder is not None
        return store, runner, self._folder.tag(current.get().owner)

    async def _create_file(self, request: Request) -> Response:
        store, _, owner = self._mine()
        declared = request.headers.get("content-length", "")
        with _writing():
            store.require_room(int(declared[:20]) if declared.isdecimal() else 0)
            async with read_upload(request, MAX_BATCH_BYTES) as upload:
                add = partial(store.add, owner, upload.filename, upload.content, upload.seconds)
                stored = await self._write(self._copy(add))
        return JSONResponse(stored.describe())

    async def _list_files(self, request: Request) -> Response:
        store, _, owner = self._mine()
        purpose = request.query_params.get("purpose")
        with _writing():
            files = [each for each in store.of(owner) if purpose in (None, each.purpose)]
        page = partial(read_page, most=MAX_FILES_PAGE, default=MAX_FILES_PAGE, name=_ID, describe=StoredFile.describe)
        return JSONResponse(page(files, request.query_params))

    async def _show_file(self, request: Request) -> Response:
        _, stored = self._file(request)
        return JSONResponse(stored.describe())

    async def _delete_file(self, request: Request) -> Response:
        store, stored = self._file(request)
        with _writing():
            return JSONResponse(await self._write(asyncio.to_thread(store.delete, stored.owner, stored.id)))

    async def _send_file(self, request: Request) -> Response:
        store, stored = self._file(request)
        return FileResponse(store.path(stored), media_type="application/octet-stream", filename=stored.filename)

    def _file(self, request: Request) -> tuple[FileStore, StoredFile]:
        store, _, owner = self._mine()
        return store, store.get(owner, request.path_params["id"])

    async def _create_batch(self, request: Request) -> Response:
        store, runner, owner = self._mine()
        generator = self._serving.generator
        async with read_body(request, self._settings.max_body_bytes, generator.admit_body) as data:
            body = await generator.run_in_thread(partial(parse_body, data))
        if runner.running >= MAX_BATCHES:
            seconds = generator.estimate_wait(0) * runner.fewest_left
            raise too_busy(f"{MAX_BATCHES} batches are under way", seconds)
        record = self._read_batch(body, owner, store)
        with _writing():
            await self._write(runner.add(record))
        return JSONResponse(record.describe())

    @convert_field_errors()
    def _read_batch(self, body: dict[str, Any], owner: str, store: FileStore) -> BatchRecord:
        """Returns the batch that a body asks for. Raises ``ApiError``."""
        endpoint = one_of(required_text(body, "endpoint"), tuple(self._asking.endpoints), "endpoint")
        window = required_text(body, "completion_window")
        file_id = required_text(body, "input_file_id")
        try:
            stored = store.get(owner, file_id)
        except ApiError as error:
            raise ApiError(
                f"Invalid 'input_file_id': there is no file {file_id:.80}.",
                param="input_file_id",
                code="file_not_found",
            ) from error
        if stored.purpose != "batch":
            raise FieldError(
                f"Invalid 'input_file_id': the purpose of that file is '{stored.purpose}', and must be 'batch'.",
                param="input_file_id",
                code="invalid_purpose",
            )
        now = int(self._clock())
        keep_seconds = read_expiry(body.get("output_expires_after"), "output_expires_after")
        expires = now + _read_window(window)
        metadata = read_metadata(body)
        return BatchRecord(new_batch_id(), owner, endpoint, file_id, window, now, expires, metadata, keep_seconds)

    async def _list_batches(self, request: Request) -> Response:
        _, runner, owner = self._mine()
        page = partial(read_page, most=MAX_PAGE, default=20, name=_ID, describe=BatchRecord.describe)
        return JSONResponse(page([*runner.of(owner).values()], request.query_params))

    async def _show_batch(self, request: Request) -> Response:
        _, record = self._batch(request)
        return JSONResponse(record.describe())

    async def _cancel_batch(self, request: Request) -> Response:
        runner, record = self._batch(request)
        if record.status not in _CANCELLABLE:
            raise ApiError(
                f"This batch cannot be cancelled any more: it is {record.status}.", param="id", code="invalid_value"
            )
        with _writing():
            await self._write(runner.cancel(record))
        return JSONResponse(record.describe())

    def _batch(self, request: Request) -> tuple[BatchRunner, BatchRecord]:
        _, runner, owner = self._mine()
        batch_id = request.path_params["id"]
        if (record := runner.of(owner).get(batch_id)) is not None:
            return runner, record
        raise ApiError(f"No batch found with id '{batch_id:.80}'.", status=404, param="id", code="not_found")


def _read_window(text: str) -> int:
    """Returns the seconds of a ``completion_window``. Raises ``FieldError``."""
    low, high = COMPLETION_HOURS
    found = _WINDOW.fullmatch(text)
    hours = 0 if found is None else int(found[1]) * _HOURS[found[2]]
    if not low <= hours <= high:
        raise FieldError(
            f"Invalid 'completion_window': expected 24h, or another time from {low}h to {high}h (or {high // 24}d), "
            f"but got {text!r:.40}.",
            param="completion_window",
            code="invalid_value",
        )
    return hours * 3600


@contextmanager
def _writing() -> Iterator[None]:
    """Raises ``ApiError`` in place of an ``OSError`` of the block."""
    try:
        yield
    except OSError as error:
        _log.exception("a file could not be written")
        raise unavailable(f"The server could not write to its disk: {error.strerror or 'its log says why'}.") from error


class _Taking:
    """An ASGI application that takes a body. If the connection ends before the body, no response is sent."""

    def __init__(self, respond: Callable[[Request], Awaitable[Response]], serving: Serving) -> None:
        self._respond = respond
        self._metrics = serving.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request. Raises ``ApiError``."""
        try:
            response = await self._respond(Request(scope, receive))
        except ClientDisconnect:
            self._metrics.abandoned.inc()
            return
        await response(scope, receive, send)
