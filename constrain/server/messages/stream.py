"""Answers in progress as the events of a stream.

The events of one message are ``message_start``; for each block ``content_block_start``, ``content_block_delta`` for
each piece, and ``content_block_stop``; and then ``message_delta`` with the reason for the end, and ``message_stop``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.reading.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from constrain.generation.completion import Finished, Usage
from constrain.server.http.account import current
from constrain.server.http.events import data_event
from constrain.server.messages.errors import error_object
from constrain.server.messages.response import (
    call_id,
    facts,
    finished_message,
    signature,
    stop_members,
    usage_object,
)
from constrain.server.serving.dialect import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.server.http.errors import ApiError
    from constrain.server.messages.response import Heading


class MessageWriter(Writer):
    """Writes one message: all at once, or as events. ``heading``: the members that are known in advance."""

    def __init__(self, heading: Heading) -> None:
        self._heading = heading
        self._open: str | None = None
        self._index = 0
        self._thinking: list[str] = []

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """Returns the message of a finished answer."""
        [completion] = completions
        return finished_message(self._heading, completion)

    def begin(self, _: int) -> Iterator[str]:
        """Yields the event in front of the answer; its usage has the tokens of the whole prompt, cached or not."""
        usage = usage_object(Usage(current.get().asked_tokens, 0, 0))
        message = self._heading.message(content=[], stop_reason=None, stop_sequence=None, usage=usage)
        yield _event("message_start", message=message)

    def write(self, _: int, event: StreamEvent | Finished) -> Iterator[str]:
        """Yields the events for an event of the answer."""
        match event:
            case ReasoningDelta(text):
                yield from self._switch("thinking", thinking="", signature="")
                self._thinking.append(text)
                if self._heading.shows_thinking:
                    yield self._delta("thinking_delta", thinking=text)
            case TextDelta(text) | RefusalDelta(text):
                yield from self._switch("text", text="")
                yield self._delta("text_delta", text=text)
            case CallStarted(_, identifier, name):
                yield from self._close()
                yield from self._start("tool_use", id=call_id(identifier), name=name, input={})
            case ArgumentsDelta(_, text):
                yield self._delta("input_json_delta", partial_json=text)
            case CallEnded():
                yield from self._close()
            case Finished(completion):
                yield from self._close()
                delta, usage = stop_members(self._heading, completion), usage_object(completion.usage)
                yield _event("message_delta", delta=delta, usage=usage, **facts(self._heading, completion))

    def end(self) -> Iterator[str]:
        """Yields the event after the answer."""
        yield _event("message_stop")

    @staticmethod
    def failed(error: ApiError, sent: int = 0) -> str:  # noqa: ARG004 - see Writer
        """Returns the event of an error, which ends a stream."""
        return data_event(error_object(error), "error")

    def _switch(self, kind: str, **members: Any) -> Iterator[str]:
        """Yields the events that make a block of a type the open one."""
        if self._open != kind:
            yield from self._close()
            yield from self._start(kind, **members)

    def _start(self, kind: str, **members: Any) -> Iterator[str]:
        self._open = kind
        yield _event("content_block_start", index=self._index, content_block={"type": kind, **members})

    def _close(self) -> Iterator[str]:
        if self._open is None:
            return
        if self._open == "thinking":
            yield self._delta("signature_delta", signature=signature("".join(self._thinking)))
            self._thinking.clear()
        yield _event("content_block_stop", index=self._index)
        self._open = None
        self._index += 1

    def _delta(self, kind: str, **members: Any) -> str:
        return _event("content_block_delta", index=self._index, delta={"type": kind, **members})


def _event(kind: str, **members: Any) -> str:
    return data_event({"type": kind, **members}, kind)
