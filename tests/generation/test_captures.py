"""Captures of a model's answers: of a whole text, of tools' inputs, and in the last event of a stream."""

from __future__ import annotations

import pytest

import constrain
from constrain import CustomTool, Finished, Lark, Regex
from constrain.engine import captures as capturing

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


def test_a_batch_has_them(model: constrain.Model) -> None:
    for completion in constrain.complete_batch(
        model, ["Order tea.", "Order milk."], schema=ORDER, max_tokens=30, seed=3
    ):
        check(completion)


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


def test_content_beside_tools_has_captures(model: constrain.Model) -> None:
    tool = CustomTool("order", "Orders drinks.", ORDER)
    completion = constrain.complete(
        model, "Say an order.", schema=ORDER, tools=[tool], tool_choice="none", max_tokens=40, seed=1
    )
    check(completion)


MARKED = Lark('start: "a" <|im_start|> x\nx[capture]: /[bc]{2}/')


def test_special_tokens_are_no_part_of_captures(model: constrain.Model) -> None:
    completion = constrain.complete(model, "Write.", schema=MARKED, max_tokens=10, seed=1)
    assert completion.captures == {"x": completion.text[1:]}
    beside = constrain.complete(
        model, "Write.", schema=MARKED, tools=[CustomTool("write", "Writes.", MARKED)], tool_choice="none", seed=1
    )
    assert beside.captures == {"x": beside.text[1:]}


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
