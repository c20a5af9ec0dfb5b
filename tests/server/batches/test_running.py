"""Batches without a model: scripted endpoints that are busy, fail, or never answer; a clock, a full disk, a restart."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from starlette.responses import JSONResponse

from constrain.fields.values import FieldError
from constrain.server.batches import running
from constrain.server.batches.asking import Asking
from constrain.server.batches.files import MONTH, FileStore
from constrain.server.batches.folder import BatchFolder, FolderInUseError
from constrain.server.batches.journal import Journal
from constrain.server.batches.lines import read_request
from constrain.server.batches.record import BatchRecord, new_batch_id
from constrain.server.batches.running import KEPT_SECONDS, BatchRunner, Shares
from constrain.server.http.errors import ApiError, too_busy, unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

PATH = "/v1/chat/completions"
OWNER = "owner"
NOW = 1_800_000_000


class Clock:
    def __init__(self) -> None:
        self.now = float(NOW)

    def __call__(self) -> float:
        return self.now


class Script:
    """An endpoint that a function answers: of the number of the request, and of how often it came before."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[int] = []
        self.together = 0
        self.most = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = json.loads((await receive())["body"])
        number = body["number"]
        before = self.asked.count(number)
        self.asked.append(number)
        self.together += 1
        self.most = max(self.most, self.together)
        try:
            await asyncio.sleep(0)
            reply = await self.answer(number, before)
        finally:
            self.together -= 1
        await JSONResponse(reply)(scope, receive, send)


class CrashError(BaseException):
    """The end of the process, as far as a batch can tell."""


