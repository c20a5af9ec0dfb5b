"""Replies: answers that may contain tool calls, reasoning, or a refusal."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from constrain.chat.reading import reader as reading
from constrain.chat.reading.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from constrain.chat.reading.places import Located
from constrain.chat.reading.progress import Outcome, Part
from constrain.chat.reading.text import TextStream
from constrain.chat.tools.calls import CustomCall, FunctionCall
from constrain.chat.tools.kinds import CustomTool, FunctionTool
from constrain.language.source import Source
from constrain.notebooks import one_line

if TYPE_CHECKING:
    from constrain.chat.answers.language import AnswerLanguage
    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.text_tokens import TextTokens
    from constrain.chat.tools.calls import ToolCall
    from constrain.chat.tools.kinds import Tool
    from constrain.language.result import ResultType


MAX_SAME_CALLS = 5
"""Calls of one tool with the same arguments that end an answer: 5. Small models otherwise repeat them until no token is
left.
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The value of an answer in which the model refuses to give a value of ``schema``, with ``allow_refusal``.

    Attributes:
        text: the model's words.
    """

    text: str

    __repr__ = one_line


@dataclass(frozen=True, slots=True)
class Reply(Sequence["ToolCall"]):
    """The value of an answer to a request with tools. As a sequence, it holds the calls.

    Attributes:
        calls: the calls, ``FunctionCall`` and ``CustomCall``, in the order in which the model wrote them.
        content: text before or instead of calls, or the value of ``schema``; ``None`` if the answer has only calls.
        reasoning: text of the model's reasoning; ``""`` for none.
        refusal: text of a refusal, with ``allow_refusal``; ``None`` for none.
        text: content as the model wrote it.
    """

    calls: tuple[ToolCall, ...] = ()
    content: Any = None
    reasoning: str = ""
    refusal: str | None = None
    text: str = field(default="", repr=False)

    __repr__ = one_line

    @overload
    def __getitem__(self, index: int) -> ToolCall: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ToolCall, ...]: ...
    def __getitem__(self, index: int | slice) -> ToolCall | tuple[ToolCall, ...]:
        return self.calls[index]

    def __len__(self) -> int:
        return len(self.calls)

    def message(self) -> dict[str, Any]:
        """Returns this reply as a message for the prompt of the next turn."""
        message: dict[str, Any] = {"role": "assistant", "content": None if self.calls and not self.text else self.text}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.refusal is not None:
            message["content"] = self.refusal
        if self.calls:
            message["tool_calls"] = [_call_message(call) for call in self.calls]
        return message


class Called(NamedTuple):
    """An open call: its tool, the number of that, and the position up to which the call is structure."""

    tool: Tool
    number: int
    end: int


def _call_message(call: ToolCall) -> dict[str, Any]:
    if isinstance(call, FunctionCall):
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
    return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.text}}


class ReplyProgress:
    """The reader of an answer with calls, reasoning or refusals.

    Args:
        answer: parts that the answer may have.
        tools: tools of the answer, by name.
        result: type of the content's value.
        stops: texts in the content that end the answer. Free text ends before them.
        prompt: token ids of the prompt. If the form has no ids, or the model repeats one, ids of calls are derived from
            these, so that they differ from turn to turn and equal seeds reproduce them.
        number: number of the answer, among several for one prompt.
        tokens: finder of the content's tokens, if log-probabilities are wanted.
        wants_reply: whether the value is a ``Reply``.
    """

    def __init__(
        self,
        answer: AnswerLanguage,
        tools: dict[str, Tool],
        result: ResultType,
        stops: Sequence[str],
        prompt: Sequence[int],
        number: int = 0,
        tokens: TextTokens | None = None,
        *,
        wants_reply: bool,
    ) -> None:
        self._answer = answer
        self._reader = reading.Reader(answer)
        self._tools = tools
        self._result = result
        self._content = TextStream(stops, cuts=answer.content is None)
        self._has_ids = bool(answer.format.id_pattern)
        self._wants_reply = wants_reply
        self._identity = [number, *prompt]
        self._tokens = tokens
        self._reasoning = ""
        self._refusal: str | None = None
        self._ids: list[str] = []
        self._names: list[str] = []
        self._values: list[str] = []
        self._events: list[StreamEvent] = []
        self._same_calls: Counter[tuple[str, str]] = Counter()

    def feed(self, data: bytes) -> bool:
        """Adds the bytes of a token; returns whether the answer must stop."""
        if self._tokens is not None:
            self._tokens.feed(data)
        stopped = self._record(self._reader.feed(data))
        return stopped or (self._repeats_itself and self._reader.may_end)

    def take(self) -> list[StreamEvent]:
        """Returns the events that are new since the last call."""
        events, self._events = self._events, []
        if self._tokens is None:
            return events
        return [self._tokens.make_delta(event.text) if isinstance(event, TextDelta) else event for event in events]

    def finish(self) -> list[StreamEvent]:
        """Returns the remaining events, after the last bytes."""
        self._record(self._reader.finish())
        self._add_text(self._content.finish())
        return self.take()

    def outcome(self) -> Outcome:
        """Returns the finished answer. Raises ``OutputValidationError``."""
        text = self._content.text
        is_there = self._refusal is None and (text or not self._values)
        text = self._result.spelled(text) if is_there else text
        content = self._result.parse(text) if is_there else None
        if not self._wants_reply:
            value = content if self._refusal is None else Refusal(self._refusal)
            return Outcome(value, text, self._reasoning, self._content.stop)
        calls = tuple(map(self._call, range(len(self._values))))
        reply = Reply(calls, content, self._reasoning, self._refusal, text)
        return Outcome(reply, text, self._reasoning, self._content.stop)

    def parts(self, answer: bytes) -> list[Part]:
        """Returns content and inputs of calls, if their languages may have captures."""
        found, content = [], self._answer.content
        if isinstance(content, Source) and content.may_capture and self._reader.content is not None:
            found.append(Part(content, answer[slice(*self._reader.content)]))
        for index, name in enumerate(self._names):
            tool = self._tools[name]
            if isinstance(tool, CustomTool) and tool.format is not None and tool.format.may_capture:
                found.append(Part(tool.format, self._reader.input(index, answer), index))
        return found

    def located(self) -> list[Located]:
        """Returns the content, if it is a value, and the arguments of calls that are written as JSON."""
        found = []
        if self._reader.content is not None and self._content.text and self._refusal is None:
            path = ("content",) if self._wants_reply else ()
            is_json = self._result.document is not None
            found.append(Located(path, self._content.text, self._reader.content[0], is_json=is_json))
        for index, (begin, _) in self._reader.arguments.items():
            found.append(Located(("calls", index, "arguments"), self._values[index], begin, is_json=True))
        return found

    @property
    def called(self) -> Called | None:
        """The call that is open, once the name of its tool is written; ``None`` before that and later."""
        if (found := self._reader.called) is None:
            return None
        number, end = found
        return Called(self._tools[self._answer.tools[number].name], number, end)

    @property
    def _repeats_itself(self) -> bool:
        """Whether further calls would probably repeat earlier ones."""
        return max(self._same_calls.values(), default=0) >= MAX_SAME_CALLS

    def _call(self, index: int) -> ToolCall:
        tool, text = self._tools[self._names[index]], self._values[index]
        if isinstance(tool, FunctionTool):
            return FunctionCall(self._ids[index], tool, tool.read(text))
        return CustomCall(self._ids[index], tool, text)

    def _record(self, events: list[reading.Event]) -> bool:
        """Records events of the reader; returns whether the content has reached a stop text."""
        stopped = False
        for event in events:
            match event:
                case TextDelta(text):
                    span = self._reader.spans.popleft()
                    if self._tokens is not None:
                        self._tokens.add_text(*span, self._content.length)
                    stopped |= self._content.feed(text.encode())
                    self._add_text(self._content.take())
                case ReasoningDelta(text):
                    self._reasoning += text
                    self._events.append(event)
                case RefusalDelta(text):
                    self._refusal = (self._refusal or "") + text
                    self._events.append(event)
                case reading.CallStarted(index, name, identifier):
                    self._add_text(self._content.finish())  # held-back text was not the beginning of a stop text
                    self._ids.append("" if identifier is None and self._has_ids else self._choose_id(index, identifier))
                    self._names.append(name)
                    self._values.append("")
                    if self._ids[-1]:
                        self._events.append(CallStarted(index, self._ids[-1], name))
                case reading.ArgumentsDelta(index, text) | reading.InputDelta(index, text):
                    self._values[index] += text
                    if self._ids[index]:
                        self._events.append(ArgumentsDelta(index, text))
                case reading.CallEnded(index, identifier):
                    if not self._ids[index]:  # the form writes the id behind the value
                        self._ids[index] = self._choose_id(index, identifier)
                        self._events.append(CallStarted(index, self._ids[index], self._names[index]))
                        self._events.append(ArgumentsDelta(index, self._values[index]))
                    self._events.append(CallEnded(index))
                    self._same_calls[self._names[index], self._values[index]] += 1
        return stopped

    def _add_text(self, piece: str) -> None:
        if piece:
            self._events.append(TextDelta(piece))

    def _choose_id(self, index: int, written: str | None) -> str:
        """Returns the id that the model wrote, if no earlier call has it, or else a new one."""
        if written and written not in self._ids:
            return written
        digest = hashlib.sha256(f"{index} {' '.join(map(str, self._identity))}".encode())
        return f"call_{digest.hexdigest()[:24]}"
