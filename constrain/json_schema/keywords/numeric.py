"""Keywords for numbers: ``minimum``, ``maximum``, ``multipleOf`` and their like."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from constrain.errors import SchemaError
from constrain.json_schema.documents.dialects import DRAFT_4
from constrain.json_schema.documents.keyword import Keyword
from constrain.json_schema.keywords.joining import greater, lesser
from constrain.json_schema.numbers.cells import is_no_double
from constrain.json_schema.numbers.shape import Number, NumberShape, exact

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


@Keyword("minimum", "number", hint=None, merge=greater)
def minimum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``minimum``: the least number."""
    found.restrict_numbers(NumberShape(minimum=_number(goals, at, "minimum", value)))


@Keyword("maximum", "number", hint=None, merge=lesser)
def maximum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``maximum``: the greatest number."""
    found.restrict_numbers(NumberShape(maximum=_number(goals, at, "maximum", value)))


@Keyword("exclusiveMinimum", "number", hint=None, merge=greater)
def exclusive_minimum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``exclusiveMinimum``: a bound that the number must exceed; in draft 4, whether ``minimum`` is one.

    ``documents.dialects.sign_of_draft_4`` finds the boolean in schemas without ``$schema``.
    """
    bound = _exclusive_bound(goals, at, "exclusiveMinimum", value)
    if bound is not None:
        found.restrict_numbers(NumberShape(minimum=bound, exclusive_minimum=True))


@Keyword("exclusiveMaximum", "number", hint=None, merge=lesser)
def exclusive_maximum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``exclusiveMaximum``: a bound that the number must stay below; in draft 4, whether ``maximum`` is one."""
    bound = _exclusive_bound(goals, at, "exclusiveMaximum", value)
    if bound is not None:
        found.restrict_numbers(NumberShape(maximum=bound, exclusive_maximum=True))


def _exclusive_bound(goals: Goals, at: Location, keyword: str, value: object) -> Number | None:
    """Returns the bound that an exclusive keyword sets; ``None`` if it sets none."""
    if at.resource.dialect is not DRAFT_4:
        return _number(goals, at, keyword, value)
    if not isinstance(value, bool):
        raise SchemaError(f"{keyword} must be a boolean in draft 4, not {value!r:.80}", pointer=at.pointer(keyword))
    inclusive = keyword.removeprefix("exclusive").lower()
    if not value or not isinstance(at.schema, dict) or inclusive not in at.schema:
        return None
    return _number(goals, at, keyword, at.schema[inclusive])


@Keyword("multipleOf", "number", hint=None, merge=None)
def multiple_of(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``multipleOf``: the number is a whole multiple of this one, by exact decimal value."""
    divisor = _number(goals, at, "multipleOf", value)
    if divisor <= 0:
        raise SchemaError(f"multipleOf must be greater than 0, not {value!r}", pointer=at.pointer("multipleOf"))
    found.restrict_numbers(NumberShape(multiple=Fraction(divisor)))


def _number(goals: Goals, at: Location, keyword: str, value: object) -> Number:
    number = exact(value)
    if number is None:
        raise SchemaError(f"{keyword} must be a finite number, not {value!r:.80}", pointer=at.pointer(keyword))
    goals.numbers.append((at, keyword, (number,)))
    if value.__class__ is not int and is_no_double(number):
        goals.float_bounds.add(number)
    return number
