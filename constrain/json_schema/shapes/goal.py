"""A goal: what a value at some place must satisfy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.errors import LimitError
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.formulas.alternatives import Together
    from constrain.json_schema.shapes.shapes import Shapes


class Goal:
    """One schema location to satisfy, or a goal to violate (``negated``), or several such goals (``parts``) at once.

    A goal that is none of these has a fixed set of shapes.

    ``shapes`` is the disjunction the goal expands to, once known. ``productive``: some finite value satisfies it.
    ``together``: which of its objects are closed together, for generation.
    ``constrain.json_schema.shapes.goals.Goals`` makes goals, and never two of the same meaning-giving locations.
    """

    __slots__ = ("begun", "left_open", "location", "negated", "negation", "parts", "productive", "shapes", "together")

    def __init__(self, location: Location | None, parts: tuple[Goal, ...] = ()) -> None:
        self.location = location
        self.parts = parts or (self,)
        self.begun: Goal | None = None  # of several parts: a goal of the first ones
        self.negated: Goal | None = None
        self.negation: Goal | None = None  # the goal whose ``negated`` this is, once someone asked
        self.shapes: Shapes | None = None
        self.together: tuple[Together, ...] = ()
        self.left_open: tuple[int, ...] = ()  # ids of objects that are not closed, since no value would be left
        self.productive = False

    @property
    def is_fixed(self) -> bool:
        """Whether the goal belongs to no schema: it, or the goal that it negates, is shared by all compilations."""
        if self.negated is not None:
            return self.negated.is_fixed
        return self.location is None and self.parts == (self,)


ANY = Goal(None)
"""Satisfied by every value. Its shapes are set where shapes are defined."""

NOTHING = Goal(None)
"""Satisfied by no value."""


def origin(goal: Goal) -> Location | None:
    """The schema that a goal comes from, or one of several."""
    stack = [goal]
    while stack:
        part = stack.pop()
        if part.location is not None:
            return part.location
        if part.negated is not None:
            stack.append(part.negated)
        elif part.parts != (part,):
            stack += part.parts
    return None


def place(error: LimitError, goal: Goal) -> None:
    """Gives the error the place of a goal, unless it names one."""
    location = origin(goal)
    if error.pointer is None and location is not None:
        error.pointer = location.pointer()
