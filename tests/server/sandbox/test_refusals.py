"""Constraints that were refused: a request that sends one again is refused at once, with the same error."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest

from constrain.errors import LimitError
from constrain.generation.job import Language
from constrain.generation.options import AnswerSettings
from constrain.regex.source import Regex
from constrain.server.http.errors import ApiError, too_busy
from constrain.server.requests.formats import Format
from constrain.server.requests.places import Place
from constrain.server.sandbox import compiling
from tests.support import byte_vocabulary


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
