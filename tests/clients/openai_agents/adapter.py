"""Agents of the OpenAI Agents SDK by both endpoints."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

import openai
from agents import (
    Agent,
    AsyncOpenAI,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from shared import KEY, MODEL, PROMPT, QUESTION, SECONDS, SUM, Call, note, weather

T = TypeVar("T")

REFUSED = openai.APIStatusError
LONG = 400
"""More tokens than any answer has: the SDK takes a text that is cut for an error."""

set_tracing_disabled(disabled=True)

_LOOP = asyncio.new_event_loop()


def wait(work: Coroutine[Any, Any, T]) -> T:
    """What comes of the work, always in the same event loop: clients keep connections that belong to it."""
    return _LOOP.run_until_complete(work)


def settings(**given: Any) -> ModelSettings:
    return ModelSettings(**{"temperature": 0, "max_tokens": LONG, "parallel_tool_calls": False, **given})


class Chat:
    made: Any = OpenAIChatCompletionsModel

    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = LONG) -> None:
        client = AsyncOpenAI(api_key=key, max_retries=0, timeout=SECONDS)
        self.model = self.made(model=model, openai_client=client)
        self.max_tokens = max_tokens

    def run(self, given: Any, choice: str | None = None, **options: Any) -> Any:
        chosen = settings(max_tokens=self.max_tokens, tool_choice=None if choice == "auto" else choice)
        return wait(Runner.run(Agent(name="agent", model=self.model, model_settings=chosen, **options), given))

    def text(self, prompt: str) -> str:
        return self.run(prompt, instructions="Answer in one short sentence.").final_output

    def value(self, kind: Any) -> Any:
        return self.run(PROMPT, output_type=kind).final_output

    def value_stream(self, kind: Any) -> Any:
        async def read() -> Any:
            agent = Agent(name="agent", model=self.model, output_type=kind, model_settings=settings())
            result = Runner.run_streamed(agent, PROMPT)
            events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
            text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
            assert kind.model_validate_json(text) == result.final_output
            return result.final_output

        return wait(read())

    def calls(self, choice: str) -> list[Call]:
        tools = [function_tool(weather), function_tool(note)]
        brief: Any = {"instructions": "Answer in one short sentence.", "tool_use_behavior": "stop_on_first_tool"}
        result = self.run(QUESTION, choice, tools=tools, **brief)
        calls = [item.raw_item for item in result.new_items if item.type == "tool_call_item"]
        return [Call(call.call_id, call.name, json.loads(call.arguments)) for call in calls]

    def after_results(self) -> str:
        used: list[str] = []

        @function_tool(is_enabled=lambda _, __: not used)
        def look() -> str:
            """Looks around."""
            used.append("look")
            return "nothing to see"

        result = self.run(QUESTION, "required", tools=[look])
        kinds = ["tool_call_item", "tool_call_output_item", "message_output_item"]
        assert [item.type for item in result.new_items] == kinds
        return result.final_output

    def turns(self) -> str:
        first = self.run(SUM)
        return self.run([*first.to_input_list(), {"role": "user", "content": "What is 3+3?"}]).final_output


class Responses(Chat):
    made = OpenAIResponsesModel


WAYS = {"chat": Chat, "responses": Responses}
