"""The measurements of a replica, handed to Ray, which shows those of all replicas together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ray.util.metrics import Gauge

if TYPE_CHECKING:
    from constrain.server.serving.metrics import Metrics


class Measurements:
    """Gauges of Ray with the names, labels and values of a server's metrics.

    ``metrics``: metrics of the server.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._gauges: dict[str, Any] = {}

    def hand_over(self) -> None:
        """Sets the gauges to the present values."""
        for about, samples in self._metrics.samples():
            for name, labels, value in samples:
                if name.endswith("_created"):  # the moment at which counting began
                    continue
                if name not in self._gauges:
                    self._gauges[name] = Gauge(name, about, tuple(labels))
                self._gauges[name].set(value, labels)
