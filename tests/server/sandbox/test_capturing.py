"""Captures of the server's answers are found in the sandbox, within its limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any, cast

import pytest

import constrain
from constrain.engine import constraint as engine
from constrain.errors import LimitError
from constrain.generation.capturing import Capturing
from constrain.generation.completion import Completion, Timings, Usage
from constrain.language.policies import CompileOptions
from constrain.server.http.errors import too_busy
from constrain.server.sandbox.capturing import find_captures
from constrain.server.sandbox.session import Session, Turns
from constrain.server.sandbox.worker import Limits
from tests.support import byte_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

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
