"""What pydantic-ai alone asks for: outputs of all kinds, tools with their own rules, histories and events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass as plain_dataclass
from datetime import date, timedelta
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from adapter import WAYS, Chat, Responses
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass
from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelHTTPError,
    ModelRetry,
    NativeOutput,
    RunContext,
    Tool,
    ToolOutput,
)
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import (
    BinaryContent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessagesTypeAdapter,
    PartDeltaEvent,
    PartStartEvent,
    ToolReturnPart,
)
from pydantic_ai.models.openai import OpenAIChatModelSettings, OpenAIResponsesModelSettings
from pydantic_ai.native_tools import WebSearchTool
from shared import MODEL, PROMPT, QUESTION, SUM, Person, Plan, weather
from typing_extensions import TypedDict


@pytest.fixture(params=WAYS)
def model(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]().model


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    lap: timedelta
    born: date | None = None
    scores: dict[str, int] = Field(max_length=2)


class Point(TypedDict):
    x: int
    y: int


@dataclass
class Box:
    name: Annotated[str, Field(max_length=20)]
    size: Annotated[float, Field(ge=0, le=100)]


OBJECTS = [Closed, Point, Box, Level]
OTHERS = [bool, Annotated[float, Field(ge=0, le=1)], Literal["yes", "no"], list[int], dict[str, int], tuple[int, bool]]


def answer(model: Any, output_type: Any) -> Any:
    return Agent(model, output_type=output_type, retries=0).run_sync(PROMPT).output


@pytest.mark.parametrize("mode", [ToolOutput, NativeOutput], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("shape", OBJECTS, ids=lambda shape: shape.__name__)
def test_an_output_is_of_its_type(model: Any, mode: Any, shape: Any) -> None:
    TypeAdapter(shape).validate_python(answer(model, mode(shape)), from_attributes=True)


@pytest.mark.parametrize("shape", OTHERS, ids=str)
def test_an_output_need_be_no_object(model: Any, shape: Any) -> None:
    TypeAdapter(shape).validate_python(answer(model, shape))


@pytest.mark.parametrize(
    "kind",
    [
        Person | Plan,
        [ToolOutput(Person, name="a_person"), ToolOutput(Plan, strict=True)],
        NativeOutput([Person, Plan], name="either"),
        NativeOutput(Person, template="As JSON of {schema}", strict=True),
        [Person, str],
        [Person, None],
    ],
    ids=["union", "tools", "native", "template", "or text", "or nothing"],
)
def test_an_output_is_one_of_several(model: Any, kind: Any) -> None:
    assert isinstance(answer(model, kind), Person | Plan | str | None)


def first(*names: str, **settings: Any) -> Any:
    """Settings by which the model calls one of these tools, and then answers."""
    return lambda context: {**settings, "tool_choice": [*names] if context.run_step == 1 else "none"}


def parts(messages: Any, kind: type[Any]) -> list[Any]:
    return [part for message in messages for part in message.parts if isinstance(part, kind)]


@plain_dataclass
class Deps:
    user: str


def test_tools_see_dependencies_and_may_ask_for_another_call(model: Any) -> None:
    settings = lambda context: {"tool_choice": ["look"] if context.run_step < 3 else "none"}  # noqa: E731
    agent = Agent(model, deps_type=Deps, retries=2, model_settings=settings)
    seen: list[str] = []

    @agent.tool(retries=2)
    async def look(context: RunContext[Deps], name: Annotated[str, Field(max_length=10)]) -> str:
        """Looks for a name."""
        seen.append(context.deps.user)
        if len(seen) == 1:
            raise ModelRetry("No such name, try another.")
        return name

    messages = agent.run_sync("Look for Ada.", deps=Deps("Ada")).all_messages()
    outcomes = [part.outcome for part in parts(messages, ToolReturnPart)]
    assert outcomes.count("retried") == 1
    assert {*seen} == {"Ada"}


@pytest.mark.parametrize("strict", [None, True, False])
def test_a_tool_has_the_schema_of_its_model(model: Any, *, strict: bool | None) -> None:
    seen = []

    def look(person: Person, days: Annotated[int, Field(ge=1, le=7)] = 1) -> dict[str, Any]:
        """Looks at a person."""
        seen.append((person, days))
        return {"a": [1, None, "x"], "<|im_end|>": True}

    agent = Agent(model, tools=[Tool(look, strict=strict)], model_settings=first("look", parallel_tool_calls=False))
    agent.run_sync(QUESTION)
    assert isinstance(seen[0][0], Person)
    assert len(seen) == 1


def test_tools_wait_for_approval(model: Any) -> None:
    choice: list[Any] = [["drop"], "none"]
    agent = Agent(
        model, output_type=[str, DeferredToolRequests], model_settings=lambda _: {"tool_choice": choice.pop(0)}
    )

    @agent.tool_plain(requires_approval=True)
    def drop(table: Literal["users", "logs"]) -> str:
        """Drops a table."""
        return f"dropped {table}"

    asked = agent.run_sync("Drop the logs.")
    assert isinstance(asked.output, DeferredToolRequests)
    results = DeferredToolResults(approvals={call.tool_call_id: True for call in asked.output.approvals})
    assert agent.run_sync(message_history=asked.all_messages(), deferred_tool_results=results).output


def test_events_of_a_run_are_streamed(model: Any) -> None:
    agent = Agent(model, tools=[weather], model_settings=first("weather"))

    async def read() -> list[Any]:
        async with agent.run_stream_events(QUESTION) as events:
            return [type(event) async for event in events]

    kinds = asyncio.run(read())
    assert {PartStartEvent, PartDeltaEvent, FunctionToolCallEvent, FunctionToolResultEvent} <= {*kinds}
    assert kinds[-1] is AgentRunResultEvent


def test_a_conversation_goes_on_by_json_and_by_another_endpoint() -> None:
    kept = Agent(Responses().model, output_type=Person).run_sync(PROMPT).all_messages_json()
    history = ModelMessagesTypeAdapter.validate_json(kept)
    second = Agent(Chat().model).run_sync("And then?", message_history=history)
    assert Agent(Responses().model).run_sync("And then?", message_history=second.all_messages()).output


def test_a_conversation_is_kept_by_the_server() -> None:
    agent = Agent(Responses().model)
    first_ = agent.run_sync(SUM)
    settings = OpenAIResponsesModelSettings(openai_previous_response_id=first_.response.provider_response_id)
    assert agent.run_sync("And?", model_settings=settings).usage.input_tokens > first_.usage.input_tokens


def test_settings_go_with_the_request() -> None:
    shared: Any = {"temperature": 0.3, "top_p": 0.9, "timeout": 60, "extra_body": {"unknown_field": 1}}
    chat = OpenAIChatModelSettings(
        **shared, seed=7, presence_penalty=0.5, logit_bias={"5": -100}, stop_sequences=["\n\n"], openai_logprobs=True,
        openai_top_logprobs=2, openai_user="somebody", openai_continuous_usage_stats=True,
    )  # fmt: skip
    responses = OpenAIResponsesModelSettings(
        **shared, openai_store=False, openai_truncation="disabled", openai_text_verbosity="low",
        openai_reasoning_effort="low", openai_reasoning_summary="auto", openai_send_reasoning_ids=False,
    )  # fmt: skip
    for way, settings in ((Chat(), chat), (Responses(), responses)):
        assert isinstance(Agent(way.model, output_type=Person).run_sync(PROMPT, model_settings=settings).output, Person)


def test_images_are_refused_by_name_and_tools_of_the_provider_left_out(model: Any) -> None:
    with pytest.raises(ModelHTTPError, match="image"):
        Agent(model).run_sync(["What is it?", BinaryContent(b"\x89PNG", media_type="image/png")])
    assert Agent(Responses().model, capabilities=[NativeTool(WebSearchTool())]).run_sync("Search.")


@pytest.mark.parametrize("prefix", ["openai", "openai-chat", "openai-responses"])
def test_a_model_may_be_named_by_its_provider(prefix: str) -> None:
    """The address is that of the environment."""
    agent = Agent(f"{prefix}:{MODEL}", output_type=Person, model_settings={"max_tokens": 60})
    assert isinstance(agent.run_sync(PROMPT).output, Person)
