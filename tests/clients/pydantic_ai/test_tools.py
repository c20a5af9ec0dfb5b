"""Function tools: calls, their results, and the answer after them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ModelRetry,
    RunContext,
    Tool,
    ToolDefinition,
    ToolReturn,
    UsageLimitExceeded,
    UsageLimits,
)
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    AnyModel = OpenAIChatModel | OpenAIResponsesModel

ASK = "What is the weather in Oslo?"


class Verdict(BaseModel):
    words: str = Field(max_length=30)
    warm: bool


@dataclass
class Deps:
    user: str


class Place(BaseModel, extra="forbid"):
    city: str = Field(max_length=20)
    unit: Literal["C", "F"]


def calls_first(*names: str, **settings: Any) -> Any:
    """Settings by which the model calls one of these tools, and then answers."""
    return lambda context: {
        **settings,
        "tool_choice": [*names] if context.run_step == 1 else "none",
    }


def parts(messages: list[ModelMessage], kind: type[Any]) -> list[Any]:
    return [part for message in messages for part in message.parts if isinstance(part, kind)]


def test_a_tool_is_called_and_its_result_read(model: AnyModel) -> None:
    agent = Agent(model, instructions="Be brief.", model_settings=calls_first("weather"))

    @agent.tool_plain
    def weather(city: Annotated[str, Field(max_length=20)]) -> str:
        """Tells the weather.

        Args:
            city: where.
        """
        return f"Sunny in {city}"

    result = agent.run_sync(ASK)
    call, returned = parts(result.all_messages(), ToolCallPart)[0], parts(result.all_messages(), ToolReturnPart)[0]
    assert call.tool_name == "weather"
    assert set(call.args_as_dict()) == {"city"}
    assert returned.tool_call_id == call.tool_call_id
    assert isinstance(result.output, str)


def test_a_tool_sees_the_dependencies(model: AnyModel) -> None:
    agent = Agent(model, deps_type=Deps, model_settings=calls_first("who"))
    seen = []

    @agent.tool
    async def who(context: RunContext[Deps]) -> str:
        """The name of the user."""
        seen.append(context.deps.user)
        return context.deps.user

    @agent.instructions
    def name(context: RunContext[Deps]) -> str:
        return f"You talk with {context.deps.user}."

    agent.run_sync("Who am I?", deps=Deps("Ada"))
    assert seen[0] == "Ada"


def test_an_answer_after_tools_may_have_a_type(model: AnyModel) -> None:
    """The model has the tool and the output's own tool to choose from, and must call one."""
    offered = []

    async def at_first(context: RunContext[None], tool: ToolDefinition) -> ToolDefinition | None:
        offered.append(tool.name)
        return tool if context.run_step == 1 else None

    agent = Agent(model, output_type=Verdict, retries=0)

    @agent.tool_plain(prepare=at_first)
    def degrees(city: Literal["Oslo", "Rome"]) -> int:
        """Degrees in a city."""
        return {"Oslo": 3, "Rome": 21}[city]

    assert isinstance(agent.run_sync(ASK).output, Verdict)
    assert offered


@pytest.mark.parametrize("strict", [None, True, False])
def test_tools_are_strict_or_not(model: AnyModel, *, strict: bool | None) -> None:
    seen = []

    def weather(place: Place, days: Annotated[int, Field(ge=1, le=7)] = 1) -> str:
        """Tells the weather."""
        seen.append((place, days))
        return "rain"

    agent = Agent(model, tools=[Tool(weather, strict=strict)], model_settings=calls_first("weather"))
    agent.run_sync(ASK)
    assert isinstance(seen[0][0], Place)


def test_a_tool_may_ask_for_another_call(model: AnyModel) -> None:
    agent = Agent(model, retries=2, model_settings=lambda context: calls_at_first_two(context.run_step))

    def calls_at_first_two(step: int) -> Any:
        return {"tool_choice": ["look"] if step < 3 else "none"}

    @agent.tool_plain(retries=2)
    def look(name: Annotated[str, Field(max_length=10)]) -> str:
        """Looks for a name."""
        if not seen:
            seen.append(name)
            message = "No such name, try another."
            raise ModelRetry(message)
        return name

    seen: list[str] = []
    messages = agent.run_sync("Look for Ada.").all_messages()
    outcomes = [part.outcome for part in parts(messages, ToolReturnPart)]
    assert outcomes.count("retried") == 1  # of several calls at once, which run beside each other, it may be any
    assert "success" in outcomes


def test_an_output_may_be_asked_for_again(model: AnyModel) -> None:
    agent = Agent(model, output_type=Verdict, retries=1)
    seen = []

    @agent.output_validator
    def not_the_first(output: Verdict) -> Verdict:
        seen.append(output)
        if len(seen) == 1:
            message = "Think again."
            raise ModelRetry(message)
        return output

    assert isinstance(agent.run_sync(ASK).output, Verdict)
    assert len(seen) == 2


def test_what_is_refused_too_often_ends_the_run(model: AnyModel) -> None:
    agent = Agent(model, output_type=Verdict, retries=1)

    @agent.output_validator
    def refuse(_: Verdict) -> Verdict:
        message = "No."
        raise ModelRetry(message)

    with pytest.raises(UnexpectedModelBehavior):
        agent.run_sync(ASK)


