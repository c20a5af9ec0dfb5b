"""What every client in Python must manage, as one table: texts, values, calls, conversations, vectors and refusals.

``test_clients.py`` runs it in the environment of each client. ``adapter.py`` in the client's folder has ``WAYS``,
classes by name that ask the server, and ``REFUSED``, the errors of the client. A scenario is for the ways that have its
method:

    text(prompt) -> str                     later(prompt) -> str, asynchronous       stream(prompt) -> pieces
    value(kind) -> instance                 value_stream(kind) -> instance           embed(texts) -> vectors
    calls(choice) -> list of Call           calls_stream(choice) -> list of Call     after_results() -> str
    turns() -> str
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import adapter
import pytest
from shared import ARGUMENTS, KINDS, PROMPT, SUM, Call, Never, Person

CHOICES = ("weather", "required", "auto", "none")


def having(method: str) -> Iterator[tuple[str, Any]]:
    """The ways to the server that have a method, with their names."""
    return ((name, way) for name, way in adapter.WAYS.items() if hasattr(way, method))


def ways(method: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in having(method)])


def values(method: str) -> pytest.MarkDecorator:
    """Each kind of value that a way can ask for."""
    pairs = [(name, way, kind) for name, way in having(method) for kind in getattr(way, "KINDS", KINDS)]
    found = [pytest.param(way, kind, id=f"{name}-{kind.__name__}") for name, way, kind in pairs]
    return pytest.mark.parametrize(("way", "kind"), found)


def choices(method: str) -> pytest.MarkDecorator:
    """Each choice between tools that a way can make."""
    pairs = [(name, way, choice) for name, way in having(method) for choice in getattr(way, "CHOICES", CHOICES)]
    found = [pytest.param(way, choice, id=f"{name}-{choice}") for name, way, choice in pairs]
    return pytest.mark.parametrize(("way", "choice"), found)


@ways("text")
def test_a_text(way: Any) -> None:
    assert way().text(SUM)


@ways("later")
def test_a_text_in_asynchronous_code(way: Any) -> None:
    assert asyncio.run(way().later(SUM))


@ways("stream")
def test_a_text_in_pieces(way: Any) -> None:
    pieces = way().stream(SUM)
    assert len(pieces) > 2
    assert "".join(pieces)


@values("value")
def test_a_value_is_of_its_type(way: Any, kind: Any) -> None:
    assert isinstance(way().value(kind), kind)


@values("value_stream")
def test_a_value_in_a_stream_is_of_its_type(way: Any, kind: Any) -> None:
    assert kind.model_validate(way().value_stream(kind).model_dump())


def check(calls: list[Call], choice: str) -> None:
    """Each call matches its tool, and there are calls of the tools that were chosen."""
    for call in calls:
        ARGUMENTS[call.name].model_validate(call.arguments)
    assert len({call.id for call in calls}) == len(calls)
    if choice == "weather":
        assert {call.name for call in calls} == {"weather"}
    elif choice != "auto":
        assert bool(calls) == (choice == "required")


@choices("calls")
def test_calls_match_their_tools(way: Any, choice: str) -> None:
    check(way().calls(choice), choice)


@choices("calls_stream")
def test_calls_in_a_stream_match_their_tools(way: Any, choice: str) -> None:
    check(way().calls_stream(choice), choice)


@ways("after_results")
def test_a_text_follows_the_results_of_calls(way: Any) -> None:
    assert way().after_results()


@ways("turns")
def test_a_conversation_goes_on(way: Any) -> None:
    assert way().turns()


@ways("embed")
def test_texts_have_vectors(way: Any) -> None:
    first, second = way().embed(["a cat", "Oslo"])
    assert len(first) == len(second) > 1


@ways("value")
def test_too_few_tokens_for_any_value_are_refused(way: Any) -> None:
    with pytest.raises(adapter.REFUSED, match="enough"):
        way(max_tokens=2).value(Person)


@ways("value")
def test_a_schema_that_cannot_be_enforced_is_refused(way: Any) -> None:
    with pytest.raises(adapter.REFUSED, match="word"):
        way().value(Never)


@ways("value")
@pytest.mark.parametrize(
    ("changes", "message"), [({"model": "no-such-model"}, "no-such-model"), ({"key": "wrong"}, r"(?i)api.?key|401")]
)
def test_what_is_not_known_is_refused(way: Any, changes: dict[str, str], message: str) -> None:
    with pytest.raises(adapter.REFUSED, match=message):
        way(**changes).value(Person)


def test_the_server_still_answers() -> None:
    """After all refusals, and streams that were left."""
    way = next(iter(adapter.WAYS.values()))
    assert way().text(PROMPT) if hasattr(way, "text") else way().value(Person)
