"""``contains``, ``minContains`` and ``maxContains``: the number of items that satisfy a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.formulas.complements import arrays_where
from constrain.json_schema.shapes.data import Atom, Formula, ItemCount, Not

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def contains(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``contains`` up to draft 7: at least one item satisfies the schema."""
    found.parts.append(arrays_where(goals, [Atom(ItemCount(goals.child(at, "/contains", value), 1))]))


def contains_between(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``contains`` from 2019-09 on: ``minContains`` (default 1) to ``maxContains`` items satisfy the schema."""
    assert isinstance(at.schema, dict)
    goal = goals.child(at, "/contains", value)
    least = goals.count(at, "minContains", at.schema.get("minContains", 1))
    formulas: list[Formula] = []
    if least:
        formulas.append(Atom(ItemCount(goal, least)))
    if "maxContains" in at.schema:
        formulas.append(Not(Atom(ItemCount(goal, 1 + goals.count(at, "maxContains", at.schema["maxContains"])))))
    if formulas:
        found.parts.append(arrays_where(goals, formulas))
