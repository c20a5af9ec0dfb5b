"""Keywords for strings: ``minLength``, ``maxLength`` and ``pattern``; ``format`` has a module of its own."""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.shapes.strings import StringShape, matches_nothing, pattern_expression

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def min_length(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``minLength``: the least number of code points."""
    found.restrict_strings(StringShape(minimum=goals.count(at, "minLength", value)))


def max_length(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``maxLength``: the greatest number of code points."""
    found.restrict_strings(StringShape(maximum=goals.count(at, "maxLength", value)))


def pattern(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``pattern``: an ECMA-262 pattern that is found somewhere in the string."""
    expression = pattern_expression(at, value, "pattern")
    if matches_nothing(expression):
        found.strings = None
    else:
        found.restrict_strings(StringShape((expression,)))
