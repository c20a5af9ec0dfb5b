r"""Ranges of decimal numbers as expressions, digit by digit.

A comparison with a string of n digits is split in halves, ``BC``: greater than B and any digits, or B and then greater
than C. So trees are O(log n) deep and O(n log n) bytes large, for all numbers:

    > 4711:   ( >47 [0-9]{2} | 47 >11 ),   >47: ( [5-9][0-9] | 4 [8-9] ), ...

With ``zeros``, fractions may end in any zeros. Without, a number has one fraction: one that ends in another digit, or
``.0`` or none for an integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.numbers.shape import scaled
from constrain.language.tree import (
    NOTHING,
    Alternation,
    ByteClass,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Repetition,
)
from constrain.regex.anchors import repetition, sequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.json_schema.numbers.shape import Number, NumberShape

FLOAT_DIGITS = 308
"""Digits before the point of a number: every such number is finite as binary64, and longer ones are not written."""

MINUS = Literal(b"-")
ANY_SIGN = Repetition(MINUS, 0, 1)
POINT = Literal(b".")
ZERO = Literal(b"0")
DIGIT = ByteClass(((0x30, 0x39),))
NONZERO_DIGIT = ByteClass(((0x31, 0x39),))
_SOME_NONZERO = Concatenation((Repetition(ZERO, 0, None), NONZERO_DIGIT, Repetition(DIGIT, 0, None)))


def magnitude(value: Number) -> tuple[str, str]:
    """Returns the integer part, without leading zeros, and the fraction, without trailing zeros. Raises LimitError."""
    number, scale = scaled(value)
    text = str(abs(number)).rjust(scale + 1, "0")
    return (text[:-scale], text[-scale:]) if scale else (text, "")


def spelled(value: Number) -> tuple[bytes, int]:
    """Returns the shortest spelling, and the number of its digits after the point."""
    whole, fraction = magnitude(value)
    return f"{'-' if value < 0 else ''}{whole}{'.' if fraction else ''}{fraction}".encode(), len(fraction)


def naturals(digits: int) -> Expression:
    """Returns the positive integers of up to so many digits."""
    return Concatenation((NONZERO_DIGIT, Repetition(DIGIT, 0, digits - 1)))


def natural_range(low: str, high: str | None, digits: int = 0) -> Expression:
    """Returns the integers ``low`` to ``high``, without leading zeros; without ``high``, those of up to ``digits``."""
    if high is not None and len(low) == len(high):
        return _between(low, high)
    shortest, longest = len(low) + 1, digits if high is None else len(high) - 1
    parts = [_beyond(low, above=True, equal=True)]
    if shortest <= longest:
        parts.append(Concatenation((NONZERO_DIGIT, Repetition(DIGIT, shortest - 1, longest - 1))))
    if high is not None:
        parts.append(_between("1" + "0" * (len(high) - 1), high))
    return union(parts)


def fractional_range(shape: NumberShape, digits: int, *, zeros: bool) -> Expression:
    """Returns the numbers within the bounds, of which the lower one is not negative, with up to ``digits`` decimals."""
    assert shape.minimum is not None
    low, low_fraction = magnitude(shape.minimum)
    high, high_fraction = (None, "") if shape.maximum is None else magnitude(shape.maximum)
    any_rest = any_fraction(digits, zeros=zeros)
    from_low = not low_fraction and not shape.exclusive_minimum
    if from_low and low == "0" and high is None:
        return sequence(Alternation((ZERO, naturals(FLOAT_DIGITS))), any_rest)
    above = sequence(POINT, digits_above(low_fraction, digits, strict=shape.exclusive_minimum, zeros=zeros))
    below = _fraction_below(high_fraction, digits, strict=shape.exclusive_maximum, zeros=zeros)
    if low == high:
        nothing = NOTHING in (above, below)
        inside = below if from_low else NOTHING if nothing else Intersection((above, below))
        return sequence(Literal(low.encode()), inside)
    # Integer parts with any fraction form one range of integers.
    parts = [] if from_low else [sequence(Literal(low.encode()), above)]
    between_low = low if from_low else str(int(low) + 1)
    between_high = "9" * FLOAT_DIGITS if high is None else str(int(high) - 1)
    if (len(between_low), between_low) <= (len(between_high), between_high):
        between = natural_range(between_low, None if high is None else between_high, FLOAT_DIGITS)
        parts.append(sequence(between, any_rest))
    if high is not None:
        parts.append(sequence(Literal(high.encode()), below))
    return union(parts)


def any_fraction(digits: int, *, zeros: bool) -> Expression:
    """Returns the empty text, or a point and 1 to ``digits`` digits."""
    some = Repetition(DIGIT, 1, digits) if zeros else Alternation((ZERO, _some_digits(digits, zeros=False)))
    return Repetition(Concatenation((POINT, some)), 0, 1)


def zero_fraction(digits: int, *, zeros: bool = True) -> Expression:
    """Returns the empty text, or a point and 1 to ``digits`` zeros; without ``zeros`` one."""
    return Repetition(sequence(POINT, repetition(ZERO, 1, digits if zeros else 1)), 0, 1)


def digits_above(fraction: str, digits: int, *, strict: bool, zeros: bool = True) -> Expression:
    """Returns the digits of all fractions >= (``strict``: >) ``fraction``; the empty text if zero is one."""
    rest = digits - len(fraction)
    tail = _some_digits(rest, zeros=zeros) if strict else _more_digits(rest, zeros=zeros)
    if not fraction:
        return tail
    return union([_fraction_greater(fraction, digits, zeros=zeros), sequence(Literal(fraction.encode()), tail)])


def _fraction_below(fraction: str, digits: int, *, strict: bool, zeros: bool) -> Expression:
    """Returns point and digits of all fractions <= (``strict``: <) ``fraction``; the empty text if zero is one."""
    if not fraction:
        return NOTHING if strict else zero_fraction(digits, zeros=zeros)
    return Repetition(sequence(POINT, some_digits_below(fraction, digits, strict=strict, zeros=zeros)), 0, 1)


def digits_below(fraction: str, digits: int, *, strict: bool) -> Expression:
    """Returns the digits of all fractions <= (``strict``: <) ``fraction``; the empty text if zero is one."""
    if not fraction:
        return NOTHING if strict else repetition(ZERO, 0, digits)
    return Repetition(some_digits_below(fraction, digits, strict=strict), 0, 1)


def some_digits_below(fraction: str, digits: int, *, strict: bool, zeros: bool = True) -> Expression:
    """Returns the digits of fractions <= (``strict``: <) ``fraction``, which is not empty; never the empty text."""
    head, rest = fraction[0], fraction[1:]
    after: list[Expression] = [_fraction_less(rest, digits - 1, zeros=zeros)] if rest else []
    if not strict:
        spare = digits - len(fraction) if zeros else 0
        after.append(sequence(Literal(rest.encode()), repetition(ZERO, 0, spare)))
    less = sequence(digit_below(head), _more_digits(digits - 1, zeros=zeros))
    return union([less, sequence(Literal(head.encode()), union(after))])


def union(parts: list[Expression]) -> Expression:
    """Returns an alternation without empty languages."""
    present = [part for part in parts if part is not NOTHING]
    return (present[0] if len(present) == 1 else Alternation(tuple(present))) if present else NOTHING


def one_of(texts: Sequence[bytes]) -> Expression:
    """Returns these texts; at least one."""
    return Literal(texts[0]) if len(texts) == 1 else LiteralSet(tuple(texts))


def _between(low: str, high: str) -> Expression:
    """Returns digit strings of one length, ``low`` to ``high``."""
    if low == high:
        return Literal(low.encode())
    same = next(index for index, (a, b) in enumerate(zip(low, high, strict=True)) if a != b)
    prefix, first, last = low[:same], low[same], high[same]
    low_rest, high_rest = low[same + 1 :], high[same + 1 :]
    parts = []
    # A branch with any rest is joined with the digits between.
    if low_rest.strip("0"):
        parts.append(sequence(Literal(first.encode()), _beyond(low_rest, above=True, equal=True)))
        first = chr(ord(first) + 1)
    open_end = bool(high_rest.strip("9"))
    middle_last = chr(ord(last) - 1) if open_end else last
    if first <= middle_last:
        parts.append(sequence(digit_range(first, middle_last), _any(len(low_rest))))
    if open_end:
        parts.append(sequence(Literal(last.encode()), _beyond(high_rest, above=False, equal=True)))
    return sequence(Literal(prefix.encode()), union(parts)) if prefix else union(parts)


def _beyond(bound: str, *, above: bool, equal: bool) -> Expression:
    """Returns digit strings of the bound's length that are greater (or less, unless ``above``), or ``equal``."""
    least, greatest = "09" if above else "90"
    if equal and not bound.strip(least):
        return _any(len(bound))
    if not bound.strip(greatest):
        return Literal(bound.encode()) if equal else NOTHING
    if len(bound) == 1:
        first = bound if equal else chr(ord(bound) + (1 if above else -1))
        return digit_range(first, "9") if above else digit_range("0", first)
    left, right = _halves(bound)
    return union(
        [
            sequence(_beyond(left, above=above, equal=False), _any(len(right))),
            sequence(Literal(left.encode()), _beyond(right, above=above, equal=equal)),
        ]
    )


