"""The events of a streamed response: events of ``constrain`` in the form that OpenAI's clients read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from constrain.generation.logprobs import logprob_objects
from constrain.server.http.events import data_event
from constrain.server.responses.input import CALLS
from constrain.server.responses.output import (
    call_item,
    failed_response,
    has_message,
    is_cut,
    make_response,
    message_item,
    reasoning_item,
    refusal_part,
    response_json,
    text_part,
    unfinished_response,
    with_captures,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openai.types.responses import Response

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.server.http.errors import ApiError
    from constrain.server.responses.output import ItemDocument, ResponseHead

Event = dict[str, Any]
"""A JSON object with ``type`` and ``sequence_number``."""


def server_sent(event: Event) -> str:
    """Returns an event as text for the stream, named by its type."""
    return data_event(event, event["type"])


@dataclass
class _Open:
    """The item that is being written.

    Attributes:
        kind: type of its part, or of its call.
        item: function that makes the item from its text (None before its part) and its status.
        about: fields of its events that identify it.
        text: text so far.
        logprobs: log-probabilities of the text's tokens, if requested.
    """

    kind: str
    item: Callable[[str | None, str], ItemDocument]
    about: dict[str, Any]
    text: str = ""
    logprobs: list[dict[str, Any]] = field(default_factory=list)


_VALUES = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", **CALLS}
"""Names of texts in events, by the type of the part or call."""

_WHOLE = "tool_search_call"
"""Type of the items that are sent whole, without events for their pieces."""


def _name(kind: str) -> str:
    """Returns the beginning of the names of events of a part or call."""
    return f"response.{kind}_{CALLS[kind]}" if kind in CALLS else f"response.{kind}"


class EventWriter:
    """Writes the events of one response, one item after the other.

    Call ``begin`` first, then ``write`` for each event of ``constrain``, then ``finish`` or ``fail``; send their
    results in this order.
    """

    def __init__(self, head: ResponseHead) -> None:
        self._head = head
        self._items: list[ItemDocument] = []
        self._open: _Open | None = None
        self._events: list[Event] = []
        self._number = 0
        self.response: Response | None = None
        """The finished response, after ``finish``."""

    def begin(self) -> list[Event]:
        """Returns the events before the first token."""
        shown = response_json(unfinished_response(self._head))
        self._emit("response.created", response=shown)
        self._emit("response.in_progress", response=shown)
        return self._take_events()

    def write(self, event: StreamEvent) -> list[Event]:
        """Returns the events for a piece of the answer."""
        match event:
            case ReasoningDelta(text):
                self._add("reasoning_text", text)
            case TextDelta(text, tokens):
                self._add("output_text", text, logprob_objects(tokens))
            case RefusalDelta(text):
                self._add("refusal", text)
            case CallStarted(_, call_id, name):
                self._close("completed")
                self._start_call(call_id, name)
            case ArgumentsDelta(_, text):
                self._delta(text)
            case CallEnded():
                self._close("completed")
        return self._take_events()

    def finish(self, completion: Completion, *, completed_at: float, reasoning_tokens: int) -> list[Event]:
        """Returns the last events of a complete answer, and sets ``response`` to the response to keep."""
        status = "incomplete" if is_cut(completion, self._head.request) else "completed"
        if has_message(completion, self._head.request) and not self._has_message():
            self._close("completed")
            self._start_part("output_text")
        self._close(status)
        items = with_captures(self._items, completion)
        self.response = make_response(
            self._head, completion, items, completed_at=completed_at, reasoning_tokens=reasoning_tokens
        )
        self._emit(f"response.{self.response.status}", response=response_json(self.response))
        return self._take_events()

    def fail(self, error: ApiError) -> list[Event]:
        """Returns the last events after an error; the failed response has the items that were finished."""
        self._emit("error", code=error.code, message=error.message, param=error.param)
        response = failed_response(self._head, error.message, self._items)
        self._emit("response.failed", response=response_json(response))
        return self._take_events()

    def _has_message(self) -> bool:
        is_open = self._open is not None and self._open.kind in ("output_text", "refusal")
        return is_open or any(item["type"] == "message" for item in self._items)

    def _add(self, kind: str, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> None:
        if self._open is None or self._open.kind != kind:
            self._close("completed")
            self._start_part(kind)
        self._delta(text, logprobs)

    def _start_part(self, kind: str) -> None:
        head, index = self._head, len(self._items)

        def item(text: str | None, status: str) -> ItemDocument:
            if kind == "reasoning_text":
                return reasoning_item(head, index, text, status)
            return message_item(head, index, [] if text is None else [self._part(text)], status)

        self._start(kind, item, {"content_index": 0})
        assert self._open is not None
        self._emit("response.content_part.added", **self._open.about, part=self._part(""))

    def _start_call(self, call_id: str, name: str) -> None:
        head, index, is_custom = self._head, len(self._items), name in self._head.request.custom_tools

        def item(text: str | None, status: str) -> ItemDocument:
            return call_item(head, index, call_id, name, text or "", is_custom=is_custom, status=status)

        self._start(item(None, "in_progress")["type"], item, {})

    def _start(self, kind: str, item: Callable[[str | None, str], ItemDocument], about: dict[str, Any]) -> None:
        begun = item(None, "in_progress")
        index = len(self._items)
        self._open = _Open(kind, item, {"item_id": begun["id"], "output_index": index, **about})
        self._emit("response.output_item.added", output_index=index, item=begun)

    def _delta(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> None:
        part = self._open
        assert part is not None
        part.text += text
        part.logprobs += logprobs
        extra: dict[str, Any] = {"logprobs": list(logprobs)} if part.kind == "output_text" else {}
        if part.kind != _WHOLE:
            self._emit(f"{_name(part.kind)}.delta", **part.about, delta=text, **extra)

    def _close(self, status: str) -> None:
        part = self._open
        if part is None:
            return
        extra: dict[str, Any] = {_VALUES[part.kind]: part.text}
        item = part.item(part.text, status)
        if part.kind == "output_text":
            extra["logprobs"] = part.logprobs
        if part.kind == "function_call":
            extra["name"] = item["name"]
        if part.kind != _WHOLE:
            self._emit(f"{_name(part.kind)}.done", **part.about, **extra)
        if "content_index" in part.about:
            self._emit("response.content_part.done", **part.about, part=self._part(part.text))
        self._emit("response.output_item.done", output_index=len(self._items), item=item)
        self._items.append(item)
        self._open = None

    def _part(self, text: str) -> dict[str, Any]:
        part = self._open
        assert part is not None
        if part.kind == "reasoning_text":
            return {"type": "reasoning_text", "text": text}
        return refusal_part(text) if part.kind == "refusal" else text_part(text, part.logprobs)

    def _emit(self, kind: str, **fields: Any) -> None:
        self._events.append({"type": kind, **fields, "sequence_number": self._number})
        self._number += 1

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events
