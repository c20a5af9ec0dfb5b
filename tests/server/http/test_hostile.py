"""Requests that are made to hurt: each is refused, quickly, and nobody else is kept waiting.

Here are some of each kind, asked of an application in this process; all 200 of them, beside a normal client of a server
of its own, at full length (``CONSTRAIN_LONG``) or with ``python -m tests.support.server.attack``.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

import constrain
from constrain.errors import LimitError
from constrain.server.app import Application
from constrain.server.http import protocol
from constrain.server.http.errors import ApiError
from constrain.server.http.listening import listen
from constrain.server.run import Server
from constrain.server.sandbox import session as session_module
from constrain.server.sandbox import workers as workers_module
from constrain.server.sandbox.session import Pool, Session
from constrain.server.sandbox.worker import Limits
from constrain.server.sandbox.workers import Workers
from constrain.server.settings import Settings
from tests.support import for_each, small_vocabulary
from tests.support.server import crash
from tests.support.server.asking import SECONDS, ask, chat, error_of, served_as, serving
from tests.support.server.attack import attack, http, send
from tests.support.server.hostile import KINDS, Hostile, hostile
from tests.support.server.process import program

LIMITS = Limits(60.0, 256 << 20)

SCHEMA_FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes", "no"]}}}


@pytest.mark.slow(but=("12", "14", "15"))
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_in_one_shape(application: Application, kind: str) -> None:
    request = hostile(kind, 0)
    headers = {"Content-Type": "application/json", **request.headers}
    response = ask(application, "POST", request.path, content=request.body, headers=headers)
    assert 400 <= response.status_code < 500, response.text
    assert error_of(response)["type"] in ("invalid_request_error", "rate_limit_error")


EXPLODING = "^(?=.*a.{16}b)(?=.*b.{17}a)(?=.*c.{18}a)(?=.*d.{19}a).*$"
"""It compiles, but what may follow takes seconds to say at most places."""


@pytest.mark.slow
def test_a_slow_place_is_found_wherever_it_is(application: Application) -> None:
    before = {"note": {"type": "string"}, "list": {"type": "array", "maxItems": 3}}
    properties = {**before, "slow": {"type": "string", "pattern": EXPLODING}}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    response = chat(application, tools=[tool], tool_choice="required")
    assert response.status_code == 400, response.text
    assert error_of(response)["param"] == "tools[0].function.parameters"


@pytest.mark.long
def test_all_are_refused_in_5_seconds_beside_a_normal_client() -> None:
    with program("--threads", "1", "--ctx", "2048") as served:
        report = attack(served.url, served.process.pid)
    assert all(fate.is_well for fate in report.fates), str(report)
    assert report.ratio(0.5) <= 1.5, str(report)


# What is done in a process of its own.


ENDLESS = range(10**12)
"""``sum`` of this computes for hours, and holds the GIL."""


def run(function: Any, *args: Any, limits: Limits = LIMITS) -> Any:
    async def ran() -> Any:
        session = Session(Pool(), limits)
        try:
            return await session.run(None, function, *args)
        finally:
            session.close()

    return asyncio.run(ran())


@pytest.mark.slow
def test_a_process_goes_on_beside_others() -> None:
    numbers = range(10_000_000)
    assert run(sum, numbers) == numbers[-1] * len(numbers) // 2


@pytest.mark.slow(only=("time",))
@pytest.mark.parametrize(
    ("function", "argument", "limit"),
    [(sum, ENDLESS, r"0\.2 seconds"), (bytearray, 1 << 30, "256 MiB of memory")],
    ids=["time", "memory"],
)
def test_a_process_that_takes_too_much_is_told_which_limit_it_met(function: Any, argument: Any, limit: str) -> None:
    with pytest.raises(LimitError, match=f"^it takes more than {limit} to compile; make it smaller, or simpler$"):
        run(function, argument, limits=Limits(0.2, 256 << 20))


@pytest.mark.slow
def test_a_call_that_there_is_no_memory_to_receive_has_met_the_limit() -> None:
    with pytest.raises(LimitError, match="more than 16 MiB of memory"):
        run(len, bytes(32 << 20), limits=Limits(60.0, 16 << 20))


@pytest.mark.slow
@pytest.mark.parametrize("function", [crash.Large, crash.answer_without_memory])
def test_a_process_that_has_no_memory_to_answer_takes_too_much(function: Any) -> None:
    with pytest.raises(LimitError, match="more than 256 MiB of memory"):
        run(function)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Processes whose program has not been started."""
    made = Workers()
    monkeypatch.setattr(session_module, "workers", lambda: made)
    yield made
    made.close()


