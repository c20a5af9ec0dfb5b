"""Events of fields in place of pieces of text, for streams with ``partial=True``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.chat.reading.events import ArgumentsDelta, CallEnded, CallStarted, TextDelta
from constrain.chat.tools.kinds import FunctionTool
from constrain.generation.exclusions import refuse_together
from constrain.language.result import ResultType
from constrain.partial.reader import Fields

if TYPE_CHECKING:
    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.plan import Plan
    from constrain.partial.reader import FieldEvent


class PartialEvents:
    """Reads the events of one answer. Raises ValueError if neither the answer nor a tool of it is JSON."""

    def __init__(self, plan: Plan) -> None:
        self._tools = plan.tools
        self._content = Fields(plan.result) if plan.result.document is not None else None
        self._calls: dict[int, Fields] = {}
        has_arguments = any(isinstance(tool, FunctionTool) for tool in plan.tools.values())
        refuse_together(partial=True, fields=has_arguments or self._content is not None)

    def read(self, event: StreamEvent) -> list[StreamEvent | FieldEvent]:
        """Returns the events of fields that a piece of text means; other events as they are."""
        match event:
            case TextDelta(text) if self._content is not None:
                return [*self._content.feed(text)]
            case CallStarted(index, _, name):
                tool = self._tools[name]
                if isinstance(tool, FunctionTool):
                    typed = ResultType(tool.schema, None) if tool.signature is None else tool.signature.result
                    self._calls[index] = Fields(typed, index)
            case ArgumentsDelta(index, text) if index in self._calls:
                return [*self._calls[index].feed(text)]
            case CallEnded(index) if index in self._calls:
                return [*self._calls.pop(index).finish(), event]
        return [event]

    def finish(self) -> list[FieldEvent]:
        """Returns the events at the end of the answer."""
        return [] if self._content is None else self._content.finish()