def test_one_of_several_tools_is_called(model: AnyModel) -> None:
    """Two names of three are sent as the tools that are allowed."""
    toolset: FunctionToolset[None] = FunctionToolset()
    called: list[str] = []

    def noting(name: str) -> Callable[[], None]:
        return lambda: called.append(name)

    for name in ("first", "second", "third"):
        toolset.add_function(noting(name), name=name, description=f"The {name} one.")

    agent = Agent(model, toolsets=[toolset], model_settings=calls_first("first", "third"))
    agent.run_sync("Call one.")
    assert set(called) <= {"first", "third"}
    assert called


def test_at_most_one_call_where_they_are_not_parallel(model: AnyModel) -> None:
    agent = Agent(model, model_settings=calls_first("note", parallel_tool_calls=False))
    agent.tool_plain(note)
    messages = agent.run_sync("Note a, then b, then c.").all_messages()
    assert len(parts(messages[:2], ToolCallPart)) == 1


def test_parallel_calls_have_ids_of_their_own(model: AnyModel) -> None:
    agent = Agent(model, model_settings=calls_first("note", parallel_tool_calls=True))
    agent.tool_plain(note)
    ids = [call.tool_call_id for call in parts(agent.run_sync("Note a, b and c.").all_messages(), ToolCallPart)]
    assert ids
    assert len(set(ids)) == len(ids)


def note(word: Annotated[str, Field(max_length=8)]) -> str:
    """Notes a word."""
    return f"noted {word}"


def test_results_may_be_of_any_kind(model: AnyModel) -> None:
    agent = Agent(model, model_settings=calls_first("lots"))

    @agent.tool_plain
    def lots() -> ToolReturn:
        """Returns a lot."""
        return ToolReturn(return_value={"a": [1, None, "x"], "<|im_end|>": True}, content="See also: nothing.")

    assert isinstance(agent.run_sync("Call it.").output, str)


def test_toolsets_may_be_renamed_and_filtered(model: AnyModel) -> None:
    toolset = FunctionToolset([note]).prefixed("my").filtered(lambda _, tool: tool.name.endswith("note"))
    agent = Agent(model, toolsets=[toolset], model_settings=calls_first("my_note"))
    assert parts(agent.run_sync("Note a.").all_messages(), ToolCallPart)[0].tool_name == "my_note"


def test_tools_may_wait_for_approval(model: AnyModel) -> None:
    agent = Agent(
        model, output_type=[str, DeferredToolRequests], model_settings=lambda _: {"tool_choice": choice.pop(0)}
    )
    choice: list[Any] = [["drop"], "none"]

    @agent.tool_plain(requires_approval=True)
    def drop(table: Literal["users", "logs"]) -> str:
        """Drops a table."""
        return f"dropped {table}"

    first = agent.run_sync("Drop the logs.")
    assert isinstance(first.output, DeferredToolRequests)
    approvals = {call.tool_call_id: True for call in first.output.approvals}
    second = agent.run_sync(
        message_history=first.all_messages(), deferred_tool_results=DeferredToolResults(approvals=approvals)
    )
    assert isinstance(second.output, str)


def test_agents_may_call_agents(model: AnyModel) -> None:
    inner = Agent(model, output_type=Verdict)
    outer = Agent(model, model_settings=calls_first("judge"))
    seen = []

    @outer.tool
    async def judge(context: RunContext[None]) -> str:
        """Judges."""
        result = await inner.run("Is it warm?", usage=context.usage)
        seen.append(result.output)
        return result.output.words

    result = outer.run_sync("Judge.")
    assert isinstance(seen[0], Verdict)
    assert result.usage.requests >= 3


def test_many_runs_go_together(model: AnyModel) -> None:
    agent = Agent(model, output_type=Verdict)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(agent.run(f"Is it warm in {city}?") for city in ("Oslo", "Rome", "Lima")))

    assert all(isinstance(result.output, Verdict) for result in asyncio.run(ask()))


def test_tools_without_parameters_are_called_with_an_empty_object(model: AnyModel) -> None:
    agent = Agent(model, model_settings=calls_first("now"))

    @agent.tool_plain
    def now() -> str:
        return "noon"

    messages = agent.run_sync("What time is it?").all_messages()
    assert parts(messages, ToolCallPart)[0].args_as_dict() == {}
    assert isinstance(messages[0], ModelRequest)


def test_a_tool_may_be_of_a_schema(model: AnyModel) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9}}}
    seen = []

    def take(**arguments: Any) -> str:
        seen.append(arguments)
        return "taken"

    taking = Tool.from_schema(take, name="take", description="Takes a size.", json_schema=schema)
    Agent(model, tools=[taking], model_settings=calls_first("take")).run_sync("Take 3.")
    assert all(set(arguments) <= {"size"} for arguments in seen)
    assert seen


def test_every_call_may_count(model: AnyModel) -> None:
    """Function tools beside the output's own, all of them called."""
    agent = Agent(model, output_type=Verdict, end_strategy="exhaustive", tools=[Tool(note)], retries=0)
    try:
        assert isinstance(agent.run_sync(ASK, usage_limits=UsageLimits(request_limit=3)).output, Verdict)
    except UsageLimitExceeded as error:
        assert "request_limit" in str(error)  # noqa: PT017 - the model only ever notes
