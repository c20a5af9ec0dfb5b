"""The plugin for ``llm`` (https://llm.datasette.io): models on this machine, with schemas and tools enforced.

``register_models`` is what ``llm`` calls. It offers the model of the ``demo`` extra as ``constrain/smollm2``, and every
other model that ``find_models`` finds as ``constrain/NAME``. Needs the extra ``llm``.
"""

from __future__ import annotations

import importlib.util
import json
import warnings
from typing import TYPE_CHECKING, Any

import llm
from pydantic import Field

from constrain.errors import ModelError
from constrain.generation.exclusions import refuse_together
from constrain.llama.finding import find_models

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
    from pathlib import Path

    from llm.parts import Message, StreamEvent, ToolCallPart

    from constrain.generation.completion import Completion
    from constrain.generation.options import ChatOptions

_DEMO = "smollm2"


@llm.hookimpl
def register_models(register: Callable[..., None]) -> None:
    """Registers the models on this machine under the names ``constrain/...``; the first of two with one name."""
    if importlib.util.find_spec("llm.parts") is None:
        warnings.warn(
            "this version of llm is too old for the models of constrain; pip install 'llm>=0.36'", stacklevel=2
        )
        return
    from constrain.llama.model import default_model_path

    named = {one.name: one.path for one in reversed(find_models())}
    try:
        demo = default_model_path()
    except ModelError:  # the demo extra is not installed
        pass
    else:
        named = {_DEMO: demo} | {name: path for name, path in named.items() if path != demo}
    for name, path in named.items():
        register(ConstrainModel(f"constrain/{name}", path), AsyncConstrainModel(f"constrain/{name}", path))


class ConstrainOptions(llm.Options):
    """The options of a prompt (``llm -o NAME VALUE``); ``constrain.options.Options`` says more about each."""

    max_tokens: int | None = Field(None, ge=1, description="Tokens that the answer may have")
    temperature: float | None = Field(None, ge=0, description="Randomness; 0 takes the most likely token")
    top_k: int | None = Field(None, ge=0, description="Sample from this many of the likeliest tokens; 0 for all")
    top_p: float | None = Field(None, ge=0, le=1, description="Sample from the likeliest tokens with this probability")
    min_p: float | None = Field(None, ge=0, le=1, description="Sample from tokens with this share of the likeliest's")
    repeat_penalty: float | None = Field(None, gt=0, description="Divides the logits of recent tokens")
    presence_penalty: float | None = Field(
        None, ge=-2, le=2, description="Subtracted from logits of tokens in the answer"
    )
    frequency_penalty: float | None = Field(
        None, ge=-2, le=2, description="Subtracted for each time a token occurs in the answer"
    )
    seed: int | None = Field(None, description="Seed; equal seeds give equal answers")
    timeout: float | None = Field(None, gt=0, description="Seconds after which the answer is ended early")
    draft: bool | None = Field(None, description="Think in plain text before the answer")
    regex: str | None = Field(None, description="Regular expression of the answer, in place of a schema")
    lark: str | None = Field(None, description="Lark grammar of the answer, in place of a schema")


class _Shared:
    """The attributes of synchronous and asynchronous models."""

    can_stream = True
    supports_schema = True
    supports_tools = True

    Options = ConstrainOptions

    def __init__(self, model_id: str, path: Path) -> None:
        self.model_id = model_id
        self.path = path


class ConstrainModel(_Shared, llm.Model):  # type: ignore[misc]  # both have Options
    """A GGUF model for ``llm``."""

    def execute(
        self,
        prompt: llm.Prompt,
        stream: bool,  # noqa: FBT001 - the signature of llm
        response: llm.Response,
        conversation: llm.Conversation | None,
    ) -> Iterator[str | StreamEvent]:
        """Yields the answer's events. Raises the errors of ``constrain.stream``, before the first token."""
        from constrain.generation.generate import stream as stream_answer

        del stream, conversation  # the events are the same; the messages of a conversation are in the prompt
        schema, options = _read_prompt(prompt)
        events = _Events(response)
        for event in stream_answer(self.path, _messages(prompt.messages), schema=schema, **options):
            yield from events.of(event)


