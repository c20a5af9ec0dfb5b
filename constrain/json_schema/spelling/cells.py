"""Cells: the decimal numbers that read as one IEEE double.

Rounding to the nearest double (IEEE 754, ties to even) keeps the order of numbers, so the numbers that read as one
double are an interval around it:

    0.3:  0.29999999999999996114 ... < 0.3 < ... 0.30000000000000001665 ...

Ends of cells have up to 767 digits. Numbers are compared with the first ``SIGNIFICANT_DIGITS`` of them, on the safe
side: a number with more digits than that counts as inside where its first ones are those of an end.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction
from math import inf, isinf, nextafter
from typing import NamedTuple

Number = int | Decimal
"""An exact decimal number; whole ones are ``int``."""

SIGNIFICANT_DIGITS = 20
"""Digits, from the first that is not 0, by which a number is compared with the end of a cell."""

DECIMAL_DIGITS = 15
"""Digits of a decimal, from the first that is not 0, that a double keeps; with more, two decimals may share one."""

GREATEST_EXACT = 2**53
"""All integers up to here are doubles."""

MAX_UNDERFLOW_DIGITS = 320
"""Digits after the point with which no number but 0 reads as 0."""

LEAST_DOUBLE = Decimal("5e-324")


class RoundingCell(NamedTuple):
    """The numbers that read as one double: from ``low`` to ``high``, which belong to it if ``closed``."""

    low: Fraction
    high: Fraction
    closed: bool


class Interval(NamedTuple):
    """The numbers between two bounds, each of which may be one of them."""

    low: Number
    low_open: bool
    high: Number
    high_open: bool


def nearest(value: Number) -> float:
    """The double that a number reads as; infinite beyond the greatest."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def cell(double: float) -> RoundingCell:
    """The numbers that read as a finite double."""
    here = Fraction(double)
    below, above = nextafter(double, -inf), nextafter(double, inf)
    low = 2 * here - Fraction(above) if isinf(below) else Fraction(below)
    high = 2 * here - Fraction(below) if isinf(above) else Fraction(above)
    return RoundingCell((low + here) / 2, (here + high) / 2, closed=_bits(double) % 2 == 0)


def around(value: Number) -> Interval:
    """An interval with all numbers that read as the same double as ``value``, and hardly any others."""
    double = nearest(value)
    if isinf(double):
        return Interval(value, False, value, False)  # noqa: FBT003
    if not double:
        return Interval(-LEAST_DOUBLE, True, LEAST_DOUBLE, True)  # noqa: FBT003
    inside = cell(double)
    low, low_exact = rounded_up(-inside.low)
    high, high_exact = rounded_up(inside.high)
    return Interval(-low, not (low_exact and inside.closed), high, not (high_exact and inside.closed))


def rounded_up(number: Fraction) -> tuple[Number, bool]:
    """The least number of ``SIGNIFICANT_DIGITS`` that is not less, and whether it is equal. Not for 0."""
    magnitude = abs(number)
    exponent = len(str(magnitude.numerator)) - len(str(magnitude.denominator))
    if magnitude >= Fraction(10) ** exponent:
        exponent += 1
    unit = exponent - SIGNIFICANT_DIGITS
    scaled = number / Fraction(10) ** unit
    digits = -(-scaled.numerator // scaled.denominator)
    while digits % 10 == 0:
        digits, unit = digits // 10, unit + 1
    rounded: Number = digits * 10**unit if unit >= 0 else Decimal(f"{digits}e{unit}")
    return rounded, scaled.denominator == 1


def is_no_double(value: Number) -> bool:
    """Whether a number beyond ``GREATEST_EXACT``, but not beyond all doubles, differs from each of them."""
    if -GREATEST_EXACT <= value <= GREATEST_EXACT:
        return False
    double = nearest(value)
    return double != value and not isinf(double)


def is_long_integer(value: Number | None) -> bool:
    """The same of an integer.

    Python's ``json`` and its like read such a number exactly if it is written as an integer, and as its double if it is
    written with a fraction or an exponent.
    """
    return value.__class__ is int and is_no_double(value)


def least_double(value: int) -> int:
    """The least double that is not less than an integer beyond ``GREATEST_EXACT``."""
    double = nearest(value)
    return int(double if double >= value else nextafter(double, inf))


def doubles_between(low: Number, high: Number) -> int:
    """How many doubles there are from that of ``low`` to that of ``high``, less one."""
    return _ordinal(nearest(high)) - _ordinal(nearest(low))


def is_short(value: Number) -> bool:
    """Whether a number has so few digits that no other such number reads as the same double."""
    if isinstance(value, int):
        return -GREATEST_EXACT < value < GREATEST_EXACT
    return len(value.as_tuple().digits) <= DECIMAL_DIGITS


def _bits(double: float) -> int:
    (bits,) = struct.unpack("<Q", struct.pack("<d", double))
    assert isinstance(bits, int)
    return bits


def _ordinal(double: float) -> int:
    """The place of a double among all in ascending order; 0 is that of 0."""
    bits = _bits(double)
    return bits if bits < 1 << 63 else (1 << 63) - bits
