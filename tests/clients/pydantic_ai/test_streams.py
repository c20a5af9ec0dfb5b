"""Streams of agents: text, structured output and events."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, AgentRunResultEvent, NativeOutput
from pydantic_ai.messages import FunctionToolCallEvent, FunctionToolResultEvent, PartDeltaEvent, PartStartEvent
from pydantic_ai.models.openai import OpenAIChatModelSettings
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    AnyModel = OpenAIChatModel | OpenAIResponsesModel


class Profile(TypedDict, total=False):
    name: Annotated[str, Field(max_length=20)]
    age: Annotated[int, Field(ge=0, le=120)]


class Trip(BaseModel):
    place: str = Field(max_length=30)
    days: int = Field(ge=1, le=30)


OUTPUTS = pytest.mark.parametrize("output_type", [Trip, NativeOutput(Trip)], ids=["tool", "native"])

ASK = "Ada wants to see Rome for three days."


def test_text_is_streamed(model: AnyModel) -> None:
    async def read() -> tuple[list[str], str]:
        async with Agent(model).run_stream(ASK) as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
            return pieces, await result.get_output()

    pieces, text = asyncio.run(read())
    assert len(pieces) > 1
    assert "".join(pieces) == text


def test_text_grows(model: AnyModel) -> None:
    async def read() -> list[str]:
        async with Agent(model).run_stream(ASK) as result:
            return [text async for text in result.stream_text(debounce_by=None)]

    texts = asyncio.run(read())
    assert all(longer.startswith(shorter) for shorter, longer in pairwise(texts))


@OUTPUTS
def test_structured_output_is_streamed(model: AnyModel, output_type: Any) -> None:
    async def read() -> list[Trip]:
        async with Agent(model, output_type=output_type).run_stream(ASK) as result:
            return [part async for part in result.stream_output(debounce_by=None)]

    assert isinstance(asyncio.run(read())[-1], Trip)


def test_partial_dictionaries_are_streamed(model: AnyModel) -> None:
    async def read() -> list[Profile]:
        async with Agent(model, output_type=Profile).run_stream(ASK) as result:
            return [part async for part in result.stream_output(debounce_by=None)]

    assert set(asyncio.run(read())[-1]) <= {"name", "age"}


def test_a_stream_without_asynchronous_code(model: AnyModel) -> None:
    result = Agent(model, output_type=Trip).run_stream_sync(ASK)
    assert isinstance(list(result.stream_output())[-1], Trip)
    assert result.usage.output_tokens > 0


def test_a_stream_may_be_left(model: AnyModel) -> None:
    """What nobody reads any more does not keep the model busy."""

    async def read() -> None:
        async with Agent(model).run_stream(ASK, model_settings={"max_tokens": 2000}) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                break

    asyncio.run(read())
    assert Agent(model).run_sync("Hello").output


def test_events_of_a_run_are_streamed(model: AnyModel) -> None:
    agent = Agent(
        model,
        model_settings=lambda context: {"tool_choice": ["weather"] if context.run_step == 1 else "none"},
    )

    @agent.tool_plain
    def weather(city: Literal["Oslo", "Rome"]) -> str:
        """Tells the weather."""
        return f"sun in {city}"

    async def read() -> list[Any]:
        async with agent.run_stream_events("The weather in Rome?") as events:
            return [event async for event in events]

    kinds = [type(event) for event in asyncio.run(read())]
    for kind in (PartStartEvent, PartDeltaEvent, FunctionToolCallEvent, FunctionToolResultEvent):
        assert kind in kinds
    assert kinds[-1] is AgentRunResultEvent


def test_a_run_may_be_taken_node_by_node(model: AnyModel) -> None:
    async def read() -> Any:
        async with Agent(model, output_type=Trip).iter(ASK) as run:
            async for node in run:
                if Agent.is_model_request_node(node):
                    async with node.stream(run.ctx) as stream:
                        _ = [event async for event in stream]
        return run.result

    result = asyncio.run(read())
    assert isinstance(result.output, Trip)


def test_usage_may_come_with_every_chunk(chat_model: OpenAIChatModel) -> None:
    settings = OpenAIChatModelSettings(openai_continuous_usage_stats=True)
    result = Agent(chat_model, output_type=Trip).run_stream_sync(ASK, model_settings=settings)
    assert isinstance(list(result.stream_output())[-1], Trip)
    assert 0 < result.usage.output_tokens <= 64