class AsyncConstrainModel(_Shared, llm.AsyncModel):  # type: ignore[misc]  # both have Options
    """A GGUF model for ``llm`` in asynchronous code."""

    async def execute(
        self,
        prompt: llm.Prompt,
        stream: bool,  # noqa: FBT001 - the signature of llm
        response: llm.AsyncResponse,
        conversation: llm.AsyncConversation | None,
    ) -> AsyncGenerator[str | StreamEvent, None]:
        """Yields the answer's events. Raises the errors of ``constrain.astream``, before the first token."""
        from constrain.generation.asynchronous import astream

        del stream, conversation
        schema, options = _read_prompt(prompt)
        events = _Events(response)
        async for event in astream(self.path, _messages(prompt.messages), schema=schema, **options):
            for each in events.of(event):
                yield each


def _read_prompt(prompt: llm.Prompt) -> tuple[Any, ChatOptions]:
    """Returns the schema and the options of a prompt. Raises ``ValueError`` for two languages of one answer."""
    from constrain.lark.source import Lark
    from constrain.regex.source import Regex

    given: Any = prompt.options.model_dump(exclude_none=True)
    languages = {
        "a schema": prompt.schema,
        "the option regex": Regex(given.pop("regex")) if "regex" in given else None,
        "the option lark": Lark(given.pop("lark")) if "lark" in given else None,
    }
    refuse_together(**{name: language is not None for name, language in languages.items()})
    if prompt.tools:
        given["tools"] = [_tool(tool) for tool in prompt.tools]
    return next((language for language in languages.values() if language is not None), None), given


def _tool(tool: Any) -> dict[str, Any]:
    """Returns a tool in OpenAI's form."""
    function = {"name": tool.name, "parameters": tool.input_schema or {"type": "object", "properties": {}}}
    return {"type": "function", "function": {**function, "description": tool.description or ""}}


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Returns messages in OpenAI's form. Raises ``ValueError`` for attachments."""
    return [converted for message in messages for converted in _convert(message)]


def _convert(message: Message) -> Iterator[dict[str, Any]]:
    """Yields a message of ``llm`` as one message, and behind it its results of tools as one message each."""
    from llm.parts import AttachmentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

    texts: list[str] = []
    results: list[dict[str, Any]] = []
    members: dict[str, Any] = {}
    for part in message.parts:
        match part:
            case TextPart():
                texts.append(part.text)
            case ReasoningPart():
                members["reasoning_content"] = members.get("reasoning_content", "") + part.text
            case ToolCallPart():
                members.setdefault("tool_calls", []).append(_call(part))
            case ToolResultPart() if not part.attachments:
                results.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": part.output})
            case ToolResultPart() | AttachmentPart():
                raise ValueError("models of constrain read text only; leave out the attachments")
            case _:
                raise ValueError(f"models of constrain cannot read a part of the kind {type(part).__name__}")
    if message.role == "tool" and (texts or members):
        raise ValueError("a message with the role tool has results only; give its text another role")
    if message.role != "tool":
        content = "".join(texts)
        yield {"role": message.role, "content": content or None if "tool_calls" in members else content, **members}
    yield from results


def _call(part: ToolCallPart) -> dict[str, Any]:
    function = {"name": part.name, "arguments": json.dumps(part.arguments)}
    return {"id": part.tool_call_id, "type": "function", "function": function}


class _Events:
    """The events of ``llm`` for the events of one answer; calls and numbers of tokens go to its response."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._ids: dict[int, str] = {}

    def of(self, event: object) -> Iterator[StreamEvent]:
        """Yields the events of ``llm`` for one event of a stream."""
        from llm.parts import StreamEvent

        from constrain.chat.reading.events import ArgumentsDelta, CallStarted, ReasoningDelta, TextDelta
        from constrain.generation.completion import Finished

        match event:
            case TextDelta(text):
                yield StreamEvent("text", text)
            case ReasoningDelta(text):
                yield StreamEvent("reasoning", text)
            case CallStarted(index, identifier, name):
                self._ids[index] = identifier
                yield StreamEvent("tool_call_name", name, tool_call_id=identifier)
            case ArgumentsDelta(index, text):
                yield StreamEvent("tool_call_args", text, tool_call_id=self._ids[index])
            case Finished(completion):
                self._finish(completion)

    def _finish(self, completion: Completion) -> None:
        from constrain.chat.reading.reply import Reply

        calls = completion.value.calls if isinstance(completion.value, Reply) else ()
        for call in calls:
            self._response.add_tool_call(llm.ToolCall(call.name, json.loads(call.text), call.id))
        usage = completion.usage
        self._response.set_usage(input=usage.prompt_tokens, output=usage.completion_tokens)
        self._response.response_json = {"finish_reason": completion.finish_reason}
