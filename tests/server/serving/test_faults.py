"""Faults under eight clients that read streams: all end with a whole answer or an error, and the next one is served.

Nothing stays behind either: no context of a model, no thread, no file descriptor, no process. With ``CONSTRAIN_LONG``
each fault comes nine times, and memory must not grow with their number once caches are full; ``pytest -s`` shows what
became of the clients.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import itertools
import json
import logging
import mmap
import os
import signal
import statistics
import sys
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

import constrain
from constrain import private_folders
from constrain.engine import cache as _cache
from constrain.engine import remembered
from constrain.llama.contexts import sequences
from constrain.llama.contexts.sequences import Sequences
from constrain.llama.decoding.answer import Answer
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.server.app import Application
from constrain.server.sandbox.session import Session
from constrain.server.sandbox.workers import workers
from constrain.server.settings import Settings
from tests.support import LONG
from tests.support.judging import validation_error
from tests.support.server.asking import CHAT, error_of, served_as, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CLIENTS = 8
PARALLEL = 4
WARM_UP = 3
"""Rounds of a fault until caches are full: from then on memory is measured."""

ROUNDS = WARM_UP + 6 if LONG else 1

PATIENCE = 60.0
"""Seconds without a word after which a client hangs."""

MOST_BYTES = 256 << 10
"""Bytes that a round, with eight clients and a fault, may leave behind: a context of the model takes 24 MiB, a compiled
schema 250 KiB, and a round compiles nine."""

MOST_BLOCKS = 1500
"""Blocks of Python's allocator that a round may leave behind. pytest keeps the nine lines of the log, about 440 blocks;
the frames of three requests that failed are 1,600 more, and 3.5 MiB of logits and candidates."""


@pytest.fixture(scope="module")
def model(_contexts: None) -> Iterator[constrain.Model]:
    with constrain.Model(n_ctx=256, n_threads=1, parallel=PARALLEL) as made:
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
        "properties": {
            "name": {"const": next(_numbers)},
            "note": {"type": "string", "pattern": "^[a-z ]{12,16}$"},
        },
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
    """Notes all contexts that are made; few constraints are remembered, so that these take as much all the time."""
    make = Sequences.__init__

    def made(self: Sequences, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        made_contexts.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sequences, "__init__", made)
        patch.setattr(remembered, "CACHED_CONSTRAINTS", CLIENTS)
        yield
    made_contexts.clear()


def resources() -> dict[str, int]:
    """What must not grow, but for memory."""
    process = psutil.Process()
    computing = [child for child in process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    own = [thread for thread in threading.enumerate() if thread.name.startswith("constrain")]
    contexts = sum(one._context.ctx is not None for one in made_contexts)
    return {
        "processes": len(computing),
        "threads": len(own),
        "descriptors": process.num_fds(),
        "contexts": contexts,
    }


def settled(model: constrain.Model, before: dict[str, int]) -> dict[str, int]:
    """What is there once the server has ended what clients have seen the end of."""
    end = time.monotonic() + PATIENCE
    while True:
        model.scheduler.join()
        now = resources()
        if all(now[name] <= before[name] for name in now) or time.monotonic() > end:
            return now
        time.sleep(0.01)  # there is no event for the end of a connection or a process


class _Mallinfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    )


def in_use() -> tuple[int, int]:
    """Bytes that are allocated and not freed, and blocks of Python's own allocator.

    Not what the process has of the system: pages that hold something go on holding what is free beside it, so that
    grows for a while where nothing leaks.
    """
    gc.collect()
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _Mallinfo
    memory = mallinfo()
    return memory.uordblks + memory.hblkhd, sys.getallocatedblocks()


def slope(values: Sequence[int]) -> float:
    """How much values grow from one to the next: the median of all pairs, so that one jump makes no slope."""
    return statistics.median((b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(enumerate(values), 2))


@pytest.fixture
def _plain_log() -> Iterator[None]:
    """Has log records hold the text of an error in place of its frames: pytest keeps all records of a test.

    A frame holds a request with its logits and candidates, 1.2 MiB of the demo model.
    """
    make, formatter = logging.getLogRecordFactory(), logging.Formatter()

    def made(*arguments: Any, **options: Any) -> logging.LogRecord:
        record = make(*arguments, **options)
        if record.exc_info and record.exc_info[0]:
            record.exc_text = formatter.formatException(record.exc_info)
            record.exc_info = None
        return record

    logging.setLogRecordFactory(made)
    yield
    logging.setLogRecordFactory(make)


@pytest.fixture
def suffer(model: constrain.Model, application: Application, url: str, _plain_log: None) -> Callable[..., Counter[str]]:
    """Lets eight clients meet a fault, some times; how they ended, all together."""

    def repeat(name: str, fault: Callable[[], Any], *, leaving: int = 0) -> Counter[str]:
        before = settled(model, resources())
        ends: Counter[str] = Counter()
        memory = []
        for _ in range(ROUNDS):
            with fault():
                ends += everybody(url, leaving=leaving)
            assert client(url) == "whole"
            settled(model, before)
            memory.append(in_use())
        now = settled(model, before)
        assert all(now[name] <= before[name] for name in now), (before, now)
        assert not any(slot.busy for slot in model.scheduler.slots)
        assert application.generator._admitted == 0
        told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
        print(f"\n{name} | {told} | whole")
        if len(memory) > WARM_UP:
            used, blocks = (slope(values[WARM_UP:]) for values in zip(*memory, strict=True))
            print(f"{used / 1024:.0f} KiB and {blocks:.0f} blocks a round, of {[used >> 10 for used, _ in memory]}")
            assert used < MOST_BYTES, memory
            assert blocks < MOST_BLOCKS, memory
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


def raises(error: BaseException) -> Any:
    raise error


# Faults


only_long = pytest.mark.skipif(not LONG, reason="takes seconds; its cause has a quick test where it is met")


@only_long
@pytest.mark.parametrize("name", ["constrain-scheduler", "constrain-decide"])
def test_a_thread_that_cannot_be_started(suffer: Any, name: str) -> None:
    start = threading.Thread.start
    left: list[int] = []

    def start_or_fail(thread: threading.Thread) -> None:
        if thread.name == name and left:
            left.pop()
            raise RuntimeError("can't start new thread")
        start(thread)

    @contextlib.contextmanager
    def fault() -> Iterator[None]:
        left[:] = [1, 2, 3]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", start_or_fail)
            patch.setattr(Answer, "may_take_long", property(lambda _: True))  # so that choices want threads
            yield
        assert not left

    ends = suffer(f"no thread {name}", fault)
    refused = {"constrain-scheduler": "503", "constrain-decide": "error"}[name]
    assert ends == {refused: 3 * ROUNDS, "whole": (CLIENTS - 3) * ROUNDS}


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


@only_long
@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_an_exception_in_a_step(suffer: Any, error: type[Exception]) -> None:
    ends = suffer(f"{error.__name__} in a step", lambda: failing_step(Sequences, "evaluate", lambda: raises(error())))
    assert ends == {"error": CLIENTS * ROUNDS}


@pytest.mark.slow
def test_an_evaluation_that_fails(suffer: Any) -> None:
    ends = suffer("llama_decode fails", lambda: failing_step(sequences.llama_cpp, "llama_decode", lambda: -3))
    assert set(ends) == {"error", "whole"}
    assert ROUNDS <= ends["error"] <= PARALLEL * ROUNDS


@only_long
def test_no_memory_to_set_a_sequence_aside(suffer: Any) -> None:
    failures: list[int] = []

    def fail(*_: Any, **__: Any) -> Any:
        failures.append(1)
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    @contextlib.contextmanager
    def fault() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mmap, "mmap", fail)
            yield

    assert suffer("no memory to set aside", fault) == {"whole": CLIENTS * ROUNDS}
    assert failures


@only_long
def test_a_disk_that_is_full(suffer: Any, model: constrain.Model) -> None:
    told: list[str] = []
    write = private_folders.write_new

    def fail(path: Any, *parts: bytes) -> None:
        write(path, *(part[:10] for part in parts))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def reject(*_: Any) -> Any:
        raise _cache.RejectedFileError("the file is damaged")

    cache = _cache.find_cache()
    assert cache is not None
    cache.make()
    Path(cache._folder_name(model.vocabulary)).mkdir(0o700)
    files = sorted(cache.path.rglob("*"))

    @contextlib.contextmanager
    def fault() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            patch.setattr(_cache.Cache, "load", reject)
            patch.setattr(private_folders, "write_new", fail)
            yield
            told.extend(str(each.message) for each in caught)

    assert suffer("full disk", fault) == {"whole": CLIENTS * ROUNDS}
    assert sum("No space left on device" in each for each in told) == 1
    assert sorted(cache.path.rglob("*")) == files


@pytest.mark.slow
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

    ends = suffer("killed worker", fault)
    assert {"500", "whole"} <= set(ends) <= {"500", "503", "whole"}  # 503: the program was killed before it forked
    assert ends["500"] == 3 * ROUNDS


@only_long
def test_sockets_that_are_closed(suffer: Any) -> None:
    ends = suffer("closed sockets", contextlib.nullcontext, leaving=5)
    assert ends == {"left": 5 * ROUNDS, "whole": (CLIENTS - 5) * ROUNDS}
