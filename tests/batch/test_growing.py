"""Inputs that grow between two runs of a batch, and the ids of rows, which should be unique."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from constrain.batch.files import BatchFiles
from constrain.batch.inputs import open_input
from constrain.batch.lines import Task
from constrain.batch.locations import StoreError, locate
from constrain.batch.prompts import NamedColumns
from constrain.batch.stores import locks, parts
from constrain.generation.completion import Completion
from tests.support import each_row
from tests.support.batch_files import echo, prompts
from tests.support.stores import Job, expected, part_names, values, write_input


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Writes rows in the form that the name of a file says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


def write_prompts(path: Path, count: int) -> Path:
    return write(path, [{"prompt": f"p{number}"} for number in range(1, count + 1)])


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("store", ["", "file://"])
def test_rows_at_the_end_of_an_input_are_answered_and_no_other_ones_again(
    kind: str, store: str, tmp_path: Path
) -> None:
    source, output = tmp_path / f"in.{kind}", tmp_path / "out.jsonl"
    asked: list[int] = []

    def answer(task: Task, stop: Future[None]) -> Completion:
        asked.append(task.line)
        return echo(task, stop)

    for count in (2, 3, 3, 5):
        job = Job(write_prompts(source, count), f"{store}{output}")
        job.run(answer)
        assert values(output.read_bytes()) == expected(count)
    assert sorted(asked) == [1, 2, 3, 4, 5]
    if store:
        assert len({name.rpartition("-")[2] for name in part_names(tmp_path)}) == 1, "all parts belong to one batch"
    with pytest.raises(ValueError, match="made with another input; "):
        Job(write_prompts(source, 4), f"{store}{output}").run()
    assert Job(source, f"{store}{output}").run(restart=True)[-1].answered == 4
    assert values(output.read_bytes()) == expected(4)


@each_row(
    "content, grown",
    (prompts(2), prompts(2).replace(b"p1", b"p0") + b'"p3"\n'),
    (prompts(2), b"\n" + prompts(3)),
    (prompts(2), b'"p2"\n' + prompts(2)),
    ids=["another row", "rows with other numbers", "rows in front"],
)
def test_an_input_that_begins_with_other_rows_is_another_one(content: bytes, grown: bytes, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(content)
    Job(source, output).run()
    before = output.read_bytes()
    source.write_bytes(grown)
    with pytest.raises(ValueError, match="made with another input; "):
        Job(source, output).run()
    assert output.read_bytes() == before


def test_ends_of_lines_are_no_part_of_rows(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(prompts(2).rstrip())
    Job(source, output).run()
    source.write_bytes(b"\xef\xbb\xbf" + prompts(3).replace(b"\n", b"\r\n"))
    assert Job(source, output).run()[-1].known == 2
    assert values(output.read_bytes()) == expected(3)


def test_rows_that_are_added_during_a_run_wait_for_the_next_one(tmp_path: Path) -> None:
    source, output = write_prompts(tmp_path / "in.csv", 2), tmp_path / "out.jsonl"

    def answer(task: Task, stop: Future[None]) -> Completion:
        write_prompts(source, 4)
        return echo(task, stop)

    Job(source, output).run(answer, threads=1)
    assert values(output.read_bytes()) == expected(2)
    assert Job(source, output).run()[-1].known == 2
    assert values(output.read_bytes()) == expected(4)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@each_row(
    "column, named, found",
    ("id", NamedColumns(), {"a": [1, 3, 4]}),
    ("id", NamedColumns("prompt"), {}),
    ("key", NamedColumns("prompt", "key"), {"a": [1, 3, 4]}),
    ids=["id", "no ids", "another column"],
)
def test_ids_of_several_rows_are_found(
    kind: str, column: str, named: NamedColumns, found: dict[str, list[int]], tmp_path: Path
) -> None:
    source = write(tmp_path / f"in.{kind}", [{"prompt": "p", column: name} for name in "abaac"])
    assert open_input(source, named).scan(find_languages=False).repeated_ids == found


def test_lines_without_ids_and_ids_of_other_types_are_unique(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b'"a"\n"a"\n{"id": 1}\n{"id": "1"}\n{"id": [1]}\n{"id": [1]}\n{\n{\n{"id": 1.0}\n')
    assert open_input(source, NamedColumns()).scan(find_languages=False).repeated_ids == {1: [3, 9]}


@pytest.mark.parametrize("rest", [b",p2\xc3\xa43\n3,p4\n", b"\xa43\n3,p4\n"], ids=["no prompt yet", "half a character"])
def test_a_last_row_of_csv_that_is_still_being_written_may_change(rest: bytes, tmp_path: Path) -> None:
    source, output = tmp_path / "in.csv", tmp_path / "out.jsonl"
    content = "id,prompt\n1,p1\n2,p2ä3\n3,p4\n".encode()
    source.write_bytes(content.removesuffix(rest) + rest[:1].replace(b"\xa4", b""))
    Job(source, output).run()
    assert values(output.read_bytes()) == {1: "p1"}
    source.write_bytes(content)
    Job(source, output).run()
    assert values(output.read_bytes()) == {1: "p1", 2: "p2ä3", 3: "p4"}


def test_a_last_row_of_csv_that_was_answered_may_not_change(tmp_path: Path) -> None:
    source, output = tmp_path / "in.csv", tmp_path / "out.jsonl"
    source.write_bytes(b"prompt\np1\np")
    Job(source, output).run()
    source.write_bytes(b"prompt\np1\np2\n")
    with pytest.raises(ValueError, match="made with another input; "):
        Job(source, output).run()


def test_a_last_line_that_is_still_being_written_may_change(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"prompt": "p1"}\n{"prompt": "p')
    Job(source, str(output)).run()
    assert values(output.read_bytes()) == expected(1)
    Job(write_prompts(source, 3), str(output)).run()
    assert sorted(values(output.read_bytes())) == sorted(expected(3))


def lock_of(folder: Path) -> Path:
    return folder / "out.jsonl.parts" / "lock.json"


def test_a_second_command_is_refused_while_the_first_one_writes(tmp_path: Path) -> None:
    job = Job(*write_input(tmp_path, 3))

    def answer(task: Task, stop: Future[None]) -> Completion:
        if task.line == 2:
            with pytest.raises(ValueError, match=r"another command, on .* \(process \d+\), was writing this output"):
                Job(*write_input(tmp_path, 3)).run(restart=True)
        return echo(task, stop)

    job.run(answer)
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(3)
    assert not lock_of(tmp_path).exists()


@each_row(
    "changes, message",
    ({"process": 2**22 + 1}, None),
    ({"time": 5}, None),
    ({"owner": "gone"}, None),
    ({"processes": "elsewhere"}, r"on \S+ \(process \d+\), was writing this output \d+ s ago; .* or delete file:"),
    ({"process": os.getppid()}, "was writing this output"),
)
def test_a_lock_that_was_abandoned_is_taken_over(changes: dict[str, Any], message: str | None, tmp_path: Path) -> None:
    job = Job(*write_input(tmp_path, 3))
    left: list[str] = []

    def answer(task: Task, stop: Future[None]) -> Completion:
        left.append(lock_of(tmp_path).read_text())
        return echo(task, stop)

    job.run(answer)
    lock_of(tmp_path).write_text(json.dumps({**json.loads(left[0]), **changes}))
    if message is None:
        assert job.run()[-1].known == 3
        assert not lock_of(tmp_path).exists()
    else:
        with pytest.raises(ValueError, match=message):
            job.run()


def test_a_file_that_is_no_lock_is_named(tmp_path: Path) -> None:
    job = Job(*write_input(tmp_path, 3))
    lock_of(tmp_path).parent.mkdir()
    for content in ("{", "[]", "{}"):
        lock_of(tmp_path).write_text(content)
        with pytest.raises(ValueError, match=r"lock\.json: this is not a lock of a batch; delete it"):
            job.run()


def test_a_command_whose_lock_was_taken_over_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_ANSWERS", 2)
    job = Job(*write_input(tmp_path, 6))

    def answer(task: Task, stop: Future[None]) -> Completion:
        if task.line == 4:
            found = json.loads(lock_of(tmp_path).read_text())
            lock_of(tmp_path).write_text(json.dumps({**found, "owner": "other", "host": "elsewhere"}))
        return echo(task, stop)

    with pytest.raises(StoreError, match=r"lock\.json: this lock was taken over on elsewhere"):
        job.run(answer, threads=1)
    assert not (tmp_path / "out.jsonl").exists()
    assert json.loads(lock_of(tmp_path).read_text())["owner"] == "other"
    lock_of(tmp_path).unlink()
    assert 0 < job.run()[-1].known < 6
    assert values((tmp_path / "out.jsonl").read_bytes()) == expected(6)


def test_a_command_without_its_lock_leaves_the_note_of_the_next_one(tmp_path: Path) -> None:
    output, errors = locate(f"file://{tmp_path}/out.jsonl"), locate(f"file://{tmp_path}/errors.jsonl")
    note = tmp_path / "out.jsonl.parts" / "run.json"
    with BatchFiles(output, errors, {"seed": 2}, restart=False) as second:
        second.answer({"line": 1, "value": "second"})
        second.flush()
        found = json.loads(lock_of(tmp_path).read_text())
        lock_of(tmp_path).write_text(json.dumps({**found, "time": 5}))
        with BatchFiles(output, errors, {"seed": 3}, restart=True) as third:
            third.answer({"line": 1, "value": "third"})
            third.flush()
            with pytest.raises(StoreError, match="this lock was taken over"):
                second.answers.note_finished({"answers": 1, "bytes": 9})
            assert json.loads(note.read_bytes()) == {"seed": 3}


def test_a_command_that_loses_its_lock_at_once_writes_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, errors = locate(f"file://{tmp_path}/out.jsonl"), locate(f"file://{tmp_path}/errors.jsonl")
    begin = parts.StoredAnswers._begin

    def lose(self: parts.StoredAnswers, *, restart: bool) -> None:
        found = json.loads(lock_of(tmp_path).read_text())
        lock_of(tmp_path).write_text(json.dumps({**found, "owner": "other", "host": "elsewhere"}))
        begin(self, restart=restart)

    monkeypatch.setattr(parts.StoredAnswers, "_begin", lose)
    with pytest.raises(StoreError, match="this lock was taken over on elsewhere"):
        BatchFiles(output, errors, {"seed": 2}, restart=False)
    assert not (tmp_path / "out.jsonl.parts" / "run.json").exists()


def test_parts_of_other_settings_are_not_read(tmp_path: Path) -> None:
    output, errors = locate(f"file://{tmp_path}/out.jsonl"), locate(f"file://{tmp_path}/errors.jsonl")
    note = tmp_path / "out.jsonl.parts" / "run.json"
    for seed in (1, 2):
        with BatchFiles(output, errors, {"seed": seed, "vote": None}, restart=False) as files:
            assert files.answered == set()
            files.answer({"line": seed, "value": seed})
        note.write_text(json.dumps({"seed": 3 - seed}))  # as of a command that had lost its lock
    old = tmp_path / "out.jsonl.parts" / "000007-00000000.jsonl"
    old.write_text('{"line": 7, "value": 7}\n')
    with BatchFiles(output, errors, {"seed": 1}, restart=False) as files:
        assert files.answered == {1, 7}
        assert [json.loads(line)["value"] for line in files.answers.read()] == [1, 7]
    with BatchFiles(output, errors, {"seed": 3}, restart=True) as files:
        assert part_names(tmp_path) == []


def test_errors_are_uploaded_though_the_lock_is_no_lock_any_more(tmp_path: Path) -> None:
    output, errors = locate(f"file://{tmp_path}/out.jsonl"), locate(f"file://{tmp_path}/errors.jsonl")
    files = BatchFiles(output, errors, {}, restart=False)
    files.error({"line": 1, "error": "LineError"})
    lock_of(tmp_path).write_text("not JSON")
    with pytest.raises(ValueError, match="this is not a lock of a batch"), files:
        pass
    assert len([*(tmp_path / "errors.jsonl.parts").iterdir()]) == 1


def test_lines_that_two_writers_answered_are_in_the_output_once(tmp_path: Path) -> None:
    job = Job(*write_input(tmp_path, 4))
    job.run()
    [name] = part_names(tmp_path)
    folder = tmp_path / "out.jsonl.parts"
    (folder / "000001-00000000.jsonl").write_bytes((folder / name).read_bytes())
    (tmp_path / "out.jsonl").unlink()
    for _ in range(2):
        assert job.run()[-1].known == 4
        assert values((tmp_path / "out.jsonl").read_bytes()) == expected(4)


def test_a_lock_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "RENEW_SECONDS", 0.01)
    written = threading.Semaphore(0)
    write = locks.StoreLock._write

    def note(self: locks.StoreLock) -> None:
        write(self)
        written.release()

    monkeypatch.setattr(locks.StoreLock, "_write", note)

    def answer(task: Task, stop: Future[None]) -> Completion:
        assert all(written.acquire(timeout=60) for _ in range(3))
        return echo(task, stop)

    Job(*write_input(tmp_path, 1)).run(answer)
    assert not lock_of(tmp_path).exists()
