"""``numbers="any"``: all JSON spellings of the numbers of a shape, by value.

In addition to the canonical spellings, whole numbers may have a fraction of zeros and be ``-0``, and scientific
notation is allowed within the limits of ``scientific``. Numbers with a fraction or an exponent are
finite as binary64. Numbers with an exponent are 0 or at least the least float, so that no reader rounds them to 0.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from constrain.json_schema.numbers import decimals, scientific
from constrain.json_schema.numbers.canonical import canonical_spellings, with_doubles
from constrain.json_schema.numbers.cells import around, is_long_integer
from constrain.json_schema.numbers.decimals import union
from constrain.json_schema.numbers.plain import MAX_FRACTION_DIGITS, MAX_LISTED_MULTIPLES
from constrain.json_schema.numbers.shape import NumberShape, admits_number, list_numbers, nonempty, step_of, to_decimal
from constrain.language.tree import (
    NODE_BYTES,
    NOTHING,
    PART_BYTES,
    Complement,
    Expression,
    Intersection,
    Literal,
    Repetition,
    tree_bytes,
)
from constrain.regex.anchors import sequence
from constrain.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from constrain.json_schema.numbers.cells import Number
    from constrain.json_schema.numbers.scientific import Normalized

MAX_SCIENTIFIC_DIVISOR = 25
"""The digits of a divisor (37, 0.037, 3700: 37) up to which its multiples, or other numbers than these, may have an
exponent; proving that such a number can still be finished takes too long for larger ones. Above it, only zero and short
lists have exponents."""

_MINUS = Literal(b"-")
_ANY_SIGN = Repetition(_MINUS, 0, 1)
_NEGATIVE_ZERO = sequence(Literal(b"-0"), decimals.zero_fraction(MAX_FRACTION_DIGITS))
_GREATEST_FLOAT: Number = int(Decimal(repr(sys.float_info.max)))
_LEAST_FLOAT: Number = Decimal("5e-324")


SPELLING_BYTES = 32 << 20
"""Bytes of remembered spellings of numbers, and as many of intervals with exponents; beyond it, the least recently used
are forgotten."""


def _shape_bytes(shape: NumberShape, **_: object) -> int:
    return NODE_BYTES + PART_BYTES * (len(shape.excluded) + len(shape.not_multiples) + len(shape.values or ()))


def all_spellings_but_of_integers(shape: NumberShape, *, by_double: bool) -> Expression:
    """Returns all spellings, but integers have no fraction and no exponent, as draft 4 demands."""
    if not shape.integer:
        return all_spellings(shape, by_double=by_double)
    zero = [Literal(b"-0")] if admits_number(shape, 0) else []
    return union([canonical_spellings(shape, by_double=by_double), *zero])


@remembered(2048, SPELLING_BYTES, _shape_bytes, tree_bytes)
def all_spellings(shape: NumberShape, *, by_double: bool) -> Expression:
    """Returns the spellings of the numbers of ``shape``; ``NOTHING`` if all are larger than a float can hold.

    ``by_double``: leaves out texts whose double equals that of an excluded value or multiple. If multiples are
    excluded, only 0 may have an exponent, because texts with an exponent are compared with multiples by value, not by
    double.
    """
    if shape.values is not None:
        short = [value for value in shape.values if not (by_double and is_long_integer(value))]
        every = canonical_spellings(shape._replace(integer=False), by_double=by_double, spare_zeros=True)
        return union([every, _scientific_values(short)])
    step = step_of(shape)
    parts = [canonical_spellings(shape._replace(integer=False, multiple=step), by_double=by_double, spare_zeros=True)]
    if shape.integer:
        parts.append(canonical_spellings(shape, by_double=by_double))  # these may be longer
    if admits_number(shape, 0):
        parts.append(_NEGATIVE_ZERO)
    if by_double and shape.not_multiples:
        parts.append(_scientific_values((0,)) if admits_number(shape, 0) else NOTHING)
    else:
        inner = nonempty(with_doubles(shape)) if by_double else shape
        parts.append(NOTHING if inner is None else _scientific(inner, step, by_double=by_double))
    return union(parts)


ALL = {by: partial(all_spellings, by_double=by) for by in (False, True)}
"""``all_spellings``, with ``by_double`` or without."""

ALL_BUT_OF_INTEGERS = {by: partial(all_spellings_but_of_integers, by_double=by) for by in (False, True)}
"""``all_spellings_but_of_integers``, with ``by_double`` or without."""


def _scientific(shape: NumberShape, step: Fraction | None, *, by_double: bool) -> Expression:
    """Returns the spellings with an exponent. ``by_double``: no text reads as an excluded value."""
    if step is not None:
        listed = list_numbers(shape, MAX_LISTED_MULTIPLES)
        if listed is not None:
            return _scientific_values(listed)
    divisors = [_power_of_ten(divisor) for divisor in (*([step] if step else ()), *shape.not_multiples)]
    if any(divisor > MAX_SCIENTIFIC_DIVISOR for divisor, _ in divisors):
        return sequence(_ANY_SIGN, scientific.zero()) if admits_number(shape, 0) else NOTHING
    divisor, places = divisors.pop(0) if step is not None else (1, None)
    parts = [_interval(shape, places)]
    if parts[0] == NOTHING:
        return NOTHING
    if places is not None and divisor != 1:
        parts.append(scientific.multiples(divisor, places))
    parts += (Complement(scientific.multiples(*other)) for other in divisors)
    if shape.excluded:
        excluded = _scientific_values(shape.excluded)
        if by_double:  # no number with an exponent is between 0 and the least double
            excluded = union([excluded, *(_reads_as(value) for value in shape.excluded if value)])
        parts.append(Complement(excluded))
    return parts[0] if len(parts) == 1 else Intersection(tuple(parts))


def _reads_as(value: Number) -> Expression:
    """Returns the spellings with an exponent of the numbers that read as the same double as a value."""
    low, low_open, high, high_open = around(value)
    return _interval(
        NumberShape(minimum=low, exclusive_minimum=low_open, maximum=high, exclusive_maximum=high_open), None
    )


def _power_of_ten(divisor: Fraction) -> tuple[int, int]:
    """Returns (d, s) such that the divisor is ``d * 10**-s``, and d is not a multiple of 10."""
    digits, position = _normalized(to_decimal(divisor))
    return int(digits), len(digits) - position


def _interval(shape: NumberShape, places: int | None) -> Expression:
    low, high = shape.minimum, shape.maximum
    low_open, high_open = shape.exclusive_minimum, shape.exclusive_maximum
    spellings: list[Expression] = []
    above = _positive(low, high, low_open=low_open, high_open=high_open, places=places)
    below = _positive(_negated(high), _negated(low), low_open=high_open, high_open=low_open, places=places)
    if above is below:  # as it is cached
        spellings.append(sequence(_ANY_SIGN, above))
    else:
        spellings += [above, sequence(_MINUS, below)]
    if (low is None or low < 0 or (low == 0 and not low_open)) and (
        high is None or high > 0 or (high == 0 and not high_open)
    ):
        spellings.append(sequence(_ANY_SIGN, scientific.zero()))
    return union(spellings)


def _positive(
    low: Number | None, high: Number | None, *, low_open: bool, high_open: bool, places: int | None
) -> Expression:
    """Returns the numbers greater than 0 within the bounds, or within those of all floats."""
    if low is None or low < _LEAST_FLOAT:
        low, low_open = _LEAST_FLOAT, False
    if high is None or high > _GREATEST_FLOAT:
        high, high_open = _GREATEST_FLOAT, False
    if low > high or (low == high and (low_open or high_open)):
        return NOTHING
    return _between(_normalized(low), _normalized(high), low_open=low_open, high_open=high_open, places=places)


@remembered(256, SPELLING_BYTES, lambda *_, **__: NODE_BYTES, tree_bytes)
def _between(low: Normalized, high: Normalized, *, low_open: bool, high_open: bool, places: int | None) -> Expression:
    return scientific.between(low, high, low_open=low_open, high_open=high_open, places=places)


def _scientific_values(values: Iterable[Number]) -> Expression:
    signed: dict[bool, list[Normalized]] = {False: [], True: []}
    parts: list[Expression] = []
    for value in values:
        if value == 0:
            parts.append(sequence(_ANY_SIGN, scientific.zero()))
        elif -_GREATEST_FLOAT <= value <= _GREATEST_FLOAT and not -_LEAST_FLOAT < value < _LEAST_FLOAT:
            signed[value < 0].append(_normalized(value))
    parts.append(scientific.exactly(signed[False]))
    parts.append(sequence(_MINUS, scientific.exactly(signed[True])))
    return union(parts)


def _normalized(value: Number) -> Normalized:
    """Returns digits and position of the magnitude of a number other than zero."""
    text, _, power = str(value).lower().partition("e")
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    position = len(digits) - len(fraction) + int(power or 0)
    return digits.rstrip("0"), position


def _negated(value: Number | None) -> Number | None:
    return None if value is None else -value if isinstance(value, int) else value.copy_negate()
