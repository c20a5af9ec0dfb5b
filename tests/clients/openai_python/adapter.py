"""Chat completions and responses by the ``openai`` package."""

from __future__ import annotations

import json
from typing import Any

import openai
from shared import FUNCTIONS, KEY, MAX_TOKENS, MODEL, PROMPT, QUESTION, SECONDS, TOOLS, Call, choice_of

REFUSED = openai.APIStatusError


def said(text: str, role: str = "user") -> Any:
    return {"role": role, "content": text}


class Chat:
    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        self.client = openai.OpenAI(api_key=key, max_retries=0, timeout=SECONDS)
        self.asked: Any = {"model": model, "max_tokens": max_tokens, "temperature": 0}

    def create(self, *messages: Any, **more: Any) -> Any:
        return self.client.chat.completions.create(**self.asked, messages=list(messages), **more)

    def text(self, prompt: str) -> Any:
        return self.create(said(prompt)).choices[0].message.content

    async def later(self, prompt: str) -> Any:
        async with openai.AsyncOpenAI(max_retries=0, timeout=SECONDS) as client:
            found = await client.chat.completions.create(**self.asked, messages=[said(prompt)])
        return found.choices[0].message.content

    def stream(self, prompt: str) -> list[str]:
        return [chunk.choices[0].delta.content or "" for chunk in self.create(said(prompt), stream=True)]

    def value(self, kind: Any) -> Any:
        found = self.client.chat.completions.parse(**self.asked, messages=[said(PROMPT)], response_format=kind)
        return found.choices[0].message.parsed

    def value_stream(self, kind: Any) -> Any:
        asked = {**self.asked, "messages": [said(PROMPT)], "response_format": kind}
        with self.client.chat.completions.stream(**asked) as events:
            return events.get_final_completion().choices[0].message.parsed

    def calls(self, choice: str) -> list[Call]:
        choice_ = self.create(said(QUESTION), tools=TOOLS, tool_choice=choice_of(choice)).choices[0]
        calls = choice_.message.tool_calls or []
        assert choice_.finish_reason in (["tool_calls"] if calls else ["stop", "length"])
        return [Call(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls]

    def calls_stream(self, choice: str) -> list[Call]:
        found: dict[int, list[str]] = {}
        for chunk in self.create(said(QUESTION), tools=TOOLS, tool_choice=choice_of(choice), stream=True):
            for part in chunk.choices[0].delta.tool_calls or ():
                call = found.setdefault(part.index, ["", "", ""])
                for place, text in enumerate((part.id, part.function.name, part.function.arguments)):
                    call[place] += text or ""
        return [Call(identifier, name, json.loads(arguments)) for identifier, name, arguments in found.values()]

    def after_results(self) -> Any:
        message = self.create(said(QUESTION), tools=TOOLS, tool_choice="required").choices[0].message
        results = [{"role": "tool", "tool_call_id": call.id, "content": "sun"} for call in message.tool_calls]
        answer = self.create(said(QUESTION), message, *results, tools=TOOLS, tool_choice="none")
        return answer.choices[0].message.content

    def turns(self) -> Any:
        first = self.create(said("Be brief.", "system"), said(PROMPT)).choices[0].message
        return self.create(said(PROMPT), first, said("And?")).choices[0].message.content

    def embed(self, texts: list[str]) -> list[Any]:
        return [each.embedding for each in self.client.embeddings.create(model=MODEL, input=texts).data]


class Responses:
    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        self.client = openai.OpenAI(api_key=key, max_retries=0, timeout=SECONDS)
        self.asked: Any = {"model": model, "max_output_tokens": max_tokens, "temperature": 0}
        self.tools: Any = [{"type": "function", "strict": None, **function} for function in FUNCTIONS]

    def create(self, given: Any, **more: Any) -> Any:
        return self.client.responses.create(**self.asked, input=given, **more)

    def text(self, prompt: str) -> Any:
        return self.create(prompt).output_text

    async def later(self, prompt: str) -> Any:
        async with openai.AsyncOpenAI(max_retries=0, timeout=SECONDS) as client:
            return (await client.responses.create(**self.asked, input=prompt)).output_text

    def stream(self, prompt: str) -> list[str]:
        events = self.create(prompt, stream=True)
        return [event.delta for event in events if event.type == "response.output_text.delta"]

    def value(self, kind: Any) -> Any:
        return self.client.responses.parse(**self.asked, input=PROMPT, text_format=kind).output_parsed

    def value_stream(self, kind: Any) -> Any:
        with self.client.responses.stream(**self.asked, input=PROMPT, text_format=kind) as events:
            return events.get_final_response().output_parsed

    def calls(self, choice: str) -> list[Call]:
        return self.read(self.create(QUESTION, tools=self.tools, tool_choice=self.choice(choice)))

    def calls_stream(self, choice: str) -> list[Call]:
        *_, last = self.create(QUESTION, tools=self.tools, tool_choice=self.choice(choice), stream=True)
        return self.read(last.response)

    @staticmethod
    def choice(choice: str) -> Any:
        return {"type": "function", "name": "weather"} if choice == "weather" else choice

    @staticmethod
    def read(response: Any) -> list[Call]:
        calls = [item for item in response.output if item.type == "function_call"]
        return [Call(call.call_id, call.name, json.loads(call.arguments)) for call in calls]

    def after_results(self) -> Any:
        first = self.create(QUESTION, tools=self.tools, tool_choice="required")
        results = [
            {"type": "function_call_output", "call_id": call.id, "output": "sun"} for call in self.read(first)
        ]  # fmt: skip
        return self.create(results, tools=self.tools, tool_choice="none", previous_response_id=first.id).output_text

    def turns(self) -> Any:
        first = self.create(PROMPT, instructions="Be brief.", store=False)
        return self.create([said(PROMPT), *first.output, said("And?")]).output_text


WAYS = {"chat": Chat, "responses": Responses}
