"""Files in stores, without a model: uploads, interruptions, two writers, and stores that fail."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from constrain.batch.lines import LineError
from constrain.batch.locations import StoredFile, StoreError, key_of, locate
from constrain.batch.stores import parts
from tests.support.batch_files import echo, prompts
from tests.support.command_line import run as run_command
from tests.support.stores import Job, Store, expected, lines, open_store, part_names, values, write_input

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from constrain.batch.lines import Task
    from constrain.generation.completion import Completion


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


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nothing://key:secret@x/y", "nothing://x/y: this is not the URL of a file: Unrecognized filesystem type"),
        (
            "s3://key:secret@bucket/x?secret_key=secret",
            "s3://bucket/x: this is not the URL of a file: Unexpected query",
        ),
        ("s3://key:secret@bucket?region=us-east-1", "s3://bucket: this names a bucket, not a file in it"),
        ("file:///", "this is not the URL of a file"),
        ("file:///tmp/", "this is not the URL of a file"),
        ("file:///tmp/a?b.jsonl", "write . in a name as %3F"),
    ],
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
@pytest.mark.parametrize("name", ["in.parquet", "in.csv"])
@pytest.mark.parametrize("output", ["out.parquet", "out.csv"])
def test_tables_in_a_store_are_read_and_written(name: str, output: str, store: Store, tmp_path: Path) -> None:
    if name == "in.csv":
        store.put(name, b"prompt,id\n" + b"".join(b'"a\n%d",n%d\n' % (number, number) for number in range(600)))
    else:
        table = pa.table({"prompt": [f"a\n{number}" for number in range(600)], "id": [f"n{n}" for n in range(600)]})
        pq.write_table(table, tmp_path / name, row_group_size=100)
        store.put(name, (tmp_path / name).read_bytes())
    Job(store.url(name), store.url(output)).run()
    (tmp_path / output).write_bytes(store.get(output))
    if output == "out.parquet":
        found = pq.read_table(tmp_path / output)
    else:
        found = pa_csv.read_csv(tmp_path / output, parse_options=pa_csv.ParseOptions(newlines_in_values=True))
    assert found["line"].to_pylist() == list(range(1, 601))
    assert found["id"].to_pylist() == [f"n{number}" for number in range(600)]
    assert [json.loads(value) for value in found["value"].to_pylist()] == [f"a\n{number}" for number in range(600)]


@pytest.mark.slow
def test_what_is_complete_is_not_written_again(store: Store) -> None:
    store.put("in.jsonl", prompts(5))
    for output in ("out.jsonl", "out.parquet"):
        job = Job(store.url("in.jsonl"), store.url(output))
        job.run()
        before = store.times()
        assert job.run()[-1].known == 5
        assert store.times() == before
        content = store.get(output)
        store.delete(output)
        job.run()
        assert store.get(output) == content


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
import os, signal, sys
from constrain.batch import finishing
from constrain.batch.locations import StoredFile
from constrain.batch.stores import parts
from tests.support.stores import Job
from tests.support.batch_files import echo

parts.PART_ANSWERS = 4
job = Job(sys.argv[1], sys.argv[2])
moment = sys.argv[3]

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

write = StoredFile.write
def write_or_kill(self, data):
    if moment == "upload" and "/000003-" in self.path:
        kill()
    write(self, data)
    if moment == "uploaded" and "/000003-" in self.path:
        kill()

StoredFile.write = write_or_kill
if moment == "join":
    number = parts.StoredAnswers._number_of
    calls = []
    def slow(self, part, line):
        calls.append(line)
        if len(calls) == 10:
            kill()
        return number(self, part, line)
    parts.StoredAnswers._number_of = slow
elif moment == "note":
    parts.StoredAnswers.note_finished = kill

def answer(task, stop):
    if moment == "answer" and task.line == 15:
        kill()
    return echo(task, stop)

job.run(answer)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["answer", "upload", "uploaded", "join", "note"])
@pytest.mark.parametrize("kind", ["s3", "file"])
def test_no_answer_is_lost_or_doubled_when_killed(moment: str, kind: str, store: Store, tmp_path: Path) -> None:
    if kind == "s3":
        store.put("in.jsonl", prompts(20))
        source, target = store.url("in.jsonl"), store.url("out.jsonl")
    else:
        source, target = write_input(tmp_path, 20)
    done = subprocess.run([sys.executable, "-c", KILLED, source, target, moment], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    is_there = "out.jsonl" in store.names() if kind == "s3" else (tmp_path / "out.jsonl").exists()
    assert is_there == (moment == "note")
    last = Job(source, target).run()[-1]
    assert last.known + last.answered == 20
    assert last.known == {"upload": 8, "uploaded": 12, "join": 20, "note": 20}.get(moment, last.known)
    assert values(store.get("out.jsonl") if kind == "s3" else (tmp_path / "out.jsonl").read_bytes()) == expected(20)


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["s3", "file"])
def test_an_interruption_of_the_end_leaves_the_older_output(
    kind: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    store.put("in.jsonl", prompts(6))
    (tmp_path / "in.jsonl").write_bytes(prompts(6))
    job = Job(store.url("in.jsonl"), store.url("out.jsonl")) if kind == "s3" else Job(*write_input(tmp_path, 6))
    job.run(failing)
    with monkeypatch.context() as patched:
        patched.setattr(parts.StoredAnswers, "read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            job.run()
    names = store.names() if kind == "s3" else [path.name for path in tmp_path.iterdir()]
    assert not [name for name in names if name.endswith(".new")]
    assert values(store.get("out.jsonl") if kind == "s3" else (tmp_path / "out.jsonl").read_bytes()) == expected(5)
    assert job.run()[-1].known == 6
    assert values(store.get("out.jsonl") if kind == "s3" else (tmp_path / "out.jsonl").read_bytes()) == expected(6)


@pytest.mark.slow
def test_errors_in_a_store_do_not_replace_a_file_that_no_batch_has_made(store: Store) -> None:
    store.put("in.jsonl", prompts(1) + b"{\n")
    for name in ("bad.jsonl", "bad.csv", "bad.parquet"):
        job = Job(store.url("in.jsonl"), store.url("out.jsonl"), errors=store.url(name))
        store.put(name, b"mine")
        with pytest.raises(ValueError, match=f"{name} exists, and has no errors of a batch; "):
            job.run()
        assert store.get(name) == b"mine"
        store.delete(name)
        for _ in range(2):
            assert job.run()[-1].failed == 1


@pytest.mark.slow
def test_a_file_that_is_too_large_for_a_copy_is_written_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.batch.locations._MAX_S3_COPY_BYTES", 10)
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
import resource, sys
from constrain.batch.stores import parts
from tests.support.stores import Job
from tests.support.batch_files import echo

parts.PART_ANSWERS = 4
job = Job(sys.argv[1], sys.argv[2])

def answer(task, stop):
    if task.line == 6:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30, 30))
    return echo(task, stop)

try:
    job.run(answer, threads=1)
except OSError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_batch_and_loses_nothing_uploaded(tmp_path: Path) -> None:
    source, target = write_input(tmp_path, 10)
    done = subprocess.run([sys.executable, "-c", FULL, source, target], check=True, timeout=120, capture_output=True)
    assert b"it could not be written: " in done.stdout
    assert b"Traceback" not in done.stderr
    assert not [path for path in (tmp_path / "out.jsonl.parts").iterdir() if path.suffix == ".new"]
    last = Job(source, target).run()[-1]
    assert last.known == 4
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(10)


@pytest.mark.slow
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
def test_the_command_ends_where_there_is_no_store_or_bucket(store: Store, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(prompts(1))
    missing = store.url("out.jsonl").replace("@bucket/", "@other-bucket/")
    done = run_command("batch", tmp_path / "in.jsonl", "-o", missing)
    assert done.returncode == 1
    assert done.stderr.startswith("error: s3://other-bucket/out.jsonl.parts/lock.json: it could not be written: ")
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


@pytest.mark.slow
def test_the_command_goes_on_from_another_machine(store: Store) -> None:
    store.put("in.csv", b"prompt,id\nWho is Ada?,a\nWho is Bo?,b\nWho is Cy?,c\n")
    common = ["--schema", "name, age int", "--seed", "1", "--max-tokens", "30", "--ctx", "512", "--threads", "1"]
    command = ["batch", store.url("in.csv"), "-o", store.url("out.parquet"), *common]
    done = run_command(*command)
    assert (done.returncode, done.stderr) == (0, "s3://bucket/out.parquet: 3 answers\n")
    before = store.times()
    again = run_command(*command)
    assert again.stderr == "s3://bucket/out.parquet: 0 answers, and 3 from before\n"
    assert store.times() == before
    other = run_command(*command[:-1], "2", "--seed", "2")
    assert other.returncode == 1
    assert "s3://bucket/out.parquet was made with another seed (it was 1)" in other.stderr
