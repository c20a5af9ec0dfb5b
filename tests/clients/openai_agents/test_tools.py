"""Agents with tools, handoffs and guardrails."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from agents import (
    Agent,
    CustomTool,
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    Model,
    OutputGuardrailTripwireTriggered,
    RunContextWrapper,
    Runner,
    SQLiteSession,
    StopAtTools,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
)
from pydantic import BaseModel, Field
from samples import LONG, PROMPT, SUM, Person, settings, wait
from typing_extensions import TypedDict

FORCED = settings(tool_choice="required", parallel_tool_calls=False)
THEN_FREE = settings(tool_choice="required", parallel_tool_calls=False, max_tokens=LONG)


@function_tool
def move(to: Literal["left", "right"], steps: Annotated[int, Field(ge=1, le=9)]) -> str:
    """Moves a piece.

    Args:
        to: the side.
        steps: how many.
    """
    assert to in ("left", "right")
    return f"moved {steps} to the {to}"


@function_tool
def look() -> str:
    """Looks around."""
    return "nothing to see"


def run(agent: Agent[Any], given: Any = SUM, **options: Any) -> Any:
    return wait(Runner.run(agent, given, **options))


def caller(model: Model, *tools: Any, **options: Any) -> Agent[Any]:
    """An agent that has to call a tool, and is then done."""
    return Agent(
        name="caller", model=model, tools=list(tools),
        **{"model_settings": FORCED, "tool_use_behavior": "stop_on_first_tool", **options},
    )  # fmt: skip


def test_a_tool_that_ends_the_run(model: Model) -> None:
    assert re.fullmatch("moved [1-9] to the (left|right)", run(caller(model, move)).final_output)


def test_a_tool_without_parameters(model: Model) -> None:
    assert run(caller(model, look)).final_output == "nothing to see"


def test_a_named_tool(model: Model) -> None:
    agent = caller(model, move, look, model_settings=settings(tool_choice="look", parallel_tool_calls=False))
    assert run(agent).final_output == "nothing to see"


def test_an_agent_that_stops_at_some_tools(model: Model) -> None:
    agent = caller(model, look, tool_use_behavior=StopAtTools(stop_at_tool_names=["look"]))
    assert run(agent).final_output == "nothing to see"


def test_the_items_of_a_run(model: Model) -> None:
    call, output = run(caller(model, move)).new_items
    assert (call.type, output.type) == ("tool_call_item", "tool_call_output_item")
    assert call.raw_item.call_id == output.raw_item["call_id"]
    assert set(json.loads(call.raw_item.arguments)) == {"to", "steps"}


class Address(BaseModel):
    city: Literal["Bonn", "Bern"]
    number: int = Field(ge=1, le=99)


class Options(TypedDict):
    fast: bool


@dataclass
class Size:
    width: Literal[1, 2]


@function_tool
def of_a_model(address: Address) -> str:
    """Takes a model."""
    assert isinstance(address, Address)
    return "ok"


@function_tool
def of_a_typed_dict(options: Options) -> str:
    """Takes a dictionary."""
    assert isinstance(options["fast"], bool)
    return "ok"


@function_tool
def of_a_dataclass(size: Size) -> str:
    """Takes a dataclass."""
    assert size.width in (1, 2)
    return "ok"


@function_tool
def of_lists(sides: Annotated[list[Literal["left", "right"]], Field(max_length=3)]) -> str:
    """Takes a list."""
    assert set(sides) <= {"left", "right"}
    return "ok"


@function_tool
def with_defaults(side: Literal["left", "right"] = "left", steps: Literal[1, 2] | None = None) -> str:
    """Has defaults."""
    assert side in ("left", "right")
    assert steps in (1, 2, None)
    return "ok"


@function_tool
async def asynchronous(yes: bool) -> str:
    """Is asynchronous."""
    assert isinstance(yes, bool)
    return "ok"


@function_tool
def with_context(context: RunContextWrapper[str], yes: bool) -> str:
    """Knows its context."""
    assert context.context == "mine"
    return "ok" if isinstance(yes, bool) else "no"


@function_tool(strict_mode=False)
def lenient(side: Literal["left", "right"], more: Literal["a", "b"] = "a") -> str:
    """Is not strict."""
    assert side in ("left", "right")
    assert more in ("a", "b")
    return "ok"


@function_tool(strict_mode=False)
def of_any_keys(scores: Annotated[dict[str, bool], Field(max_length=2)]) -> str:
    """Takes any keys."""
    assert all(isinstance(value, bool) for value in scores.values())
    return "ok"


@function_tool(name_override="renamed", description_override="Another text.")
def with_another_name(yes: bool) -> str:
    return "ok" if isinstance(yes, bool) else "no"


SIGNATURES = [
    of_a_model, of_a_typed_dict, of_a_dataclass, of_lists, with_defaults, asynchronous, with_context, lenient,
    of_any_keys, with_another_name,
]  # fmt: skip


@pytest.mark.parametrize("tool", SIGNATURES, ids=lambda tool: tool.name)
def test_signatures(model: Model, tool: Any) -> None:
    result = run(caller(model, tool), context="mine")
    assert result.final_output == "ok"


@pytest.mark.parametrize("strict", [True, False])
def test_a_tool_by_its_schema(model: Model, strict: bool) -> None:
    async def invoke(_: Any, arguments: str) -> str:
        assert json.loads(arguments)["side"] in ("left", "right")
        return "ok"

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"side": {"enum": ["left", "right"], "type": "string"}},
        "required": ["side"],
        "additionalProperties": False,
    }
    tool = FunctionTool(
        name="go", description="Goes.", params_json_schema=schema, on_invoke_tool=invoke, strict_json_schema=strict
    )
    assert run(caller(model, tool)).final_output == "ok"


def once(model: Model, **options: Any) -> Agent[Any]:
    """An agent that calls a tool once, and then answers."""
    used: list[bool] = []

    @function_tool(is_enabled=lambda _, __: not used)
    def roll(sides: Literal[6, 20]) -> int:
        """Rolls dice."""
        used.append(True)
        return sides // 2

    return Agent(name="once", model=model, tools=[roll], **{"model_settings": THEN_FREE, **options})


def test_a_text_after_a_call(model: Model) -> None:
    result = run(once(model))
    assert [item.type for item in result.new_items] == [
        "tool_call_item",
        "tool_call_output_item",
        "message_output_item",
    ]
    assert len(result.raw_responses) == 2


def test_a_value_after_a_call(model: Model) -> None:
    result = run(once(model, output_type=Person))
    assert isinstance(result.final_output, Person)
    assert any(item.type == "tool_call_item" for item in result.new_items)


def test_a_forced_call_beside_an_output_type(model: Model) -> None:
    assert run(caller(model, look, output_type=Person, tool_use_behavior="stop_on_first_tool")).new_items


def test_tools_and_an_output_type_by_choice(model: Model) -> None:
    agent = Agent(
        name="free", model=model, tools=[look], output_type=Person, tool_use_behavior="stop_on_first_tool",
        model_settings=settings(parallel_tool_calls=False),
    )  # fmt: skip
    assert isinstance(run(agent).final_output, Person | str)


def test_the_number_of_turns_is_limited(model: Model) -> None:
    agent = caller(model, look, tool_use_behavior="run_llm_again", reset_tool_choice=False)
    with pytest.raises(MaxTurnsExceeded):
        run(agent, max_turns=3)


def test_a_tool_that_fails(model: Model) -> None:
    used: list[bool] = []

    @function_tool(is_enabled=lambda _, __: not used)
    def fail() -> str:
        """Fails."""
        used.append(True)
        raise ValueError("broken")

    result = run(Agent(name="careful", model=model, tools=[fail], model_settings=THEN_FREE))
    (output,) = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert "error" in output
    assert result.final_output


def test_a_tool_that_fails_for_good(model: Model) -> None:
    @function_tool(failure_error_function=None)
    def fail() -> str:
        """Fails."""
        raise KeyError("broken")

    with pytest.raises(Exception, match="broken"):
        run(caller(model, fail))


def test_parallel_calls(model: Model) -> None:
    agent = caller(model, look, move, model_settings=settings(tool_choice="required", parallel_tool_calls=True))
    outputs = [item for item in run(agent).new_items if item.type == "tool_call_output_item"]
    assert outputs
    assert all("error" not in str(item.output).lower() for item in outputs)


def test_calls_in_a_stream(model: Model) -> None:
    async def work() -> tuple[list[str], Any]:
        result = Runner.run_streamed(once(model), SUM)
        names = [event.name async for event in result.stream_events() if event.type == "run_item_stream_event"]
        return names, result.final_output

    names, output = wait(work())
    assert names == ["tool_called", "tool_output", "message_output_created"]
    assert isinstance(output, str)


def test_arguments_in_a_stream(model: Model) -> None:
    async def work() -> tuple[str, Any]:
        result = Runner.run_streamed(caller(model, move), PROMPT)
        text = ""
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.function_call_arguments.delta":
                text += event.data.delta
        return text, result.new_items[0]

    text, item = wait(work())
    assert json.loads(text) == json.loads(item.raw_item.arguments)


def test_a_session_with_calls(model: Model) -> None:
    async def work() -> list[Any]:
        session = SQLiteSession("calls")
        await Runner.run(once(model), SUM, session=session)
        await Runner.run(once(model), "What is 3+3?", session=session)
        return await session.get_items()

    kinds = [item.get("type", "message") for item in wait(work())]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 2


def test_a_run_with_calls_goes_on(model: Model) -> None:
    first = run(once(model))
    agent: Agent[Any] = Agent(name="brief", model=model, model_settings=settings(max_tokens=LONG))
    assert run(agent, [*first.to_input_list(), {"role": "user", "content": "What is 3+3?"}]).final_output


def test_calls_go_on_by_id(responses: Model) -> None:
    result = run(once(responses), auto_previous_response_id=True)
    assert result.final_output


def test_an_agent_as_a_tool(model: Model) -> None:
    inner: Agent[Any] = Agent(name="inner", model=model, output_type=bool, model_settings=settings())
    tool = inner.as_tool(tool_name="ask_inner", tool_description="Asks another.")
    assert run(caller(model, tool)).final_output in ("True", "False", True, False)


def other(model: Model, **options: Any) -> Agent[Any]:
    return Agent(
        name="Other", model=model, handoff_description="Knows people.", output_type=Person,
        model_settings=settings(), **options,
    )  # fmt: skip


def test_a_handoff(model: Model) -> None:
    triage: Agent[Any] = Agent(name="triage", model=model, handoffs=[other(model)], model_settings=FORCED)
    result = run(triage)
    assert result.last_agent.name == "Other"
    assert isinstance(result.final_output, Person)
    assert [item.type for item in result.new_items][:2] == ["handoff_call_item", "handoff_output_item"]


class Reason(BaseModel):
    why: Literal["hard", "easy"]


def test_a_handoff_with_a_reason(model: Model) -> None:
    reasons: list[Reason] = []

    def note(_: RunContextWrapper[Any], reason: Reason) -> None:
        reasons.append(reason)

    given = handoff(other(model), on_handoff=note, input_type=Reason, tool_name_override="escalate")
    triage: Agent[Any] = Agent(
        name="triage", model=model, handoffs=[given],
        model_settings=settings(tool_choice="escalate", parallel_tool_calls=False),
    )  # fmt: skip
    assert isinstance(run(triage).final_output, Person)
    assert reasons[0].why in ("hard", "easy")


def test_a_handoff_beside_tools_in_a_stream(model: Model) -> None:
    async def work() -> Any:
        triage: Agent[Any] = Agent(
            name="triage", model=model, handoffs=[other(model)], tools=[look],
            model_settings=settings(tool_choice="transfer_to_other", parallel_tool_calls=False),
        )  # fmt: skip
        result = Runner.run_streamed(triage, PROMPT)
        async for _ in result.stream_events():
            pass
        return result

    result = wait(work())
    assert isinstance(result.final_output, Person)
    assert result.current_agent.name == "Other"


CUSTOM: dict[str, tuple[Any, str]] = {
    "lark": ({"type": "grammar", "syntax": "lark", "definition": 'start: "go " ("left" | "right")'}, "go (left|right)"),
    "regex": ({"type": "grammar", "syntax": "regex", "definition": "[a-z]{3}"}, "[a-z]{3}"),
    "any text": ({"type": "text"}, r"(?s).*"),
    "nothing said": (None, r"(?s).*"),
}


@pytest.mark.parametrize("name", CUSTOM)
def test_custom_tools(responses: Model, name: str) -> None:
    form, pattern = CUSTOM[name]

    async def invoke(_: Any, text: str) -> str:
        assert re.fullmatch(pattern, text)
        return "taken"

    tool = CustomTool(name="write", description="Writes.", on_invoke_tool=invoke, format=form)
    with pytest.raises(MaxTurnsExceeded) as stopped:  # only functions end a run
        run(caller(responses, tool, reset_tool_choice=False), max_turns=2)
    data = stopped.value.run_data
    assert data
    calls: list[Any] = [item.raw_item for item in data.new_items if item.type == "tool_call_item"]
    outputs = [item.output for item in data.new_items if item.type == "tool_call_output_item"]
    assert [call.type for call in calls] == ["custom_tool_call"] * 2
    assert all(re.fullmatch(pattern, call.input) for call in calls)
    assert outputs == ["taken"] * 2


def test_a_text_after_a_custom_call(responses: Model) -> None:
    items = [
        {"role": "user", "content": SUM},
        {"type": "custom_tool_call", "call_id": "call_1", "name": "write", "input": "2+2"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "4"},
    ]
    agent: Agent[Any] = Agent(name="brief", model=responses, model_settings=settings(max_tokens=LONG))
    assert run(agent, items).final_output


def test_an_input_guardrail(model: Model) -> None:
    @input_guardrail
    async def refuse(_: Any, __: Agent[Any], ___: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    agent: Agent[Any] = Agent(name="guarded", model=model, input_guardrails=[refuse], model_settings=settings())
    with pytest.raises(InputGuardrailTripwireTriggered):
        run(agent)


def test_a_guardrail_that_asks_the_model(model: Model) -> None:
    judge: Agent[Any] = Agent(name="judge", model=model, output_type=Person, model_settings=settings())

    @input_guardrail
    async def ask(context: RunContextWrapper[Any], _: Agent[Any], given: Any) -> GuardrailFunctionOutput:
        found = await Runner.run(judge, given, context=context.context)
        return GuardrailFunctionOutput(
            output_info=found.final_output, tripwire_triggered=not isinstance(found.final_output, Person)
        )

    agent: Agent[Any] = Agent(
        name="guarded", model=model, input_guardrails=[ask], model_settings=settings(max_tokens=LONG)
    )
    result = run(agent)
    assert isinstance(result.input_guardrail_results[0].output.output_info, Person)


def test_an_output_guardrail(model: Model) -> None:
    @output_guardrail
    async def refuse(_: Any, __: Agent[Any], output: Any) -> GuardrailFunctionOutput:
        assert isinstance(output, Person)
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    agent = other(model, output_guardrails=[refuse])
    with pytest.raises(OutputGuardrailTripwireTriggered):
        run(agent)