def _fraction_greater(fraction: str, digits: int, *, zeros: bool) -> Expression:
    """Returns digit strings of up to ``digits`` digits that exceed ``fraction`` within its length."""
    if len(fraction) == 1:
        return sequence(digit_above(fraction), _more_digits(digits - 1, zeros=zeros))
    left, right = _halves(fraction)
    return union(
        [
            _fraction_greater(left, digits, zeros=zeros),
            sequence(Literal(left.encode()), _fraction_greater(right, digits - len(left), zeros=zeros)),
        ]
    )


def _fraction_less(fraction: str, digits: int, *, zeros: bool, may_end: bool = True) -> Expression:
    """Returns digit strings below ``fraction`` within its length, or prefixes of it; the empty one if ``may_end``."""
    if len(fraction) == 1:
        below = [sequence(digit_below(fraction, "0" if zeros else "1"), _more_digits(digits - 1, zeros=zeros))]
        if not zeros and fraction > "0":
            below.append(sequence(ZERO, _some_digits(digits - 1, zeros=False)))
        return repetition(union(below), 0, 1) if may_end else union(below)
    left, right = _halves(fraction)
    less = _fraction_less(right, digits - len(left), zeros=zeros, may_end=zeros or left[-1] != "0")
    return union([_fraction_less(left, digits, zeros=zeros, may_end=may_end), sequence(Literal(left.encode()), less)])


