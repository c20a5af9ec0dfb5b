"""Keywords for numbers: ``minimum``, ``maximum``, ``multipleOf`` and their like."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from constrain.errors import SchemaError
from constrain.json_schema.shapes.numeric import NumberShape, exact
from constrain.json_schema.spelling.cells import Number, is_no_double

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def minimum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``minimum``: the least number."""
    found.restrict_numbers(NumberShape(minimum=_number(goals, at, "minimum", value)))


def maximum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``maximum``: the greatest number."""
    found.restrict_numbers(NumberShape(maximum=_number(goals, at, "maximum", value)))


def exclusive_minimum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``exclusiveMinimum``: a bound that the number must exceed."""
    bound = _number(goals, at, "exclusiveMinimum", value)
    found.restrict_numbers(NumberShape(minimum=bound, exclusive_minimum=True))


def exclusive_maximum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``exclusiveMaximum``: a bound that the number must stay below."""
    bound = _number(goals, at, "exclusiveMaximum", value)
    found.restrict_numbers(NumberShape(maximum=bound, exclusive_maximum=True))


def boolean_exclusive_minimum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``exclusiveMinimum`` of draft 4: a flag that makes ``minimum`` exclusive.

    ``documents.dialects.sign_of_draft_4`` finds the flag in schemas without ``$schema``.
    """
    if _flag(at, "exclusiveMinimum", value) and isinstance(at.schema, dict) and "minimum" in at.schema:
        exclusive_minimum(goals, at, at.schema["minimum"], found)


def boolean_exclusive_maximum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``exclusiveMaximum`` of draft 4: a flag that makes ``maximum`` exclusive."""
    if _flag(at, "exclusiveMaximum", value) and isinstance(at.schema, dict) and "maximum" in at.schema:
        exclusive_maximum(goals, at, at.schema["maximum"], found)


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


def _flag(at: Location, keyword: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"{keyword} must be a boolean in draft 4, not {value!r:.80}", pointer=at.pointer(keyword))
    return value
