"""The texts of the numbers of a shape, under the policies ``numbers`` and ``precision``.

With ``numbers="any"``, these are all JSON spellings, by value: in addition to the canonical ones, whole numbers may
have a fraction of zeros and be ``-0``, and scientific notation is allowed within the limits of ``scientific``. Numbers
with a fraction or an exponent are finite as binary64. Numbers with an exponent are 0 or at least the least float, so
that no reader rounds them to 0.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.numbers import decimals, scientific
from constrain.json_schema.numbers.canonical import (
    FRACTION_DIGITS,
    MAX_LISTED_MULTIPLES,
    canonical_spellings,
    with_doubles,
)
from constrain.json_schema.numbers.cells import LEAST_DOUBLE, around, is_long_integer
from constrain.json_schema.numbers.decimals import ANY_SIGN, MINUS, union
from constrain.json_schema.numbers.scientific import normalized
from constrain.json_schema.numbers.shape import (
    admits_number,
    is_within,
    list_numbers,
    mirrored,
    nonempty,
    scaled,
    shape_bytes,
    step_of,
    to_decimal,
    without_factor,
)
from constrain.language.tree import NOTHING, Complement, Expression, Intersection, Literal, tree_bytes
from constrain.regex.anchors import sequence
from constrain.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from constrain.json_schema.numbers.scientific import Normalized
    from constrain.json_schema.numbers.shape import Number, NumberShape

MAX_SCIENTIFIC_DIVISOR = 25
"""The digits of a divisor (37, 0.037, 3700: 37) up to which its multiples, or other numbers than these, may have an
exponent; proving that such a number can still be finished takes too long for larger ones. Above it, only zero and short
lists have exponents."""

SPELLING_BYTES = 32 << 20
"""Bytes of remembered spellings of numbers; beyond it, the least recently used are forgotten."""

_NEGATIVE_ZERO = sequence(Literal(b"-0"), decimals.zero_fraction(FRACTION_DIGITS))
_GREATEST_FLOAT: Number = int(Decimal(repr(sys.float_info.max)))


class NumberPolicy(NamedTuple):
    """Which spellings of numbers are written.

    ``canonical``: one for each, otherwise all. ``by_double``: see ``canonical_spellings``. ``zeros``: canonical
    fractions may end in zeros. ``plain_integers``: integers have no fraction and no exponent, as draft 4 demands.
    """

    canonical: bool
    by_double: bool
    zeros: bool
    plain_integers: bool

    def spellings(self, shape: NumberShape) -> Expression:
        """Returns the spellings of the numbers of a shape that has any; ``NOTHING`` if a float can hold none."""
        if self.canonical:
            return canonical_spellings(shape, by_double=self.by_double, zeros=self.zeros)
        if not (self.plain_integers and shape.integer):
            return all_spellings(shape, by_double=self.by_double)
        zero = [Literal(b"-0")] if admits_number(shape, 0) else []
        return union([canonical_spellings(shape, by_double=self.by_double), *zero])


@remembered(2048, SPELLING_BYTES, shape_bytes, tree_bytes)
def all_spellings(shape: NumberShape, *, by_double: bool) -> Expression:
    """Returns all spellings of the numbers of a shape that has any; ``NOTHING`` if a float can hold none.

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


def _scientific(shape: NumberShape, step: Fraction | None, *, by_double: bool) -> Expression:
    """Returns the spellings with an exponent. ``by_double``: no text reads as an excluded value."""
    if step is not None:
        listed = list_numbers(shape, MAX_LISTED_MULTIPLES)
        if listed is not None:
            return _scientific_values(listed)
    divisors: list[tuple[int, int]] = []  # (d, s): d * 10**-s, and d is not a multiple of 10
    for each in (*([step] if step else ()), *shape.not_multiples):
        digits, scale = scaled(to_decimal(each))
        divisor, zeros = without_factor(digits)
        divisors.append((divisor, scale - zeros))
    if any(divisor > MAX_SCIENTIFIC_DIVISOR for divisor, _ in divisors):
        return sequence(ANY_SIGN, scientific.zero()) if admits_number(shape, 0) else NOTHING
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
            excluded = union([excluded, *(_interval(around(value), None) for value in shape.excluded if value)])
        parts.append(Complement(excluded))
    return parts[0] if len(parts) == 1 else Intersection(tuple(parts))


def _interval(shape: NumberShape, places: int | None) -> Expression:
    """Returns the spellings with an exponent of the numbers within the bounds, with so many decimal places."""
    above, below = _positive(shape, places), _positive(mirrored(shape), places)
    # Equal ones are remembered as one object.
    spellings = [sequence(ANY_SIGN, above)] if above is below else [above, sequence(MINUS, below)]
    if is_within(shape, 0):
        spellings.append(sequence(ANY_SIGN, scientific.zero()))
    return union(spellings)


def _positive(shape: NumberShape, places: int | None) -> Expression:
    """Returns the numbers greater than 0 within the bounds, or within those of all floats."""
    low, low_open = shape.minimum, shape.exclusive_minimum
    high, high_open = shape.maximum, shape.exclusive_maximum
    if low is None or low < LEAST_DOUBLE:
        low, low_open = LEAST_DOUBLE, False
    if high is None or high > _GREATEST_FLOAT:
        high, high_open = _GREATEST_FLOAT, False
    if low > high or (low == high and (low_open or high_open)):
        return NOTHING
    return scientific.between(normalized(low), normalized(high), low_open=low_open, high_open=high_open, places=places)


def _scientific_values(values: Iterable[Number]) -> Expression:
    signed: dict[bool, list[Normalized]] = {False: [], True: []}
    parts: list[Expression] = []
    for value in values:
        if value == 0:
            parts.append(sequence(ANY_SIGN, scientific.zero()))
        elif -_GREATEST_FLOAT <= value <= _GREATEST_FLOAT and not -LEAST_DOUBLE < value < LEAST_DOUBLE:
            signed[value < 0].append(normalized(value))
    parts.append(scientific.exactly(signed[False]))
    parts.append(sequence(MINUS, scientific.exactly(signed[True])))
    return union(parts)
