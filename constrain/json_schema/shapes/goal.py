"""The schema that a goal comes from, and goals of equal schemas."""

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


def representative(goal: Goal) -> Goal:
    """Returns the first goal of an equal schema in the same resource, so that formulas ask about both at once.

    Alternatives often repeat the schemas of members that they have in common. Schemas with the same keys in another
    order differ, because objects have their keys in this order.
    """
    location = goal.location
    if location is None:
        return goal
    if goal.first is None:
        goal.first = location.resource.goals.setdefault(_content(location.schema), goal)
    return goal.first


def _content(value: object) -> object:
    """Returns a key that only equal parts of schemas have."""
    if isinstance(value, dict):
        return dict, *((name, _content(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return list, *map(_content, value)
    return type(value), value


def place(error: LimitError | UnsupportedSchemaError, goal: Goal) -> None:
    """Sets ``error.pointer`` to the place of the goal, if the error has no pointer yet."""
    location = origin(goal)
    if error.pointer is None and location is not None:
        error.pointer = location.pointer()
