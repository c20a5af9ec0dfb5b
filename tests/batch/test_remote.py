"""Files in stores, without a model: uploads, interruptions, two writers, and stores that fail."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from constrain.batch.lines import LineError, Task
from constrain.batch.locations import StoredFile, StoreError, key_of, locate
from constrain.batch.stores import parts
from constrain.generation.completion import Completion
from tests.support import for_each
from tests.support.batch_files import batch_status, echo, prompts, statuses_of
from tests.support.stores import Job, Store, expected, lines, open_store, part_names, values, write_input


@pytest.fixture(scope="module")
def _server() -> Iterator[Store]:
    with open_store() as store:
        yield store


@pytest.fixture
def store(_server: Store) -> Iterator[Store]:
    yield _server
    for name in _server.names():  # all stores of this process have the same files
        _server.delete(name)


# Names


def test_urls_are_shown_without_keys() -> None:
    url = "s3://key:secret@bucket/a%20b/c%23.jsonl?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:1"
    file = locate(url)
    assert isinstance(file, StoredFile)
    assert (str(file), file.path) == ("s3://bucket/a%20b/c%23.jsonl", "bucket/a b/c#.jsonl")
    assert str(file.with_name("d")) == "s3://bucket/a%20b/d"
    assert (file.name, file.stem, file.suffix) == ("c#.jsonl", "c#", ".jsonl")


def test_characters_that_urls_do_not_have_are_part_of_the_name() -> None:
    file = locate("s3://k:s@bucket/my people é#1.jsonl?region=us-east-1")
    assert isinstance(file, StoredFile)
    assert file.path == "bucket/my people é#1.jsonl"


def test_a_path_is_a_path() -> None:
    assert locate("a/b.jsonl") == Path("a/b.jsonl")
    assert locate("c:d") == Path("c:d")


def test_a_local_url_names_the_same_file_as_its_path(tmp_path: Path) -> None:
    assert key_of(locate(f"file://{tmp_path}/x")) == key_of(tmp_path / "x")
    (tmp_path / "in.jsonl").write_bytes(b"")
    with pytest.raises(ValueError, match="two purposes"):
        Job(tmp_path / "in.jsonl", f"file://{tmp_path}/in.jsonl")
    with pytest.raises(ValueError, match="is not a file"):
        Job(tmp_path / "in.jsonl", f"file://{tmp_path}")


@for_each(
    "url, message",
    ("nothing://key:secret@x/y", "nothing://x/y: this is not the URL of a file: Unrecognized filesystem type"),
    ("s3://key:secret@bucket/x?secret_key=secret", "s3://bucket/x: this is not the URL of a file: Unexpected query"),
    ("s3://key:secret@bucket?region=us-east-1", "s3://bucket: this names a bucket, not a file in it"),
    ("file:///", "this is not the URL of a file"),
    ("file:///tmp/", "this is not the URL of a file"),
    ("file:///tmp/a?b.jsonl", "write . in a name as %3F"),
)
def test_a_wrong_url_is_refused_without_its_key(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        locate(url)
    assert "secret@" not in str(caught.value)
    assert "key:" not in str(caught.value)


# From a store to a store


@pytest.mark.slow
def test_a_batch_goes_from_a_store_to_a_store(store: Store) -> None:
    store.put("my people.jsonl", prompts(9) + b"{\n")
    job = Job(store.url("my people.jsonl"), store.url("out.jsonl"))
    assert job.run()[-1].answered == 9
    assert values(store.get("out.jsonl")) == expected(9)
    assert [each["line"] for each in lines(store.get("out.errors.jsonl"))] == [10]
    [part, note] = store.names("out.jsonl.parts/")
    assert part.startswith("out.jsonl.parts/000001-")
    assert note == "out.jsonl.parts/run.json"
    assert store.names("out.errors.jsonl.parts/") == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "output"), [("in.parquet", "out.csv"), ("in.csv", "out.parquet")])
def test_tables_in_a_store_are_read_and_written(name: str, output: str, store: Store, tmp_path: Path) -> None:
    if name == "in.csv":
        store.put(name, b"prompt,id\n" + b"".join(b'"a\n%d",n%d\n' % (number, number) for number in range(60)))
    else:
        table = pa.table({"prompt": [f"a\n{number}" for number in range(60)], "id": [f"n{n}" for n in range(60)]})
        pq.write_table(table, tmp_path / name, row_group_size=10)
        store.put(name, (tmp_path / name).read_bytes())
    Job(store.url(name), store.url(output)).run()
    (tmp_path / output).write_bytes(store.get(output))
    if output == "out.parquet":
        found = pq.read_table(tmp_path / output)
    else:
        found = pa_csv.read_csv(tmp_path / output, parse_options=pa_csv.ParseOptions(newlines_in_values=True))
    assert found["line"].to_pylist() == list(range(1, 61))
    assert found["id"].to_pylist() == [f"n{number}" for number in range(60)]
    assert [json.loads(value) for value in found["value"].to_pylist()] == [f"a\n{number}" for number in range(60)]


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_what_is_complete_is_not_written_again(name: str, tmp_path: Path) -> None:
    def times() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}

    source, _ = write_input(tmp_path, 5)
    output = tmp_path / name
    job = Job(source, f"file://{output}")
    job.run()
    before, content = times(), output.read_bytes()
    assert job.run()[-1].known == 5
    assert times() == before
    output.unlink()
    job.run()
    assert output.read_bytes() == content


@pytest.mark.slow
def test_files_of_this_machine_and_of_stores_go_together(store: Store, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(prompts(3) + b"{\n")
    Job(tmp_path / "in.jsonl", store.url("out.jsonl"), errors=tmp_path / "errors.csv").run(threads=1)
    assert values(store.get("out.jsonl")) == expected(3)
    assert (tmp_path / "errors.csv").read_text().count("LineError") == 1
    Job(store.url("out.jsonl"), tmp_path / "again.jsonl", prompt="value", errors=store.url("e.parquet")).run()
    assert sorted(map(str, values((tmp_path / "again.jsonl").read_bytes()).values())) == ["p1", "p2", "p3"]
    assert "e.parquet" not in store.names()


# Parts


def test_a_part_has_a_limited_number_of_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_ANSWERS", 4)
    Job(*write_input(tmp_path, 10)).run()
    names = part_names(tmp_path)
    assert [name[:6] for name in names] == ["000001", "000002", "000003"]
    sizes = [len(lines((tmp_path / "out.jsonl.parts" / name).read_bytes())) for name in names]
    assert sizes == [4, 4, 2]
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(10)


def test_a_part_has_a_limited_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 1)
    Job(*write_input(tmp_path, 3)).run()
    assert len(part_names(tmp_path)) == 3


def test_an_answer_does_not_wait_for_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_SECONDS", 0.01)
    monkeypatch.setattr("constrain.batch.run._TICK_SECONDS", 0.01)
    uploaded = threading.Event()
    upload = parts.Parts.upload

    def note(self: parts.Parts) -> None:
        upload(self)
        uploaded.set()

    monkeypatch.setattr(parts.Parts, "upload", note)

    def answer(task: Task, stop: Future[None]) -> Completion:
        if task.line == 2:
            assert uploaded.wait(60), "the first answer is uploaded while the second one is written"
        return echo(task, stop)

    Job(*write_input(tmp_path, 2)).run(answer)
    assert len(part_names(tmp_path)) == 2


def test_a_torn_part_loses_its_last_line_only(tmp_path: Path) -> None:
    job = Job(*write_input(tmp_path, 3))
    job.run(threads=1)
    [name] = part_names(tmp_path)
    part = tmp_path / "out.jsonl.parts" / name
    part.write_bytes(part.read_bytes()[:-5])
    assert job.run()[-1].known == 2
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(3)


def test_answers_of_other_settings_are_not_mixed(tmp_path: Path) -> None:
    job = Job(*write_input(tmp_path, 3))
    job.run()
    (tmp_path / "in.jsonl").write_bytes(b"\n" + prompts(4))
    with pytest.raises(ValueError, match="was made with another input; "):
        job.run()
    assert job.run(restart=True)[-1].answered == 4
    assert len(part_names(tmp_path)) == 1
    (tmp_path / "out.jsonl.parts" / "run.json").unlink()
    with pytest.raises(ValueError, match=r"run\.json, which records its settings, does not"):
        job.run()


def test_a_file_that_no_batch_has_made_is_left_alone(tmp_path: Path) -> None:
    job = Job(*write_input(tmp_path, 3))
    (tmp_path / "out.jsonl").write_bytes(b"mine")
    with pytest.raises(ValueError, match="--restart"):
        job.run()
    assert (tmp_path / "out.jsonl").read_bytes() == b"mine"
    job.run(restart=True)
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(3)


def test_a_part_that_was_changed_is_refused(tmp_path: Path) -> None:
    job = Job(*write_input(tmp_path, 3))
    job.run()
    [name] = part_names(tmp_path)
    (tmp_path / "out.jsonl.parts" / name).write_bytes(b"{}\n")
    with pytest.raises(ValueError, match="a line that is not an answer"):
        job.run()


# Interruptions

KILLED = """
import os, signal
from constrain.batch.locations import StoredFile
from constrain.batch.stores import parts
from tests.support.stores import Job
from tests.support.batch_files import echo

