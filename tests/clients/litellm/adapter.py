"""LiteLLM's providers, by each API that the server has."""

from __future__ import annotations

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # the list of prices is not fetched

from typing import Any, ClassVar

import litellm
from litellm import exceptions
from shared import KEY, MAX_TOKENS, MODEL, PROMPT, QUESTION, ROOT, SECONDS, SUM, TOOLS, URL, Call, Person, choice_of

REFUSED = (exceptions.BadRequestError, exceptions.NotFoundError, exceptions.AuthenticationError)


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


class OpenAI:
    where: ClassVar[Any] = {"api_base": URL}
    prefix = "openai"

    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        limits = {"temperature": 0, "max_tokens": max_tokens, "num_retries": 0, "max_retries": 0, "timeout": SECONDS}
        self.asked: Any = {"model": f"{self.prefix}/{model}", "api_key": key, **self.where, **limits}

    def create(self, *messages: Any, **more: Any) -> Any:
        return litellm.completion(**{**self.asked, **more}, messages=list(messages))

    def text(self, prompt: str) -> str:
        found = self.create(said(prompt))
        assert found.usage.total_tokens > found.usage.completion_tokens > 0
        return found.choices[0].message.content

    async def later(self, prompt: str) -> str:
        parts = await litellm.acompletion(**self.asked, messages=[said(prompt)], stream=True)
        return "".join([part.choices[0].delta.content or "" async for part in parts])

    def stream(self, prompt: str) -> list[str]:
        return [part.choices[0].delta.content or "" for part in self.create(said(prompt), stream=True) if part.choices]

    def value(self, kind: Any) -> Any:
        found = self.create(said(PROMPT), response_format=kind)
        return kind.model_validate_json(found.choices[0].message.content)

    def value_stream(self, kind: Any) -> Any:
        parts = self.create(said(PROMPT), response_format=kind, stream=True)
        return kind.model_validate_json("".join(part.choices[0].delta.content or "" for part in parts if part.choices))

    def calls(self, choice: str) -> list[Call]:
        return read(self.create(said(QUESTION), tools=TOOLS, tool_choice=choice_of(choice)))

    def calls_stream(self, choice: str) -> list[Call]:
        parts = list(self.create(said(QUESTION), tools=TOOLS, tool_choice=choice_of(choice), stream=True))
        return read(litellm.stream_chunk_builder(parts))

    def after_results(self) -> str:
        message = self.create(said(QUESTION), tools=TOOLS, tool_choice=choice_of("weather")).choices[0].message
        results = [{"role": "tool", "tool_call_id": call.id, "content": "sun"} for call in message.tool_calls]
        found = self.create(said(QUESTION), message, *results, tools=TOOLS, tool_choice="none")
        return found.choices[0].message.content

    def turns(self) -> str:
        first = self.create(said(SUM)).choices[0].message
        return self.create(said(SUM), first, said("Why?")).choices[0].message.content


def read(answer: Any) -> list[Call]:
    calls = answer.choices[0].message.tool_calls or []
    return [Call(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]


class Anthropic(OpenAI):
    where: ClassVar[Any] = {"api_base": ROOT}
    prefix = "anthropic"
    KINDS = (Person,)
    """Without references: LiteLLM makes a path of ``#/$defs/Step``, which leads nowhere."""


class Ollama(OpenAI):
    where: ClassVar[Any] = {"api_base": ROOT}
    prefix = "ollama_chat"
    CHOICES = ("auto",)
    """LiteLLM sends no other."""

    def after_results(self) -> str:
        call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        asked = [said(QUESTION), {"role": "assistant", "content": None, "tool_calls": [call]}]
        return (
            self.create(*asked, {"role": "tool", "tool_call_id": "call_1", "content": "sun"}).choices[0].message.content
        )


WAYS = {"openai": OpenAI, "anthropic": Anthropic, "ollama": Ollama}