class Server:
    """The batches of one server after another, in one folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = Clock()
        self.is_stopping = False
        self.logged: list[str] = []

    @asynccontextmanager
    async def running(
        self, script: Script, *, owners: tuple[str, ...] = (OWNER,), places: int = 3
    ) -> AsyncIterator[BatchRunner]:
        folder = BatchFolder(self.path)
        folder.open()
        self.folder = folder
        self.store = FileStore(folder, 1 << 30, self.clock)
        asking = Asking({PATH: script}, 60, lambda owner: owner, lambda account, _: self.logged.append(account.owner))
        names = {folder.tag(owner): owner for owner in owners}
        shares = Shares(lambda _: ("m", places), 8, 10_000, lambda: self.is_stopping)
        runner = BatchRunner(folder, self.store, asking, names, shares, self.clock)
        runner.start()
        try:
            yield runner
        finally:
            await runner.stop()
            folder.close()

    async def begin(self, runner: BatchRunner, count: int, hours: int = 24) -> BatchRecord:
        lines = [
            json.dumps({"custom_id": f"r{n}", "method": "POST", "url": PATH, "body": {"model": "m", "number": n}})
            for n in range(count)
        ]
        source = self.path / "upload"
        source.write_text("\n".join(lines))
        with source.open("rb") as content:
            stored = self.store.add(self.folder.tag(OWNER), "in.jsonl", content, MONTH)
        record = BatchRecord(
            new_batch_id(), stored.owner, PATH, stored.id, f"{hours}h", NOW, NOW + hours * 3600, None, MONTH
        )
        await runner.add(record)
        return record

    def read(self, file_id: str | None) -> list[dict[str, Any]]:
        text = "" if file_id is None else (self.folder.files / file_id).read_text()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "batches")


async def until(condition: Callable[[], object]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it does not happen")


async def right(number: int, _: int) -> dict[str, Any]:
    return {"number": number, "usage": {"prompt_tokens": 2, "completion_tokens": 1}}


async def never(number: int, _: int) -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError(number)


def test_requests_take_turns_for_few_places(server: Server) -> None:
    async def run() -> None:
        script = Script(right)
        async with server.running(script, places=3) as runner:
            records = [await server.begin(runner, 20) for _ in range(3)]
            await until(lambda: all(record.has_ended for record in records))
            assert script.most <= 3
            for record in records:
                assert record.status == "completed"
                assert [line["response"]["body"]["number"] for line in server.read(record.output_file_id)] == [
                    *range(20)
                ]
                assert record.usage is not None
                assert record.usage["total_tokens"] == 60
            assert server.logged == [OWNER] * 60

    asyncio.run(run())


def test_a_busy_server_is_asked_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_FIRST_PAUSE", 0.001)

    async def busy(number: int, before: int) -> dict[str, Any]:
        if before < 4 * number:
            raise too_busy("a test", 1)
        return await right(number, before)

    async def run() -> None:
        async with server.running(Script(busy)) as runner:
            record = await server.begin(runner, 3)
            await until(lambda: record.has_ended)
            assert (record.completed, record.failed) == (3, 0)

    asyncio.run(run())


@pytest.mark.parametrize("error", [unavailable("A test."), too_busy("a test", 60)], ids=["503", "429"])
def test_a_model_that_is_never_there_becomes_an_error(
    server: Server, error: ApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_FIRST_PAUSE", 0.0)
    asked = 0

    async def gone(number: int, before: int) -> dict[str, Any]:
        nonlocal asked
        if number or before < 2:
            asked += number
            raise error
        return await right(number, before)

    async def run() -> None:
        async with server.running(Script(gone)) as runner:
            record = await server.begin(runner, 2)
            await until(lambda: record.has_ended)
            [answer] = server.read(record.output_file_id)
            [failure] = server.read(record.error_file_id)
            assert answer["custom_id"] == "r0"
            assert failure["custom_id"] == "r1"
            assert failure["response"]["status_code"] == error.status
            assert failure["response"]["body"] == error.body()
            assert asked == running._ATTEMPTS[error.status]

    asyncio.run(run())


@pytest.mark.parametrize("error", [ApiError("A test."), RuntimeError("a fault")])
def test_an_error_is_an_answer_of_its_own(server: Server, error: Exception) -> None:
    async def wrong(number: int, before: int) -> dict[str, Any]:
        if number == 1:
            raise error
        return await right(number, before)

    async def run() -> None:
        async with server.running(Script(wrong)) as runner:
            record = await server.begin(runner, 3)
            await until(lambda: record.has_ended)
            assert [line["custom_id"] for line in server.read(record.output_file_id)] == ["r0", "r2"]
            [line] = server.read(record.error_file_id)
            assert line["response"]["status_code"] == (400 if isinstance(error, ApiError) else 500)
            assert set(line["response"]["body"]) == {"error"}

    asyncio.run(run())


def test_a_batch_ends_when_its_time_is_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_CLOCK_PAUSE", 0.01)

    async def some(number: int, before: int) -> dict[str, Any]:
        return await (right if number < 2 else never)(number, before)

    async def run() -> None:
        async with server.running(Script(some)) as runner:
            record = await server.begin(runner, 5, hours=1)
            await until(lambda: record.completed == 2)
            server.clock.now = NOW + 3601
            await until(lambda: record.has_ended)
            assert record.status == "expired"
            assert record.expired_at == NOW + 3601
            assert (record.total, record.completed, record.failed) == (5, 2, 3)
            assert [line["custom_id"] for line in server.read(record.output_file_id)] == ["r0", "r1"]
            errors = server.read(record.error_file_id)
            assert [line["custom_id"] for line in errors] == ["r2", "r3", "r4"]
            assert {line["error"]["code"] for line in errors} == {"batch_expired"}

    asyncio.run(run())


def test_a_restart_answers_each_request_once(server: Server) -> None:
    async def first_half(number: int, before: int) -> dict[str, Any]:
        return await (right if number < 5 else never)(number, before)

    async def run() -> None:
        async with server.running(Script(first_half), places=8) as runner:
            record = await server.begin(runner, 10)
            await until(lambda: record.completed == 5)
        assert not record.has_ended
        second = Script(right)
        async with server.running(second) as runner:
            [record] = runner.of(server.folder.tag(OWNER)).values()
            await until(lambda: record.has_ended)
            assert sorted(second.asked) == [5, 6, 7, 8, 9]
            assert record.status == "completed"
            assert [line["custom_id"] for line in server.read(record.output_file_id)] == [f"r{n}" for n in range(10)]

    asyncio.run(run())


def test_no_count_falls_at_a_restart(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[tuple[int, int]] = []
    record: Any = None

    async def first(number: int, before: int) -> dict[str, Any]:
        if number == 0:
            raise ApiError("A test.")
        return await (right if number < 3 else never)(number, before)

    def full(*_: object) -> None:
        counts.append((record.completed, record.failed))
        raise OSError(28, "No space left on device")

    async def run() -> None:
        nonlocal record
        async with server.running(Script(first)) as runner:
            record = await server.begin(runner, 5)
            await until(lambda: (record.completed, record.failed) == (2, 1))
            assert runner.fewest_left == 2
        for path in server.folder.batches.glob("*/*.jsonl"):  # a crash in the middle of a line
            if path.name != "input.jsonl":
                with path.open("ab") as file:
                    file.write(b'{"line": 4, "id": "batch')
        with monkeypatch.context() as broken:  # not even a journal that cannot be opened
            broken.setattr(Journal, "open", full)
            async with server.running(Script(right), owners=("another",)) as runner:
                [record] = runner.of(server.folder.tag(OWNER)).values()
                assert (record.completed, record.failed) == (2, 1)
            async with server.running(Script(right)) as runner:
                [record] = runner.of(server.folder.tag(OWNER)).values()
                await until(lambda: counts)
            assert set(counts) == {(2, 1)}
        script = Script(right)
        async with server.running(script) as runner:
            [record] = runner.of(server.folder.tag(OWNER)).values()
            assert (record.completed, record.failed) == (2, 1)
            await until(lambda: record.has_ended)
            assert (record.completed, record.failed) == (4, 1)
            assert script.asked == [3, 4]
            assert [line["custom_id"] for line in server.read(record.error_file_id)] == ["r0"]

    asyncio.run(run())


@pytest.mark.parametrize("at", ["add_output", "remove"])
def test_a_crash_while_the_files_are_made_loses_nothing(
    server: Server, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wrong(number: int, before: int) -> dict[str, Any]:
        if number == 3:
            raise ApiError("A test.")
        return await right(number, before)

    def crash(*_: object) -> None:
        raise CrashError

    async def run() -> None:
        with monkeypatch.context() as crashing:
            crashing.setattr(FileStore if at == "add_output" else Journal, at, crash)
            async with server.running(Script(wrong)) as runner:
                await server.begin(runner, 4)
                await until(lambda: not runner.running)
        script = Script(right)
        async with server.running(script) as runner:
            [record] = runner.of(server.folder.tag(OWNER)).values()
            await until(lambda: record.has_ended)
            assert not script.asked
            assert (record.completed, record.failed) == (3, 1)
            assert [line["custom_id"] for line in server.read(record.output_file_id)] == ["r0", "r1", "r2"]
            assert [line["custom_id"] for line in server.read(record.error_file_id)] == ["r3"]

    asyncio.run(run())


def test_a_full_disk_makes_a_batch_wait(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_DISK_PAUSE", 0.01)
    full = {"is": True}
    answer = running.Journal.open

    def open_journal(journal: Journal, record: BatchRecord) -> Any:
        if full["is"]:
            raise OSError(28, "No space left on device")
        return answer(journal, record)

    async def run() -> None:
        monkeypatch.setattr(Journal, "open", open_journal)
        async with server.running(Script(right)) as runner:
            record = await server.begin(runner, 3)
            await asyncio.sleep(0.1)
            assert record.status == "in_progress"
            full["is"] = False
            await until(lambda: record.has_ended)
            assert record.completed == 3

    asyncio.run(run())


def test_a_cancel_that_cannot_be_written_changes_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async def run() -> None:
        async with server.running(Script(never)) as runner:
            record = await server.begin(runner, 2)
            await until(lambda: record.status == "in_progress")
            with monkeypatch.context() as broken:
                broken.setattr(running, "write_record", full)
                with pytest.raises(OSError, match="No space"):
                    await runner.cancel(record)
            assert record.status == "in_progress"
            await runner.cancel(record)
            await runner.cancel(record)  # a second time
            await until(lambda: record.has_ended)
            assert record.status == "cancelled"
            assert record.failed == 2

    asyncio.run(run())


def test_an_answer_that_the_end_of_the_server_may_have_cut_is_asked_for_again(server: Server) -> None:
    async def run() -> None:
        async def stopping(number: int, before: int) -> dict[str, Any]:
            server.is_stopping = True
            return await right(number, before)

        script = Script(stopping)
        async with server.running(script) as runner:
            record = await server.begin(runner, 2)
            await until(lambda: script.asked)
            await asyncio.sleep(0.05)
            assert not record.completed
        server.is_stopping = False
        async with server.running(Script(right)) as runner:
            [record] = runner.of(server.folder.tag(OWNER)).values()
            await until(lambda: record.has_ended)
            assert record.completed == 2

    asyncio.run(run())


def test_half_a_line_in_a_journal_is_no_answer(server: Server) -> None:
    async def first(number: int, before: int) -> dict[str, Any]:
        return await (right if number < 2 else never)(number, before)

    async def run() -> None:
        async with server.running(Script(first)) as runner:
            record = await server.begin(runner, 4, hours=1)
            await until(lambda: record.completed == 2)
        journal = server.folder.batches / record.id / "answers.jsonl"
        with journal.open("ab") as file:
            file.write(b'{"line": 3, "id": "batch')
        server.clock.now = NOW + 3601
        async with server.running(Script(right)) as runner:
            [record] = runner.of(server.folder.tag(OWNER)).values()
            await until(lambda: record.has_ended)
            assert record.status == "expired"
            assert (record.completed, record.failed) == (2, 2)

    asyncio.run(run())


def test_a_line_that_later_rules_refuse_is_an_error_of_its_own(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def stricter(number: int, *arguments: Any) -> Any:
        if number == 2:
            raise FieldError("A new rule.", param="body", code="invalid_value")
        return read_request(number, *arguments)

    async def run() -> None:
        monkeypatch.setattr(running, "read_request", stricter)
        async with server.running(Script(right)) as runner:
            record = await server.begin(runner, 3)
            await until(lambda: record.has_ended)
            assert [line["custom_id"] for line in server.read(record.output_file_id)] == ["r0", "r2"]
            [error] = server.read(record.error_file_id)
            assert error["custom_id"] == "r1"
            assert error["response"]["body"]["error"]["message"] == "A new rule."

    asyncio.run(run())


def test_a_fault_fails_the_batch_and_names_no_files(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise RuntimeError("a fault")

    async def run() -> None:
        monkeypatch.setattr(Journal, "finish", fault)
        async with server.running(Script(right)) as runner:
            record = await server.begin(runner, 3)
            await until(lambda: record.has_ended)
            shown = record.describe()
            assert shown["status"] == "failed"
            assert shown["output_file_id"] is None
            assert shown["errors"]["data"][0]["code"] == "internal_error"

    asyncio.run(run())


def test_a_write_ends_although_it_is_cancelled_twice() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        writing: asyncio.Future[int] = loop.create_future()
        task = loop.create_task(running.finished(writing))
        for _ in range(2):
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0.01)
            assert not task.done()
        writing.set_result(1)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_damaged_records_and_leftovers_are_in_nobodys_way(server: Server) -> None:
    async def run() -> None:
        async with server.running(Script(right)) as runner:
            record = await server.begin(runner, 1)
            await until(lambda: not runner.running)
        folder = server.folder.batches / record.id
        assert [path.name for path in folder.iterdir()] == ["record.json"]
        (folder / "input.jsonl").write_text("left by a crash")
        (server.folder.batches / "batch_without_record").mkdir()
        damaged = server.folder.batches / "batch_damaged"
        damaged.mkdir()
        (damaged / "record.json").write_text("{")
        (server.folder.files / "file-damaged.json").write_text("{}")
        (server.folder.batches / "a file").write_text("of somebody else")
        async with server.running(Script(right)) as runner:
            assert list(runner.of(record.owner)) == [record.id]
            assert [path.name for path in folder.iterdir()] == ["record.json"]
            assert not (server.folder.batches / "batch_without_record").exists()
            assert damaged.exists()
            assert len(server.store.of(record.owner)) == 2

    asyncio.run(run())


def test_the_batches_of_a_key_that_was_taken_away_wait_for_it(server: Server) -> None:
    async def run() -> None:
        async with server.running(Script(never)) as runner:
            record = await server.begin(runner, 2, hours=1)
            await until(lambda: record.status == "in_progress")
        script = Script(right)
        async with server.running(script, owners=("another",)) as runner:
            [record] = runner.of(server.folder.tag(OWNER)).values()
            await asyncio.sleep(0.05)
            assert not record.has_ended
            assert not script.asked
        server.clock.now = NOW + 3601
        async with server.running(script, owners=("another",)) as runner:
            [record] = runner.of(server.folder.tag(OWNER)).values()
            await until(lambda: record.has_ended)
            assert record.status == "expired"
            assert record.failed == 2
        assert not script.asked

    asyncio.run(run())


def test_files_and_batches_are_forgotten_in_time(server: Server) -> None:
    async def run() -> None:
        async with server.running(Script(right)) as runner:
            record = await server.begin(runner, 1)
            await until(lambda: not runner.running)
            assert len(server.store.of(record.owner)) == 2
            server.clock.now = NOW + MONTH
            assert not server.store.of(record.owner)
            assert not list(server.folder.files.iterdir())
        server.clock.now = NOW + KEPT_SECONDS
        async with server.running(Script(right)) as runner:
            assert not runner.of(record.owner)
            assert not list(server.folder.batches.iterdir())

    asyncio.run(run())


def test_a_folder_is_for_one_server_and_one_user(tmp_path: Path) -> None:
    first, second = BatchFolder(tmp_path / "batches"), BatchFolder(tmp_path / "batches")
    assert not first.exists()
    first.open()
    with pytest.raises(FolderInUseError, match="another server uses"):
        second.open()
    first.close()
    second.open()
    assert first.exists()
    assert (tmp_path / "batches").stat().st_mode & 0o777 == 0o700
    second.close()
    (tmp_path / "batches").chmod(0o755)
    with pytest.raises(OSError, match="others may use it"):
        first.open()