parts.PART_ANSWERS = 4
write = StoredFile.write
number = parts.StoredAnswers._number_of
calls = []

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def work(source, target, moment):
    def write_or_kill(self, data):
        if moment == "upload" and "/000003-" in self.path:
            kill()
        write(self, data)
        if moment == "uploaded" and "/000003-" in self.path:
            kill()

    def count(self, part, line):
        calls.append(line)
        if moment == "join" and len(calls) == 10:
            kill()
        return number(self, part, line)

    def answer(task, stop):
        if moment == "answer" and task.line == 15:
            kill()
        return echo(task, stop)

    StoredFile.write = write_or_kill
    parts.StoredAnswers._number_of = count
    if moment == "note":
        parts.StoredAnswers.note_finished = kill
    Job(source, target).run(answer)
"""


@pytest.mark.slow
def test_no_answer_is_lost_or_doubled_when_killed(store: Store, tmp_path: Path) -> None:
    moments = {"answer": None, "upload": 8, "uploaded": 12, "join": 20, "note": 20}
    store.put("in.jsonl", prompts(20))
    source, _ = write_input(tmp_path, 20)
    pairs = {moment: (source, f"file://{tmp_path}/{moment}.jsonl") for moment in moments}
    pairs["uploaded"] = store.url("in.jsonl"), store.url("uploaded.jsonl")
    assert statuses_of(KILLED, [[*pair, moment] for moment, pair in pairs.items()]) == [-signal.SIGKILL] * 5
    for moment, known in moments.items():
        output = tmp_path / f"{moment}.jsonl"
        assert (output.exists() or output.name in store.names()) == (moment == "note")
        last = Job(*pairs[moment]).run()[-1]
        assert last.known + last.answered == 20
        assert known is None or last.known == known
        assert values(output.read_bytes() if output.exists() else store.get(output.name)) == expected(20)


def test_an_error_while_answers_wait_uploads_them(tmp_path: Path) -> None:
    def broken(task: Task, stop: Future[None]) -> Completion:
        if task.line == 5:
            raise MemoryError
        return echo(task, stop)

    job = Job(*write_input(tmp_path, 5))
    with pytest.raises(MemoryError):
        job.run(broken, threads=1)
    assert job.run()[-1].known == 4
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(5)


@pytest.mark.parametrize("is_there", [False, True])
def test_an_interruption_of_an_upload_loses_nothing(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_ANSWERS", 4)
    write = StoredFile.write

    def interrupt(self: StoredFile, data: bytes) -> None:
        if not self.name.startswith("000002"):
            write(self, data)
            return
        if is_there:
            write(self, data)
        raise KeyboardInterrupt

    job = Job(*write_input(tmp_path, 10))
    with monkeypatch.context() as patched:
        patched.setattr(StoredFile, "write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            job.run(threads=1)
    assert not (tmp_path / "out.jsonl.parts" / "lock.json").exists()
    assert job.run()[-1].known == 8
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(10)


def test_an_interruption_of_the_end_leaves_the_older_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(task: Task, stop: Future[None]) -> Completion:
        if task.line == 6:
            raise LineError("no")
        return echo(task, stop)

    read = parts.StoredAnswers.read

    def interrupt(self: parts.StoredAnswers) -> Iterator[bytes]:
        for number, line in enumerate(read(self)):
            if number == 3:
                raise KeyboardInterrupt
            yield line

    job = Job(*write_input(tmp_path, 6))
    job.run(failing)
    with monkeypatch.context() as patched:
        patched.setattr(parts.StoredAnswers, "read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            job.run()
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".new"]
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(5)
    assert job.run()[-1].known == 6
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(6)


@pytest.mark.parametrize("name", ["bad.jsonl", "bad.csv", "bad.parquet"])
def test_errors_in_a_store_do_not_replace_a_file_that_no_batch_has_made(name: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(prompts(1) + b"{\n")
    url, errors = f"file://{tmp_path}", tmp_path / name
    job = Job(f"{url}/in.jsonl", f"{url}/out.jsonl", errors=f"{url}/{name}")
    errors.write_bytes(b"mine")
    with pytest.raises(ValueError, match=f"{name} exists, and has no errors of a batch; "):
        job.run()
    assert errors.read_bytes() == b"mine"
    errors.unlink()
    for _ in range(2):
        assert job.run()[-1].failed == 1


@pytest.mark.slow
def test_a_file_that_is_too_large_for_a_copy_is_written_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.batch.locations._S3_COPY_BYTES", 10)
    store.put("in.jsonl", prompts(6))
    Job(store.url("in.jsonl"), store.url("out.jsonl")).run()
    assert values(store.get("out.jsonl")) == expected(6)
    assert not [name for name in store.names() if name.endswith(".new")]


# Failures


def test_an_input_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"file:.*/none\.jsonl: there is no such file"):
        Job(f"file://{tmp_path}/none.jsonl", tmp_path / "out.jsonl")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    source, _ = write_input(tmp_path, 2)
    with pytest.raises(OSError, match=r"nowhere/out\.jsonl\.parts: it could not be made: "):
        Job(source, f"file://{tmp_path}/nowhere/out.jsonl").run()


FULL = """
import resource
from constrain.batch.stores import parts
from tests.support.stores import Job
from tests.support.batch_files import echo

