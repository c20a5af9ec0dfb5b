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
from constrain.json_schema.numbers.decimals import (
    ANY_SIGN,
    DIGIT,
    MINUS,
    NONZERO_DIGIT,
    POINT,
    ZERO,
    digit_above,
    digit_below,
    natural_range,
    naturals,
    one_of,
    union,
)
from constrain.json_schema.numbers.shape import scaled, without_factor
from constrain.language.tree import (
    NODE_BYTES,
    NOTHING,
    Alternation,
    ByteClass,
    Expression,
    Intersection,
    Literal,
    Multiple,
    Repetition,
    tree_bytes,
)
from constrain.regex.anchors import repetition, sequence
from constrain.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from constrain.json_schema.numbers.shape import Number

Normalized = tuple[str, int]
"""Digits and position of a magnitude other than zero."""

MAX_MANTISSA_DIGITS = 17
"""Digits before the point, and as many after it; shortest spellings of floats have at most this many in all. More are
not written."""

MAX_SPELLED_EXPONENT = 350
"""The greatest exponent, of either sign; larger ones are not written, and no float with any mantissa needs one."""

EXPRESSION_BYTES = 8 << 20
"""Bytes of remembered expressions, for each function below; beyond it, the least recently used are forgotten."""

_E = ByteClass(((0x45, 0x45), (0x65, 0x65)))
_LEADING_ZEROS = Repetition(ZERO, 0, 2)
_PLUS = Repetition(Literal(b"+"), 0, 1)
_ZERO_FRACTION = decimals.zero_fraction(MAX_MANTISSA_DIGITS)

_kept = remembered(4096, EXPRESSION_BYTES, lambda *key, **_: NODE_BYTES + len(repr(key)), tree_bytes)


@_kept
def exponent(low: int, high: int) -> Expression:
    """Returns ``e`` and an exponent from ``low`` to ``high``; ``NOTHING`` if none of these is spelled."""
    low, high = max(low, -MAX_SPELLED_EXPONENT), min(high, MAX_SPELLED_EXPONENT)
    if low > high:
        return NOTHING
    signed: list[Expression] = []
    if high >= 0:
        signed.append(sequence(_PLUS, _LEADING_ZEROS, natural_range(str(max(low, 0)), str(high))))
    if low <= 0:
        signed.append(sequence(MINUS, _LEADING_ZEROS, natural_range(str(max(-high, 0)), str(-low))))
    return sequence(_E, union(signed))


def normalized(value: Number) -> Normalized:
    """Returns digits and position of the magnitude of a number other than zero."""
    number, scale = scaled(value)
    digits = str(abs(number))
    return digits.rstrip("0"), len(digits) - scale


def zero() -> Expression:
    """Returns zero, without a sign."""
    return sequence(ZERO, _ZERO_FRACTION, exponent(-MAX_SPELLED_EXPONENT, MAX_SPELLED_EXPONENT))


@_kept
def between(low: Normalized, high: Normalized, *, low_open: bool, high_open: bool, places: int | None) -> Expression:
    """Returns the magnitudes from ``low`` to ``high``, ``low <= high``; open bounds are excluded.

    ``places``: only multiples of ``10**-places``.
    """
    first, last = low[1], high[1]
    if low == high:
        inside = places is None or len(low[0]) <= first + places
        return NOTHING if low_open or high_open or not inside else exactly([low])
    least = _beyond(low[0], _Mantissas(first, first, places), above=True, strict=low_open)
    greatest = _beyond(high[0], _Mantissas(last, last, places), above=False, strict=high_open)
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
            whole, leading, after = max(point, 0), "0" * -point, length - point
            spelled = (f"{digits[:whole]:0<{whole or 1}}.{leading}{digits[whole:]}" for digits in texts)
            mantissas = [text.rstrip(".").encode() for text in spelled]
            zeros = repetition(ZERO, 0, MAX_MANTISSA_DIGITS - after) if after > 0 else _ZERO_FRACTION
            parts.append(sequence(one_of(mantissas), zeros, exponent(position - point, position - point)))
    return union(parts)


def multiples(divisor: int, scale: int) -> Expression:
    """Returns the multiples of ``divisor * 10**-scale``, with their sign, zero included.

    The result is correct for texts in scientific notation; it may match others, too.
    """
    divisor, zeros = without_factor(divisor)
    scale -= zeros
    parts: list[Expression] = [sequence(ANY_SIGN, zero())]
    # A divisor without fraction and final zeros, with at most the digits of a mantissa.
    whole: Expression = sequence(ANY_SIGN, Alternation((ZERO, naturals(MAX_MANTISSA_DIGITS))))
    if divisor > 1:
        whole = Intersection((whole, Multiple(divisor)))
    for zeros in range(1, MAX_MANTISSA_DIGITS):
        of_this = exponent(-zeros - scale, -zeros - scale)
        parts.append(sequence(whole, Literal(b"0" * zeros), _ZERO_FRACTION, of_this))
    # Factors of 2 and 5 and fractions, up to exponents beyond which nothing changes.
    last = MAX_MANTISSA_DIGITS + max(without_factor(divisor, factor)[1] for factor in (2, 5))
    parts += (sequence(Multiple(divisor, n), exponent(n - scale, n - scale)) for n in range(last))
    parts.append(sequence(Multiple(divisor, last), exponent(last - scale, MAX_SPELLED_EXPONENT)))
    return union(parts)


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


