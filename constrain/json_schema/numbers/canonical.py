"""The texts of a number shape in canonical spelling, and the steps that they cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from constrain.json_schema.numbers.cells import Number, is_long_integer, least_double
from constrain.json_schema.numbers.decimals import union
from constrain.json_schema.numbers.plain import MAX_LISTED_MULTIPLES, number_expression, number_literal_expression
from constrain.json_schema.numbers.shape import (
    VALUE_STEPS,
    NumberShape,
    list_numbers,
    nonempty,
    step_of,
    to_decimal,
)
from constrain.language.tree import Expression

if TYPE_CHECKING:
    from collections.abc import Sequence


NumberSpellings = Callable[[NumberShape], Expression]


DIGIT_STEPS = 6
"""Compilation steps for one digit of a bound; ``FRACTION_STEPS``: with fractions; ``SCIENTIFIC_STEPS``: with
exponents."""


FRACTION_STEPS = 15


SCIENTIFIC_STEPS = 350


MULTIPLE_STEPS = 1_000
"""Compilation steps for the multiples of a fraction, most of them in the kernel; ``WHOLE_MULTIPLE_STEPS``: for those of
a whole number, in addition to the digits of their bounds."""


WHOLE_MULTIPLE_STEPS = 250


EXCLUDED_STEPS = 40
"""Compilation steps for one digit of an excluded number, whose whole double is excluded."""


def number_steps(shape: NumberShape, numbers: str, precision: str) -> int:
    """Returns the compilation steps for the terminal of a shape's numbers, estimated from its size."""
    if shape.values is not None:
        return len(shape.values) * (VALUE_STEPS if numbers == "canonical" else SCIENTIFIC_STEPS // 10)
    whole = shape.integer or (shape.multiple is not None and shape.multiple.denominator == 1)
    each = DIGIT_STEPS if whole else FRACTION_STEPS
    each = each if numbers == "canonical" else SCIENTIFIC_STEPS
    steps = each * (_digits(shape.minimum) + _digits(shape.maximum))
    if shape.multiple is not None:
        steps += WHOLE_MULTIPLE_STEPS if shape.multiple.denominator == 1 else MULTIPLE_STEPS
    each = EXCLUDED_STEPS if precision == "double" and not shape.integer else VALUE_STEPS
    return steps + each * sum(map(_digits, shape.excluded))


def _digits(value: Number | None) -> int:
    if value is None:
        return 0
    return value.bit_length() // 3 + 1 if isinstance(value, int) else len(value.as_tuple().digits)


def canonical_spellings(
    shape: NumberShape, *, by_double: bool, zeros: bool = False, spare_zeros: bool = False
) -> Expression:
    """Returns the canonical spellings of a shape's numbers; ``NOTHING`` if all are larger than a float can hold.

    ``by_double``: no text reads as the double of an excluded value or an excluded multiple, and a bound that is no
    double never decides about a number with a fraction. ``zeros`` and ``spare_zeros``: see ``number_expression``; for
    constants, only ``spare_zeros`` counts.
    """
    if shape.values is not None:
        return _listed(shape, shape.values, by_double=by_double, spare_zeros=spare_zeros)
    if shape.not_multiples and shape.multiple is not None:
        listed = list_numbers(shape, MAX_LISTED_MULTIPLES)
        if listed is not None:
            return _listed(shape, listed, by_double=by_double, spare_zeros=spare_zeros)
    if by_double and not shape.integer:
        inner = with_doubles(shape)
        if inner is not shape:
            whole = shape._replace(integer=True)
            whole = whole._replace(multiple=None if shape.multiple is None else step_of(whole))
            parts = [settled for each in (inner, whole) if (settled := nonempty(each)) is not None]
            spelled = partial(canonical_spellings, by_double=True, zeros=zeros, spare_zeros=spare_zeros)
            return union(list(map(spelled, parts)))
    bounds: dict[str, Number | None] = {
        "exclusive_minimum" if shape.exclusive_minimum else "minimum": shape.minimum,
        "exclusive_maximum" if shape.exclusive_maximum else "maximum": shape.maximum,
    }
    return number_expression(
        **bounds,
        integer=shape.integer,
        multiple_of=None if shape.multiple is None else to_decimal(shape.multiple),
        not_multiples_of=tuple(map(to_decimal, shape.not_multiples)),
        excluded=shape.excluded,
        by_double=by_double,
        zeros=zeros,
        spare_zeros=spare_zeros,
    )


def with_doubles(shape: NumberShape) -> NumberShape:
    """Returns the shape of its numbers with a fraction or an exponent: read as doubles, so with doubles as bounds."""
    low, high = shape.minimum, shape.maximum
    if is_long_integer(low):
        shape = shape._replace(minimum=least_double(int(low)), exclusive_minimum=False)  # type: ignore[arg-type]
    if is_long_integer(high):
        shape = shape._replace(maximum=-least_double(-int(high)), exclusive_maximum=False)  # type: ignore[arg-type]
    return shape


def _listed(shape: NumberShape, values: Sequence[Number], *, by_double: bool, spare_zeros: bool) -> Expression:
    """Returns the spellings of all numbers of a shape; with ``by_double``, long integers are spelled as integers."""
    long = [value for value in values if by_double and is_long_integer(value)]
    others = [value for value in values if not is_long_integer(value)] if long else values
    pointed = shape.pointed or shape.values is None
    spelled = number_literal_expression(*others, integer=shape.integer, pointed=pointed, spare_zeros=spare_zeros)
    return union([spelled, number_literal_expression(*long, integer=True)])


CANONICAL: dict[tuple[bool, bool], NumberSpellings] = {
    (by, zeros): partial(canonical_spellings, by_double=by, zeros=zeros)
    for by in (False, True)
    for zeros in (False, True)
}
"""The canonical spellings, by ``by_double`` and ``zeros``."""
