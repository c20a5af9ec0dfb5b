"""Answers as they are written: events of a generation to ``chat.completion.chunk`` objects.

Of one answer: the role; pieces of text, or for each call its id, type and name, then pieces of its arguments; and the
reason of its end. Clients join strings that come twice, so what names a call comes once.
"""

from __future__ import annotations

import json
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import (
    Choice,
    ChoiceDelta,
    ChoiceDeltaFunctionCall,
    ChoiceDeltaToolCall,
    ChoiceLogprobs,
)

from constrain.chat.reading.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from constrain.chat.tools.kinds import CustomTool
from constrain.generation.completion import Finished
from constrain.generation.logprobs import logprob_objects
from constrain.server.chat.response import chat_completion, finish_reason, usage_of
from constrain.server.http.events import LAST_EVENT, data_event
from constrain.server.serving.extension import extension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.tools.kinds import Tool
    from constrain.generation.completion import Completion
    from constrain.llama.decoding.token_logprob import TokenLogprob
    from constrain.server.chat.response import Heading, Shape

_MARK = "\0text\0"
"""Stands for the text in a chunk; no model's name holds it."""


class ChunkWriter:
    """Writes one response, or its chunks.

    Args:
        heading: of the response.
        tools: those that may be called.
        shape: of the answers.
        include_usage: the last chunk tells numbers of tokens, and the others that they do not.
        logprobs: whether pieces of text tell how likely their tokens were.
    """

    def __init__(
        self, heading: Heading, tools: Sequence[Tool], shape: Shape, *, include_usage: bool, logprobs: bool
    ) -> None:
        self._heading = heading
        self._custom = {tool.name for tool in tools if isinstance(tool, CustomTool)}
        self._kinds: dict[tuple[int, int], str] = {}
        self._shape = shape
        self._usage: dict[str, Any] = {"usage": None} if include_usage else {}
        self._first_content = None if tools else ""
        self._logprobs = logprobs
        self._completions: dict[int, Completion] = {}
        self._around: dict[tuple[int, ...], tuple[str, str]] = {}

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """The response."""
        return chat_completion(self._heading, completions, self._shape)

    def begin(self, count: int) -> Iterator[str]:
        """The first chunk of each of so many answers."""
        for number in range(count):
            yield self._chunk(number, ChoiceDelta(role="assistant", content=self._first_content, refusal=None))

    def write(self, number: int, event: StreamEvent | Finished) -> Iterator[str]:
        """The chunks for something that happened in an answer."""
        match event:
            case TextDelta(text, tokens) if self._logprobs:
                yield self._chunk(number, ChoiceDelta(content=text), tokens=tokens)
            case TextDelta(text):
                yield self._piece((number,), text, lambda text: self._chunk(number, ChoiceDelta(content=text)))
            case ReasoningDelta(text):
                yield self._chunk(number, ChoiceDelta.model_construct(reasoning_content=text))
            case RefusalDelta(text):
                yield self._chunk(number, ChoiceDelta(refusal=text))
            case CallStarted(_, _, name) if self._shape.has_functions:
                yield self._function_call(number, name=name, arguments="")
            case ArgumentsDelta(_, text) if self._shape.has_functions:
                yield self._function_call(number, arguments=text)
            case CallStarted(index, identifier, name):
                kind, value = ("custom", "input") if name in self._custom else ("function", "arguments")
                self._kinds[number, index] = kind
                yield self._call(number, index, id=identifier, type=kind, **{kind: {"name": name, value: ""}})
            case ArgumentsDelta(index, text):
                yield self._piece((number, index), text, partial(self._arguments, number, index))
            case CallEnded():
                pass
            case Finished(completion):
                self._completions[number] = completion
                reason = finish_reason(completion, self._shape)
                facts = extension(completion, is_cut=reason == "length")
                yield self._chunk(number, ChoiceDelta(), reason, facts=facts)

    def end(self) -> Iterator[str]:
        """What follows when all answers are finished."""
        if self._usage:
            completions = [self._completions[number] for number in sorted(self._completions)]
            yield self._data([], {"usage": usage_of(completions)})
        yield LAST_EVENT

    def _piece(self, place: tuple[int, ...], text: str, write: Callable[[str], str]) -> str:
        """The chunk for a piece of a text. Its like is made once, by ``write``: there is one for nearly every token."""
        if place not in self._around:
            before, _, after = write(_MARK).partition(json.dumps(_MARK))
            self._around[place] = before, after
        before, after = self._around[place]
        return before + json.dumps(text) + after

    def _arguments(self, number: int, index: int, text: str) -> str:
        kind = self._kinds[number, index]
        return self._call(number, index, **{kind: {"input" if kind == "custom" else "arguments": text}})

    def _call(self, number: int, index: int, **members: Any) -> str:
        # The type in the openai package knows functions only; what it does not know stays as it is.
        call = ChoiceDeltaToolCall.model_construct(index=index, **members)
        return self._chunk(number, ChoiceDelta.model_construct(tool_calls=[call]))

    def _function_call(self, number: int, **members: str) -> str:
        return self._chunk(number, ChoiceDelta(function_call=ChoiceDeltaFunctionCall(**members)))

    def _chunk(
        self,
        number: int,
        delta: ChoiceDelta,
        reason: Any = None,
        *,
        tokens: Sequence[TokenLogprob] | None = None,
        facts: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        told = None if tokens is None else {"content": logprob_objects(tokens), "refusal": None}
        logprobs = None if told is None else ChoiceLogprobs.model_validate(told)
        choice = Choice(index=number, delta=delta, finish_reason=reason, logprobs=logprobs, **facts)
        return self._data([choice], self._usage)

    def _data(self, choices: list[Choice], usage: dict[str, Any]) -> str:
        heading = self._heading
        chunk = ChatCompletionChunk(
            id=heading.id,
            created=heading.created,
            model=heading.model,
            object="chat.completion.chunk",
            choices=choices,
            **usage,
        )
        return data_event(chunk.model_dump(mode="json", exclude_unset=True, warnings=False))
