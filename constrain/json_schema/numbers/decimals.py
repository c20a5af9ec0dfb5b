r"""Ranges of decimal numbers as expressions, digit by digit.

A comparison with a string of n digits is split in halves, ``BC``: greater than B and any digits, or B and then greater
than C. So trees are O(log n) deep and O(n log n) bytes large, for all numbers:

    > 4711:   ( >47 [0-9]{2} | 47 >11 ),   >47: ( [5-9][0-9] | 4 [8-9] ), ...

Magnitudes are pairs of strings: the integer part ("0", or without leading zeros) and the fraction (without trailing
zeros, "" for an integer).

With ``zeros``, fractions may end in any zeros. Without, a number has one fraction: one that ends in another digit, or
``.0`` or none for an integer.
"""

from __future__ import annotations

from constrain.language.tree import (
    EMPTY_TEXT,
    NOTHING,
    Alternation,
    ByteClass,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    Repetition,
)
from constrain.regex.anchors import repetition, sequence

Magnitude = tuple[str, str]

DIGIT = ByteClass(((0x30, 0x39),))
NONZERO_DIGIT = ByteClass(((0x31, 0x39),))
_ZERO = Literal(b"0")
_POINT = Literal(b".")
_SOME_NONZERO = Concatenation((Repetition(_ZERO, 0, None), NONZERO_DIGIT, Repetition(DIGIT, 0, None)))


def natural_range(low: str, high: str) -> Expression:
    """Returns the integers ``low`` to ``high``, both without leading zeros and not negative; ``low <= high``."""
    if len(low) == len(high):
        return _between(low, high)
    parts = [_at_least(low)]
    shortest, longest = len(low) + 1, len(high) - 1
    if shortest <= longest:
        parts.append(Concatenation((NONZERO_DIGIT, Repetition(DIGIT, shortest - 1, longest - 1))))
    parts.append(_between("1" + "0" * (len(high) - 1), high))
    return union(parts)


def naturals_from(low: str, digits: int) -> Expression:
    """Returns the integers of up to ``digits`` digits that are not less than ``low``."""
    parts: list[Expression] = [NONZERO_DIGIT if low == "1" else _at_least(low)]
    if len(low) < digits:
        parts.append(Concatenation((NONZERO_DIGIT, Repetition(DIGIT, len(low), digits - 1))))
    return union(parts)


def fractions_from(low: Magnitude, *, low_open: bool, digits: int, integer_digits: int, zeros: bool) -> Expression:
    """Returns decimal numbers not less than ``low``, with limited digits before and after the point."""
    integer, fraction = low
    if not fraction and not low_open:
        return sequence(naturals_from(integer, integer_digits), any_fraction(digits, zeros=zeros))
    parts = [sequence(Literal(integer.encode()), fraction_above(fraction, digits, strict=low_open, zeros=zeros))]
    following = successor(integer)
    if len(following) <= integer_digits:
        parts.append(sequence(naturals_from(following, integer_digits), any_fraction(digits, zeros=zeros)))
    return union(parts)


def fractional_range(
    low: Magnitude, high: Magnitude, *, low_open: bool, high_open: bool, digits: int, zeros: bool
) -> Expression:
    """Returns the decimal numbers from ``low`` to ``high`` with at most ``digits`` digits after the point.

    ``low <= high``; an open bound does not belong to the range itself.
    """
    (low_integer, low_fraction), (high_integer, high_fraction) = low, high
    above = fraction_above(low_fraction, digits, strict=low_open, zeros=zeros)
    below = fraction_below(high_fraction, digits, strict=high_open, zeros=zeros)
    if low_integer == high_integer:
        if not low_fraction and not low_open:
            inside = below
        else:
            inside = NOTHING if NOTHING in (above, below) else Intersection((above, below))
        return sequence(Literal(low_integer.encode()), inside)
    between_low, between_high = successor(low_integer), _predecessor(high_integer)
    parts = []
    # Integer parts with any fraction form one range of integers.
    if not low_fraction and not low_open:
        between_low = low_integer
    else:
        parts.append(sequence(Literal(low_integer.encode()), above))
    if (len(between_low), between_low) <= (len(between_high), between_high):
        parts.append(sequence(natural_range(between_low, between_high), any_fraction(digits, zeros=zeros)))
    parts.append(sequence(Literal(high_integer.encode()), below))
    return union(parts)


def any_fraction(digits: int, *, zeros: bool) -> Expression:
    """Returns the empty text, or a point and 1 to ``digits`` digits."""
    some = Repetition(DIGIT, 1, digits) if zeros else Alternation((_ZERO, _some_digits(digits, zeros=False)))
    return Repetition(Concatenation((_POINT, some)), 0, 1)


def zero_fraction(digits: int, *, zeros: bool = True) -> Expression:
    """Returns the empty text, or a point and 1 to ``digits`` zeros; without ``zeros`` one."""
    return Repetition(sequence(_POINT, repetition(_ZERO, 1, digits if zeros else 1)), 0, 1)


def fraction_above(fraction: str, digits: int, *, strict: bool, zeros: bool) -> Expression:
    """Returns point and digits of all fractions >= (``strict``: >) ``fraction``; the empty text if zero is one."""
    if not fraction and not strict:
        return any_fraction(digits, zeros=zeros)
    return sequence(_POINT, digits_above(fraction, digits, strict=strict, zeros=zeros))


