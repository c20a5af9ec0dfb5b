"""Seconds that something takes of late, as the basis of ``Retry-After``."""

from __future__ import annotations

_WEIGHT = 0.2
"""Weight of the newest measurement in the average: 0.2, so the last ten make up nine tenths of it."""


class Pace:
    """The average seconds that something takes, in which recent measurements count most.

    ``seconds``: the average before the first measurement.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def add(self, seconds: float) -> None:
        """Adds a measurement."""
        self.seconds += _WEIGHT * (seconds - self.seconds)
