"""Room for answers and bodies, and the estimate of when there is some again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from constrain.generation.job import Run
from constrain.server.http.errors import ApiError, too_busy
from constrain.server.http.pace import Pace
from constrain.server.sandbox.worker import Limits
from constrain.server.serving import generation
from constrain.server.serving.generation import Generator
from constrain.server.serving.metrics import Metrics
from constrain.server.serving.models import Models, ModelSource
from tests.support import for_each

MIB = 1 << 20


@pytest.fixture
def make() -> Iterator[Callable[..., Generator]]:
    """A function that makes a generator of a model that is never loaded."""
    with contextlib.ExitStack() as made:

        def generator(parallel: int = 1, queue: int = 0, seconds: float = 2.0) -> Generator:
            models = Models([ModelSource(("m",), 0, parallel, 0, lambda: pytest.fail("it is loaded"))])
            metrics = Metrics(models)
            metrics.pace.seconds = seconds
            found = Generator(parallel, queue, Limits(3.0, MIB), metrics, 600.0, 4 * MIB)
            made.callback(found.close)
            return found

        yield generator


class FakeRun:
    """An answer that waited so long in the queue, or still waits."""

    def __init__(self, queue_seconds: float | None = None) -> None:
        begun: Future[None] = Future()
        if queue_seconds is not None:
            begun.set_result(None)
        self.request: Any = SimpleNamespace(begun=begun, done=Future(), queue_seconds=queue_seconds or 0.0)


def refusal(generator: Generator, count: int = 1) -> dict[str, str]:
    with pytest.raises(ApiError) as caught, generator.admit(count):
        pass
    assert caught.value.status == 429
    return dict(caught.value.headers or {})


@for_each("seconds, told", [(-1.0, "1"), (0.0, "1"), (0.2, "1"), (1.1, "2"), (59.5, "60"), (3600.0, "120")])
def test_a_client_is_told_to_come_again_in_time(seconds: float, told: str) -> None:
    assert too_busy("a test", seconds).headers == {"Retry-After": told}


@pytest.mark.parametrize(
    ("parallel", "queue", "seconds", "told"),
    [
        (1, 0, 2.0, "2"),
        (1, 4, 2.0, "10"),
        (4, 4, 2.0, "3"),
        (4, 64, 0.5, "9"),
        (1, 0, 60.0, "60"),
        (1, 64, 60.0, "120"),
    ],
)
def test_a_full_queue_is_told_as_the_time_until_its_end(
    make: Callable[..., Generator], parallel: int, queue: int, seconds: float, told: str
) -> None:
    generator = make(parallel, queue, seconds)
    with generator.admit(parallel + queue):
        assert refusal(generator) == {"Retry-After": told}


def test_recent_answers_are_what_the_next_ones_take() -> None:
    pace = Pace(2.0)
    for _ in range(20):
        pace.add(60.0)
    assert 59 < pace.seconds < 60
    for _ in range(20):
        pace.add(1.0)
    assert 1 < pace.seconds < 2


def test_answers_in_progress_count_before_any_was_finished(
    make: Callable[..., Generator], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = make(parallel=2)
    monkeypatch.setattr(generation, "time", SimpleNamespace(monotonic=lambda: 100.0))
    generator._live = {cast("Run", FakeRun(wait)): at for wait, at in ((10.0, 0.0), (0.0, 70.0), (None, 0.0))}
    with generator.admit(2):
        assert refusal(generator) == {"Retry-After": "30"}  # 90 and 30 seconds old: 60 each, two at a time


def test_a_finished_answer_keeps_no_process_waiting(make: Callable[..., Generator]) -> None:
    generator, run = make(), cast("Run", FakeRun(0.0))
    assert not generator._turns.is_busy()
    generator._live = {run: time.monotonic()}
    assert generator._turns.is_busy()
    run.request.done.set_result(None)  # its captures are found now
    assert not generator._turns.is_busy()


def test_large_bodies_take_so_many_bytes_together(make: Callable[..., Generator]) -> None:
    generator = make(seconds=5.0)
    with generator.admit_body(3 * MIB), generator.admit_body(MIB):
        with pytest.raises(ApiError) as caught, generator.admit_body(1):
            pass
        assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "5"})
    with generator.admit_body(4 * MIB):
        pass


def test_the_largest_body_fits_into_less_room(make: Callable[..., Generator]) -> None:
    generator = make()
    with generator.admit_body(5 * MIB), pytest.raises(ApiError), generator.admit_body(1):
        pass
