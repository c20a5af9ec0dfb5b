"""Answers that are nested deeply: read whatever calls are under way, or refused with their text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from constrain import OutputValidationError, tool_from_json
from constrain.cli.program import _answer
from constrain.language.result import result_type
from constrain.types.answer_text import MAX_ANSWER_NESTING, read_answer
from tests.support import for_each

LISTS: dict[str, Any] = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}
TOO_DEEP = MAX_ANSWER_NESTING + 1
TOOL = tool_from_json({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}})


def lists(levels: int) -> str:
    return "[" * levels + "]" * levels


def arguments(levels: int) -> str:
    return '{"a": ' + lists(levels - 1) + "}"


def depth(value: Any) -> int:
    levels = 0
    while isinstance(value, list | dict):
        levels += 1
        value = next(iter(value.values() if isinstance(value, dict) else value), None)
    return levels


def within_calls(count: int, read: Callable[[], Any]) -> Any:
    return read() if count == 0 else within_calls(count - 1, read)


@for_each("calls", [0, 700])
@for_each(
    "read",
    lambda: result_type(LISTS).parse(lists(MAX_ANSWER_NESTING)),
    lambda: result_type(json.dumps(LISTS)).parse(lists(MAX_ANSWER_NESTING)),
    lambda: TOOL.read(arguments(MAX_ANSWER_NESTING)).values,
)
def test_the_deepest_answer_is_read_whatever_calls_are_under_way(calls: int, read: Callable[[], Any]) -> None:
    assert depth(within_calls(calls, read)) == MAX_ANSWER_NESTING


@for_each("levels", [TOO_DEEP, 100_000])
@for_each(
    "read, text",
    (result_type(LISTS).parse, lists),
    (result_type(list[Any]).parse, lists),
    (result_type(list[Decimal | list[Any]]).parse, lists),
    (TOOL.read, arguments),
    (TOOL.validate, arguments),
    (replace(TOOL, function=dict).call, arguments),
)
def test_what_is_deeper_is_an_error_that_has_the_text(
    read: Callable[[str], Any], text: Callable[[int], str], levels: int
) -> None:
    with pytest.raises(OutputValidationError, match="MAX_ANSWER_NESTING") as caught:
        read(text(levels))
    assert caught.value.text == text(levels)


@pytest.mark.parametrize("kind", [list[Any], list[Decimal | list[Any]]])
def test_what_pydantic_cannot_read_is_an_error_that_has_the_text(kind: Any) -> None:
    with pytest.raises(OutputValidationError, match=r"Pydantic cannot read the text: .*recursion") as caught:
        result_type(kind).parse(lists(MAX_ANSWER_NESTING))
    assert caught.value.text == lists(MAX_ANSWER_NESTING)


def test_marks_in_strings_are_no_levels() -> None:
    text = json.dumps(["[{" * MAX_ANSWER_NESTING, '"[\\' * MAX_ANSWER_NESTING, *([],) * TOO_DEEP])
    assert read_answer(text) == json.loads(text)


def test_the_command_line_prints_a_text_of_which_no_value_is_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stream(*_: Any, **__: Any) -> Iterator[Any]:
        yield from ()
        result_type(LISTS).parse(lists(TOO_DEEP))

    monkeypatch.setattr("constrain.generation.generate.stream", stream)
    with pytest.raises(OutputValidationError):
        _answer(Console(stderr=True), None, "x", None, {})
    assert capsys.readouterr().out == lists(TOO_DEEP) + "\n"
