"""Exclusions from an interval of numbers: multiples of a divisor, listed values, and numbers with the same doubles.

Expressions of this module may match more spellings than are ever written, because callers intersect them with the
written ones, or subtract them from these.
"""

from __future__ import annotations

from decimal import Decimal
from math import lcm
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.numbers import decimals
from constrain.json_schema.numbers.cells import DECIMAL_DIGITS, GREATEST_EXACT
from constrain.json_schema.numbers.decimals import ANY_SIGN, DIGIT, NONZERO_DIGIT, POINT, ZERO, spelled
from constrain.json_schema.numbers.shape import without_factor
from constrain.language.tree import (
    Alternation,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Multiple,
    Repetition,
)
from constrain.regex.anchors import repetition, sequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from constrain.json_schema.numbers.shape import Number

MAX_DIVISOR_BESIDE_OTHERS = 100
"""A divisor, without zeros at its end, of numbers that other divisors must not divide; multiples of larger ones are too
far apart to prove, digit by digit, that one can still be reached. Beyond: LimitError."""

MAX_JOINT_REMAINDERS = 1_000_000
"""Least common multiple of a divisor and the excluded divisors up to MAX_DIVISOR_BESIDE_OTHERS; seven primes reach it.
Beyond: LimitError.

Larger excluded divisors exclude too few numbers to matter.
"""

FRACTION_DIGITS = 16
"""Significant digits within which a number that must not be an integer differs from every integer."""

LEAST_TRAILING_ZEROS = 4
"""Zeros at the end of a divisor from which on they are read as zeros, not as remainders."""

_ZEROS = Repetition(ZERO, 0, None)
_POINT_AND_ZEROS = Repetition(Concatenation((Literal(b".0"), _ZEROS)), 0, 1)


def without(numbers: Expression, divisors: Sequence[Expression], outside: Iterable[Expression]) -> Expression:
    """Returns the numbers that none of the divisors divides, without those in ``outside``.

    The kernel decides an intersection with one multiple by arithmetic. With several divisors that would be wasted work,
    so the multiple is hidden: as the complement of its complement.
    """
    parts = [numbers]
    if divisors and isinstance(numbers, Intersection):  # of two; correct for any two
        interval, multiple = numbers.parts
        parts = [interval]
        divisors = [Alternation((Complement(multiple), *divisors))]
    parts += map(Complement, (*divisors, *outside))
    return parts[0] if len(parts) == 1 else Intersection(tuple(parts))


def multiple(divisor: int, scale: int = 0) -> Expression:
    """Returns ``Multiple``; a small number with many zeros becomes one with literal zeros, to keep remainders small."""
    digits, zeros = without_factor(divisor)
    if scale or zeros < LEAST_TRAILING_ZEROS or digits > MAX_DIVISOR_BESIDE_OTHERS:
        return Multiple(divisor, scale)
    front: Expression = Concatenation((ANY_SIGN, NONZERO_DIGIT, Repetition(DIGIT, 0, None)))
    if digits > 1:
        front = Intersection((front, Multiple(digits)))
    return Alternation((values((0,)), Concatenation((front, Literal(b"0" * zeros), _POINT_AND_ZEROS))))


def values(listed: Iterable[Number]) -> Expression:
    """Returns the spellings of some numbers, with any number of zeros after the point."""
    texts: dict[bool, list[bytes]] = {}
    for value in listed:
        text, fraction = spelled(value)
        texts.setdefault(fraction > 0, []).append(text)
        if value == 0:
            texts[False].append(b"-0")
    return Alternation(
        tuple(
            Concatenation((LiteralSet(tuple(alike)), _ZEROS if has_fraction else _POINT_AND_ZEROS))
            for has_fraction, alike in texts.items()
        )
    )


def check_beside_others(divisor: int, name: Number, others: Iterable[int]) -> None:
    """Raises LimitError if the multiples of ``divisor`` cannot be told from those of the others.

    Of decimals, the digits count, without the point. ``name``: the divisor as the schema has it, for the message.
    """

    def too_large(limit: str) -> LimitError:
        return LimitError(
            f"multiples of {format(Decimal(name), 'f'):.40} cannot be enforced together with excluded multiples of "
            f"other numbers ({limit}); leave out multipleOf under not and oneOf, or list the numbers in an enum"
        )

    remainders, _ = without_factor(divisor)
    if remainders > MAX_DIVISOR_BESIDE_OTHERS:
        raise too_large(f"MAX_DIVISOR_BESIDE_OTHERS = {MAX_DIVISOR_BESIDE_OTHERS}")
    for other, _ in map(without_factor, others):
        if other <= MAX_DIVISOR_BESIDE_OTHERS:
            remainders = lcm(remainders, other)
            if remainders > MAX_JOINT_REMAINDERS:
                raise too_large(f"MAX_JOINT_REMAINDERS = {MAX_JOINT_REMAINDERS}")


def apart_from_multiples(divisors: Sequence[Number]) -> Expression:
    """Returns the numbers that are multiples of one of the divisors if their doubles are."""
    if not all(isinstance(divisor, int) for divisor in divisors):
        return Alternation((_SHORT_DECIMALS, values((0,))))
    if 1 in divisors:
        return _FRACTIONS
    zeros = Repetition(Concatenation((POINT, Repetition(ZERO, 1, None))), 0, 1)
    whole = sequence(ANY_SIGN, decimals.natural_range("0", str(GREATEST_EXACT)), zeros)
    return Alternation((_FRACTIONS, whole))


def _fractions() -> Expression:
    """Returns the numbers whose first ``FRACTION_DIGITS`` digits show that their doubles are not integers.

    A number below 10**n, n < 16, differs from its double by less than 10**(n - 16); near 0 by much less.
    """
    any_digits = Repetition(DIGIT, 0, None)

    def fractions(kept: int, near: Iterable[bytes]) -> Expression:
        left_out = (sequence(repetition(Literal(digit), kept, kept), any_digits) for digit in near)
        only_zeros = Repetition(ZERO, 1, None)
        return Intersection((Repetition(DIGIT, 1, None), Complement(Alternation((only_zeros, *left_out)))))

    parts = [sequence(ANY_SIGN, Literal(b"0."), fractions(FRACTION_DIGITS, (b"9",)))]
    for whole in range(1, FRACTION_DIGITS):
        integer = sequence(NONZERO_DIGIT, repetition(DIGIT, whole - 1, whole - 1))
        parts.append(sequence(ANY_SIGN, integer, POINT, fractions(FRACTION_DIGITS - whole, (b"0", b"9"))))
    return Alternation(tuple(parts))


def _short_decimals() -> Expression:
    """Returns the numbers below 10**15 with up to ``DECIMAL_DIGITS`` significant digits, and any zeros after these."""
    parts: list[Expression] = []
    for whole in range(1, DECIMAL_DIGITS + 1):
        fraction = sequence(POINT, Repetition(DIGIT, 0, DECIMAL_DIGITS - whole), _ZEROS)
        integer = Repetition(DIGIT, whole - 1, whole - 1)
        parts.append(Concatenation((NONZERO_DIGIT, integer, Repetition(fraction, 0, 1))))
    small = sequence(_ZEROS, NONZERO_DIGIT, Repetition(DIGIT, 0, DECIMAL_DIGITS - 1), _ZEROS)
    parts.append(Concatenation((Literal(b"0."), small)))
    return sequence(ANY_SIGN, Alternation(tuple(parts)))


_FRACTIONS = _fractions()
_SHORT_DECIMALS = _short_decimals()
