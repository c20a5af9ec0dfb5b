"""Captures and partial values of a model's answers, whole and in streams."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import constrain
from constrain import Finished, Lark, Regex, TextDelta
from constrain.engine import captures as capturing
from constrain.events import ArgumentsDelta, CallEnded, CallStarted, FieldEvent
from constrain.tools import CustomTool

ORDER = Lark(
    'start: count " x " drink (" and " drink)? "."\ncount[capture]: /[1-9]/\ndrink[capture="what"]: /[a-zé]{3,8}/\n'
)


def check(completion: constrain.Completion) -> None:
    text, found = completion.text, completion.captures
    assert found is not None
    start, end = found.spans["count"][0]
    assert (start, end) == (0, 1)
    assert found["count"] == text[0]
    drinks = found["what"] if isinstance(found["what"], list) else [found["what"]]
    assert [text[begin:stop] for begin, stop in found.spans["what"]] == drinks
    assert text == f"{found['count']} x {' and '.join(drinks)}."


def test_an_answer_has_its_captures(model: constrain.Model) -> None:
    check(constrain.complete(model, "Order some drinks.", schema=ORDER, max_tokens=30, seed=1))


def test_the_last_event_of_a_stream_has_them(model: constrain.Model) -> None:
    *_, last = constrain.stream(model, "Order some drinks.", schema=ORDER, max_tokens=30, seed=2)
    assert isinstance(last, Finished)
    check(last.completion)


def test_groups_of_a_pattern(model: constrain.Model) -> None:
    plate = Regex(r"(?P<town>[A-Z]{1,3})-(?P<number>[0-9]{1,4})")
    completion = constrain.complete(model, "Make up a licence plate.", schema=plate, seed=1)
    assert completion.captures is not None
    assert f"{completion.captures['town']}-{completion.captures['number']}" == completion.text


def test_a_call_has_the_captures_of_its_input(model: constrain.Model) -> None:
    tool = CustomTool("order", "Orders drinks.", ORDER)
    completion = constrain.complete(
        model, "Order some drinks.", tools=[tool], tool_choice="required", max_tokens=60, seed=1
    )
    call = completion.value[0]
    assert call.captures["count"] == call.text[0]
    assert completion.captures == {}


def test_tokens_by_id_are_parts_of_captures_with_their_texts(model: constrain.Model) -> None:
    grammar = Lark("start: x y <|im_end|>\nx[capture]: <[^0-16]>*\ny[capture]: /[0-9]{3}/")
    completion = constrain.complete(model, "Say hello.", schema=grammar, max_tokens=20, seed=1)
    assert completion.captures == {"x": completion.text[:-3], "y": completion.text[-3:]}
    *_, last = constrain.stream(model, "Say hello.", schema=grammar, max_tokens=20, seed=1)
    assert isinstance(last, Finished)
    assert last.completion.captures == completion.captures


def test_answers_without_names_have_none(model: constrain.Model) -> None:
    assert constrain.complete(model, "Hello", schema=bool).captures == {}
    assert constrain.complete(model, "Hello", max_tokens=3).captures == {}


def test_a_limit_takes_the_captures_and_leaves_the_answer(
    model: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capturing, "MAX_CAPTURE_WORK", 3)
    completion = constrain.complete(model, "Order some drinks.", schema=ORDER, max_tokens=30, seed=1)
    assert completion.captures is None
    assert "MAX_CAPTURE_WORK" in completion.limits_met
    assert completion.text[0].isdigit()


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
