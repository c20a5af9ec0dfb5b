"""Numbers about answers, by Ray's own metrics: they are with those of Ray at each node's address for Prometheus."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from constrain.generation.completion import Completion

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECONDS = [0.1, 0.3, 1, 3, 10, 30, 100, 300]


class Metrics(Protocol):
    """Notes answers."""

    def note(self, outcomes: Iterable[object], seconds: float) -> None:
        """Notes the answers to one row, or the errors in their places, and the wall-clock seconds that they took."""


def make_metrics() -> Metrics:
    """Returns metrics of Ray within Ray; elsewhere, nothing is noted."""
    ray = sys.modules.get("ray")
    return _RayMetrics() if ray is not None and ray.is_initialized() else _NoMetrics()


class _NoMetrics:
    def note(self, outcomes: Iterable[object], seconds: float) -> None:
        pass


class _RayMetrics:
    def __init__(self) -> None:
        from ray.util.metrics import Counter, Histogram

        self._answers: Any = Counter("constrain_answers", "Answers, by the reason of their end.", ("finish_reason",))
        self._failed: Any = Counter("constrain_failed_answers", "Answers that failed, by error.", ("error",))
        self._tokens: Any = Counter("constrain_tokens", "Tokens, by kind.", ("kind",))
        self._seconds: Any = Histogram("constrain_row_seconds", "Seconds from a row to its answers.", _SECONDS)

    def note(self, outcomes: Iterable[object], seconds: float) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Completion):
                self._answers.inc(1, {"finish_reason": outcome.finish_reason})
                for kind in ("prompt", "completion"):
                    if count := getattr(outcome.usage, f"{kind}_tokens"):
                        self._tokens.inc(count, {"kind": kind})
            else:
                self._failed.inc(1, {"error": type(outcome).__name__})
        self._seconds.observe(seconds)
