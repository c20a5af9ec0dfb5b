"""Processes of requests: turns with scripted clocks, refusals that are remembered, and captures."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

import constrain
from constrain.engine import constraint as engine
from constrain.errors import LimitError
from constrain.generation.capturing import Capturing
from constrain.generation.completion import Completion, Timings, Usage
from constrain.generation.job import Language
from constrain.generation.options import AnswerSettings
from constrain.language.policies import CompileOptions
from constrain.regex.source import Regex
from constrain.server.http.errors import ApiError, too_busy
from constrain.server.requests.formats import Format
from constrain.server.requests.places import Place
from constrain.server.sandbox import compiling
from constrain.server.sandbox import session as session_module
from constrain.server.sandbox.capturing import find_captures
from constrain.server.sandbox.session import Session, Turns
from constrain.server.sandbox.worker import TIME_IS_UP, Done, Ended, Limits
from constrain.server.sandbox.workers import PATIENCE
from tests.support import byte_vocabulary, for_each

LIMITS = Limits(3.0, 1 << 28)


class Machine:
    """A clock, and a process whose CPU time goes on only with it: ``share`` of each second.

    ``step``: seconds on the clock from one look at it to the next.
    """

    def __init__(self, share: float, step: float) -> None:
        self.share = share
        self.step = step
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += self.step
        return self.now

    def cpu_seconds(self) -> float:
        return self.now * self.share


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """A function that returns a session whose process runs on a machine."""
    monkeypatch.setattr(session_module, "_LEAST_WAIT", 0.0)
    monkeypatch.setattr(session_module, "_TURN_SECONDS", 1e-4)
    monkeypatch.setattr(session_module, "_FIRST_SECONDS", 1e-4)

    def make(machine: Machine, turns: Turns | None = None) -> Session:
        monkeypatch.setattr(session_module, "time", SimpleNamespace(monotonic=machine.monotonic))
        session = Session(turns or Turns(), LIMITS)
        monkeypatch.setattr(session, "_read_cpu_seconds", machine.cpu_seconds)
        return session

    return make


async def outcome_of(session: Session, end: Callable[[], object | None]) -> Any:
    """The outcome of a call whose process ends as a function of the machine says."""
    outcome = asyncio.get_running_loop().create_future()

    async def compute() -> None:
        while (found := end()) is None:
            await asyncio.sleep(0)
        outcome.set_result(found)

    computing = asyncio.ensure_future(compute())
    try:
        await session._take_turns(outcome)
    finally:
        computing.cancel()
    return outcome.result()


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.001])
def test_a_call_has_its_cpu_time_on_a_busy_machine(on: Callable[..., Session], share: float) -> None:
    machine = Machine(share, 0.02 / share)
    session = on(machine)
    ended = Ended(-TIME_IS_UP)

    def is_over() -> Ended | None:
        return ended if machine.cpu_seconds() >= LIMITS.seconds else None

    assert asyncio.run(outcome_of(session, is_over)) is ended


def test_a_call_that_had_its_cpu_time_is_told_the_limit(
    on: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def call(*_: object) -> Ended:
        return Ended(-TIME_IS_UP)

    session = on(Machine(0.01, 1.0))
    monkeypatch.setattr(session, "_call", call)
    with pytest.raises(LimitError, match="more than 3 seconds to compile"):
        asyncio.run(session.run(None, len, "abc"))


@pytest.mark.parametrize("share", [0.0, 1e-4])
def test_a_process_that_computes_nothing_in_its_turns_is_left(
    on: Callable[..., Session], caplog: pytest.LogCaptureFixture, share: float
) -> None:
    machine = Machine(share, 0.5)  # being woken up is no computing
    with pytest.raises(ApiError) as caught:
        asyncio.run(outcome_of(on(machine), lambda: None))
    assert caught.value.status == 503
    assert machine.now > PATIENCE
    assert "has computed nothing" in caplog.text


def test_a_process_that_rests_now_and_then_is_not(on: Callable[..., Session]) -> None:
    machine = Machine(0.0, 1.0)
    session = on(machine)
    computed = iter(range(10**6))

    def in_jumps() -> float:  # it computes in one of ten turns
        return next(computed) // 40

    session._read_cpu_seconds = in_jumps  # type: ignore[method-assign]
    done = Done(1)
    found = asyncio.run(outcome_of(session, lambda: done if machine.now > 300 else None))
    assert found is done


@for_each("standing, seconds, told", [(0, 1.0, "1"), (4, 0.1, "1"), (4, 2.2, "9"), (16, 5.0, "80"), (16, 60.0, "120")])
def test_a_wait_for_others_has_an_end_and_says_when_to_come_again(standing: int, seconds: float, told: str) -> None:
    async def wait() -> None:
        turns = Turns(waiting_seconds=0.001)
        turns.standing, turns.pace.seconds = standing, seconds
        taken = turns.alone(b"schema")
        await taken.acquire()
        async with Session(turns, LIMITS).alone(b"schema"):
            pass

    with pytest.raises(ApiError) as caught:
        asyncio.run(wait())
    assert caught.value.status == 429
    assert caught.value.headers == {"Retry-After": told}


def test_all_waits_of_a_request_count_together(on: Callable[..., Session]) -> None:
    machine = Machine(1.0, 1.0)

    async def wait() -> int:
        session = on(machine, Turns(waiting_seconds=10.01))
        turns, count = session._turns, 0
        while not turns.alone(b"").locked():
            async with session.alone(b""):  # a second for each, as the clock goes
                count += 1
            machine.now += 1000.0  # what happens between two waits does not count
            if count == 10:
                await turns.first.acquire()
                with pytest.raises(ApiError, match="compiles other large schemas"):
                    async with session._turn(turns.first):
                        pass
                return count
        raise AssertionError

    assert asyncio.run(wait()) == 10


def test_a_process_too_many_waits_for_no_turn(on: Callable[..., Session]) -> None:
    turns = Turns()
    turns.standing = session_module._STANDING
    machine = Machine(1.0, 1.0)
    with pytest.raises(ApiError) as caught:
        asyncio.run(outcome_of(on(machine, turns), lambda: None))
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "16"})
    assert turns.standing == session_module._STANDING


# What was refused.


class Refusing:
    """A session whose process raises an error; counts its calls."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0
        self.refusals: OrderedDict[bytes, ApiError] = OrderedDict()

    async def run(self, *_: object) -> None:
        self.calls += 1
        raise self.error


