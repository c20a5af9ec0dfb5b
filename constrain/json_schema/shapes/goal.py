"""The schema that a goal comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.errors import LimitError, UnsupportedSchemaError
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.shapes.data import Goal


def origin(goal: Goal) -> Location | None:
    """Returns the schema location of a goal, or one of several."""
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


def place(error: LimitError | UnsupportedSchemaError, goal: Goal) -> None:
    """Sets ``error.pointer`` to the place of the goal, if the error has no pointer yet."""
    location = origin(goal)
    if error.pointer is None and location is not None:
        error.pointer = location.pointer()