def _halves(digits: str) -> tuple[str, str]:
    middle = len(digits) // 2
    return digits[:middle], digits[middle:]


def digit_range(first: str, last: str) -> Expression:
    """Returns one digit."""
    if first == last:
        return Literal(first.encode())
    return ByteClass(((ord(first), ord(last)),)) if first < last else NOTHING


def digit_above(digit: str) -> Expression:
    """Returns one greater digit."""
    return digit_range(chr(ord(digit) + 1), "9")


def digit_below(digit: str, least: str = "0") -> Expression:
    """Returns one digit from ``least`` on that is less."""
    return digit_range(least, chr(ord(digit) - 1))


def _any(count: int) -> Expression:
    return repetition(DIGIT, count, count)


def _more_digits(most: int, *, zeros: bool) -> Expression:
    """Returns up to ``most`` digits."""
    return repetition(DIGIT, 0, most) if zeros else repetition(_some_digits(most, zeros=False), 0, 1)


def _some_digits(most: int, *, zeros: bool) -> Expression:
    """Returns 1 to ``most`` digits that are not all zeros."""
    if most < 1:
        return NOTHING
    if zeros:
        return Intersection((_SOME_NONZERO, Repetition(DIGIT, 1, most)))
    return sequence(repetition(DIGIT, 0, most - 1), NONZERO_DIGIT)