def refusal(session: Refusing, pattern: str = "a*", name: str = "regex") -> ApiError:
    schema = Regex(pattern)
    question: Any = SimpleNamespace(
        content=Format(schema, Place(name, "invalid_grammar", f"pattern in '{name}'")), places=None
    )
    plan: Any = SimpleNamespace(
        language=Language(schema), model=SimpleNamespace(vocabulary=byte_vocabulary()), settings=AnswerSettings()
    )
    compiled: Any = compiling._compile_in_sandbox(plan, question, session)  # type: ignore[arg-type]
    with pytest.raises(ApiError) as caught:
        asyncio.run(compiled)
    return caught.value


@pytest.mark.parametrize("error", [LimitError("it takes more than 3 seconds"), ApiError("Invalid pattern", param="a")])
def test_what_was_refused_is_not_compiled_again(error: Exception) -> None:
    session = Refusing(error)
    first, second = refusal(session), refusal(session)
    assert session.calls == 1
    assert (first.status, first.body()) == (400, second.body())
    assert first is not second
    assert refusal(session, "b*").status == 400
    assert session.calls == 2
    assert refusal(session, name="guided_regex").status == 400
    assert session.calls == 3


@pytest.mark.parametrize("error", [too_busy("a test", 1), ApiError("a fault", status=500)])
def test_what_may_pass_later_is_compiled_again(error: Exception) -> None:
    session = Refusing(error)
    for calls in (1, 2):
        refusal(session)
        assert session.calls == calls


def test_the_oldest_refusals_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_REMEMBERED", 2)
    session = Refusing(LimitError("too much"))
    for pattern in "abc":
        refusal(session, pattern)
    refusal(session, "c")
    assert (session.calls, len(session.refusals)) == (3, 2)
    refusal(session, "a")
    assert session.calls == 4


# Captures.


ANSWER = Completion("ab", "ab", (1,), Usage(3, 0, 1), Timings(0, 0, 0, 0), "stop", None)
NAMED = constrain.Regex("(?P<first>a)b")


def part(schema: object, text: bytes) -> Capturing:
    return Capturing(schema, CompileOptions(), text, None)


def found(parts: list[Capturing], limits: Limits) -> Completion:
    async def ask() -> Completion:
        with contextlib.closing(Session(Turns(), limits)) as session:
            return await find_captures(ANSWER, parts, byte_vocabulary(), session)

    return asyncio.run(ask())


def test_another_process_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    reads: Any = engine.read_captures

    def only_there(*args: object) -> object:
        assert os.getpid() != here
        return reads(*args)

    monkeypatch.setattr(engine, "read_captures", only_there)
    completion = found([part(NAMED, b"ab")], Limits(5, 1 << 30))
    assert completion.captures == {"first": "a"}
    assert completion.limits_met == ()


def test_beyond_the_time_limit_there_are_none(caplog: pytest.LogCaptureFixture) -> None:
    deep = constrain.Lark("start: a\na: x a | x x a | x\nx[capture]: /b/")
    completion = found([part(deep, b"b" * 4_000)], Limits(0.05, 1 << 30))
    assert completion.captures is None
    assert completion.limits_met == ("MAX_CAPTURE_WORK",)
    assert "an answer has no captures: it takes more than 0.05 seconds" in caplog.text


@pytest.mark.parametrize("error", [LimitError("too much"), too_busy("it compiles other large schemas", 1)])
def test_an_answer_is_not_lost_where_none_can_be_found(error: Exception) -> None:
    class Refusing:
        def another(self, _: float) -> Refusing:
            return self

        async def run(self, *_: object) -> None:
            raise error

        def close(self) -> None:
            pass

    asked: Callable[..., Any] = find_captures
    completion = asyncio.run(asked(ANSWER, [part(NAMED, b"ab")], byte_vocabulary(), cast("Session", Refusing())))
    assert (completion.text, completion.captures) == ("ab", None)
    assert completion.limits_met == ("MAX_CAPTURE_WORK",)


def test_a_text_that_was_cut_has_none() -> None:
    assert found([part(NAMED, b"a")], Limits(5, 1 << 30)).captures == {}
