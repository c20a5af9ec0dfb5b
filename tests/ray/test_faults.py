"""Large jobs: nothing is lost or doubled when an actor, a node, the program or the disk of the writer fails.

They take minutes, and run with ``CONSTRAIN_LONG``. ``CONSTRAIN_RAY_ROWS`` is the number of rows: 500, or at least 24.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

import constrain  # noqa: E402
from constrain.ray import Answers, answers  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("CONSTRAIN_LONG"), reason="takes minutes: set CONSTRAIN_LONG=1"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
]
"""Warnings of Ray about itself."""

ROWS = int(os.environ.get("CONSTRAIN_RAY_ROWS", "500"))

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
}
OPTIONS: dict[str, Any] = {
    "id_column": "id",
    "schema": SCHEMA,
    "max_tokens": 30,
    "temperature": 1.0,
    "model_options": {"n_ctx": 512, "n_threads": 1, "parallel": 2},
}
JOB: dict[str, Any] = {**OPTIONS, "cpus_per_actor": 1, "batch_size": 4}

PROGRAM = """
import json, sys
import ray
import constrain.ray
folder, job = sys.argv[1], json.loads(sys.argv[2])
ray.init(num_cpus=5, include_dashboard=False, log_to_driver=False)
answered = constrain.ray.answers(
    ray.data.read_parquet(folder + "/in"), concurrency=2, checkpoint=folder + "/checkpoint", **job
)
answered.write_parquet(sys.argv[3], mode="append")
"""


def people() -> list[dict[str, Any]]:
    return [{"id": number, "prompt": f"Person {number} is {number} years old. Who is it?"} for number in range(ROWS)]


def by_id(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture(scope="module")
def expected() -> dict[int, dict[str, Any]]:
    """The rows that one process answers."""
    import pyarrow as pa

    return by_id(Answers(**OPTIONS)(pa.Table.from_pylist(people())).to_pylist())


class Counted:
    """A prompt that leaves a mark for each row that an actor takes."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __call__(self, row: Any) -> Any:
        Path(self._folder, f"{row['id']}-{os.getpid()}").touch()
        return row["prompt"]


@pytest.fixture
def _apart(_only_tests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Actors import from the current folder of the program that starts Ray."""
    monkeypatch.chdir(_only_tests)


@pytest.mark.usefixtures("_apart")
def test_a_lost_node_loses_no_row(tmp_path: Path, expected: dict[int, dict[str, Any]]) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        node = cluster.add_node(num_cpus=2)
        ray.init(address=cluster.address, log_to_driver=False)
        cluster.wait_for_nodes()
        marks = tmp_path / "marks"
        marks.mkdir()
        dataset = ray.data.from_items(people(), override_num_blocks=max(6, ROWS // 20))
        asked = answers(dataset, concurrency=2, **{**JOB, "prompt": Counted(marks)})
        rows: list[dict[str, Any]] = []
        lost = False
        for row in asked.iter_rows():
            rows.append(row)
            if not lost and len({each.name.partition("-")[2] for each in marks.iterdir()}) == 2:
                lost = True
                cluster.remove_node(node, allow_graceful=False)
        assert lost, "both nodes answered"
        assert by_id(rows) == expected
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.usefixtures("_apart")
def test_a_killed_actor_loses_no_row_and_rows_without_a_prompt_have_errors(tmp_path: Path) -> None:
    import pyarrow as pa

    rows = [{**row, "prompt": None if row["id"] % 7 == 3 else row["prompt"]} for row in people()]
    marks = tmp_path / "marks"
    marks.mkdir()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        dataset = ray.data.from_items(rows, override_num_blocks=max(6, ROWS // 20))
        with pytest.raises(constrain.SchemaError, match="strin"):
            answers(dataset, concurrency=2, **{**JOB, "schema": {"type": "strin"}, "prompt": Counted(marks)})
        assert not any(marks.iterdir()), "no actor has begun"
        found: list[dict[str, Any]] = []
        killed = None
        for row in answers(dataset, concurrency=2, **{**JOB, "prompt": Counted(marks)}).iter_rows():
            found.append(row)
            actors = {int(each.name.partition("-")[2]) for each in marks.iterdir()}
            if killed is None and len(actors) == 2:
                killed = min(actors)
                os.kill(killed, signal.SIGKILL)
        assert killed is not None, "both actors answered"
    finally:
        ray.shutdown()
    expected = by_id(Answers(**{**OPTIONS, "prompt": Counted(marks)})(pa.Table.from_pylist(rows)).to_pylist())
    assert by_id(found) == expected
    assert [number for number, row in expected.items() if row["error"]] == [*range(3, ROWS, 7)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the rows as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "in").mkdir()
    rows = people()
    size = max(1, ROWS // 8)
    for number in range(0, ROWS, size):
        pq.write_table(pa.Table.from_pylist(rows[number : number + size]), tmp_path / "in" / f"{number}.parquet")
    return tmp_path


def begin(folder: Path, output: Path) -> subprocess.Popen[str]:
    """Starts the program of a job with a checkpoint."""
    command = [sys.executable, "-c", PROGRAM, str(folder), json.dumps(JOB), str(output)]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def written(output: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return [row for path in output.glob("*.parquet") for row in pq.read_table(path).to_pylist()]


def whole_files(output: Path) -> list[Path]:
    """The files that are written: each ends with the mark of Parquet."""
    return [
        path for path in output.glob("*.parquet") if path.read_bytes().endswith(b"PAR1") and path.stat().st_size > 4
    ]


def test_a_killed_program_goes_on_where_it_was(folder: Path, expected: dict[int, dict[str, Any]]) -> None:
    output = folder / "out"
    program = begin(folder, output)
    while not whole_files(output):
        assert program.poll() is None
        time.sleep(0.05)
    os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    assert 0 < len(whole_files(output)) < ROWS / JOB["batch_size"]
    again = begin(folder, output)
    _, errors = again.communicate(timeout=600)
    assert again.returncode == 0, errors[-2000:]
    assert by_id(written(output)) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_ends_the_job_and_loses_nothing(folder: Path, expected: dict[int, dict[str, Any]]) -> None:
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=True)
    try:
        (disk / "ballast").write_bytes(bytes(48 << 10))
        program = begin(folder, disk / "out")
        _, errors = program.communicate(timeout=600)
        assert program.returncode == 1
        assert "No space left on device" in errors
        (disk / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        again = begin(folder, disk / "out")
        _, errors = again.communicate(timeout=600)
        assert again.returncode == 0, errors[-2000:]
        assert by_id(written(disk / "out")) == expected
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
