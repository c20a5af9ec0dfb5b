"""Chat models of LangChain by both endpoints."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, ClassVar

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from shared import KEY, MAX_TOKENS, MODEL, PROMPT, QUESTION, SECONDS, SUM, TOOLS, Call, Owner, Person, Plan

REFUSED = openai.APIStatusError


class Chat:
    endpoint: ClassVar[Any] = {}

    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        limits: Any = {"temperature": 0, "max_retries": 0, "timeout": SECONDS, "max_tokens": max_tokens}
        limits["http_async_client"] = openai.DefaultAsyncHttpxClient()  # LangChain's is one for all event loops
        self.model = ChatOpenAI(model=model, api_key=key, **limits, **self.endpoint)

    def text(self, prompt: str) -> str:
        return self.model.invoke([("system", "Be brief."), ("human", prompt)]).text

    async def later(self, prompt: str) -> str:
        return "".join([chunk.text async for chunk in self.model.astream(prompt)])

    def stream(self, prompt: str) -> list[str]:
        return [chunk.text for chunk in self.model.stream(prompt)]

    def value(self, kind: Any) -> Any:
        return self.model.with_structured_output(kind).invoke(PROMPT)

    def value_stream(self, kind: Any) -> Any:
        *_, last = self.model.with_structured_output(kind).stream(PROMPT)
        return last

    def calls(self, choice: str) -> list[Call]:
        return read(self.model.bind_tools(TOOLS, tool_choice=choice).invoke(QUESTION))

    def calls_stream(self, choice: str) -> list[Call]:
        return read(reduce(add, self.model.bind_tools(TOOLS, tool_choice=choice).stream(QUESTION)))

    def after_results(self) -> str:
        called = self.model.bind_tools(TOOLS, tool_choice="any").invoke(QUESTION)
        results = [ToolMessage("sun", tool_call_id=call["id"]) for call in called.tool_calls]
        messages = [HumanMessage(QUESTION), called, *results]
        return self.model.bind_tools(TOOLS, tool_choice="none").invoke(messages).text

    def turns(self) -> str:
        return self.model.invoke([HumanMessage(SUM), self.model.invoke(SUM), HumanMessage("Why?")]).text

    def embed(self, texts: list[str]) -> Any:
        return OpenAIEmbeddings(model=MODEL, check_embedding_ctx_length=False).embed_documents(texts)


def read(message: Any) -> list[Call]:
    assert not message.invalid_tool_calls
    return [Call(call["id"], call["name"], call["args"]) for call in message.tool_calls]


class Responses(Chat):
    endpoint: ClassVar[Any] = {"use_responses_api": True}
    KINDS = (Person, Plan, Owner)
    """LangChain streams none whose schema is a reference, as that of a tree."""


WAYS = {"chat": Chat, "responses": Responses}
