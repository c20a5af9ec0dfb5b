"""``PromptProgress``: how much of a prompt the model has read, for streams that tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """How much of a prompt the model has read.

    Attributes:
        total: tokens of the prompt.
        cached: tokens that needed no reading.
        read: tokens that were read, with those that needed no reading.
        seconds: seconds since the first of them.
    """

    total: int
    cached: int
    read: int
    seconds: float

    def member(self) -> dict[str, Any]:
        """Returns the member of a chunk that tells it, as llama-server's."""
        counts = {"total": self.total, "cache": self.cached, "processed": self.read, "time_ms": 1e3 * self.seconds}
        return {"prompt_progress": counts}
