r"""Ranges, multiples and lists of decimal numbers in scientific notation (``-12.5e+3``), judged by value.

A text is a mantissa and an exponent: at most MAX_MANTISSA_DIGITS digits before the point and as many after it; an
exponent of at most MAX_SPELLED_EXPONENT, with up to two leading zeros.

A magnitude other than zero is its digits, from the first to the last that is not 0, and its position: 0.DIGITS times
10 to the power of the position. In a text, the place of the point gives the position of the mantissa (12.5: 2, 0.05:
-1), and the exponent adds to it. So LOW to HIGH is three languages, each deterministic up to the exponent:

    any digits,      LOW's position < mantissa's position + exponent < HIGH's position
    digits >= LOW's, mantissa's position + exponent = LOW's position
    digits <= HIGH's, mantissa's position + exponent = HIGH's position

A number has at most N decimal places if it has no more digits than its position + N: one such language per position,
up to where a mantissa cannot have more digits. Other multiples are one language per exponent: m e k is a multiple of d
if and only if m is one of d e -k. All take at most O(MAX_MANTISSA_DIGITS ** 2) nodes, for all numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.numbers import decimals
from constrain.json_schema.numbers.decimals import DIGIT, NONZERO_DIGIT, digit_range, natural_range, union
from constrain.language.tree import (
    NOTHING,
    Alternation,
    ByteClass,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Multiple,
    Repetition,
    tree_bytes,
)
from constrain.regex.anchors import repetition, sequence
from constrain.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Normalized = tuple[str, int]
"""Digits and position of a magnitude other than zero."""

MAX_MANTISSA_DIGITS = 17
"""Digits before the point, and as many after it; shortest spellings of floats have at most this many in all. More are
not written."""

MAX_SPELLED_EXPONENT = 350
"""The greatest exponent, of either sign; larger ones are not written, and no float with any mantissa needs one."""

EXPONENT_BYTES = 4 << 20
"""Bytes of cached spellings of exponents; beyond it, the least recently used are dropped."""

MANTISSA_BYTES = 8 << 20
"""Bytes of cached spellings of mantissas, for each function below; beyond it, the least recently used are dropped."""

_E = ByteClass(((0x45, 0x45), (0x65, 0x65)))
_POINT = Literal(b".")
_ZERO = Literal(b"0")
_LEADING_ZEROS = Repetition(_ZERO, 0, 2)
_PLUS = Repetition(Literal(b"+"), 0, 1)
_ANY_SIGN = Repetition(Literal(b"-"), 0, 1)
_NATURAL = Alternation((_ZERO, Concatenation((NONZERO_DIGIT, Repetition(DIGIT, 0, MAX_MANTISSA_DIGITS - 1)))))
_ZERO_FRACTION = decimals.zero_fraction(MAX_MANTISSA_DIGITS)


def _no_bytes(*_: object) -> int:
    return 0


def _text_bytes(bound: str, *_: object, **__: object) -> int:
    return len(bound)


@remembered(4096, EXPONENT_BYTES, _no_bytes, tree_bytes)
def exponent(low: int, high: int) -> Expression:
    """Returns ``e`` and an exponent from ``low`` to ``high``; ``NOTHING`` if none of these is spelled."""
    low, high = max(low, -MAX_SPELLED_EXPONENT), min(high, MAX_SPELLED_EXPONENT)
    if low > high:
        return NOTHING
    signed: list[Expression] = []
    if high >= 0:
        signed.append(sequence(_PLUS, _LEADING_ZEROS, natural_range(str(max(low, 0)), str(high))))
    if low <= 0:
        signed.append(sequence(Literal(b"-"), _LEADING_ZEROS, natural_range(str(max(-high, 0)), str(-low))))
    return sequence(_E, union(signed))


def zero() -> Expression:
    """Returns zero, without a sign."""
    return sequence(_ZERO, _ZERO_FRACTION, exponent(-MAX_SPELLED_EXPONENT, MAX_SPELLED_EXPONENT))


def between(
    low: Normalized, high: Normalized, *, low_open: bool, high_open: bool, places: int | None = None
) -> Expression:
    """Returns the magnitudes from ``low`` to ``high``, ``low <= high``; open bounds are excluded.

    ``places``: only multiples of ``10**-places``.
    """
    first, last = low[1], high[1]
    if low == high:
        inside = places is None or len(low[0]) <= first + places
        return NOTHING if low_open or high_open or not inside else exactly([low])
    least = _at_least(low[0], _Mantissas(first, first, places), strict=low_open)
    greatest = _at_most(high[0], _Mantissas(last, last, places), strict=high_open)
    if first == last:
        return NOTHING if NOTHING in (least, greatest) else Intersection((least, greatest))
    parts = [least, greatest]
    first, last = first + 1, last - 1
    while places is not None and first <= last and first + places < 2 * MAX_MANTISSA_DIGITS:
        parts.append(_any_digits(_Mantissas(first, first, places)))
        first += 1
    if first <= last:
        parts.append(_any_digits(_Mantissas(first, last, None)))
    return union(parts)


def exactly(magnitudes: Iterable[Normalized]) -> Expression:
    """Returns these magnitudes; those of one size share everything but digits, so that thousands take a moment."""
    sizes: dict[tuple[int, int], list[str]] = {}
    for digits, position in magnitudes:
        sizes.setdefault((len(digits), position), []).append(digits)
    parts: list[Expression] = []
    for (length, position), texts in sizes.items():
        for point in range(length - MAX_MANTISSA_DIGITS, MAX_MANTISSA_DIGITS + 1):
            if point > 0:
                mantissas = [_with_point(digits.ljust(point, "0"), point) for digits in texts]
            else:
                mantissas = [b"0." + b"0" * -point + digits.encode() for digits in texts]
            spelled = Literal(mantissas[0]) if len(mantissas) == 1 else LiteralSet(tuple(mantissas))
            after = length - point
            zeros = repetition(_ZERO, 0, MAX_MANTISSA_DIGITS - after) if after > 0 else _ZERO_FRACTION
            parts.append(sequence(spelled, zeros, exponent(position - point, position - point)))
    return union(parts)


def multiples(divisor: int, scale: int) -> Expression:
    """Returns the multiples of ``divisor * 10**-scale``, with their sign, zero included.

    The result is correct for texts in scientific notation; it may match others, too.
    """
    while divisor % 10 == 0:
        divisor, scale = divisor // 10, scale - 1
    parts: list[Expression] = [sequence(_ANY_SIGN, zero())]
    # A divisor without fraction and final zeros, with at most the digits of a mantissa.
    whole: Expression = sequence(_ANY_SIGN, _NATURAL)
    if divisor > 1:
        whole = Intersection((whole, Multiple(divisor)))
    for zeros in range(1, MAX_MANTISSA_DIGITS):
        of_this = exponent(-zeros - scale, -zeros - scale)
        parts.append(sequence(whole, Literal(b"0" * zeros), _ZERO_FRACTION, of_this))
    # Factors of 2 and 5 and fractions, up to exponents beyond which nothing changes.
    last = MAX_MANTISSA_DIGITS + max(_power(divisor, 2), _power(divisor, 5))
    parts += (sequence(Multiple(divisor, n), exponent(n - scale, n - scale)) for n in range(last))
    parts.append(sequence(Multiple(divisor, last), exponent(last - scale, MAX_SPELLED_EXPONENT)))
    return union(parts)


def _power(number: int, prime: int) -> int:
    power = 0
    while number % prime == 0:
        number, power = number // prime, power + 1
    return power


def _with_point(digits: str, point: int) -> bytes:
    return (digits[:point] + "." + digits[point:] if point < len(digits) else digits).encode()


class _Mantissas(NamedTuple):
    """Mantissas whose position, with the exponent, is one of ``first`` to ``last``.

    With ``places``, ``first`` and ``last`` are equal, and digits beyond that many decimal places are zeros.
    """

    first: int
    last: int
    places: int | None

    def exponent(self, position: int) -> Expression:
        """Returns the exponents that follow a mantissa of this position."""
        return exponent(self.first - position, self.last - position)

    @property
    def digits(self) -> int:
        """Returns the number of digits, from the first one on, that may be other than zero."""
        return 2 * MAX_MANTISSA_DIGITS if self.places is None else self.first + self.places

    def free(self, read: int, most: int) -> int:
        """Returns the number of the next ``most`` digits that may be other than zero, after ``read`` digits."""
        return max(0, min(self.digits - read, most))


@remembered(1024, MANTISSA_BYTES, _no_bytes, tree_bytes)  # one for every position of an integer, and more
def _any_digits(mantissas: _Mantissas) -> Expression:
    """Returns all mantissas but zero."""
    if mantissas.digits <= 0:
        return NOTHING

    def fraction(zeros: int) -> Expression:
        most = MAX_MANTISSA_DIGITS - zeros - 1
        return sequence(NONZERO_DIGIT, _digits_and_zeros(mantissas.free(1, most), most), mantissas.exponent(-zeros))

    return union([sequence(NONZERO_DIGIT, _more_digits(mantissas)[1]), _after_zeros(fraction)])


@remembered(64, MANTISSA_BYTES, _no_bytes, lambda found: tree_bytes(*found))
def _more_digits(mantissas: _Mantissas) -> tuple[Expression, ...]:
    """Returns the texts after so many digits before the point, if the digits do not matter."""
    after: list[Expression] = [NOTHING] * (MAX_MANTISSA_DIGITS + 2)
    for count in range(MAX_MANTISSA_DIGITS, 0, -1):
        free = mantissas.free(count, MAX_MANTISSA_DIGITS)
        digit = DIGIT if free else _ZERO
        ended = sequence(_fraction(free), mantissas.exponent(count))
        after[count] = union([ended, sequence(digit, after[count + 1])])
    return tuple(after)


def _after_zeros(rest: Callable[[int], Expression]) -> Expression:
    """Returns ``0.``, some zeros, and the result of ``rest`` for their number."""
    tail: Expression = NOTHING
    for zeros in range(MAX_MANTISSA_DIGITS - 1, -1, -1):
        tail = union([rest(zeros), sequence(_ZERO, tail)])
    return sequence(Literal(b"0."), tail)


@remembered(64, MANTISSA_BYTES, _no_bytes, tree_bytes)
def _fraction(free: int) -> Expression:
    """Returns the empty text, or a point and digits, of which only the first ``free`` may be other than zero."""
    if not free:
        return _ZERO_FRACTION
    zeros = repetition(_ZERO, 0, MAX_MANTISSA_DIGITS - free)
    return Repetition(sequence(_POINT, Repetition(DIGIT, 1, free), zeros), 0, 1)


def _digits_and_zeros(free: int, most: int) -> Expression:
    return sequence(repetition(DIGIT, 0, free), repetition(_ZERO, 0, most - free))


@remembered(
    64, MANTISSA_BYTES, _text_bytes, tree_bytes
)  # the bound on one side is mostly the greatest or the least float
def _at_least(bound: str, mantissas: _Mantissas, *, strict: bool) -> Expression:
    """Returns mantissas whose digits, as a fraction, are at least (``strict``: greater than) those of the bound."""
    if mantissas.digits <= 0:
        return NOTHING
    bound, strict = _above(bound, mantissas.digits, strict=strict)
    greater = _more_digits(mantissas)
    equal: Expression = NOTHING
    for count in range(MAX_MANTISSA_DIGITS, 0, -1):
        free = mantissas.free(count, MAX_MANTISSA_DIGITS)
        ended = sequence(_fraction_above(bound[count:], free, strict=strict), mantissas.exponent(count))
        digit = bound[count : count + 1] or "0"
        more = sequence(_greater_digit(digit), greater[count + 1]) if free else NOTHING
        equal = union([ended, more, sequence(_literal(digit), equal)])

    def fraction(zeros: int) -> Expression:
        most = MAX_MANTISSA_DIGITS - zeros
        free = mantissas.free(0, most)
        rest, open_end = _above(bound, free, strict=strict)
        digits = decimals.digits_above(rest, free, strict=open_end)
        return sequence(digits, repetition(_ZERO, 0, most - free), mantissas.exponent(-zeros))

    first = bound[0]
    return union(
        [sequence(_greater_digit(first), greater[1]), sequence(_literal(first), equal), _after_zeros(fraction)]
    )


def _fraction_above(rest: str, free: int, *, strict: bool) -> Expression:
    if not rest and not strict:
        return _fraction(free)
    if not free:
        return NOTHING
    rest, strict = _above(rest, free, strict=strict)
    digits = decimals.digits_above(rest, free, strict=strict)
    return sequence(_POINT, digits, repetition(_ZERO, 0, MAX_MANTISSA_DIGITS - free))


@remembered(64, MANTISSA_BYTES, _text_bytes, tree_bytes)
def _at_most(bound: str, mantissas: _Mantissas, *, strict: bool) -> Expression:
    """Returns nonzero mantissas whose digits, as a fraction, are at most (``strict``: less than) those of the bound."""
    if mantissas.digits <= 0:
        return NOTHING
    bound, strict = _below(bound, mantissas.digits, strict=strict)
    less = _more_digits(mantissas)
    equal: Expression = NOTHING
    for count in range(MAX_MANTISSA_DIGITS, 0, -1):
        free = mantissas.free(count, MAX_MANTISSA_DIGITS)
        ended = sequence(_fraction_below(bound[count:], free, strict=strict), mantissas.exponent(count))
        digit = bound[count : count + 1] or "0"
        equal = union([ended, sequence(_less_digit("0", digit), less[count + 1]), sequence(_literal(digit), equal)])
    first = bound[0]

    def fraction(zeros: int) -> Expression:
        most = MAX_MANTISSA_DIGITS - zeros - 1
        free = mantissas.free(1, most)
        rest, open_end = _below(bound[1:], free, strict=strict)
        same = sequence(_literal(first), decimals.digits_below(rest, free, strict=open_end))
        other = sequence(_less_digit("1", first), repetition(DIGIT, 0, free))
        return sequence(union([other, same]), repetition(_ZERO, 0, most - free), mantissas.exponent(-zeros))

    return union([sequence(_less_digit("1", first), less[1]), sequence(_literal(first), equal), _after_zeros(fraction)])


def _fraction_below(rest: str, free: int, *, strict: bool) -> Expression:
    if not rest:
        return NOTHING if strict else _ZERO_FRACTION
    rest, strict = _below(rest, free, strict=strict)
    if not rest:
        return _ZERO_FRACTION
    zeros = repetition(_ZERO, 0, MAX_MANTISSA_DIGITS - free)
    return Repetition(sequence(_POINT, decimals.some_digits_below(rest, free, strict=strict), zeros), 0, 1)


def _above(fraction: str, digits: int, *, strict: bool) -> tuple[str, bool]:
    """Returns an equivalent lower bound for fractions of so many digits."""
    return (fraction, strict) if len(fraction) <= digits else (fraction[:digits].rstrip("0"), True)


def _below(fraction: str, digits: int, *, strict: bool) -> tuple[str, bool]:
    """Returns an equivalent upper bound for fractions of so many digits."""
    return (fraction, strict) if len(fraction) <= digits else (fraction[:digits].rstrip("0"), False)


def _literal(digit: str) -> Expression:
    return Literal(digit.encode())


def _greater_digit(digit: str) -> Expression:
    return NOTHING if digit == "9" else digit_range(chr(ord(digit) + 1), "9")


def _less_digit(least: str, digit: str) -> Expression:
    return NOTHING if digit <= least else digit_range(least, chr(ord(digit) - 1))
