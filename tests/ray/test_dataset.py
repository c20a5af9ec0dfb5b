"""``answers`` on a Ray cluster of this machine: rows, faults, retries and refusals."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain.engine.compiling import ToCompile
from constrain.engine.remembered import remembered_constraints
from constrain.ray import Answers, answers
from constrain.ray.shipping import receive, ship

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)
"""Warnings of Ray about itself."""

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
}
MODEL = {"n_ctx": 512, "n_threads": 1, "parallel": 2}
OPTIONS: dict[str, Any] = {
    "id_column": "id",
    "schema": SCHEMA,
    "max_tokens": 40,
    "temperature": 1.0,
    "model_options": MODEL,
}


@pytest.fixture(scope="module", autouse=True)
def cluster(_only_tests: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(_only_tests)  # actors import from the current folder of the program that starts Ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def people(count: int) -> list[dict[str, Any]]:
    return [{"id": number, "prompt": f"Person {number} is {number} years old. Who is it?"} for number in range(count)]


def by_id(dataset: Any) -> dict[int, dict[str, Any]]:
    rows = dataset.take_all()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def expected(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    import pyarrow as pa

    return {row["id"]: row for row in Answers(**OPTIONS)(pa.Table.from_pylist(rows)).to_pylist()}


def test_rows_are_answered_by_actors_as_by_one_process() -> None:
    rows = people(12)
    found = answers(ray.data.from_items(rows), concurrency=2, cpus_per_actor=1, batch_size=3, **OPTIONS)
    assert by_id(found) == expected(rows)


class KilledOnce:
    """A prompt that kills its process when it is read for the first time."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def __call__(self, row: Any) -> str:
        if row["id"] == 7 and not Path(self._mark).exists():
            Path(self._mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return str(row["prompt"])


def test_a_killed_actor_loses_nothing(tmp_path: Any) -> None:
    rows = people(12)
    asked = {**OPTIONS, "prompt": KilledOnce(str(tmp_path / "mark"))}
    found = by_id(answers(ray.data.from_items(rows), concurrency=1, cpus_per_actor=1, batch_size=3, **asked))
    assert (tmp_path / "mark").exists()
    assert found == expected(rows)


def test_rows_that_cannot_be_answered_have_errors() -> None:
    rows = [*people(2), {"id": 2, "prompt": None}]
    found = by_id(answers(ray.data.from_items(rows), concurrency=1, cpus_per_actor=1, **OPTIONS))
    assert found[2]["error"]["error"] == "LineError"
    assert found[0]["error"] is None


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"schema": {"type": "strin"}}, constrain.SchemaError, "strin"),
        ({"schema": constrain.Lark("start: gone")}, constrain.GrammarError, "gone"),
        ({"prompt": "question"}, ValueError, "neither a column"),
        ({"id_column": "key"}, ValueError, "id_column is 'key'"),
        ({"vote": True}, ValueError, "vote=True needs n"),
        ({"id_column": None, "checkpoint": "/tmp/none"}, ValueError, "checkpoint needs id_column"),
    ],
)
def test_refusals_come_before_any_actor(changes: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        answers(ray.data.from_items(people(2)).materialize(), **{**OPTIONS, **changes})


def test_a_schema_with_quotes_is_compiled_with_the_sources_of_its_rows() -> None:
    quoting = {"type": "object", "properties": {"word": {"type": "string", "x-quote": "letter"}}}
    rows = ray.data.from_items([{"id": 0, "prompt": "x", "letter": "yes"}])
    assert answers(rows, **{**OPTIONS, "schema": quoting, "source_columns": {"letter": "letter"}}) is not None


def test_the_constraint_of_a_job_is_compiled_once(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setenv("CONSTRAIN_CACHE", "0")
    shipped = ship(None, SCHEMA, {})
    assert shipped is not None
    with constrain.Model(**MODEL) as model:
        receive(model, SCHEMA, {}, dataclasses.replace(shipped, identity=bytes(32)))
        assert "another vocabulary" in caplog.text
        remembered_constraints.forget(model.vocabulary)
        with monkeypatch.context() as patch:
            patch.setattr(ToCompile, "compile", None)
            receive(model, SCHEMA, {}, shipped)
            assert constrain.generate(model, "x", schema=SCHEMA, max_tokens=40) is not None


def test_a_model_file_of_the_nodes_only_is_for_them() -> None:
    assert ship("/of/the/nodes.gguf", SCHEMA, {}) is None
    with pytest.raises(constrain.SchemaError):
        ship("/of/the/nodes.gguf", {"type": "strin"}, {})


def test_a_checkpoint_leaves_out_what_is_written(tmp_path: Any) -> None:
    rows = people(6)
    for count in (4, 6):
        ray.data.from_items(rows[:count]).write_parquet(str(tmp_path / "in"), mode="overwrite")
        dataset = ray.data.read_parquet(str(tmp_path / "in"))
        asked = {**OPTIONS, "checkpoint": str(tmp_path / "checkpoint")}
        answers(dataset, concurrency=1, cpus_per_actor=1, **asked).write_parquet(str(tmp_path / "out"), mode="append")
    assert by_id(ray.data.read_parquet(str(tmp_path / "out"))) == expected(rows)


def write_people(folder: Path, rows: list[dict[str, Any]]) -> Any:
    ray.data.from_items(rows).write_parquet(str(folder), mode="overwrite")
    return ray.data.read_parquet(str(folder))


def test_a_checkpoint_is_that_of_its_job_only(tmp_path: Path) -> None:
    dataset = write_people(tmp_path / "in", people(3))
    paths = [str(tmp_path / "first"), str(tmp_path / "second")]
    jobs = [answers(dataset, **{**OPTIONS, "checkpoint": path}) for path in paths]
    assert [job.context.checkpoint_config.checkpoint_path for job in jobs] == paths
    assert dataset.context.checkpoint_config is None
    assert answers(dataset, **OPTIONS).context.checkpoint_config is None


@pytest.mark.parametrize("of_memory", [lambda rows: rows, lambda rows: rows.materialize()])
def test_rows_in_memory_have_no_checkpoint(of_memory: Any, tmp_path: Path) -> None:
    rows = ray.data.from_items(people(2))
    files = write_people(tmp_path / "in", people(2))
    for dataset in (of_memory(rows), of_memory(rows).union(files).repartition(1), files.materialize()):
        with pytest.raises(ValueError, match="write them with write_parquet"):
            answers(dataset, **{**OPTIONS, "checkpoint": str(tmp_path / "checkpoint")})


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2, 3, 2], "the id 2 occurs 2 times"),
        (["a", "b", "b", "b"], "the id 'b' occurs 3 times"),
        ([1, None, 3, 4], "1 rows have no id"),
        ([2**53, 2**53 + 1, 5, 6], None),
    ],
)
def test_a_checkpoint_needs_an_id_for_each_row(ids: list[Any], message: str | None, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, part in enumerate((ids[:2], ids[2:])):
        pq.write_table(pa.table({"id": part, "prompt": ["x"] * 2}), tmp_path / f"{number}.parquet")
    dataset = ray.data.read_parquet(str(tmp_path)).map(_must_not_run)
    asked = {**OPTIONS, "checkpoint": str(tmp_path / "checkpoint")}
    if message is None:
        assert answers(dataset, **asked) is not None
    else:
        with pytest.raises(ValueError, match=message):
            answers(dataset, **asked)


def _must_not_run(row: dict[str, Any]) -> dict[str, Any]:
    raise AssertionError(row)


def test_ids_of_a_checkpoint_are_in_the_files(tmp_path: Path) -> None:
    dataset = write_people(tmp_path / "in", [{"prompt": "x"}]).map(_must_not_run)
    with pytest.raises(ValueError, match="ids are in the files"):
        answers(dataset, **{**OPTIONS, "checkpoint": str(tmp_path / "checkpoint")})
