"""``constrain batch --ray`` answers the same files as ``constrain batch``, through the deaths of actors and drivers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.support.batch_files import records
from tests.support.command_line import run

pytest.importorskip("ray")

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}, "required": ["name"]}
OPTIONS = ["--seed", "3", "--temperature", "1", "--max-tokens", "30", "--ctx", "512", "--parallel", "2"]
RAY = ["--ray", "local", "--actors", "2", "--cpus-per-actor", "1"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    lines = [json.dumps(f"Person {number}. Who is it?") for number in range(24)]
    (tmp_path / "prompts.jsonl").write_text("\n".join([*lines, "{", '{"prompt": "x", "max_tokens": 1}']) + "\n")
    return tmp_path


def command(folder: Path, name: str, *more: str) -> list[str]:
    files = [folder / "prompts.jsonl", "--schema", folder / "schema.json", "-o", folder / f"{name}.jsonl"]
    return ["batch", *map(str, files), *OPTIONS, *more]


def answers(folder: Path, name: str) -> dict[int, object]:
    found = records(folder / f"{name}.jsonl")
    by_line = {each["line"]: (each["text"], each["value"], each["finish_reason"]) for each in found}
    assert len(by_line) == len(found)
    return by_line


def expected(folder: Path) -> dict[int, object]:
    assert run(*command(folder, "alone", "--threads", "1")).returncode == 3
    return answers(folder, "alone")


@pytest.mark.slow
def test_files_are_those_of_one_process(folder: Path) -> None:
    done = run(*command(folder, "ray", *RAY))
    assert done.returncode == 3, done.stderr
    assert answers(folder, "ray") == expected(folder)
    errors = {each["line"]: each["error"] for each in records(folder / "ray.errors.jsonl")}
    assert errors == {25: "LineError", 26: "BudgetError"}


def begin(folder: Path, name: str) -> subprocess.Popen[bytes]:
    """Starts the command; returns when it has answered a few lines."""
    with (folder / "stderr.txt").open("w") as stderr:
        program = subprocess.Popen(
            [sys.executable, "-m", "constrain", *command(folder, name, *RAY)], stderr=stderr, start_new_session=True
        )
    output = folder / f"{name}.jsonl"
    while not (output.exists() and output.read_bytes().count(b"\n") >= 3):
        assert program.poll() is None
        time.sleep(0.02)
    return program


def actors(program: subprocess.Popen[bytes]) -> list[psutil.Process]:
    found = psutil.Process(program.pid).children(recursive=True)
    return [each for each in found if "_Worker" in each.name() or any("_Worker" in part for part in each.cmdline()[:1])]


@pytest.mark.long
def test_a_killed_actor_is_replaced(folder: Path) -> None:
    program = begin(folder, "ray")
    first, *_ = actors(program)
    first.kill()
    assert program.wait(200) == 3, (folder / "stderr.txt").read_text()
    assert answers(folder, "ray") == expected(folder)


@pytest.mark.long
def test_a_killed_command_goes_on_with_ray_or_without(folder: Path) -> None:
    program = begin(folder, "ray")
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    assert 3 <= len(answers(folder, "ray")) < 24
    assert run(*command(folder, "ray", "--threads", "1")).returncode == 3
    assert answers(folder, "ray") == expected(folder)


@pytest.mark.long
def test_tables_are_answered_on_a_cluster(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"Person {number}" for number in range(24)]
    pq.write_table(pa.table({"name": names, "key": names}), folder / "people.parquet")
    given = [folder / "people.parquet", "--prompt", "{name}. Who is it?", "--id-column", "key"]
    files = ["--schema", folder / "schema.json", "-o", f"file://{folder}/answers.parquet"]
    done = run("batch", *given, *files, *OPTIONS, *RAY)
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(folder / "answers.parquet").to_pylist()
    assert [row["id"] for row in rows] == names
    found = {row["line"]: (row["text"], row["value"], row["finish_reason"]) for row in rows}
    assert found == expected(folder)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--ray", "127.0.0.1:1"], "--ray"),
        (["--ray", "local", "--threads", "2"], "--cpus-per-actor gives the threads"),
        (["--actors", "2"], "it needs --ray"),
        (["--cpus-per-actor", "2"], "it needs --ray"),
    ],
)
def test_what_cannot_begin_is_told(more: list[str], message: str, folder: Path) -> None:
    done = run(*command(folder, "ray", *more))
    assert done.returncode == 2
    assert message in done.stderr


def test_a_schema_that_is_refused_ends_the_command(folder: Path) -> None:
    (folder / "schema.json").write_text('{"type": "strin"}')
    done = run(*command(folder, "ray", *RAY))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == run(*command(folder, "alone")).stderr.splitlines()[-1]
    assert "strin" in done.stderr
