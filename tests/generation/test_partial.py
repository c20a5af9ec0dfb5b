"""Streams of partial values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import constrain
from constrain import ArgumentsDelta, CallEnded, CallStarted, FieldEvent, Finished, TextDelta


class Item(BaseModel):
    name: str
    price: Decimal


class Order(BaseModel):
    customer: str
    kind: Literal["shop", "post"]
    items: list[Item]


PROMPT = "Order from Ada: two pens at 1.10 each, and a book at 12. Write it as an order."


def fields_of(events: list[Any]) -> list[FieldEvent]:
    assert not any(isinstance(event, TextDelta) for event in events)
    return [event for event in events if isinstance(event, FieldEvent)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_last_partial_value_is_the_value(model: constrain.Model, seed: int) -> None:
    events = list(constrain.stream(model, PROMPT, schema=Order, partial=True, seed=seed, max_tokens=120))
    *read, last = events
    assert isinstance(last, Finished)
    found = fields_of(read)
    assert found[-1].value == found[-1].partial == last.completion.value
    assert isinstance(found[0].partial, Order)
    assert [event.path for event in found if event.kind == "complete"][:2] == [("customer",), ("kind",)]
    written = "".join(event.text for event in found if event.path == ("customer",))
    assert written == last.completion.value.customer


def lookup(city: str, days: int) -> str:
    """Returns the weather of a city.

    Args:
        city: the city.
        days: how many days ahead.
    """
    return city * days


@pytest.mark.slow
def test_arguments_of_calls_are_read_too(model: constrain.Model) -> None:
    asked: dict[str, Any] = {"tools": [lookup], "tool_choice": "required", "parallel_tool_calls": False, "seed": 1}
    events = list(constrain.stream(model, "Weather in Paris tomorrow?", partial=True, max_tokens=80, **asked))
    assert [type(event) for event in events if not isinstance(event, FieldEvent)] == [CallStarted, CallEnded, Finished]
    found = fields_of(events)
    assert {event.call for event in found} == {0}
    plain = list(constrain.stream(model, "Weather in Paris tomorrow?", max_tokens=80, **asked))
    assert isinstance(plain[-1], Finished)
    (call,) = plain[-1].completion.value
    assert any(isinstance(event, ArgumentsDelta) for event in plain)
    assert found[-1].kind == "complete"
    assert (found[-1].value.city, found[-1].value.days) == (call.arguments["city"], call.arguments["days"])


@pytest.mark.parametrize("schema", [None, constrain.Regex("[a-z]+")])
def test_an_answer_without_fields_has_none(model: constrain.Model, schema: Any) -> None:
    with pytest.raises(ValueError, match="partial=True needs an answer with fields"):
        constrain.stream(model, "Hello", schema=schema, partial=True)
