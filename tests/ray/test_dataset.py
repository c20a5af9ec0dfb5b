"""``answers`` before any actor starts: refusals, sizes of actors, checkpoints, and the constraint that is sent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import constrain
from constrain.engine.compiling import ToCompile
from constrain.engine.remembered import remembered_constraints
from constrain.ray import answers
from constrain.ray.checkpoints import _readers, _require_ids
from constrain.ray.dataset import _reserved_cpus, choose_cpus
from constrain.ray.shipping import receive, ship
from tests.support import each_row, for_each

ray = pytest.importorskip("ray")


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
"""Warnings of Ray about itself."""

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
}
MODEL = {"n_ctx": 512, "n_threads": 1, "parallel": 2}


def nodes_of(monkeypatch: pytest.MonkeyPatch, *cpus: int) -> None:
    """Makes Ray tell of a cluster."""
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": count}} for count in cpus])


@each_row(
    "changes, error, message",
    ({"schema": {"type": "strin"}}, constrain.SchemaError, "strin"),
    ({"schema": constrain.Lark("start: gone")}, constrain.GrammarError, "gone"),
    ({"prompt": "question"}, ValueError, "neither a column"),
    ({"id_column": "key"}, ValueError, "id_column is 'key'"),
    ({"vote": True}, ValueError, "vote=True needs n"),
    ({"id_column": None, "checkpoint": "none"}, ValueError, "checkpoint needs id_column"),
)
def test_refusals_come_before_any_actor(
    changes: dict[str, Any], error: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes_of(monkeypatch, 2)
    rows: Any = SimpleNamespace(columns=lambda **_: ["id", "prompt"])
    with pytest.raises(error, match=message):
        answers(rows, **{"id_column": "id", "schema": SCHEMA, "model_options": MODEL, **changes})


@pytest.mark.parametrize(("cpus", "wanted", "expected"), [((2, 8), None, 4), ((2, 3), None, 3), ((2,), 6, 6)])
def test_actors_have_cpus_of_one_node(
    cpus: tuple[int, ...], wanted: float | None, expected: float, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    nodes_of(monkeypatch, *cpus)
    assert choose_cpus(wanted, "cpus_per_actor") == expected
    assert ("no node has more than 2 CPUs" in caplog.text) == (wanted == 6)


@pytest.mark.parametrize(
    ("actors", "spare", "expected"), [(1, 1, 1), (3, 1, 1), (4, 1, 0.75), (4, 2, 0.5), (8, 2, 0.25)]
)
def test_actors_leave_a_cpu_for_reading(
    actors: int, spare: int, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes_of(monkeypatch, 2, 2)
    assert _reserved_cpus(1, actors, spare) == expected
    assert _reserved_cpus(5, actors, spare) == 5, "of a node that is still to come"


@pytest.fixture
def _no_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "put", lambda value: value)
    monkeypatch.setattr(ray, "get", lambda value: value)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_object_store")
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


def test_what_is_known_on_the_nodes_only_is_not_sent() -> None:
    quoting = {"type": "object", "properties": {"word": {"type": "string", "x-quote": "letter"}}}
    assert ship(None, quoting, {}) is None
    assert ship(None, None, {}) is None
    assert ship("/of/the/nodes.gguf", SCHEMA, {}) is None
    with pytest.raises(constrain.SchemaError):
        ship("/of/the/nodes.gguf", {"type": "strin"}, {})


class Files:
    """The rows of files, as a dataset gives them."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def columns(self) -> list[str]:
        return list(self.table.column_names)

    def select_columns(self, names: list[str]) -> Files:
        return Files(self.table.select(names))

    def map_batches(self, function: Any, **_: Any) -> Files:
        return Files(function(self.table))

    def iter_batches(self, **_: Any) -> Iterator[dict[str, Any]]:
        yield {name: self.table[name].to_numpy() for name in self.table.column_names}


@for_each(
    "ids, message",
    ([1, 2, 3, 2], "the id 2 occurs 2 times"),
    (["a", "b", "b", "b"], "the id 'b' occurs 3 times"),
    ([1, None, 3, 4], "1 rows have no id"),
    ([2**53, 2**53 + 1, 5, 6], None),
)
def test_a_checkpoint_needs_an_id_for_each_row(ids: list[Any], message: str | None) -> None:
    files: list[Any] = [Files(pa.table({"id": part, "prompt": ["x"] * 2})) for part in (ids[:2], ids[2:])]
    with pytest.raises(ValueError, match="ids are in the files"):
        _require_ids(files, "key")
    if message is None:
        _require_ids(files, "id")
    else:
        with pytest.raises(ValueError, match=message):
            _require_ids(files, "id")


class FromItems:
    """Rows in memory, as an operator of a plan."""

    def __init__(self, *inputs: FromItems) -> None:
        self.input_dependencies = inputs


class Read(FromItems):
    """Rows of files."""


class Union(FromItems):
    """Rows of others."""


def test_a_checkpoint_is_for_rows_of_files() -> None:
    one, other = Read(), Read(FromItems())
    assert {*_readers(Union(one, Union(other)))} == {one, other}
    for plan in (FromItems(), Union(one, FromItems())):
        with pytest.raises(ValueError, match="write them with write_parquet"):
            list(_readers(plan))
