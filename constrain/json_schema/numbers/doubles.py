"""``precision="double"`` (``compiler`` decides): numbers that are valid as exact decimals and as IEEE doubles.

Rounding to a double keeps the order of numbers, so the double of a number keeps every inclusive bound that the number
keeps. Other constraints are narrowed:

- An exclusive bound: 0.99999999999999999999 is less than 1, and its double is 1. The bound moves to the end of its cell
  (see ``cells``).
- Multiples stay in the range where the double of each multiple is a multiple, too.
- Excluded values and excluded multiples: their whole cells are excluded (``number_expression``). With excluded
  multiples, numbers are at most 2**53, beyond which each double stands for many integers.
- Integers of more than 53 bits: many readers (Python's ``json`` is one) read an integer exactly, and a number with a
  fraction or an exponent as a double. So an integer that is no double equals a constant only if both are written as
  integers. As an inclusive bound, it holds for integers as it is (and as its double, too, if it is written with a
  fraction or an exponent), and for numbers with a fraction or an exponent as the next double inside: see
  ``canonical_spellings``.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.numbers.canonical import SPARE_FRACTION_DIGITS, canonical_spellings, number_steps
from constrain.json_schema.numbers.cells import (
    DECIMAL_DIGITS,
    GREATEST_EXACT,
    LEAST_DOUBLE,
    MAX_UNDERFLOW_DIGITS,
    around,
    nearest,
)
from constrain.json_schema.numbers.shape import (
    ONE,
    NumberShape,
    intersect_numbers,
    lcm,
    negated,
    nonempty,
    scaled,
    step_of,
    to_decimal,
)
from constrain.json_schema.spelling.languages import is_surely_empty
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from constrain.json_schema.numbers.shape import Number

_PLAIN = 1 << 40
"""Integers, and quotients of integers, up to this size are told from whole numbers by doubles as well."""


def settle(shape: NumberShape, floats: Collection[Number]) -> list[NumberShape]:
    """Returns the numbers of a shape that keep its bounds and divisors both as decimals and as doubles, as shapes.

    ``floats``: bounds that are no doubles but are read as doubles, so that integers are compared with these doubles,
    too.
    """
    if shape.values is not None:
        return [shape]
    if shape.exclusive_minimum:
        assert shape.minimum is not None
        bound, exclusive = _beyond(shape.minimum, shape)
        shape = shape._replace(minimum=bound, exclusive_minimum=exclusive)
    if shape.exclusive_maximum:
        assert shape.maximum is not None
        bound, exclusive = _beyond(negated(shape.maximum), shape)
        shape = shape._replace(maximum=negated(bound), exclusive_maximum=exclusive)
    low, high = shape.minimum, shape.maximum
    if low is not None and low in floats:
        shape = shape._replace(minimum=max(low, read(nearest(low))))
    if high is not None and high in floats:
        shape = shape._replace(maximum=min(high, read(nearest(high))))
    step = step_of(shape)
    found: Iterable[NumberShape | None]
    if step is not None:
        found = _exact_multiples(shape, step)
    elif shape.not_multiples:  # beyond 2**53, a number and its double may disagree on being a multiple
        found = [intersect_numbers(shape, NumberShape(minimum=-GREATEST_EXACT, maximum=GREATEST_EXACT))]
    else:
        found = [nonempty(shape)]
    return [settled for settled in found if settled is not None and _has_text(settled)]


def _has_text(shape: NumberShape) -> bool:
    """Returns whether a number remains whose double differs from all excluded doubles."""
    if not (shape.not_multiples or shape.excluded) or _has_plain_integer(shape):
        return True
    spend(number_steps(shape, "canonical", "double"))
    return not is_surely_empty((canonical_spellings(shape, by_double=True),))


def _has_plain_integer(shape: NumberShape) -> bool:
    """Returns whether an integer of at most ``_PLAIN`` remains; for exclusions of integers and their multiples only."""
    divisors = (shape.multiple, *shape.not_multiples)
    if any(divisor is not None and divisor.denominator != 1 for divisor in divisors):
        return False
    if any(not isinstance(value, int) or abs(value) > _PLAIN for value in shape.excluded):
        return False
    plain = NumberShape(integer=True, minimum=-_PLAIN, maximum=_PLAIN)
    try:
        return intersect_numbers(shape, plain) is not None
    except LimitError:  # not found soon; the texts decide
        return False


def _beyond(bound: Number, shape: NumberShape) -> tuple[Number, bool]:
    """Returns the lower bound of numbers above ``bound`` in both readings, and whether it is exclusive."""
    whole = shape.integer or (shape.multiple is not None and shape.multiple.denominator == 1)
    if whole and bound.__class__ is int and -GREATEST_EXACT <= bound < GREATEST_EXACT:
        return bound, True
    if not bound:
        others = (shape.minimum, shape.maximum, None if shape.multiple is None else to_decimal(shape.multiple))
        places = max((scaled(other)[1] for other in others if other is not None), default=0)
        return (LEAST_DOUBLE, False) if places + SPARE_FRACTION_DIGITS > MAX_UNDERFLOW_DIGITS else (bound, True)
    cell = around(bound)
    assert cell.maximum is not None
    return cell.maximum, not cell.exclusive_maximum


def _exact_multiples(shape: NumberShape, step: Fraction) -> Iterator[NumberShape | None]:
    """Yields the multiples of a shape whose doubles are multiples, too; all are multiples of ``step``."""
    limit = _greatest_exact(step, shape)
    if limit is None:
        yield nonempty(shape)
        return
    yield intersect_numbers(shape, NumberShape(minimum=-limit, maximum=limit))
    if step.denominator == 1:
        return
    whole = lcm(step, ONE)  # integers are exact for longer
    beyond = _greatest_exact(whole, shape)
    if beyond is None and not shape.not_multiples:
        # Every double from 2**53 on is an integer, so it is a multiple, too.
        yield intersect_numbers(shape, NumberShape(minimum=GREATEST_EXACT))
        yield intersect_numbers(shape, NumberShape(maximum=-GREATEST_EXACT))
        beyond = GREATEST_EXACT
    if beyond is not None and beyond > limit:
        shape = shape._replace(multiple=whole)
        yield intersect_numbers(shape, NumberShape(minimum=limit, exclusive_minimum=True, maximum=beyond))
        yield intersect_numbers(shape, NumberShape(minimum=-beyond, maximum=-limit, exclusive_maximum=True))


def _greatest_exact(step: Fraction, shape: NumberShape) -> Number | None:
    """Returns the bound below which doubles of multiples of ``step`` are multiples; ``None`` without a bound."""
    odd = step.numerator // (step.numerator & -step.numerator)
    is_binary = step.denominator & (step.denominator - 1) == 0
    if is_binary and odd == 1 and not shape.not_multiples:
        return None  # rounding to a double keeps multiples of a power of two
    if not is_binary or odd > GREATEST_EXACT:
        return to_decimal(Fraction(10) ** (DECIMAL_DIGITS - scaled(to_decimal(step))[1]))
    exact = GREATEST_EXACT * step / odd  # these multiples are doubles
    return to_decimal(min(exact, Fraction(GREATEST_EXACT)) if shape.not_multiples else exact)


def read(double: float) -> Number:
    """Returns the number that a reader makes of a double: its shortest decimal, or the integer that it is."""
    return int(double) if double.is_integer() else Decimal(repr(double))
