"""Faults under eight clients that read streams: all end with a whole answer or an error, and the next one is served.

Nothing stays behind either: no context of a model, no thread, no file descriptor, no process. With ``CONSTRAIN_LONG``
each fault comes nine times.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

import constrain
from constrain.llama.contexts import sequences
from constrain.llama.contexts.sequences import Sequences
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support import LONG
from tests.support.judging import validation_error
from tests.support.server.asking import CHAT, error_of, served_as, serving

CLIENTS = 8
PARALLEL = 4
ROUNDS = 9 if LONG else 1

PATIENCE = 60.0
"""Seconds without a word after which a client hangs."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(model_file: Path, _contexts: None) -> Iterator[constrain.Model]:
    with constrain.Model(model_file, n_ctx=256, n_threads=1, parallel=PARALLEL) as made:
        yield made


@pytest.fixture(scope="module")
def application(model: constrain.Model) -> Application:
    return Application(served_as(model, "small"), Settings())


@pytest.fixture(scope="module")
def url(application: Application) -> Iterator[str]:
    with serving(application) as found:
        everybody(found)  # all that is made once is made now
        yield found


# Clients


_numbers = itertools.count(1)


def new_schema() -> dict[str, Any]:
    """Another one for each client, so that it has to be compiled, and its answer is no other's."""
    return {
        "type": "object",
        "properties": {"name": {"const": next(_numbers)}, "note": {"type": "string", "pattern": "^[a-z ]{12,16}$"}},
        "required": ["name", "note"],
        "additionalProperties": False,
    }


def client(url: str, *, leaves: bool = False) -> str:
    """How the stream of a client ended: "whole", "error" (an event), or with the status of a refusal."""
    schema = new_schema()
    body = {
        "model": "small",
        "messages": [{"role": "user", "content": "Write a note."}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "note", "schema": schema}},
        "temperature": 0,
        "stream": True,
    }
    with httpx.stream("POST", url + CHAT, json=body, timeout=PATIENCE) as response:
        if response.status_code != 200:
            response.read()
            assert error_of(response)["type"] == "server_error"
            return str(response.status_code)
        events = []
        for line in response.iter_lines():
            if line:
                events.append(line.removeprefix("data: "))
                if leaves:
                    return "left"
    if events[-1] != "[DONE]":
        assert set(json.loads(events[-1])["error"]) == {"message", "type", "param", "code"}
        return "error"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert validation_error(schema, text.encode()) is None, text
    assert choices[-1]["finish_reason"] == "stop"
    return "whole"


def everybody(url: str, *, leaving: int = 0) -> Counter[str]:
    """How the streams of eight clients ended, of which some leave."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        asked = [pool.submit(client, url, leaves=number < leaving) for number in range(CLIENTS)]
        return Counter(one.result() for one in asked)


# What is there


made_contexts: list[Sequences] = []


@pytest.fixture(scope="module", autouse=True)
def _contexts() -> Iterator[None]:
    """Notes all contexts that are made."""
    make = Sequences.__init__

    def made(self: Sequences, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        made_contexts.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sequences, "__init__", made)
        yield
    made_contexts.clear()


def resources() -> dict[str, int]:
    """What must not grow."""
    process = psutil.Process()
    computing = [child for child in process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    own = [thread for thread in threading.enumerate() if thread.name.startswith("constrain")]
    contexts = sum(one._context.ctx is not None for one in made_contexts)
    return {"processes": len(computing), "threads": len(own), "descriptors": process.num_fds(), "contexts": contexts}


def settled(model: constrain.Model, before: dict[str, int]) -> dict[str, int]:
    """What is there once the server has ended what clients have seen the end of."""
    end = time.monotonic() + PATIENCE
    while True:
        model.scheduler.join()
        now = resources()
        if all(now[name] <= before[name] for name in now) or time.monotonic() > end:
            return now
        time.sleep(0.01)  # there is no event for the end of a connection or a process


@contextlib.contextmanager
def failing_evaluation() -> Iterator[None]:
    """Has llama.cpp fail in its fourth evaluation, when all clients are there."""
    submitted, calls = threading.Semaphore(0), itertools.count(1)
    submit, decode = Scheduler.submit, sequences.llama_cpp.llama_decode

    def note(scheduler: Scheduler, request: Any) -> None:
        submit(scheduler, request)
        submitted.release()

    def evaluate(*arguments: Any) -> Any:
        number = next(calls)
        for _ in range(CLIENTS if number == 2 else 0):
            assert submitted.acquire(timeout=PATIENCE)
        return -3 if number == 4 else decode(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "submit", note)
        patch.setattr(sequences.llama_cpp, "llama_decode", evaluate)
        yield


def test_whatever_fails_or_leaves_the_next_one_is_served_and_nothing_stays_behind(
    model: constrain.Model, application: Application, url: str
) -> None:
    before = settled(model, resources())
    for _ in range(ROUNDS):
        with failing_evaluation():
            ends = everybody(url)
        assert set(ends) == {"error", "whole"}
        assert ends["error"] <= PARALLEL
        assert client(url) == "whole"
        assert everybody(url, leaving=5) == {"left": 5, "whole": CLIENTS - 5}
    now = settled(model, before)
    assert all(now[name] <= before[name] for name in now), (before, now)
    assert not any(slot.busy for slot in model.scheduler.slots)
    assert application.generator._admitted == 0
