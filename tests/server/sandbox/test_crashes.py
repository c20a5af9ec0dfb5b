"""A process that dies while it compiles: a 500, logged with the signal, and the next request is served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from constrain.server.app import Application
from constrain.server.http.errors import ApiError
from constrain.server.logs import JsonLines, log_config
from constrain.server.sandbox import compiling, reading
from constrain.server.sandbox import session as session_module
from constrain.server.sandbox.session import Pool, Session
from constrain.server.sandbox.worker import Limits
from constrain.server.sandbox.workers import Workers, workers
from tests.support.server import crash
from tests.support.server.asking import SECONDS, chat, error_of

LIMITS = Limits(SECONDS, 256 << 20)

WAYS = [
    (partial(crash.end_by, signal.SIGABRT), "by SIGABRT", False),
    (partial(crash.end_by, signal.SIGKILL), "by SIGKILL", True),
    (crash.read_nothing, "by SIGSEGV", False),
    (partial(crash.exit_with, 3), "with exit status 3", True),
]
"""How a process ends, the log of it, and whether the request is for a stream."""


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What the process's ends have been logged as, as JSON lines."""
    caplog.handler.addFilter(log_config("json")["filters"]["request"]["()"]())
    with caplog.at_level(logging.INFO, "constrain.server"):
        yield lambda: [json.loads(JsonLines().format(one)) for one in caplog.records if one.levelno >= logging.ERROR]


def schema_named(name: str) -> dict[str, Any]:
    """A format that nothing else has asked for, so that it must be compiled."""
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [name]}}}


@pytest.mark.slow
@pytest.mark.parametrize(("way", "told", "stream"), WAYS, ids=[told for _, told, _ in WAYS])
def test_a_crash_is_a_500_that_is_logged_and_the_next_request_is_served(
    application: Application,
    logged: Callable[[], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[..., None],
    told: str,
    stream: bool,
) -> None:
    form = schema_named(f"{way} {told}")
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "compile_here", way)
        response = chat(application, response_format=form, stream=stream)
    assert response.status_code == 500
    error = error_of(response)
    assert (error["type"], error["code"], error["param"]) == ("server_error", "internal_error", None)
    assert "takes more" not in error["message"]
    [line] = logged()
    assert line["message"] == f"the process that compiles for this request was ended {told}"
    assert line["request_id"] == response.headers["x-request-id"]
    assert chat(application, response_format=form, stream=stream).status_code == 200


@pytest.mark.slow
def test_a_crash_while_a_request_is_read_is_a_500(
    application: Application, logged: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "read_here", partial(crash.end_by, signal.SIGBUS))
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "title": "read"}}}
    response = chat(application, tools=[tool])
    assert response.status_code == 500
    assert error_of(response)["code"] == "internal_error"
    assert [line["message"].rpartition(" ")[2] for line in logged()] == ["SIGBUS"]


@pytest.mark.slow
def test_a_process_that_is_killed_from_outside_has_met_no_limit(logged: Callable[[], list[dict[str, Any]]]) -> None:
    async def killed() -> None:
        pool = Pool()
        with contextlib.closing(Session(pool, LIMITS)) as session:
            process = await session.run(None, os.getpid)
            running = asyncio.ensure_future(session.run(None, sum, range(10**12)))
            while not pool.computing:
                await asyncio.sleep(0.01)
            os.kill(process, signal.SIGKILL)
            await running

    with pytest.raises(ApiError) as caught:
        asyncio.run(killed())
    assert caught.value.status == 500
    assert [line["message"].rpartition(" ")[2] for line in logged()] == ["SIGKILL"]


def test_the_log_has_the_traceback_of_a_mistake_in_a_process() -> None:
    async def ran() -> None:
        with contextlib.closing(Session(Pool(), LIMITS)) as session:
            await session.run(None, divmod, 1, 0)

    with pytest.raises(ZeroDivisionError) as caught:
        asyncio.run(ran())
    assert "worker.py" in str(caught.value.__cause__)


@pytest.mark.slow
@pytest.mark.usefixtures("application")
def test_all_that_is_called_in_a_process_is_imported_before_it_begins() -> None:
    endpoints = ("chat", "completions", "embeddings", "responses")
    names = [compiling.__name__, reading.__name__, *(f"constrain.server.{each}.request" for each in endpoints)]

    async def ran() -> list[str]:
        with contextlib.closing(Session(Pool(), LIMITS)) as session:
            return await session.run(None, crash.not_imported, names)

    assert asyncio.run(ran()) == []


@pytest.mark.slow
def test_where_the_program_that_forks_has_ended_another_one_is_started(
    logged: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Workers()
    monkeypatch.setattr(session_module, "workers", lambda: own)

    async def ran() -> int:
        pool = Pool()
        with contextlib.closing(Session(pool, LIMITS)) as session:
            process = await session.run(None, os.getpid)
            running = asyncio.ensure_future(session.run(None, sum, range(10**12)))
            while not pool.computing:
                await asyncio.sleep(0.01)
            assert own._program is not None
            own._program.kill()
            own._program.wait()
            os.kill(process, signal.SIGKILL)
            with pytest.raises(ApiError) as caught:
                await running
            assert caught.value.status == 500
            return await session.run(None, len, "abc")

    try:
        assert asyncio.run(ran()) == 3
    finally:
        own.close()
    [line] = logged()
    assert "a reason that is not known" in line["message"]
    assert workers() is not own


@pytest.mark.slow
def test_later_processes_know_the_tools_of_a_long_list(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_TAUGHT_FROM", 9)

    async def known() -> int:
        with contextlib.closing(Session(Pool(), LIMITS)) as session:
            return await session.run(None, crash.compiled_tools)

    tools = [
        {"type": "function", "function": {"name": f"f{number}", "parameters": {"properties": {f"l{number}": {}}}}}
        for number in range(9)
    ]
    before = asyncio.run(known())
    response = chat(application, tools=tools)
    assert response.status_code == 200, response.text
    until = time.monotonic() + SECONDS
    while (now := asyncio.run(known())) < before + 9 and time.monotonic() < until:
        time.sleep(0.02)
    assert now == before + 9