def digits_above(fraction: str, digits: int, *, strict: bool, zeros: bool = True) -> Expression:
    """Returns the digits of all fractions >= (``strict``: >) ``fraction``; the empty text if zero is one."""
    rest = digits - len(fraction)
    tail = _some_digits(rest, zeros=zeros) if strict else _more_digits(rest, zeros=zeros)
    if not fraction:
        return tail
    return union([_fraction_greater(fraction, digits, zeros=zeros), sequence(Literal(fraction.encode()), tail)])


def fraction_below(fraction: str, digits: int, *, strict: bool, zeros: bool) -> Expression:
    """Returns point and digits of all fractions <= (``strict``: <) ``fraction``; the empty text if zero is one."""
    if not fraction:
        return NOTHING if strict else zero_fraction(digits, zeros=zeros)
    return Repetition(sequence(_POINT, some_digits_below(fraction, digits, strict=strict, zeros=zeros)), 0, 1)


def digits_below(fraction: str, digits: int, *, strict: bool) -> Expression:
    """Returns the digits of all fractions <= (``strict``: <) ``fraction``; the empty text if zero is one."""
    if not fraction:
        return NOTHING if strict else _more_zeros(digits)
    return Repetition(some_digits_below(fraction, digits, strict=strict), 0, 1)


def some_digits_below(fraction: str, digits: int, *, strict: bool, zeros: bool = True) -> Expression:
    """Returns the digits of fractions <= (``strict``: <) ``fraction``, which is not empty; never the empty text."""
    head, rest = fraction[0], fraction[1:]
    after: list[Expression] = [_fraction_less(rest, digits - 1, zeros=zeros)] if rest else []
    if not strict:
        after.append(sequence(Literal(rest.encode()), _more_zeros(digits - len(fraction)) if zeros else EMPTY_TEXT))
    parts = [sequence(Literal(head.encode()), union(after))]
    if head > "0":
        parts.insert(0, sequence(digit_range("0", chr(ord(head) - 1)), _more_digits(digits - 1, zeros=zeros)))
    return union(parts)


def successor(digits: str) -> str:
    """Returns the next natural number."""
    kept = digits.rstrip("9")
    zeros = "0" * (len(digits) - len(kept))
    return kept[:-1] + chr(ord(kept[-1]) + 1) + zeros if kept else "1" + zeros


def _predecessor(digits: str) -> str:
    """Returns the natural number before a positive one."""
    kept = digits.rstrip("0")
    nines = "9" * (len(digits) - len(kept))
    first = kept[:-1] + chr(ord(kept[-1]) - 1)
    return (first + nines).lstrip("0") or "0"


def union(parts: list[Expression]) -> Expression:
    """Returns an alternation without empty languages."""
    present = [part for part in parts if part is not NOTHING]
    return (present[0] if len(present) == 1 else Alternation(tuple(present))) if present else NOTHING


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
        parts.append(sequence(Literal(first.encode()), _at_least(low_rest)))
        first = chr(ord(first) + 1)
    open_end = bool(high_rest.strip("9"))
    middle_last = chr(ord(last) - 1) if open_end else last
    if first <= middle_last:
        parts.append(sequence(digit_range(first, middle_last), _any(len(low_rest))))
    if open_end:
        parts.append(sequence(Literal(last.encode()), _at_most(high_rest)))
    return sequence(Literal(prefix.encode()), union(parts)) if prefix else union(parts)


def _at_least(bound: str) -> Expression:
    """Returns digit strings of the bound's length that are not less."""
    return _greater(bound, equal=True)


def _greater(bound: str, *, equal: bool) -> Expression:
    if not bound.strip("0") and equal:
        return _any(len(bound))
    if not bound.strip("9"):
        return Literal(bound.encode()) if equal else NOTHING
    if len(bound) == 1:
        return digit_range(bound if equal else chr(ord(bound) + 1), "9")
    left, right = _halves(bound)
    return union(
        [
            sequence(_greater(left, equal=False), _any(len(right))),
            sequence(Literal(left.encode()), _greater(right, equal=equal)),
        ]
    )


def _at_most(bound: str) -> Expression:
    """Returns digit strings of the bound's length that are not greater."""
    return _less(bound, equal=True)


def _less(bound: str, *, equal: bool) -> Expression:
    if not bound.strip("9") and equal:
        return _any(len(bound))
    if not bound.strip("0"):
        return Literal(bound.encode()) if equal else NOTHING
    if len(bound) == 1:
        return digit_range("0", bound if equal else chr(ord(bound) - 1))
    left, right = _halves(bound)
    return union(
        [
            sequence(_less(left, equal=False), _any(len(right))),
            sequence(Literal(left.encode()), _less(right, equal=equal)),
        ]
    )


def _fraction_greater(fraction: str, digits: int, *, zeros: bool) -> Expression:
    """Returns digit strings of up to ``digits`` digits that exceed ``fraction`` within its length."""
    if len(fraction) == 1:
        if fraction == "9":
            return NOTHING
        return sequence(digit_range(chr(ord(fraction) + 1), "9"), _more_digits(digits - 1, zeros=zeros))
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
        digit = digit_range("0" if zeros else "1", chr(ord(fraction) - 1))
        below = [sequence(digit, _more_digits(digits - 1, zeros=zeros))]
        if not zeros and fraction > "0":
            below.append(sequence(_ZERO, _some_digits(digits - 1, zeros=False)))
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


def _more_zeros(most: int) -> Expression:
    return repetition(_ZERO, 0, most)
