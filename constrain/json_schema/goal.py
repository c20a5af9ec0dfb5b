"""A goal: what a value at some place must satisfy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.json_schema.references import Location
    from constrain.json_schema.shapes import Shapes


class Goal:
    """Either one schema location to satisfy, or several such goals (``parts``) at once, or a fixed set of shapes.

    ``shapes`` is the disjunction the goal expands to, once known. ``productive``: some finite value satisfies it.
    ``constrain.json_schema.goals.Goals`` makes goals, and never two of the same meaning-giving locations.
    """

    __slots__ = ("location", "parts", "productive", "shapes")

    def __init__(self, location: Location | None, parts: tuple[Goal, ...] = ()) -> None:
        self.location = location
        self.parts = parts or (self,)
        self.shapes: Shapes | None = None
        self.productive = False


ANY = Goal(None)
"""Satisfied by every value. Its shapes are set where shapes are defined."""

NOTHING = Goal(None)
"""Satisfied by no value."""
