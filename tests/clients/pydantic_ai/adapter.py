"""Agents of pydantic-ai by both endpoints."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent, ModelHTTPError, NativeOutput
from pydantic_ai.embeddings import Embedder
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from shared import ARGUMENTS, KEY, MAX_TOKENS, MODEL, PROMPT, QUESTION, SUM, URL, Call, note, weather

REFUSED = ModelHTTPError


class Chat:
    made: Any = OpenAIChatModel

    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        self.provider = OpenAIProvider(base_url=URL, api_key=key)
        self.model = self.made(model, provider=self.provider, settings={"max_tokens": max_tokens, "temperature": 0})

    def text(self, prompt: str) -> str:
        return Agent(self.model).run_sync(prompt).output

    async def later(self, prompt: str) -> str:
        return (await Agent(self.model).run(prompt)).output

    def stream(self, prompt: str) -> list[str]:
        async def read() -> list[str]:
            async with Agent(self.model).run_stream(prompt) as result:
                return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

        return asyncio.run(read())

    def value(self, kind: Any) -> Any:
        return Agent(self.model, output_type=NativeOutput(kind), retries=0).run_sync(PROMPT).output

    def value_stream(self, kind: Any) -> Any:
        """By a tool, which is how pydantic-ai asks for values unless it is told otherwise."""
        return list(Agent(self.model, output_type=kind, retries=0).run_stream_sync(PROMPT).stream_output())[-1]

    def run(self, choice: Any) -> Any:
        """A run whose first answer calls as chosen, and whose second one is a text."""
        agent = Agent(
            self.model,
            tools=[weather, note],
            model_settings=lambda context: {"tool_choice": choice if context.run_step == 1 else "none"},
        )
        return agent.run_sync(QUESTION)

    def calls(self, choice: str) -> list[Call]:
        names = {"weather": ["weather"], "required": [*ARGUMENTS]}
        first = self.run(names.get(choice, choice)).all_messages()[1]
        calls = [part for part in first.parts if isinstance(part, ToolCallPart)]
        return [Call(call.tool_call_id, call.tool_name, call.args_as_dict()) for call in calls]

    def after_results(self) -> str:
        return self.run(["weather"]).output

    def turns(self) -> str:
        agent = Agent(self.model, instructions="Be brief.")
        return agent.run_sync("Why?", message_history=agent.run_sync(SUM).new_messages()).output

    def embed(self, texts: list[str]) -> Any:
        return Embedder(OpenAIEmbeddingModel(MODEL, provider=self.provider)).embed_documents_sync(texts).embeddings


class Responses(Chat):
    made = OpenAIResponsesModel


WAYS = {"chat": Chat, "responses": Responses}
