"""Functions and custom tools of responses."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import BadRequestError
from samples import MOVE_SCHEMA, OPEN_SCHEMA, PROMPT, Move, Person, flat_custom, flat_function, text_format

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.responses import Response

MOVE = flat_function("Move", MOVE_SCHEMA, description="Moves a piece.")
SAY = flat_function("Say", {"type": "object", "properties": {"word": {"enum": ["hi", "bye"]}}, "required": ["word"]})
WRITE = flat_custom("write", "regex", "[a-z]{3}")
NAMED: Any = {"type": "function", "name": "Move"}


def ask(client: OpenAI, model: str, given: Any = PROMPT, **options: Any) -> Response:
    return client.responses.create(
        model=model,
        input=given,
        **{"max_output_tokens": 120, "temperature": 0, "parallel_tool_calls": False, **options},
    )


def check_call(item: Any) -> None:
    if item.type == "custom_tool_call":
        assert item.id.startswith("ctc_")
        assert item.call_id.startswith("call_")
        assert re.fullmatch("[a-z]{3}", item.input)
        return
    assert item.type == "function_call"
    assert item.id.startswith("fc_")
    assert item.call_id.startswith("call_")
    assert item.status == "completed"
    keys = {"Move": {"to", "steps"}, "Say": {"word"}}[item.name]
    assert set(json.loads(item.arguments)) == keys


@pytest.mark.parametrize("choice", ["required", NAMED, {"type": "allowed_tools", "mode": "required", "tools": [NAMED]}])
def test_a_function_that_has_to_be_called(client: OpenAI, model: str, choice: Any) -> None:
    response = ask(client, model, tools=[MOVE], tool_choice=choice)
    (item,) = response.output
    check_call(item)
    assert response.status == "completed"
    assert response.output_text == ""


def test_a_named_one_of_several(client: OpenAI, model: str) -> None:
    (item,) = ask(client, model, tools=[SAY, MOVE, WRITE], tool_choice=NAMED).output
    assert item.type == "function_call"
    assert item.name == "Move"


def test_a_custom_tool(client: OpenAI, model: str) -> None:
    (item,) = ask(client, model, tools=[MOVE, WRITE], tool_choice={"type": "custom", "name": "write"}).output
    assert item.type == "custom_tool_call"
    check_call(item)


def test_a_custom_tool_with_a_lark_grammar(client: OpenAI, model: str) -> None:
    tool = flat_custom("write", "lark", 'start: "go " ("left" | "right")')
    (item,) = ask(client, model, tools=[tool], tool_choice="required").output
    assert item.type == "custom_tool_call"
    assert item.input in ("go left", "go right")


@pytest.mark.parametrize("form", [{}, {"format": {"type": "text"}}])
def test_a_custom_tool_without_a_grammar(client: OpenAI, model: str, form: Any) -> None:
    tool: Any = {"type": "custom", "name": "note", **form}
    (item,) = ask(client, model, tools=[tool], tool_choice="required", max_output_tokens=50).output
    assert item.type == "custom_tool_call"


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools(client: OpenAI, model: str, mode: str) -> None:
    choice: Any = {"type": "allowed_tools", "mode": mode, "tools": [{"type": "custom", "name": "write"}]}
    response = ask(client, model, tools=[MOVE, WRITE], tool_choice=choice, temperature=1)
    kinds = {item.type for item in response.output}
    assert kinds <= {"custom_tool_call", "message"}
    assert mode == "auto" or kinds == {"custom_tool_call"}


def test_no_calls(client: OpenAI, model: str) -> None:
    response = ask(client, model, tools=[MOVE], tool_choice="none", max_output_tokens=8)
    assert [item.type for item in response.output] == ["message"]


def test_auto(client: OpenAI, model: str) -> None:
    for item in ask(client, model, tools=[MOVE], temperature=1).output:
        if item.type != "message":
            check_call(item)


@pytest.mark.parametrize("strict", [True, False, None])
def test_every_kind_of_strict(client: OpenAI, model: str, strict: bool | None) -> None:
    tool = flat_function("Move", MOVE_SCHEMA, strict=strict)
    response = ask(client, model, tools=[tool], tool_choice="required")
    check_call(response.output[0])
    assert [each.type for each in response.tools] == ["function"]


def test_parallel_calls(client: OpenAI, model: str) -> None:
    response = ask(
        client, model, tools=[MOVE, SAY], tool_choice="required", parallel_tool_calls=True, temperature=1,
        max_output_tokens=120,
    )  # fmt: skip
    for item in response.output:
        check_call(item)
    assert len({item.id for item in response.output}) == len(response.output)


def test_a_call_beside_a_format(client: OpenAI, model: str) -> None:
    wanted = text_format(OPEN_SCHEMA)
    check_call(ask(client, model, tools=[MOVE], tool_choice="required", text=wanted).output[0])


def test_a_format_beside_tools(client: OpenAI, model: str) -> None:
    response = ask(client, model, tools=[MOVE], tool_choice="none", text=text_format(OPEN_SCHEMA))
    assert set(json.loads(response.output_text)) == {"name", "age"}
    response = ask(client, model, tools=[MOVE], tool_choice="auto", text=text_format(OPEN_SCHEMA), temperature=1)
    for item in response.output:
        if item.type == "message":
            assert set(json.loads(response.output_text)) == {"name", "age"}
        else:
            check_call(item)


def results(response: Response) -> list[Any]:
    """A result for each call of a response."""
    return [
        {"type": f"{item.type}_output", "call_id": item.call_id, "output": "done"}
        for item in response.output
        if item.type in ("function_call", "custom_tool_call")
    ]


def test_a_loop_by_items(client: OpenAI, model: str) -> None:
    items: list[Any] = [{"role": "user", "content": PROMPT}]
    for choice in ("required", {"type": "custom", "name": "write"}, "none"):
        response = ask(client, model, items, tools=[MOVE, WRITE], tool_choice=choice, store=False)
        items += response.output
        items += results(response)
    assert response.output_text


def test_a_loop_by_id(client: OpenAI, model: str) -> None:
    response = ask(client, model, tools=[MOVE, WRITE], tool_choice="required")
    for choice in ("required", "none"):
        response = ask(
            client, model, results(response), tools=[MOVE, WRITE], tool_choice=choice, previous_response_id=response.id
        )
    assert response.output_text


def test_calls_that_are_not_answered(client: OpenAI, model: str) -> None:
    response = ask(client, model, tools=[MOVE], tool_choice="required")
    with pytest.raises(BadRequestError, match="call_"):
        ask(client, model, "And?", previous_response_id=response.id)


def test_parse_reads_the_arguments(client: OpenAI, model: str) -> None:
    tool: Any = openai.pydantic_function_tool(Move)
    flat = {"type": "function", **tool["function"]}
    response = client.responses.parse(
        model=model, input=PROMPT, tools=[flat], tool_choice="required", text_format=Person, max_output_tokens=80
    )
    (item, *_) = response.output
    assert item.type == "function_call"
    Move.model_validate(item.parsed_arguments)


REFUSED: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "the nested shape": ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0]", None),
    "a strict schema that is open": (
        {"tools": [flat_function("f", OPEN_SCHEMA, strict=True)]},
        "tools[0].parameters",
        "invalid_function_parameters",
    ),
    "a schema that cannot be enforced": (
        {"tools": [flat_function("f", {"type": "object", "properties": {"x": {"$ref": "#/gone"}}})]},
        "tools[0].parameters",
        "invalid_function_parameters",
    ),
    "a grammar that is none": ({"tools": [flat_custom("f", "lark", "start: gone")]}, "tools[0]", "invalid_grammar"),
    "a pattern that is none": ({"tools": [flat_custom("f", "regex", "(?=a)")]}, "tools[0]", "invalid_grammar"),
    "a priority in the second tool": (
        {"tools": [MOVE, flat_custom("f", "lark", "start: A\nA.2: /a/")]},
        "tools[1]",
        "invalid_grammar",
    ),
    "a choice of what is not there": ({"tools": [SAY], "tool_choice": NAMED}, "tool_choice", None),
    "the nested choice": (
        {"tools": [MOVE], "tool_choice": {"type": "function", "function": {"name": "Move"}}},
        "tool_choice",
        None,
    ),
    "two of one name": ({"tools": [MOVE, MOVE]}, "tools[1]", None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(client: OpenAI, model: str, name: str) -> None:
    options, param, code = REFUSED[name]
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, **options)
    assert str(caught.value.param).startswith(param)
    assert code is None or caught.value.code == code
