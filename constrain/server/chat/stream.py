"""Answers in progress: events of a generation become ``chat.completion.chunk`` objects.

The chunks of one answer are: the role; pieces of text, or for each call its id, type and name followed by pieces of its
arguments; and the finish reason. Clients concatenate repeated strings, so id, type and name of a call come once.
"""

from __future__ import annotations

import json
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from constrain.chat.reading.reply import Reply
from constrain.chat.tools.calls import CustomCall
from constrain.chat.tools.kinds import CustomTool
from constrain.engine.captures import captures_object
from constrain.generation.completion import Finished
from constrain.server.chat.response import Heading, chat_completion, logprobs_object
from constrain.server.http.events import LAST_EVENT, data_event
from constrain.server.serving.dialect import Writer
from constrain.server.serving.ended import Shape, count_usage, finish_reason
from constrain.server.serving.extension import extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.llama.decoding.token_logprob import TokenLogprob
    from constrain.server.chat.request import ChatRequest
    from constrain.server.serving.progress import PromptProgress

_MARK = "\0text\0"
"""Placeholder for the text in a cached chunk; no model's name contains it."""


class ChunkWriter(Writer):
    """Writes one response, or its chunks. ``asked``: the request."""

    def __init__(self, asked: ChatRequest, *_: object) -> None:
        question = asked.question
        self._heading = Heading(asked.model)
        self._custom = {tool.name for tool in asked.tools if isinstance(tool, CustomTool)}
        self._kinds: dict[tuple[int, int], str] = {}
        self._shape = Shape(is_text=question.content is None, has_functions=asked.has_functions)
        self._usage: dict[str, Any] = {"usage": None} if asked.streaming.include_usage else {}
        self._first_content = None if asked.tools else ""
        self._logprobs = question.options.get("logprobs", False)
        self._completions: dict[int, Completion] = {}
        self._around: dict[tuple[int, ...], tuple[str, str]] = {}

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """Returns the response for finished answers."""
        return chat_completion(self._heading, completions, self._shape)

    def begin(self, count: int) -> Iterator[str]:
        """Yields the first chunk of each answer."""
        for number in range(count):
            yield self._chunk(number, {"content": self._first_content, "refusal": None, "role": "assistant"})

    def write(self, number: int, event: StreamEvent | Finished) -> Iterator[str]:
        """Yields the chunks for an event of an answer."""
        match event:
            case TextDelta(text, tokens) if self._logprobs:
                yield self._chunk(number, {"content": text}, tokens=tokens)
            case TextDelta(text):
                yield self._piece((number,), text, lambda text: self._chunk(number, {"content": text}))
            case ReasoningDelta(text):
                yield self._chunk(number, {"reasoning_content": text})
            case RefusalDelta(text):
                yield self._chunk(number, {"refusal": text})
            case CallStarted(_, _, name) if self._shape.has_functions:
                yield self._chunk(number, {"function_call": {"arguments": "", "name": name}})
            case ArgumentsDelta(_, text) if self._shape.has_functions:
                yield self._chunk(number, {"function_call": {"arguments": text}})
            case CallStarted(index, identifier, name):
                kind = "custom" if name in self._custom else "function"
                self._kinds[number, index] = kind
                members: dict[str, Any] = {"function": {"arguments": "", "name": name}, "type": kind}
                if kind == "custom":
                    members = {"type": kind, kind: {"name": name, "input": ""}}
                yield self._call(number, index, id=identifier, **members)
            case ArgumentsDelta(index, text):
                yield self._piece((number, index), text, partial(self._arguments, number, index))
            case CallEnded():
                pass
            case Finished(completion):
                self._completions[number] = completion
                yield from self._captures(number, completion)
                reason = finish_reason(completion, self._shape)
                facts = extension(completion, is_cut=reason == "length")
                yield self._chunk(number, {}, reason, facts=facts)

    def tell(self, number: int, progress: PromptProgress) -> Iterator[str]:
        """Yields a chunk that tells how much of the prompt is read."""
        choice = {"delta": {}, "index": number, "finish_reason": None, "logprobs": None}
        yield self._data([choice], {**self._usage, **progress.member()})

    def _captures(self, number: int, completion: Completion) -> Iterator[str]:
        """Yields a chunk with the captures of each custom call that has any."""
        for index, call in enumerate(completion.value.calls if isinstance(completion.value, Reply) else ()):
            if isinstance(call, CustomCall) and (members := captures_object(call.captures)):
                yield self._call(number, index, custom={"input": "", **members})

    def end(self) -> Iterator[str]:
        """Yields the chunks after all answers are finished."""
        if self._usage:
            completions = [self._completions[number] for number in sorted(self._completions)]
            yield self._data([], {"usage": count_usage(completions)})
        yield LAST_EVENT

    def _piece(self, place: tuple[int, ...], text: str, write: Callable[[str], str]) -> str:
        """Returns the chunk for a piece of text.

        ``write`` makes its frame once per place, since nearly every token has a chunk.
        """
        if place not in self._around:
            before, _, after = write(_MARK).partition(json.dumps(_MARK))
            self._around[place] = before, after
        before, after = self._around[place]
        return before + json.dumps(text) + after

    def _arguments(self, number: int, index: int, text: str) -> str:
        kind = self._kinds[number, index]
        return self._call(number, index, **{kind: {"input" if kind == "custom" else "arguments": text}})

    def _call(self, number: int, index: int, **members: Any) -> str:
        return self._chunk(number, {"tool_calls": [{"index": index, **members}]})

    def _chunk(
        self,
        number: int,
        delta: Mapping[str, Any],
        reason: str | None = None,
        *,
        tokens: Sequence[TokenLogprob] | None = None,
        facts: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        logprobs = logprobs_object(tokens)
        choice = {"delta": delta, "index": number, "finish_reason": reason, "logprobs": logprobs, **facts}
        return self._data([choice], self._usage)

    def _data(self, choices: Sequence[dict[str, Any]], usage: dict[str, Any]) -> str:
        return data_event(self._heading.object("chat.completion.chunk", choices, **usage))
