"""Numbers: the shape, its intersection, and the numeric keywords."""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from constrain._errors import LimitError, SchemaError
from constrain.json_schema.numbers import MAX_INTEGER_DIGITS

if TYPE_CHECKING:
    from constrain.json_schema.assertions import Assertions
    from constrain.json_schema.goals import Goals
    from constrain.json_schema.references import Location

Number = int | Decimal
"""An exact decimal number; whole ones are ``int``."""

MAX_WHOLE_EXPONENT = 400
"""Whole decimals up to here become ``int``: more than any float reaches."""

MAX_EXPONENT = 10_000
"""Exponents beyond make fractions that take seconds to reckon with."""

_TOO_LONG = 10**MAX_INTEGER_DIGITS


class NumberShape(NamedTuple):
    """The numbers within the bounds that are multiples of ``multiple``; or, with ``values``, exactly these.

    ``integer`` also asks for the spelling of an integer.
    """

    integer: bool = False
    minimum: Number | None = None
    exclusive_minimum: bool = False
    maximum: Number | None = None
    exclusive_maximum: bool = False
    multiple: Fraction | None = None
    values: tuple[Number, ...] | None = None


ANY_NUMBER = NumberShape()
ANY_INTEGER = NumberShape(integer=True)


def exact(value: object) -> Number | None:
    """The number a parsed JSON number stands for, by its decimal spelling; ``None`` if it is no finite number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if not -_TOO_LONG < value < _TOO_LONG:
            raise LimitError(f"a number has more than MAX_INTEGER_DIGITS = {MAX_INTEGER_DIGITS} digits")
        return int(value)
    if isinstance(value, float):
        value = Decimal(repr(value))
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    if not value:
        return 0
    if abs(value.adjusted()) > MAX_EXPONENT:
        raise LimitError(f"a number has an exponent beyond MAX_EXPONENT = {MAX_EXPONENT}")
    if value.adjusted() <= MAX_WHOLE_EXPONENT and value == value.to_integral_value():
        return int(value)
    return value


def intersect_numbers(a: NumberShape, b: NumberShape) -> NumberShape | None:
    """The numbers of both shapes, or ``None`` if there are none."""
    if a is ANY_NUMBER or a == b:
        return b
    if b is ANY_NUMBER:
        return a
    if a.values is not None or b.values is not None:
        if a.values is None:
            a, b = b, a
        assert a.values is not None
        values = tuple(value for value in a.values if admits_number(b, value))
        return a._replace(values=values, integer=a.integer or b.integer) if values else None
    minimum, exclusive_minimum = a.minimum, a.exclusive_minimum
    if b.minimum is not None and (minimum is None or (b.minimum, b.exclusive_minimum) > (minimum, exclusive_minimum)):
        minimum, exclusive_minimum = b.minimum, b.exclusive_minimum
    maximum, exclusive_maximum = a.maximum, a.exclusive_maximum
    if b.maximum is not None and (
        maximum is None or (b.maximum, not b.exclusive_maximum) < (maximum, not exclusive_maximum)
    ):
        maximum, exclusive_maximum = b.maximum, b.exclusive_maximum
    multiple = a.multiple if b.multiple is None else b.multiple if a.multiple is None else lcm(a.multiple, b.multiple)
    integer = a.integer or b.integer
    return nonempty(NumberShape(integer, minimum, exclusive_minimum, maximum, exclusive_maximum, multiple))


def lcm(a: Fraction, b: Fraction) -> Fraction:
    """The least positive number that is a whole multiple of both."""
    numerator = a.numerator * b.denominator * b.numerator * a.denominator
    return Fraction(
        numerator, a.denominator * b.denominator * gcd(a.numerator * b.denominator, b.numerator * a.denominator)
    )


def admits_number(shape: NumberShape, value: Number) -> bool:
    """Whether ``value`` is one of the numbers of ``shape``."""
    if shape.values is not None:
        return value in shape.values
    if shape.integer and value.__class__ is not int:
        return False
    if shape.minimum is not None and (value < shape.minimum or (shape.exclusive_minimum and value == shape.minimum)):
        return False
    if shape.maximum is not None and (value > shape.maximum or (shape.exclusive_maximum and value == shape.maximum)):
        return False
    return shape.multiple is None or (Fraction(value) / shape.multiple).denominator == 1


def nonempty(shape: NumberShape) -> NumberShape | None:
    """``shape``, or ``None`` if no number is within its bounds and a multiple of its divisor."""
    low, high = shape.minimum, shape.maximum
    if low is None or high is None:
        return shape
    step = shape.multiple
    if shape.integer:
        step = Fraction(1) if step is None else lcm(step, Fraction(1))
    if step is None:
        empty = low > high or (low == high and (shape.exclusive_minimum or shape.exclusive_maximum))
        return None if empty else shape
    first = -(-Fraction(low) // step) * step
    if shape.exclusive_minimum and first == low:
        first += step
    return None if first > high or (shape.exclusive_maximum and first == high) else shape


def minimum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """The least number."""
    found.restrict_numbers(NumberShape(minimum=_number(at, "minimum", value)))


def maximum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """The greatest number."""
    found.restrict_numbers(NumberShape(maximum=_number(at, "maximum", value)))


def exclusive_minimum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """A bound that the number must exceed."""
    bound = _number(at, "exclusiveMinimum", value)
    found.restrict_numbers(NumberShape(minimum=bound, exclusive_minimum=True))


def exclusive_maximum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """A bound that the number must stay below."""
    bound = _number(at, "exclusiveMaximum", value)
    found.restrict_numbers(NumberShape(maximum=bound, exclusive_maximum=True))


def boolean_exclusive_minimum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """Draft 4: a flag that makes ``minimum`` exclusive."""
    if _flag(at, "exclusiveMinimum", value) and isinstance(at.schema, dict) and "minimum" in at.schema:
        exclusive_minimum(goals, at, at.schema["minimum"], found)


def boolean_exclusive_maximum(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """Draft 4: a flag that makes ``maximum`` exclusive."""
    if _flag(at, "exclusiveMaximum", value) and isinstance(at.schema, dict) and "maximum" in at.schema:
        exclusive_maximum(goals, at, at.schema["maximum"], found)


def multiple_of(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """The number is a whole multiple of this one, by exact decimal value."""
    divisor = _number(at, "multipleOf", value)
    if divisor <= 0:
        raise SchemaError(f"multipleOf must be greater than 0, not {value!r}", pointer=at.pointer("multipleOf"))
    found.restrict_numbers(NumberShape(multiple=Fraction(divisor)))


def _number(at: Location, keyword: str, value: object) -> Number:
    number = exact(value)
    if number is None:
        raise SchemaError(f"{keyword} must be a finite number, not {value!r:.80}", pointer=at.pointer(keyword))
    return number


def _flag(at: Location, keyword: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SchemaError(f"{keyword} must be a boolean in draft 4, not {value!r:.80}", pointer=at.pointer(keyword))
    return value
