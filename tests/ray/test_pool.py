"""The pool of ``constrain batch --ray``, with actors that are lost at the moment of the test's choice."""

from __future__ import annotations

import contextlib
import logging
import threading
from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ray")

from ray.exceptions import ActorDiedError, ActorUnavailableError
from typer.testing import CliRunner

import constrain
from constrain.batch.files import BatchFiles
from constrain.batch.inputs import JsonLines
from constrain.batch.lines import Task
from constrain.batch.run import run
from constrain.cli.program import app
from constrain.ray.pool import Pool, _require_reachable
from constrain.ray.seats import Seats
from tests.support.batch_files import echo, prompts, records

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
"""Warnings of Ray about itself."""


class Actor:
    """An actor whose calls are futures; a lost one fails all of them, and comes back if it can.

    Args:
        fatal: lines that end the process.
        comes_back: whether there is room for a successor.
    """

    def __init__(self, fatal: tuple[int, ...] = (), *, comes_back: bool = True) -> None:
        self._fatal = fatal
        self._comes_back = comes_back
        self._lock = threading.Lock()
        self._calls: dict[Future[Any], Task] = {}
        self.losses = 0
        self.answer = SimpleNamespace(remote=lambda task: SimpleNamespace(future=partial(self._begin_answer, task)))
        found = SimpleNamespace(future=self._begin)
        self.begin = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: found))

    def _begin_answer(self, task: Task) -> Future[Any]:
        found: Future[Any] = Future()
        with self._lock:
            self._calls[found] = task
        threading.Timer(0.005, self._end, (found, task)).start()
        return found

    def _end(self, found: Future[Any], task: Task) -> None:
        with self._lock:
            ended = {**self._calls} if task.line in self._fatal else {found: task}
            ended = {each: ended[each] for each in ended if self._calls.pop(each, None)}
            self.losses += task.line in self._fatal
        for each, its in ended.items():
            if task.line in self._fatal:
                each.set_exception(ActorDiedError())
            else:
                each.set_result(echo(its, None))  # type: ignore[arg-type]

    def _begin(self) -> Future[Any]:
        found: Future[Any] = Future()
        if self._comes_back:
            threading.Timer(0.02, found.set_result, (None,)).start()
        return found


class Gone(Actor):
    """An actor whose node is gone; ``error`` is what its successor says, if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(comes_back=False)
        self._error = error

    def _begin_answer(self, task: Task) -> Future[Any]:
        found: Future[Any] = Future()
        found.set_exception(ActorUnavailableError(f"line {task.line}", None))
        return found

    def _begin(self) -> Future[Any]:
        found: Future[Any] = Future()
        if self._error is not None:
            found.set_result(self._error)
        return found


def pool_of(*actors: Actor) -> Pool:
    """Returns a pool without Ray."""
    made = Pool.__new__(Pool)
    made._actors = list(actors)
    made._is_closed = False
    made._seats = Seats(actors, made._recall, lambda _: None)
    made.threads = 4 * len(actors)
    return made


def answer_all(made: Pool, folder: Path, count: int) -> tuple[dict[int, Any], dict[int, Any]]:
    """Runs a batch; returns its answers and its errors by line."""
    (folder / "in.jsonl").write_bytes(prompts(count))
    with BatchFiles(folder / "out.jsonl", folder / "errors.jsonl", {}, restart=False) as files:
        for _ in run(JsonLines(folder / "in.jsonl"), files, made.answer, None, {}, threads=made.threads):
            pass
    answered = records(folder / "out.jsonl")
    failed = records(folder / "errors.jsonl") if (folder / "errors.jsonl").exists() else []
    assert len(answered) + len(failed) == count
    return {each["line"]: each for each in answered}, {each["line"]: each for each in failed}


def test_the_lines_of_an_actor_that_cannot_be_replaced_go_to_another(tmp_path: Path, caplog: Any) -> None:
    answered, failed = answer_all(pool_of(Actor(), Gone()), tmp_path, 100)
    assert len(answered) == 100
    assert not failed
    assert "its actor was lost (1 of 3)" in caplog.text
    assert caplog.records[0].name == "constrain.ray"


@pytest.mark.parametrize("count", [1, 2])
def test_lines_that_end_their_process_fail_alone(count: int, tmp_path: Path) -> None:
    actors = [Actor((7, 8, 50)) for _ in range(count)]
    answered, failed = answer_all(pool_of(*actors), tmp_path, 60)
    assert {*failed} == {7, 8, 50}
    assert {each["error"] for each in failed.values()} == {"ModelError"}
    assert "3 processes" in failed[7]["message"]
    assert len(answered) == 57
    assert sum(each.losses for each in actors) <= 9


def task() -> Task:
    return Task(1, None, "x", None, {})


def test_a_batch_ends_if_no_actor_can_begin_again(caplog: Any) -> None:
    with pytest.raises(RuntimeError, match="none can begin again"):
        pool_of(Gone(constrain.ModelError("no model.gguf here"))).answer(task(), Future())
    assert "no model.gguf here" in caplog.text


def test_a_batch_that_ends_waits_for_no_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.ray.seats.LOOK_SECONDS", 0.01)
    stop: Future[None] = Future()
    threading.Timer(0.05, stop.set_result, (None,)).start()
    with pytest.raises(CancelledError):
        pool_of(Gone()).answer(task(), stop)


def test_actors_that_have_not_begun_are_named(caplog: Any) -> None:
    made = pool_of(Actor(), Actor(), Actor())
    rounds = iter((1, 0, 2))

    def wait(refs: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        count = next(rounds)
        return refs[:count], refs[count:]

    for number, actor in enumerate(made._actors):
        actor.begin = SimpleNamespace(options=partial(_remote, number))
    made._ray = SimpleNamespace(wait=wait, get=lambda _: None)
    with caplog.at_level(logging.WARNING, "constrain.ray"):
        made._await_start()
    assert [each.message.partition(" after")[0] for each in caplog.records] == [
        "actors 2, 3 of 3 have not begun",
        "actors 2, 3 of 3 have not begun",
    ]


def _remote(ref: int, **_: Any) -> Any:
    return SimpleNamespace(remote=lambda: ref)


def test_a_schema_that_is_refused_ends_what_ray_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 2})
    for name in ("init", "shutdown"):
        monkeypatch.setattr(f"ray.{name}", lambda *_, name=name, **__: called.append(name))
    with pytest.raises(constrain.SchemaError, match="strin"):
        Pool("local", 2, 1, {"model": None, "n_ctx": 512, "parallel": 2}, '{"type": "strin"}', {})
    assert called == ["init", "shutdown"]


@pytest.mark.parametrize(("address", "reached"), [("127.0.0.1:1", False), ("auto", True), ("ray://127.0.0.1:1", False)])
def test_an_address_where_nothing_listens_is_refused_at_once(address: str, reached: bool) -> None:
    with contextlib.nullcontext() if reached else pytest.raises(ConnectionError, match="no Ray cluster listens"):
        _require_reachable(address)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--ray", "127.0.0.1:1"], "--ray"),
        (["--ray", "local", "--threads", "2"], "--cpus-per-actor gives the threads"),
        (["--actors", "2"], "it needs --ray"),
        (["--cpus-per-actor", "2"], "it needs --ray"),
    ],
)
def test_what_the_command_cannot_begin_is_told(more: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(prompts(1))
    done = CliRunner().invoke(app, ["batch", "in.jsonl", "-o", "out.jsonl", *more], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert message in done.stderr
