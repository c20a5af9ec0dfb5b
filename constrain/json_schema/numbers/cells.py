"""Cells in schemas: the bounds between which decimal numbers read as one IEEE double.

Rounding to the nearest double (IEEE 754, ties to even) keeps the order of numbers, so the numbers that read as one
double are an interval around it:

    0.3:  0.29999999999999996114 ... < 0.3 < ... 0.30000000000000001665 ...

Ends of cells have up to 767 digits. Numbers are compared with the first ``SIGNIFICANT_DIGITS`` of an end, on the safe
side: a number with more digits counts as inside if its first digits equal those of an end.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction
from math import ceil, inf, isinf, nextafter

from constrain.json_schema.numbers.shape import Number, NumberShape

SIGNIFICANT_DIGITS = 20
"""Digits, from the first nonzero one, by which a number is compared with the end of a cell."""

DECIMAL_DIGITS = 15
"""Significant digits of a decimal that a double always keeps; with more, two decimals may share a double."""

GREATEST_EXACT = 2**53
"""The integer up to which all integers are doubles."""

MAX_UNDERFLOW_DIGITS = 320
"""Digits after the point up to which only 0 reads as 0."""

LEAST_DOUBLE = Decimal("5e-324")

_NEAR_ZERO = NumberShape(minimum=-LEAST_DOUBLE, exclusive_minimum=True, maximum=LEAST_DOUBLE, exclusive_maximum=True)


def nearest(value: Number) -> float:
    """Returns the double that a number reads as; infinite beyond the greatest."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def around(value: Number) -> NumberShape:
    """Returns an interval with all numbers that read as the same double as ``value``, and hardly any others."""
    double = nearest(value)
    if isinf(double):
        return NumberShape(minimum=value, maximum=value)
    if not double:
        return _NEAR_ZERO
    here, below, above = Fraction(double), nextafter(double, -inf), nextafter(double, inf)
    low = 2 * here - Fraction(above) if isinf(below) else Fraction(below)
    high = 2 * here - Fraction(below) if isinf(above) else Fraction(above)
    minimum, low_exact = _rounded_up(-(low + here) / 2)
    maximum, high_exact = _rounded_up((here + high) / 2)
    closed = _bits(double) % 2 == 0
    return NumberShape(
        minimum=-minimum,
        exclusive_minimum=not (low_exact and closed),
        maximum=maximum,
        exclusive_maximum=not (high_exact and closed),
    )


def _rounded_up(number: Fraction) -> tuple[Number, bool]:
    """Returns the least number of ``SIGNIFICANT_DIGITS`` that is not less, and whether it is equal. Not for 0."""
    magnitude = abs(number)
    exponent = len(str(magnitude.numerator)) - len(str(magnitude.denominator))
    if magnitude >= Fraction(10) ** exponent:
        exponent += 1
    unit = exponent - SIGNIFICANT_DIGITS
    scaled = number / Fraction(10) ** unit
    digits = ceil(scaled)
    while digits % 10 == 0:
        digits, unit = digits // 10, unit + 1
    return digits * 10**unit if unit >= 0 else Decimal(f"{digits}e{unit}"), scaled.denominator == 1


def is_no_double(value: Number) -> bool:
    """Returns whether a number above ``GREATEST_EXACT``, but within the range of doubles, is not a double."""
    if -GREATEST_EXACT <= value <= GREATEST_EXACT:
        return False
    double = nearest(value)
    return double != value and not isinf(double)


def is_long_integer(value: Number | None) -> bool:
    """Returns whether the value is an integer above ``GREATEST_EXACT`` that is not a double.

    Many readers, such as Python's ``json``, read this number exactly if it is written as an integer, and as its double
    if it has a fraction or an exponent.
    """
    return value.__class__ is int and is_no_double(value)


def least_double(value: int) -> int:
    """Returns the least double that is not less than an integer above ``GREATEST_EXACT``."""
    double = nearest(value)
    return int(double if double >= value else nextafter(double, inf))


def doubles_between(low: Number, high: Number) -> int:
    """Returns the number of doubles from that of ``low`` to that of ``high``, minus one."""
    return _ordinal(nearest(high)) - _ordinal(nearest(low))


def is_short(value: Number) -> bool:
    """Returns whether a number has few enough digits that no other such number reads as the same double."""
    if isinstance(value, int):
        return -GREATEST_EXACT < value < GREATEST_EXACT
    return len(value.as_tuple().digits) <= DECIMAL_DIGITS


def _bits(double: float) -> int:
    return int.from_bytes(struct.pack(">d", double), "big")


def _ordinal(double: float) -> int:
    """Returns the position of a double among all in ascending order; 0 for the double 0."""
    bits = _bits(double)
    return bits if bits < 1 << 63 else (1 << 63) - bits
