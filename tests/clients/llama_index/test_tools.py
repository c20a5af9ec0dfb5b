"""``chat_with_tools``, agents, and what the model is told of results."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import openai
import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.llms.openai_like import OpenAILike


class Weather(BaseModel):
    city: Literal["Oslo", "Rome"]
    days: int = Field(default=1, ge=1, le=9)


def weather(city: str, days: int = 1) -> str:
    """Tells the weather of the next days."""
    return f"sun in {city} for {days} day(s)"


def note(words: str) -> str:
    """Notes words."""
    return words


WEATHER, NOTE = FunctionTool.from_defaults(weather, fn_schema=Weather), FunctionTool.from_defaults(note)
ASK = "What will the weather be in Rome?"


def check(calls: list[Any]) -> None:
    for call in calls:
        if call.tool_name == "weather":
            assert call.tool_kwargs["city"] in ("Oslo", "Rome")
            assert 1 <= call.tool_kwargs.get("days", 1) <= 9
        else:
            assert set(call.tool_kwargs) == {"words"}


def test_a_call_may_be_required(llm: OpenAILike) -> None:
    answer = llm.chat_with_tools([WEATHER, NOTE], user_msg=ASK, tool_required=True)
    calls = llm.get_tool_calls_from_response(answer)
    assert calls
    check(calls)


def test_one_tool_may_be_forced(llm: OpenAILike) -> None:
    answer = llm.chat_with_tools([WEATHER, NOTE], user_msg=ASK, tool_choice="weather")
    calls = llm.get_tool_calls_from_response(answer)
    assert {call.tool_name for call in calls} == {"weather"}
    check(calls)


def test_the_model_may_choose(llm: OpenAILike) -> None:
    answer = llm.chat_with_tools([WEATHER], user_msg=ASK)
    calls = llm.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
    check(calls)
    assert calls or answer.message.content


def test_calls_are_streamed(llm: OpenAILike) -> None:
    *_, last = llm.stream_chat_with_tools([WEATHER], user_msg=ASK, tool_required=True)
    calls = llm.get_tool_calls_from_response(last)
    assert calls
    check(calls)


def test_a_function_is_called_with_what_matches(llm: OpenAILike) -> None:
    answer = llm.predict_and_call([WEATHER], user_msg=ASK, tool_required=True)
    assert str(answer).startswith("sun in ")


def test_results_are_sent_back(llm: OpenAILike) -> None:
    answer = llm.chat_with_tools([WEATHER], user_msg=ASK, tool_required=True)
    results = [
        ChatMessage(role="tool", content="sun", additional_kwargs={"tool_call_id": call.tool_id})
        for call in llm.get_tool_calls_from_response(answer)
    ]
    again = llm.chat([ChatMessage(ASK), answer.message, *results])
    assert again.message.content


def test_an_agent_ends(connect: Callable[..., OpenAILike]) -> None:
    """The small model may call for ever: then the agent counts, and asks for a last answer."""
    agent = FunctionAgent(tools=[WEATHER], llm=connect(max_tokens=40), system_prompt="Be brief.")

    async def run() -> str:
        return str(await agent.run(ASK, max_iterations=4, early_stopping_method="generate"))

    assert asyncio.run(run()) is not None


def test_parameters_that_cannot_be_enforced_are_refused(llm: OpenAILike) -> None:
    tool = {
        "type": "function",
        "function": {
            "name": "refused",
            "parameters": {"type": "object", "properties": {"a": {"pattern": "("}}, "required": ["a"]},
        },
    }
    with pytest.raises(openai.BadRequestError, match="refused"):
        llm.chat([ChatMessage(ASK)], tools=[tool])
