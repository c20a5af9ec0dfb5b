"""Large jobs: nothing is lost or doubled when a node or the program fails.

They take minutes, and run with ``CONSTRAIN_LONG``. ``CONSTRAIN_RAY_ROWS`` is the number of rows: 120, or at least 24.
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

from constrain.ray import Answers, answers  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
]
"""Warnings of Ray about itself."""

ROWS = int(os.environ.get("CONSTRAIN_RAY_ROWS", "120"))

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
