"""Faults under eight clients that read streams: all end with a whole answer or an error, and the next one is served.

Nothing stays behind either: no context of a model, no thread, no file descriptor, no process. With ``CONSTRAIN_LONG``
each fault comes nine times.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

import constrain
from constrain.llama.contexts import sequences
from constrain.llama.contexts.sequences import Sequences
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.server.app import Application
from constrain.server.sandbox.session import Session
from constrain.server.sandbox.workers import workers
from constrain.server.settings import Settings
from tests.support import LONG
from tests.support.judging import validation_error
from tests.support.server.asking import CHAT, error_of, served_as, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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


@pytest.fixture
def suffer(model: constrain.Model, application: Application, url: str) -> Callable[..., Counter[str]]:
    """Lets eight clients meet a fault, some times; how they ended, all together."""

    def repeat(fault: Callable[[], Any], *, leaving: int = 0) -> Counter[str]:
        before = settled(model, resources())
        ends: Counter[str] = Counter()
        for _ in range(ROUNDS):
            with fault():
                ends += everybody(url, leaving=leaving)
            assert client(url) == "whole"
        now = settled(model, before)
        assert all(now[name] <= before[name] for name in now), (before, now)
        assert not any(slot.busy for slot in model.scheduler.slots)
        assert application.generator._admitted == 0
        return ends

    return repeat


class Countdown:
    """Fails once, when it has been asked so often."""

    def __init__(self, calls: int, error: Callable[[], Any]) -> None:
        self._left = calls
        self._error = error
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self._left -= 1
            fails = self._left == 0
        if fails:
            self._error()


@contextlib.contextmanager
def failing_step(owner: Any, name: str, fail: Callable[[], Any]) -> Iterator[None]:
    """Has a method fail in its fourth call, when all clients are there."""
    submitted = threading.Semaphore(0)
    submit, method = Scheduler.submit, getattr(owner, name)

    def note(scheduler: Scheduler, request: Any) -> None:
        submit(scheduler, request)
        submitted.release()

    def when_all_are_there() -> None:
        for _ in range(CLIENTS):
            assert submitted.acquire(timeout=PATIENCE)

    counts = Countdown(2, when_all_are_there), Countdown(4, lambda: failures.append(1))
    failures: list[int] = []

    def once(*arguments: Any) -> Any:
        for count in counts:
            count()
        return fail() if failures and not failures.clear() else method(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "submit", note)
        patch.setattr(owner, name, once)
        yield


def test_an_evaluation_that_fails(suffer: Any) -> None:
    ends = suffer(lambda: failing_step(sequences.llama_cpp, "llama_decode", lambda: -3))
    assert set(ends) == {"error", "whole"}
    assert ROUNDS <= ends["error"] <= PARALLEL * ROUNDS


def test_a_process_or_program_that_is_killed(suffer: Any) -> None:
    send = Session._send

    def kill_program() -> None:
        program = workers()._program
        assert program is not None
        program.kill()

    @contextlib.contextmanager
    def fault() -> Iterator[None]:
        calls = 0

        def send_and_kill(session: Session, value: object) -> None:
            nonlocal calls
            send(session, value)
            if isinstance(value, tuple):
                calls += 1
                if calls in (2, 5, 8):
                    os.kill(session._process, signal.SIGKILL)
                elif calls == 6:
                    kill_program()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Session, "_send", send_and_kill)
            yield

    ends = suffer(fault)
    assert {"500", "whole"} <= set(ends) <= {"500", "503", "whole"}  # 503: the program was killed before it forked
    assert ends["500"] == 3 * ROUNDS


def test_sockets_that_are_closed(suffer: Any) -> None:
    ends = suffer(contextlib.nullcontext, leaving=5)
    assert ends == {"left": 5 * ROUNDS, "whole": (CLIENTS - 5) * ROUNDS}
