"""Inputs that grow between two runs of a batch, and the ids of rows, which should be unique."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from constrain.batch.inputs import open_input
from constrain.batch.lines import Task
from constrain.batch.prompts import NamedColumns
from constrain.generation.completion import Completion
from tests.support.batch_files import echo, prompts
from tests.support.stores import Job, expected, part_names, values


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


@pytest.mark.parametrize(
    ("content", "grown"),
    [
        (prompts(2), prompts(2).replace(b"p1", b"p0") + b'"p3"\n'),
        (prompts(2), b"\n" + prompts(3)),
        (prompts(2), b'"p2"\n' + prompts(2)),
    ],
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
@pytest.mark.parametrize(
    ("column", "named", "found"),
    [
        ("id", NamedColumns(), {"a": [1, 3, 4]}),
        ("id", NamedColumns("prompt"), {}),
        ("key", NamedColumns("prompt", "key"), {"a": [1, 3, 4]}),
    ],
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
