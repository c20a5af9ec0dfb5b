"""Messages by the ``anthropic`` package."""

from __future__ import annotations

from typing import Any

import anthropic
from shared import ARGUMENTS, KEY, MAX_TOKENS, MODEL, PROMPT, QUESTION, SECONDS, SUM, Call, Person, Tree

REFUSED = anthropic.APIStatusError

TOOLS: Any = [{"name": name, "input_schema": kind.model_json_schema()} for name, kind in ARGUMENTS.items()]
CHOICES: Any = {"weather": {"type": "tool", "name": "weather"}, "required": {"type": "any"}}


def said(text: str) -> Any:
    return {"role": "user", "content": text}


class Messages:
    KINDS = (Person, Tree)
    """Others have limits of numbers and lists, which the package describes in words instead of sending them."""

    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        self.client = anthropic.Anthropic(api_key=key, max_retries=0, timeout=SECONDS)
        self.asked: Any = {"model": model, "max_tokens": max_tokens, "extra_body": {"temperature": 0}}

    def create(self, *messages: Any, **more: Any) -> Any:
        found = self.client.messages.create(**self.asked, messages=list(messages), **more)
        # Types that are only constructed, as the package does it, are not checked.
        return anthropic.types.Message.model_validate(found.model_dump(), strict=True)

    def text(self, prompt: str) -> str:
        return self.create(said(prompt)).content[0].text

    async def later(self, prompt: str) -> str:
        async with anthropic.AsyncAnthropic(max_retries=0, timeout=SECONDS) as client:
            return (await client.messages.create(**self.asked, messages=[said(prompt)])).content[0].text

    def stream(self, prompt: str) -> list[str]:
        with self.client.messages.stream(**self.asked, messages=[said(prompt)]) as stream:
            return list(stream.text_stream)

    def value(self, kind: Any) -> Any:
        return self.client.messages.parse(**self.asked, messages=[said(PROMPT)], output_format=kind).parsed_output

    def value_stream(self, kind: Any) -> Any:
        with self.client.messages.stream(**self.asked, messages=[said(PROMPT)], output_format=kind) as stream:
            return stream.get_final_message().parsed_output

    def calls(self, choice: str) -> list[Call]:
        asked = {"tools": TOOLS, "tool_choice": CHOICES.get(choice, {"type": choice})}
        message = self.create(said(QUESTION), **asked)
        calls = read(message)
        assert (message.stop_reason == "tool_use") is bool(calls)
        return calls

    def calls_stream(self, choice: str) -> list[Call]:
        asked = {**self.asked, "tools": TOOLS, "tool_choice": CHOICES.get(choice, {"type": choice})}
        with self.client.messages.stream(**asked, messages=[said(QUESTION)]) as stream:
            return read(stream.get_final_message())

    def after_results(self) -> str:
        first = self.create(said(QUESTION), tools=TOOLS, tool_choice={"type": "any"})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "sun"} for call in read(first)]
        answer = self.create(
            said(QUESTION), first.to_param(), {"role": "user", "content": results}, tools=TOOLS,
            tool_choice={"type": "none"},
        )  # fmt: skip
        return answer.content[0].text

    def turns(self) -> str:
        first = self.create(said(SUM), system="Be brief.")
        return self.create(said(SUM), first.to_param(), said("Why?")).content[0].text


def read(message: Any) -> list[Call]:
    return [Call(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]


WAYS = {"messages": Messages}
