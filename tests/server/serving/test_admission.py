"""Room for answers and bodies, the estimate of when there is some, and equal answers one at a time."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from constrain.generation.running import Run
from constrain.server.app import Application
from constrain.server.config import read_config
from constrain.server.http.errors import ApiError, too_busy
from constrain.server.http.pace import Pace
from constrain.server.serving import generation
from constrain.server.serving.generation import Generator
from constrain.server.serving.metrics import Metrics
from constrain.server.serving.model_files import find_models
from constrain.server.serving.models import Models, ModelSource
from constrain.server.settings import Settings
from tests.support import each_row, for_each
from tests.support.server.asking import CHAT, SECONDS

MIB = 1 << 20


@pytest.fixture
def make() -> Iterator[Callable[..., Generator]]:
    """A function that makes a generator of a model that is never loaded."""
    with contextlib.ExitStack() as made:

        def generator(parallel: int = 1, queue: int = 0, seconds: float = 2.0) -> Generator:
            models = Models([ModelSource(("m",), 0, parallel, 0, lambda: pytest.fail("it is loaded"))])
            metrics = Metrics(models)
            metrics.pace.seconds = seconds
            limits = {"compile_memory_bytes": MIB, "max_bodies_bytes": 4 * MIB}
            found = Generator(parallel, Settings(queue=queue, **limits), metrics)
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


@each_row(
    "parallel, queue, seconds, told",
    (1, 0, 2.0, "2"),
    (1, 4, 2.0, "10"),
    (4, 4, 2.0, "3"),
    (4, 64, 0.5, "9"),
    (1, 0, 60.0, "60"),
    (1, 64, 60.0, "120"),
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


PROMPTS = ["Say hello.", "Say hello to me, then name a colour.", "Say hello to me, then name a city.", "Count."]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}, "required": ["a"]}


def body(number: int) -> dict[str, Any]:
    """One of 12 requests: many begin alike, and all draw random numbers; every fourth names no seed."""
    asked: dict[str, Any] = {
        "model": "small",
        "messages": [{"role": "user", "content": PROMPTS[number % len(PROMPTS)]}],
        "max_tokens": 4,
        "temperature": 1.5,
        "n": 2 if number == 7 else 1,
    }
    if number % 4:
        asked["seed"] = number
    if number % 2:
        asked["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
        asked["max_tokens"] = 10
    return asked


@pytest.fixture
def application(model_file: Path) -> Iterator[Application]:
    flags = {"deterministic": True, "ctx": 256, "threads": 1}
    models = find_models(read_config(None, flags), model_file, ["small"])
    yield Application(models, Settings())
    models.close()


async def answers(application: Application, numbers: Sequence[int], *, together: bool) -> dict[int, list[str]]:
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=SECONDS) as client:
        asking = [client.post(CHAT, json=body(number)) for number in numbers]
        responses = await asyncio.gather(*asking) if together else [await each for each in asking]
    contents = [[choice["message"]["content"] for choice in response.json()["choices"]] for response in responses]
    return dict(zip(numbers, contents, strict=True))


@pytest.mark.slow
def test_requests_together_get_the_answers_that_they_get_one_by_one(application: Application) -> None:
    numbers = list(range(12))
    alone = asyncio.run(answers(application, numbers, together=False))
    random.Random(1).shuffle(numbers)
    assert asyncio.run(answers(application, numbers, together=True)) == alone
    assert len({text for texts in alone.values() for text in texts}) > 6
