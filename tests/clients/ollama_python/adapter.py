"""Chats and texts by the ``ollama`` package."""

from __future__ import annotations

from typing import Any

import ollama
from shared import KEY, MAX_TOKENS, MODEL, PROMPT, SECONDS, SUM

REFUSED = ollama.ResponseError


class Client:
    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        self.client = ollama.Client(timeout=SECONDS, headers={"Authorization": f"Bearer {key}"})
        self.asked: Any = {"model": model, "options": {"temperature": 0, "num_predict": max_tokens}}

    def embed(self, texts: list[str]) -> Any:
        return self.client.embed(MODEL, texts).embeddings


class Chat(Client):
    def ask(self, prompt: str, **more: Any) -> Any:
        return self.client.chat(**self.asked, messages=[{"role": "user", "content": prompt}], **more)

    def text(self, prompt: str) -> str:
        return self.ask(prompt).message.content

    async def later(self, prompt: str) -> str:
        async with ollama.AsyncClient(timeout=SECONDS) as client:
            found = await client.chat(**self.asked, messages=[{"role": "user", "content": prompt}])
        return found.message.content

    def stream(self, prompt: str) -> list[str]:
        return [part.message.content for part in self.ask(prompt, stream=True)]

    def value(self, kind: Any) -> Any:
        return kind.model_validate_json(self.ask(PROMPT, format=kind.model_json_schema()).message.content)

    def value_stream(self, kind: Any) -> Any:
        parts = self.ask(PROMPT, format=kind.model_json_schema(), stream=True)
        return kind.model_validate_json("".join(part.message.content for part in parts))

    def turns(self) -> str:
        first = self.ask(SUM).message
        messages = [{"role": "user", "content": SUM}, first, {"role": "user", "content": "Why?"}]
        return self.client.chat(**self.asked, messages=messages).message.content


class Generate(Client):
    def text(self, prompt: str) -> str:
        return self.client.generate(**self.asked, prompt=prompt).response

    def stream(self, prompt: str) -> list[str]:
        return [part.response for part in self.client.generate(**self.asked, prompt=prompt, stream=True)]

    def value(self, kind: Any) -> Any:
        found = self.client.generate(**self.asked, prompt=PROMPT, format=kind.model_json_schema())
        return kind.model_validate_json(found.response)


WAYS = {"chat": Chat, "generate": Generate}