@_kept
def _any_digits(mantissas: _Mantissas) -> Expression:
    """Returns all mantissas but zero."""
    if mantissas.digits <= 0:
        return NOTHING

    def fraction(zeros: int) -> Expression:
        most = MAX_MANTISSA_DIGITS - zeros - 1
        free = mantissas.free(1, most)
        return sequence(NONZERO_DIGIT, repetition(DIGIT, 0, free), _zeros(most - free), mantissas.exponent(-zeros))

    return union([sequence(NONZERO_DIGIT, _more_digits(mantissas)[1]), _after_zeros(fraction)])


@remembered(64, EXPRESSION_BYTES, lambda _: NODE_BYTES, lambda found: tree_bytes(*found))
def _more_digits(mantissas: _Mantissas) -> tuple[Expression, ...]:
    """Returns the texts after so many digits before the point, if the digits do not matter."""
    after: list[Expression] = [NOTHING] * (MAX_MANTISSA_DIGITS + 2)
    for count in range(MAX_MANTISSA_DIGITS, 0, -1):
        free = mantissas.free(count, MAX_MANTISSA_DIGITS)
        ended = sequence(_fraction(free), mantissas.exponent(count))
        after[count] = union([ended, sequence(DIGIT if free else ZERO, after[count + 1])])
    return tuple(after)


def _after_zeros(rest: Callable[[int], Expression]) -> Expression:
    """Returns ``0.``, some zeros, and the result of ``rest`` for their number."""
    tail: Expression = NOTHING
    for zeros in range(MAX_MANTISSA_DIGITS - 1, -1, -1):
        tail = union([rest(zeros), sequence(ZERO, tail)])
    return sequence(Literal(b"0."), tail)


@_kept
def _fraction(free: int) -> Expression:
    """Returns the empty text, or a point and digits, of which only the first ``free`` may be other than zero."""
    if not free:
        return _ZERO_FRACTION
    return Repetition(sequence(POINT, Repetition(DIGIT, 1, free), _zeros(MAX_MANTISSA_DIGITS - free)), 0, 1)


def _zeros(most: int) -> Expression:
    return repetition(ZERO, 0, most)


@_kept  # the bound on one side is mostly the greatest or the least float
def _beyond(bound: str, mantissas: _Mantissas, *, above: bool, strict: bool) -> Expression:
    """Returns nonzero mantissas whose digits, as a fraction, are at least (without ``above``: at most) the bound's.

    ``strict``: greater, or less.
    """
    if mantissas.digits <= 0:
        return NOTHING
    bound, strict = _cut(bound, mantissas.digits, above=above, strict=strict)
    any_digits = _more_digits(mantissas)

    def beyond(digit: str, least: str = "0") -> Expression:
        return digit_above(digit) if above else digit_below(digit, least)

    equal: Expression = NOTHING
    for count in range(MAX_MANTISSA_DIGITS, 0, -1):
        free = mantissas.free(count, MAX_MANTISSA_DIGITS)
        ending = _fraction_above if above else _fraction_below
        ended = sequence(ending(bound[count:], free, strict=strict), mantissas.exponent(count))
        digit = bound[count : count + 1] or "0"
        more = sequence(beyond(digit), any_digits[count + 1]) if free else NOTHING
        equal = union([ended, more, sequence(Literal(digit.encode()), equal)])
    first = bound[0]
    same = Literal(first.encode())

    def fraction(zeros: int) -> Expression:
        most = MAX_MANTISSA_DIGITS - zeros
        free = mantissas.free(0, most)
        if above:
            rest, open_end = _cut(bound, free, above=True, strict=strict)
            digits = decimals.digits_above(rest, free, strict=open_end)
        else:
            rest, open_end = _cut(bound[1:], free - 1, above=False, strict=strict)
            other = sequence(digit_below(first, "1"), repetition(DIGIT, 0, free - 1))
            digits = union([other, sequence(same, decimals.digits_below(rest, free - 1, strict=open_end))])
        return sequence(digits, _zeros(most - free), mantissas.exponent(-zeros))

    return union([sequence(beyond(first, "1"), any_digits[1]), sequence(same, equal), _after_zeros(fraction)])


def _fraction_above(rest: str, free: int, *, strict: bool) -> Expression:
    """Returns point and digits of all fractions >= (``strict``: >) ``rest``, then zeros; see ``_fraction``."""
    if not rest and not strict:
        return _fraction(free)
    if not free:
        return NOTHING
    rest, strict = _cut(rest, free, above=True, strict=strict)
    return sequence(POINT, decimals.digits_above(rest, free, strict=strict), _zeros(MAX_MANTISSA_DIGITS - free))


def _fraction_below(rest: str, free: int, *, strict: bool) -> Expression:
    """Returns point and digits of all fractions <= (``strict``: <) ``rest``, then zeros; see ``_fraction``."""
    if not rest:
        return NOTHING if strict else _ZERO_FRACTION
    rest, strict = _cut(rest, free, above=False, strict=strict)
    if not rest:
        return _ZERO_FRACTION
    digits = decimals.some_digits_below(rest, free, strict=strict)
    return Repetition(sequence(POINT, digits, _zeros(MAX_MANTISSA_DIGITS - free)), 0, 1)


def _cut(fraction: str, digits: int, *, above: bool, strict: bool) -> tuple[str, bool]:
    """Returns an equivalent bound for fractions of so many digits, and whether it is strict."""
    return (fraction, strict) if len(fraction) <= digits else (fraction[:digits].rstrip("0"), above)