parts.PART_ANSWERS = 4

def work(source, target):
    def answer(task, stop):
        if task.line == 6:
            resource.setrlimit(resource.RLIMIT_FSIZE, (30, 30))
        return echo(task, stop)

    try:
        Job(source, target).run(answer, threads=1)
    except OSError as error:
        assert "it could not be written: " in str(error)
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_batch_and_loses_nothing_uploaded(tmp_path: Path) -> None:
    source, target = write_input(tmp_path, 10)
    assert statuses_of(FULL, [[source, target]]) == [0]
    assert not [path for path in (tmp_path / "out.jsonl.parts").iterdir() if path.suffix == ".new"]
    last = Job(source, target).run()[-1]
    assert last.known == 4
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(10)


@pytest.mark.long
def test_a_store_that_goes_away_ends_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_ANSWERS", 2)
    (tmp_path / "in.jsonl").write_bytes(prompts(6))
    with open_store() as store:
        job = Job(tmp_path / "in.jsonl", store.url("out.jsonl"), errors=tmp_path / "errors.jsonl")

        def answer(task: Task, stop: Future[None]) -> Completion:
            if task.line == 4:
                store.stop()
            return echo(task, stop)

        with pytest.raises(StoreError, match=r"^s3://bucket/out\.jsonl\.parts/[\w.-]+: it could not be \w+: "):
            job.run(answer, threads=1)


