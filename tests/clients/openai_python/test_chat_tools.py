"""Functions as tools of chat completions, and the choice between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import BadRequestError
from samples import MESSAGES, MOVE, MOVE_SCHEMA, OPEN_SCHEMA, SAY, Move, Person, Say, function, json_schema

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletion

NAMED: Any = {"type": "function", "function": {"name": "Move"}}


def ask(client: OpenAI, model: str, **options: Any) -> ChatCompletion:
    return client.chat.completions.create(
        model=model, messages=MESSAGES, **{"max_tokens": 100, "temperature": 0, **options}
    )


def calls_of(completion: ChatCompletion) -> list[Any]:
    """The calls, which are as all calls are."""
    choice = completion.choices[0]
    calls: list[Any] = choice.message.tool_calls or []
    assert all(call.id.startswith("call_") for call in calls)
    assert len({call.id for call in calls}) == len(calls)
    assert choice.finish_reason in (["tool_calls"] if calls else ["stop", "length"])
    return calls


def check_move(call: Any) -> None:
    assert (call.type, call.function.name) == ("function", "Move")
    Move.model_validate_json(call.function.arguments)


def test_required(client: OpenAI, model: str) -> None:
    completion = ask(client, model, tools=[MOVE], tool_choice="required")
    assert completion.choices[0].message.content is None
    calls = calls_of(completion)
    assert calls
    for call in calls:
        check_move(call)


def test_named(client: OpenAI, model: str) -> None:
    calls = calls_of(ask(client, model, tools=[SAY, MOVE], tool_choice=NAMED))
    assert {call.function.name for call in calls} == {"Move"}


def test_none(client: OpenAI, model: str) -> None:
    completion = ask(client, model, tools=[MOVE], tool_choice="none", max_tokens=8)
    assert not completion.choices[0].message.tool_calls
    assert completion.choices[0].message.content


@pytest.mark.parametrize("choice", ["auto", None])
def test_auto_is_a_text_or_valid_calls(client: OpenAI, model: str, choice: Any) -> None:
    for seed in range(2):
        completion = ask(client, model, tools=[MOVE], tool_choice=choice, seed=seed, temperature=1)
        message = completion.choices[0].message
        for call in message.tool_calls or []:
            check_move(call)
        assert message.tool_calls or message.content


@pytest.mark.parametrize("strict", [True, False, None, "absent"])
def test_every_kind_of_strict(client: OpenAI, model: str, strict: Any) -> None:
    members = {} if strict == "absent" else {"strict": strict}
    tool = function("Move", MOVE_SCHEMA, description="Moves a piece.", **members)
    (call, *_) = calls_of(ask(client, model, tools=[tool], tool_choice="required"))
    assert set(json.loads(call.function.arguments)) == {"to", "steps"}


def test_open_parameters_are_closed(client: OpenAI, model: str) -> None:
    calls = calls_of(ask(client, model, tools=[function("person", OPEN_SCHEMA)], tool_choice="required"))
    assert all(set(json.loads(call.function.arguments)) == {"name", "age"} for call in calls)


@pytest.mark.parametrize("parameters", [None, {"type": "object", "properties": {}}])
def test_a_function_without_parameters(client: OpenAI, model: str, parameters: Any) -> None:
    calls = calls_of(ask(client, model, tools=[function("ping", parameters)], tool_choice="required"))
    assert all(json.loads(call.function.arguments) == {} for call in calls)


def test_parameters_with_everything_that_clients_write(client: OpenAI, model: str) -> None:
    parameters = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Args",
        "type": "object",
        "$defs": {"Side": {"enum": ["left", "right"], "type": "string", "title": "Side"}},
        "properties": {
            "side": {"$ref": "#/$defs/Side", "description": "Where to."},
            "steps": {"default": 1, "title": "Steps", "type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["side"],
    }
    calls = calls_of(ask(client, model, tools=[function("go", parameters)], tool_choice="required"))
    assert all(json.loads(call.function.arguments)["side"] in ("left", "right") for call in calls)


def test_no_parallel_calls(client: OpenAI, model: str) -> None:
    for seed in range(2):
        completion = ask(
            client,
            model,
            tools=[MOVE, SAY],
            tool_choice="required",
            parallel_tool_calls=False,
            seed=seed,
            temperature=1,
        )
        assert len(calls_of(completion)) == 1


def test_parallel_calls_all_match(client: OpenAI, model: str) -> None:
    models = {"Move": Move, "Say": Say}
    for seed in range(2):
        completion = ask(
            client, model, tools=[MOVE, SAY], tool_choice="required", parallel_tool_calls=True, seed=seed,
            temperature=1, max_tokens=150,
        )  # fmt: skip
        for call in calls_of(completion):
            models[call.function.name].model_validate_json(call.function.arguments)


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools(client: OpenAI, model: str, mode: str) -> None:
    entry = {"type": "function", "function": {"name": "Say"}}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [entry]}}
    for seed in range(2):
        completion = ask(client, model, tools=[MOVE, SAY], tool_choice=choice, seed=seed, temperature=1)
        calls = calls_of(completion)
        assert {call.function.name for call in calls} <= {"Say"}
        assert calls or mode == "auto"


def test_a_forced_call_beside_a_format(client: OpenAI, model: str) -> None:
    wanted = json_schema(OPEN_SCHEMA)
    for choice in ("required", NAMED):
        for call in calls_of(ask(client, model, tools=[MOVE], tool_choice=choice, response_format=wanted)):
            check_move(call)


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_format_beside_tools(client: OpenAI, model: str, choice: Any) -> None:
    for seed in range(2):
        completion = ask(
            client, model, tools=[MOVE], tool_choice=choice, response_format=json_schema(OPEN_SCHEMA), seed=seed,
            temperature=1,
        )  # fmt: skip
        for call in (calls := calls_of(completion)):
            check_move(call)
        if not calls:
            assert set(json.loads(completion.choices[0].message.content or "")) == {"name", "age"}


def test_parse_reads_the_arguments(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.parse(
        model=model, messages=MESSAGES, tools=[MOVE, SAY], tool_choice="required", max_tokens=120, temperature=0
    )
    calls = completion.choices[0].message.tool_calls or []
    assert calls
    assert all(isinstance(call.function.parsed_arguments, Move | Say) for call in calls)


def test_parse_with_tools_and_a_format(client: OpenAI, model: str) -> None:
    completion = client.chat.completions.parse(
        model=model, messages=MESSAGES, tools=[MOVE], response_format=Person, max_tokens=120, temperature=0
    )
    message = completion.choices[0].message
    if message.tool_calls:
        assert all(isinstance(call.function.parsed_arguments, Move) for call in message.tool_calls)
    else:
        assert isinstance(message.parsed, Person)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_loop_with_results(client: OpenAI, model: str) -> None:
    messages: list[Any] = [*MESSAGES]
    for _ in range(2):
        message: Any = (
            client.chat.completions.create(
                model=model, messages=messages, tools=[MOVE], tool_choice="required", max_tokens=100, temperature=0
            )
            .choices[0]
            .message
        )
        messages.append(message)
        for call in message.tool_calls:
            check_move(call)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps({"done": True})})
    completion = client.chat.completions.create(
        model=model, messages=messages, tools=[MOVE], tool_choice="none", max_tokens=8
    )
    assert completion.choices[0].message.content


def test_several_choices_with_calls(client: OpenAI, model: str) -> None:
    completion = ask(client, model, tools=[MOVE], tool_choice="required", n=2, temperature=1)
    ids = [call.id for choice in completion.choices for call in choice.message.tool_calls or []]
    assert len(ids) == len(set(ids)) >= 2


def test_many_tools(client: OpenAI, model: str) -> None:
    tools = [function(f"tool_{number}", {"type": "object", "properties": {}}) for number in range(40)]
    chosen: Any = {"type": "function", "function": {"name": "tool_23"}}
    calls = calls_of(ask(client, model, tools=tools, tool_choice=chosen, parallel_tool_calls=False))
    assert [call.function.name for call in calls] == ["tool_23"]


def test_a_limit_that_is_too_small_names_one_that_works(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, tools=[MOVE], tool_choice="required", max_tokens=3)
    assert (caught.value.param, caught.value.code) == ("max_tokens", "integer_below_min_value")
    enough = max(int(word) for word in caught.value.message.replace(";", " ").split() if word.isdecimal())
    for call in calls_of(ask(client, model, tools=[MOVE], tool_choice="required", max_tokens=enough)):
        check_move(call)


REFUSED: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "required without tools": ({"tool_choice": "required"}, "tool_choice", None),
    "required with no tools": ({"tool_choice": "required", "tools": []}, "tool", None),
    "a name that is not there": ({"tools": [SAY], "tool_choice": NAMED}, "tool_choice", None),
    "an unknown choice": ({"tools": [SAY], "tool_choice": "maybe"}, "tool_choice", "invalid_value"),
    "an allowed tool that is not there": (
        {
            "tools": [SAY],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "Move"}}]},
            },
        },
        "tool_choice",
        None,
    ),
    "two of one name": ({"tools": [SAY, SAY]}, "tools[1]", None),
    "a tool of the provider": (
        {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
        "tool_choice",
        "invalid_value",
    ),
    "no kind": ({"tools": [{"function": {"name": "x"}}]}, "tools[0].type", "missing_required_parameter"),
    "no name": ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function", None),
    "a name with a blank": ({"tools": [function("a b")]}, "tools[0].function.name", None),
    "a strict schema that is open": (
        {"tools": [function("person", OPEN_SCHEMA, strict=True)]},
        "tools[0].function.parameters",
        "invalid_function_parameters",
    ),
    "a schema that cannot be enforced": (
        {"tools": [SAY, function("f", {"type": "object", "properties": {"x": {"$ref": "#/$defs/gone"}}})]},
        "tools[1].function.parameters",
        "invalid_function_parameters",
    ),
    "parameters that are no object": (
        {"tools": [function("f", {"type": "array", "items": {}})]},
        "tools[0].function.parameters",
        "invalid_function_parameters",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(client: OpenAI, model: str, name: str) -> None:
    options, param, code = REFUSED[name]
    with pytest.raises(BadRequestError) as caught:
        ask(client, model, **options)
    assert str(caught.value.param).startswith(param)
    assert code is None or caught.value.code == code


def test_a_strict_function_names_itself_in_the_complaint(client: OpenAI, model: str) -> None:
    with pytest.raises(BadRequestError, match="Invalid schema for function 'person'"):
        ask(client, model, tools=[function("person", OPEN_SCHEMA, strict=True)])


def test_functions_and_function_call(client: OpenAI, model: str) -> None:
    functions: Any = [{"name": "Move", "parameters": MOVE_SCHEMA}]
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, functions=functions, function_call={"name": "Move"}, max_tokens=100
    )
    choice = completion.choices[0]
    assert choice.finish_reason == "function_call"
    assert choice.message.function_call
    assert choice.message.function_call.name == "Move"
    assert set(json.loads(choice.message.function_call.arguments)) == {"to", "steps"}
    assert not choice.message.tool_calls


def test_function_call_none(client: OpenAI, model: str) -> None:
    functions: Any = [{"name": "Move", "parameters": MOVE_SCHEMA}]
    completion = client.chat.completions.create(
        model=model, messages=MESSAGES, functions=functions, function_call="none", max_tokens=6
    )
    assert completion.choices[0].message.content
    assert completion.choices[0].message.function_call is None


def test_functions_in_a_stream(client: OpenAI, model: str) -> None:
    functions: Any = [{"name": "Move", "parameters": MOVE_SCHEMA}]
    chunks = client.chat.completions.create(
        model=model, messages=MESSAGES, functions=functions, function_call={"name": "Move"}, max_tokens=100, stream=True
    )
    name = arguments = reason = ""
    for chunk in chunks:
        if called := chunk.choices[0].delta.function_call:
            name += called.name or ""
            arguments += called.arguments or ""
        reason = chunk.choices[0].finish_reason or reason
    assert (name, reason) == ("Move", "function_call")
    assert set(json.loads(arguments)) == {"to", "steps"}


def test_the_tool_helper_writes_strict_schemas() -> None:
    assert openai.pydantic_function_tool(Move)["function"]["strict"] is True
