"""Models of LlamaIndex: values with a format and with a call."""

from __future__ import annotations

from typing import Any

import openai
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from shared import (
    KEY,
    MAX_TOKENS,
    MODEL,
    PROMPT,
    QUESTION,
    SECONDS,
    SUM,
    URL,
    Call,
    Note,
    Owner,
    Person,
    Plan,
    Weather,
    note,
    weather,
)

REFUSED = openai.APIStatusError

TOOLS = [FunctionTool.from_defaults(weather, fn_schema=Weather), FunctionTool.from_defaults(note, fn_schema=Note)]


class Format:
    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS, **more: Any) -> None:
        self.llm = OpenAILike(
            model=model,
            api_base=URL,
            api_key=key,
            is_function_calling_model=True,
            should_use_structured_outputs=True,
            context_window=4096,
            max_tokens=max_tokens,
            temperature=0,
            max_retries=0,
            timeout=SECONDS,
            **{"is_chat_model": True, **more},
        )

    def text(self, prompt: str) -> Any:
        return self.llm.chat([ChatMessage(role="system", content="Be brief."), ChatMessage(prompt)]).message.content

    async def later(self, prompt: str) -> str:
        return "".join([part.delta or "" async for part in await self.llm.astream_chat([ChatMessage(prompt)])])

    def stream(self, prompt: str) -> list[str]:
        return [part.delta or "" for part in self.llm.stream_chat([ChatMessage(prompt)])]

    def value(self, kind: Any) -> Any:
        return self.llm.structured_predict(kind, PromptTemplate(PROMPT))

    def value_stream(self, kind: Any) -> Any:
        return list(self.llm.stream_structured_predict(kind, PromptTemplate(PROMPT)))[-1]

    def calls(self, choice: str) -> list[Call]:
        return self.read(self.llm.chat_with_tools(TOOLS, user_msg=QUESTION, tool_choice=choice))

    def calls_stream(self, choice: str) -> list[Call]:
        *_, last = self.llm.stream_chat_with_tools(TOOLS, user_msg=QUESTION, tool_choice=choice)
        return self.read(last)

    def read(self, answer: Any) -> list[Call]:
        calls = self.llm.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
        return [Call(call.tool_id, call.tool_name, call.tool_kwargs) for call in calls]

    def after_results(self) -> Any:
        answer = self.llm.chat_with_tools(TOOLS, user_msg=QUESTION, tool_required=True)
        results = [
            ChatMessage(role="tool", content="sun", additional_kwargs={"tool_call_id": call.id})
            for call in self.read(answer)
        ]
        return self.llm.chat([ChatMessage(QUESTION), answer.message, *results]).message.content

    def turns(self) -> Any:
        first = self.llm.chat([ChatMessage(SUM)]).message
        return self.llm.chat([ChatMessage(SUM), first, ChatMessage("Why?")]).message.content

    def embed(self, texts: list[str]) -> Any:
        where: Any = {"api_base": URL, "api_key": KEY, "max_retries": 0}
        return OpenAILikeEmbedding(model_name=MODEL, **where).get_text_embedding_batch(texts)


class ByCall:
    """Values without recursion only: the rest is the same. LlamaIndex does not find the calls of a stream."""

    KINDS = (Person, Plan, Owner)

    def __init__(self, **given: Any) -> None:
        self.llm = Format(**given).llm.model_copy(update={"should_use_structured_outputs": False})

    def value(self, kind: Any) -> Any:
        return self.llm.structured_predict(kind, PromptTemplate(PROMPT))


WAYS = {"format": Format, "call": ByCall}