@pytest.mark.slow
def test_the_command_ends_where_there_is_no_store_or_bucket(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.jsonl").write_bytes(prompts(1))
    missing = store.url("out.jsonl").replace("@bucket/", "@other-bucket/")
    assert batch_status(monkeypatch, tmp_path / "in.jsonl", "-o", missing) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: s3://other-bucket/out.jsonl.parts/lock.json: it could not be written: ")
    assert told.count("\n") == 1
    assert "secret" not in told


@pytest.mark.slow
def test_the_command_goes_on_from_another_machine(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store.put("in.csv", b"prompt,id\nWho is Ada?,a\nWho is Bo?,b\n")
    common = ["--schema", "name, age int", "--seed", "1", "--max-tokens", "30", "--ctx", "512", "--threads", "1"]
    command = [store.url("in.csv"), "-o", store.url("out.parquet"), *common]
    assert batch_status(monkeypatch, *command) == 0
    assert capsys.readouterr().err == "s3://bucket/out.parquet: 2 answers\n"
    before = store.times()
    assert batch_status(monkeypatch, *command) == 0
    assert capsys.readouterr().err == "s3://bucket/out.parquet: 0 answers, and 2 from before\n"
    assert store.times() == before
    assert batch_status(monkeypatch, *command, "--seed", "2") == 1
    assert "s3://bucket/out.parquet was made with another seed (it was 1)" in capsys.readouterr().err
