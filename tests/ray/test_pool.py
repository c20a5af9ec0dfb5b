"""The pool of ``constrain batch --ray``, with actors that are lost at the moment of the test's choice."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import CancelledError, Future
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("ray")

from ray.exceptions import ActorDiedError, ActorUnavailableError

import constrain
from constrain.batch.files import BatchFiles
from constrain.batch.inputs import JsonLines
from constrain.batch.lines import Task
from constrain.batch.run import run
from constrain.ray.pool import Pool
from constrain.ray.seats import Seats
from tests.support.batch_files import echo, prompts, records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def test_a_batch_that_ends_waits_for_no_actor() -> None:
    stop: Future[None] = Future()
    threading.Timer(0.2, stop.set_result, (None,)).start()
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


class Fatal:
    """A prompt that ends the process that reads it."""

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return os._exit, (1,)


@pytest.mark.slow
def test_a_task_that_ends_its_process_fails_on_a_cluster() -> None:
    sizes = {"model": None, "n_ctx": 512, "parallel": 2}
    with Pool("local", 1, 1, sizes, None, {}) as made:
        with pytest.raises(constrain.ModelError, match="3 processes"):
            made.answer(Task(1, None, Fatal(), None, {}), Future())  # type: ignore[arg-type]
        found = made.answer(Task(2, None, "Hello", None, {"max_tokens": 5}), Future())
        assert found.usage.completion_tokens > 0
