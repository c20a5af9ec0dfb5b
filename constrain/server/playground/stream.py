"""The stream of an answer: Server-sent events, one JSON object each (``objects``)."""

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
from constrain.chat.tools.kinds import FunctionTool
from constrain.generation.completion import Finished
from constrain.generation.observers.trace import TraceDelta
from constrain.generation.partial import PartialEvents
from constrain.partial.reader import FieldEvent
from constrain.server.http.events import LAST_EVENT, data_event
from constrain.server.playground.objects import TokenObjects, done_object, field_object, prompt_object
from constrain.server.serving.dialect import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.completion import Completion
    from constrain.generation.plan import Plan
    from constrain.server.http.errors import ApiError


class RunWriter(Writer):
    """Writes the events of one answer.

    Args:
        plan: the plan of the answer.
        is_json: whether its content is JSON.
    """

    def __init__(self, plan: Plan, *, is_json: bool) -> None:
        self._plan = plan
        self._is_json = is_json
        self._tokens = TokenObjects(plan.model.vocabulary.n_vocab)
        self._fields: PartialEvents | None = None
        if is_json or any(isinstance(tool, FunctionTool) for tool in plan.tools.values()):
            self._fields = PartialEvents(plan)

    def response(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """Returns the event of the finished answer."""
        return done_object(completions[0], has_value=self._is_json)

    def begin(self, count: int) -> Iterator[str]:  # noqa: ARG002 - one answer
        """Yields the event of the prompt."""
        yield data_event(prompt_object(self._plan))

    def write(self, number: int, event: StreamEvent | Finished) -> Iterator[str]:  # noqa: ARG002 - one answer
        """Yields the events for an event of the answer."""
        if isinstance(event, Finished):
            for each in self._fields.finish() if self._fields is not None else ():
                yield data_event(field_object(each))
            yield data_event(done_object(event.completion, has_value=self._is_json))
            return
        for found in self._objects(event):
            yield data_event(found)
        for field in self._fields.read(event) if self._fields is not None else ():
            if isinstance(field, FieldEvent):
                yield data_event(field_object(field))

    def end(self) -> Iterator[str]:
        """Yields the last event."""
        yield LAST_EVENT

    @staticmethod
    def failed(error: ApiError, sent: int = 0) -> str:  # noqa: ARG004 - see Writer
        """Returns the event of an error, which ends a stream."""
        return data_event({"type": "error", **error.body()})

    def _objects(self, event: StreamEvent) -> list[dict[str, Any]]:
        match event:
            case TraceDelta(tokens):
                return [{"type": "tokens", "tokens": self._tokens.add(tokens)}]
            case TextDelta(text):
                return [{"type": "text", "text": text}]
            case ReasoningDelta(text):
                return [{"type": "reasoning", "text": text}]
            case RefusalDelta(text):
                return [{"type": "refusal", "text": text}]
            case CallStarted(index, identifier, name):
                return [{"type": "call", "index": index, "id": identifier, "name": name}]
            case ArgumentsDelta(index, text):
                return [{"type": "arguments", "index": index, "text": text}]
            case CallEnded(index):
                return [{"type": "call_end", "index": index}]
        return []