def status_of_a_call() -> int:
    with pytest.raises(ApiError) as caught:
        run(len, "abc")
    return caught.value.status


def assert_there_is_no_process() -> None:
    """A request is a 503, and leaves no descriptor behind."""
    gc.collect()
    before = psutil.Process().num_fds()
    assert status_of_a_call() == 503
    assert psutil.Process().num_fds() <= before


@pytest.mark.slow
def test_no_thread_to_ask_for_a_process_is_a_503_and_the_next_request_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threading.Thread.start

    def start_or_fail(thread: threading.Thread) -> None:
        if thread.name.startswith("asyncio_"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start_or_fail)
        assert_there_is_no_process()
    assert run(len, "abc") == 3


FAILS_ONCE = """
import os
fork = os.fork

def fail():
    os.fork = fork
    raise OSError(11, "Resource temporarily unavailable")

os.fork = fail
"""


def stand_still(workers: Workers) -> subprocess.Popen[bytes]:
    """Stops the program, which has been started."""
    program = workers._program
    assert program is not None
    program.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED)
    return program


@pytest.mark.slow
def test_a_program_that_cannot_start_or_fork_or_stands_still_is_a_503_and_the_next_request_is_served(
    fresh: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    gc.disable()  # what is not closed shall stay open
    try:
        with monkeypatch.context() as patch:
            patch.setattr(workers_module.subprocess, "Popen", fail)
            assert_there_is_no_process()
    finally:
        gc.enable()
    assert fresh._program is None
    with monkeypatch.context() as patch:
        patch.setattr(workers_module, "_PROGRAM", FAILS_ONCE + workers_module._PROGRAM)
        assert status_of_a_call() == 503
    first = fresh._program
    assert run(len, "abc") == 3
    assert fresh._program is first is stand_still(fresh)
    with monkeypatch.context() as patch:
        patch.setattr(session_module, "PATIENCE", 0.1)
        assert status_of_a_call() == 503
    assert first.returncode == -signal.SIGKILL
    assert run(len, "abc") == 3
    second = stand_still(fresh)
    assert fresh._control is not None
    fresh._control.settimeout(0.1)
    monkeypatch.setattr(workers_module, "_END_SECONDS", 0.1)
    vocabulary = small_vocabulary(more=30_000)  # more than fits into the socket
    forked = fresh.fork(vocabulary)
    forked.connection.close()
    assert forked.known == {vocabulary.fingerprint}
    assert fresh._program is forked.program
    assert len({id(each) for each in (first, second, forked.program)}) == 3
    assert second.returncode == -signal.SIGKILL


def test_a_process_that_fails_has_met_no_limit() -> None:
    with pytest.raises(ApiError) as caught:
        run(os._exit, 1)
    assert (caught.value.status, caught.value.kind) == (500, "server_error")


def test_an_error_in_a_process_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        run(divmod, 1, 0)


@pytest.mark.slow
def test_what_takes_long_keeps_nothing_else_waiting() -> None:
    async def both() -> bool:
        pool = Pool()
        slow = [Session(pool, Limits(30.0, 256 << 20)) for _ in range(6)]
        spinning = [asyncio.ensure_future(session.run(None, sum, ENDLESS)) for session in slow]
        while pool.computing < len(slow):
            await asyncio.sleep(0.01)
        quick = Session(pool, LIMITS)
        found = await quick.run(None, len, "abc")
        was_first = not any(one.done() for one in spinning)
        for one in spinning:
            one.cancel()
        await asyncio.gather(*spinning, return_exceptions=True)
        for session in (*slow, quick):
            session.close()
        return found == 3 and was_first

    assert asyncio.run(both())


@pytest.mark.slow
def test_what_takes_long_has_a_lower_priority() -> None:
    async def niceness() -> list[int]:
        with contextlib.closing(Session(Pool(), LIMITS)) as session:
            process = psutil.Process(await session.run(None, os.getpid))
            found = [process.nice()]
            for _ in range(2):
                await session.run(None, sum, range(30_000_000))
                while process.nice() == found[-1]:
                    await asyncio.sleep(0.01)
                found.append(process.nice())
            return found

    first, second, third = asyncio.run(niceness())
    assert first < second < third


@pytest.mark.slow
def test_a_process_ends_with_its_session() -> None:
    async def ended() -> None:
        with contextlib.closing(Session(Pool(), LIMITS)) as session:
            process = psutil.Process(await session.run(None, os.getpid))
            running = asyncio.ensure_future(session.run(None, sum, ENDLESS))
            await asyncio.sleep(0.1)
            running.cancel()
        await asyncio.to_thread(process.wait, SECONDS)  # it is reaped, too

    asyncio.run(ended())


# What is refused once is refused for the place that it came from, and what is well is answered.


def test_a_request_that_takes_too_long_to_be_read_is_refused(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(compile_seconds=1e-6))
    properties = {f"key{index}": {"type": "string", "pattern": f"^[a-f]{{{index}}}$"} for index in range(200)}
    schema = {"type": "object", "properties": properties}  # it takes several ticks of the processor's clock
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    error = error_of(chat(application, response_format=format_))
    assert "seconds" in error["message"]
    places = ((None, "invalid_value"), ("response_format", "invalid_json_schema"))  # the system ends it within a tick
    assert (error["param"], error["code"]) in places


def test_a_tool_beyond_the_limit_is_named(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(compile_seconds=0.3))
    parameters = {
        "type": "object",
        "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(16)],
    }
    tools = [
        {"type": "function", "function": {"name": f"f{i}", "parameters": {**parameters, "title": str(i)}}}
        for i in range(2)
    ]
    error = error_of(chat(application, tools=tools))
    assert (error["param"], error["code"]) == ("tools[0].function.parameters", "invalid_function_parameters")


def slow_pattern(size: int) -> str:
    """Returns a pattern whose masks take as long as their limit allows."""
    gaps = (f"(?=.*{first}.{{{size + at}}}{second})" for at, (first, second) in enumerate(["ab", "ba", "ca", "da"]))
    return f"^{''.join(gaps)}.*$"


NAMES = [f"p{index}" for index in range(24)]
HARD = {
    "type": "object",
    "properties": {name: {"type": "string", "pattern": slow_pattern(16 + index)} for index, name in enumerate(NAMES)},
    "required": NAMES,
}
"""It is read in no time; what may follow is hard to say."""

EASY = {"type": "object", "properties": {"take": {"type": "boolean"}}, "required": ["take"]}
EASY_FORMAT = {"type": "json_schema", "json_schema": {"name": "easy", "schema": EASY}}


@pytest.fixture(scope="module")
def limited(model: constrain.Model) -> Application:
    return Application(served_as(model, "small"), Settings(compile_seconds=2))  # a large process forks slowly


def is_too_much(error: dict[str, Any], what: str, seconds: int) -> bool:
    """Whether a message is of the limit of time, or of work at a pattern: which is met first depends on the machine."""
    time = f"it takes more than {seconds} seconds to compile; make it smaller, or simpler"
    work = r"at \S*/properties/p\d+: .*\(MAX_COMPILE_WORK = 2000000 steps\); simplify the pattern or its bounds"
    return re.fullmatch(f"{what}: ({time}|{work})", error["message"]) is not None


def function(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "parameters": parameters}


@pytest.mark.slow
@pytest.mark.serial
def test_the_tool_that_is_too_much_is_named(limited: Application) -> None:
    functions = [function("easy", EASY), function("hard", HARD), function("other", EASY)]
    tools = [{"type": "function", "function": each} for each in functions]
    error = error_of(chat(limited, tools=tools, response_format=EASY_FORMAT))
    assert (error["param"], error["code"]) == ("tools[1].function.parameters", "invalid_function_parameters")
    assert is_too_much(error, "Invalid schema for function 'hard'", 2), error


@pytest.mark.slow
@pytest.mark.serial
def test_the_first_is_named_where_two_are_too_much(limited: Application) -> None:
    functions = [function("hard", HARD), function("easy", EASY), function("harder", {**HARD, "minProperties": 8})]
    error = error_of(chat(limited, tools=[{"type": "function", "function": each} for each in functions]))
    assert (error["param"], error["code"]) == ("tools[0].function.parameters", "invalid_function_parameters")
    assert is_too_much(error, "Invalid schema for function 'hard'", 2), error


@pytest.mark.slow
@pytest.mark.serial
def test_the_format_that_is_too_much_is_named(model: constrain.Model) -> None:
    application = Application(served_as(model, "small"), Settings(compile_seconds=2))
    tools = [{"type": "function", "function": function("easy", EASY)}]
    asked = {"type": "json_schema", "json_schema": {"name": "hard", "schema": HARD}}
    error = error_of(chat(application, response_format=asked, tools=tools))
    assert (error["param"], error["code"]) == ("response_format", "invalid_json_schema")
    assert is_too_much(error, "Invalid schema for response_format 'hard'", 2), error


def test_a_schema_is_enforced_though_it_was_compiled_elsewhere(application: Application) -> None:
    for _ in range(2):
        response = chat(application, response_format=SCHEMA_FORMAT)
        assert response.json()["choices"][0]["message"]["content"] in ('"yes"', '"no"')


# Connections.


@pytest.fixture
def attacker(url: str) -> Iterator[httpx.Client]:
    with http(url) as client:
        yield client


def test_clients_give_idle_connections_up_before_the_server_does(application: Application) -> None:
    served = Server(application, [], grace_seconds=1, on_start=print)
    assert served.config.timeout_keep_alive > (httpx.Limits().keepalive_expiry or 0)


def test_a_third_interrupt_drops_the_answers_that_are_left(model: constrain.Model) -> None:
    forced: list[bool] = []

    def interrupt(_url: str) -> None:
        for _ in range(3):
            server.handle_exit(signal.SIGINT, None)
            forced.append(server.force_exit)

    application = Application(served_as(model, "small"), Settings())
    server = Server(application, listen("127.0.0.1", 0), grace_seconds=1, on_start=interrupt)
    server.serve_until_stopped()
    assert forced == [False, False, True]


def test_headers_that_come_slowly_are_refused(attacker: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_HEADER_SECONDS", 0.05)
    assert send(attacker, Hostile("slow headers", 0, pieces=(b"POST / HTTP/1.1\r\nHost: localhost\r\n",))).status == 408


def test_headers_that_are_too_long_are_refused(attacker: httpx.Client) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * (1 << 20) + b"\r\n\r\n"
    assert send(attacker, Hostile("long headers", 0, pieces=(head,))).status == 431


@for_each("number", range(5))
def test_what_is_no_http_is_refused(attacker: httpx.Client, number: int) -> None:
    assert 400 <= send(attacker, hostile("no HTTP", number)).status < 500


FORMS = {
    "/v1/chat/completions": {"error"},
    "/v1/messages": {"type", "error", "request_id"},
    "/api/chat?x=1": {"error"},
    "/v1/models": {"type", "error", "request_id"},
}
"""Members of an error by the path of its request, whose client is one of Anthropic's."""


def broken(path: str, fault: bytes = b"Content-Length: -5") -> bytes:
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\nAnthropic-Version: 1\r\n%s\r\n\r\n" % (path.encode(), fault)


def answers_to(url: str, request: bytes) -> list[tuple[str, Any]]:
    """The ids and bodies of all answers on one connection, which ends."""
    with connect(url) as connection:
        connection.sendall(request)
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    found = []
    for answer in received.split(b"HTTP/1.1 ")[1:]:
        head, _, body = answer.partition(b"\r\n\r\n")
        [name] = re.findall(r"x-request-id: (req_\w+)", head.decode())
        found.append((name, json.loads(body)))
    return found


@for_each("fault", [b"Content-Length: -5", b"no header", b"X-A: " + b"a" * (1 << 18)])
@for_each("path", FORMS)
def test_what_is_no_http_is_refused_in_the_form_of_its_path(url: str, path: str, fault: bytes) -> None:
    [(name, error)] = answers_to(url, broken(path, fault))
    assert set(error) == FORMS[path]
    assert isinstance(error["error"], str) == path.startswith("/api/")
    assert error.get("request_id", name) == name


@for_each("path, before", [(path, "/v1/messages/none") for path in FORMS] + [("/v1/messages", "/api/none")])
def test_a_refusal_is_no_part_of_the_request_before_it(url: str, path: str, before: str) -> None:
    good = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % before.encode()
    [(first, _), (name, error)] = answers_to(url, good + broken(path))
    assert set(error) == FORMS[path]
    assert isinstance(error["error"], str) == path.startswith("/api/")
    assert error.get("request_id", name) == name != first


def test_bytes_without_a_path_are_refused_in_openais_form(url: str) -> None:
    for request in (b"\x16\x03\x01\r\n\r\n", b"GET\r\n\r\n", b"GET http://[a HTTP/1.1\r\n\r\n"):
        [(_, error)] = answers_to(url, request)
        assert set(error["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("is_chunked", [True, False])
def test_a_sender_of_too_much_reads_that_it_was_refused(attacker: httpx.Client, is_chunked: bool) -> None:
    assert send(attacker, Hostile("long body", 0, b" " * (20 << 20), is_chunked=is_chunked)).status == 413


def connect(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=SECONDS)


def test_a_connection_on_which_nothing_comes_is_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_IDLE_SECONDS", 0.05)
    with connect(url) as idle, contextlib.suppress(ConnectionResetError):
        assert idle.recv(1) == b""


def send_for_ever(client: socket.socket, data: bytes) -> None:
    while True:
        client.sendall(data)


@pytest.mark.slow
def test_a_client_that_reads_nothing_is_left(model: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_UNREAD_SECONDS", 0.05)
    application = Application(served_as(model, "small"), Settings())
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(application) as url, connect(url) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with pytest.raises(ConnectionError):
            send_for_ever(client, request)
