"""Events of a stream, except the two that every stream has: ``constrain.TextDelta`` and ``constrain.Finished``."""

from __future__ import annotations

from constrain.chat.reading.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
)
from constrain.generation.observers.trace import TraceDelta
from constrain.partial.reader import FieldEvent, FieldReader

__all__ = [
    "ArgumentsDelta",
    "CallEnded",
    "CallStarted",
    "FieldEvent",
    "FieldReader",
    "ReasoningDelta",
    "RefusalDelta",
    "StreamEvent",
    "TraceDelta",
]
