"""Calls in processes: waits, refusals that are remembered, and captures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

import constrain
from constrain.chat.answers.choices import FunctionCalls
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.reading.progress import Part
from constrain.chat.tools.compiled import ToolArguments, compile_arguments
from constrain.engine import constraint as engine
from constrain.errors import LimitError
from constrain.generation.completion import Completion, Timings, Usage
from constrain.generation.observers.captures import FindCaptures
from constrain.generation.options import AnswerSettings
from constrain.generation.plan import Language
from constrain.regex.source import Regex
from constrain.server.http.errors import ApiError, too_busy
from constrain.server.requests.formats import Format
from constrain.server.requests.places import Place
from constrain.server.sandbox import compiling
from constrain.server.sandbox import session as session_module
from constrain.server.sandbox.reporting import make_reports
from constrain.server.sandbox.session import Pool, Session
from constrain.server.sandbox.worker import Limits
from tests.support import byte_vocabulary, for_each
from tests.support.chat.forms import TAGS

LIMITS = Limits(3.0, 1 << 28)


@for_each("computing, seconds, told", [(0, 1.0, "1"), (4, 0.1, "1"), (4, 2.2, "9"), (16, 5.0, "80"), (16, 60.0, "120")])
def test_a_wait_for_others_has_an_end_and_says_when_to_come_again(computing: int, seconds: float, told: str) -> None:
    async def wait() -> None:
        pool = Pool(waiting_seconds=0.001)
        pool.computing, pool.pace.seconds = computing, seconds
        taken = pool.alone(b"schema")
        await taken.acquire()
        async with Session(pool, LIMITS).alone(b"schema"):
            pass

    with pytest.raises(ApiError) as caught:
        asyncio.run(wait())
    assert caught.value.status == 429
    assert caught.value.headers == {"Retry-After": told}


def test_all_waits_of_a_request_count_together() -> None:
    async def wait() -> None:
        pool = Pool(waiting_seconds=0.02)
        with contextlib.closing(Session(pool, LIMITS)) as session:
            with pytest.raises(ApiError, match="compiles other large schemas"):
                await session.run(None, time.sleep, 3600)
            assert session._left <= 0
            async with session.alone(b"schema"):  # nobody else has it
                pass
            await pool.first.acquire()
            with pytest.raises(ApiError, match="compiles other large schemas"):
                await session.run(None, len, "abc")

    asyncio.run(wait())


def test_a_call_too_many_has_no_room() -> None:
    async def wait() -> None:
        pool = Pool()
        pool.computing = session_module._MOST_AT_ONCE
        with contextlib.closing(Session(pool, LIMITS)) as session:
            await session.run(None, time.sleep, 3600)

    with pytest.raises(ApiError) as caught:
        asyncio.run(wait())
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "16"})


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


# The part that is too much.


def test_only_tools_of_few_steps_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (
        '{"properties": {"a": {}}}',
        json.dumps({"properties": {f"k{n}": {"type": "string"} for n in range(50)}}),
    )
    tools = (FunctionCalls("f", large), FunctionCalls("g", small), FunctionCalls("h", small))
    answer = AnswerLanguage(TAGS, tools=tools, allowed=("f", "g"))
    steps = compile_arguments(ToolArguments(small)).steps
    monkeypatch.setattr(compiling, "_QUICK_STEPS", steps)
    assert [each.parameters for each in compiling.quick_tools(answer)] == [small]


@for_each("reached, param", [(0.1, "tools[1]"), (0.5, "tools")])
def test_a_part_is_named_where_it_alone_takes_too_long(reached: float, param: str) -> None:
    place = Place("tools[1]", "invalid_function_parameters", "schema for function 'f'")

    class Slow:
        limits = Limits(1.0, 0)

        def __init__(self) -> None:
            self.place, self.reached = place, reached

        def another(self, _: float) -> Slow:
            return self

        async def run(self, *_: object) -> None:
            raise LimitError("it takes more than 1 seconds")

        def close(self) -> None:
            pass

    order: Any = SimpleNamespace(parts=lambda: [None, None], content=None, places=SimpleNamespace(tools="tools"))
    session: Any = Slow()
    asked = compiling._explain_limit(order, byte_vocabulary(), session, LimitError("it takes more than 3 seconds"))
    assert asyncio.run(asked).param == param


# Captures.


ANSWER = Completion("ab", "ab", (1,), Usage(3, 0, 1), Timings(0, 0, 0, 0), "stop", None)
NAMED = constrain.Regex("(?P<first>a)b")


def part(source: Any, text: bytes) -> Part:
    return Part(source, text)


def found(parts: list[Part], limits: Limits) -> Completion:
    async def ask() -> Completion:
        with contextlib.closing(Session(Pool(), limits)) as session:
            report = FindCaptures(Language(None), (), tuple(parts))
            return await make_reports(ANSWER, [report], byte_vocabulary(), session)

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

    asked: Callable[..., Any] = make_reports
    reports = [FindCaptures(Language(None), (), (part(NAMED, b"ab"),))]
    completion = asyncio.run(asked(ANSWER, reports, byte_vocabulary(), cast("Session", Refusing())))
    assert (completion.text, completion.captures) == ("ab", None)
    assert completion.limits_met == ("MAX_CAPTURE_WORK",)


def test_a_text_that_was_cut_has_none() -> None:
    assert found([part(NAMED, b"a")], Limits(5, 1 << 30)).captures == {}
