r"""The canonical spelling of the numbers of a shape, in exact decimal arithmetic.

- no exponent, no leading zeros, no ``+``;
- integers: ``-?(0|[1-9][0-9]*)``, no fraction, no ``-0``, at most ``FLOAT_DIGITS`` digits, or
  ``MAX_DIGITS`` with ``precision="decimal"``;
- other numbers: also a fraction of 1 to ``FRACTION_DIGITS`` digits, or up to 32 digits more than the longest bound
  has, if that is more. It ends in another digit than zero (``1.5``, not ``1.50``). A whole number has none, or ``.0``:
  Python writes an int as ``1`` and a float as ``1.0``, and a JSON Schema does not tell which of these it means. All are
  finite as binary64: at most ``FLOAT_DIGITS`` digits before the point; if a bound demands more, up to the greatest
  float;
- constants: a whole one is ``1``, and ``1.0`` only if the schema writes it with a fraction or an exponent.

With ``zeros``, as in a model's answer, a fraction may end in zeros, within these limits; a multiple has no more
decimals than its divisor. Otherwise a model that copies ``12.50`` could not end there and would write ``12.501``.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from constrain.json_schema.numbers import decimals, exclusions
from constrain.json_schema.numbers.cells import (
    DECIMAL_DIGITS,
    MAX_UNDERFLOW_DIGITS,
    SIGNIFICANT_DIGITS,
    around,
    is_long_integer,
    is_short,
    least_double,
)
from constrain.json_schema.numbers.decimals import (
    ANY_SIGN,
    FLOAT_DIGITS,
    MINUS,
    ZERO,
    naturals,
    one_of,
    spelled,
    union,
)
from constrain.json_schema.numbers.shape import (
    MAX_DIGITS,
    ONE,
    VALUE_STEPS,
    Number,
    NumberShape,
    bounded,
    factors,
    is_multiple,
    list_numbers,
    mirrored,
    nonempty,
    scaled,
    shape_bytes,
    step_of,
    to_decimal,
    too_many_digits,
)
from constrain.language.tree import (
    EMPTY_TEXT,
    NOTHING,
    Alternation,
    Concatenation,
    Expression,
    Intersection,
    LiteralSet,
    tree_bytes,
)
from constrain.regex.anchors import repetition, sequence
from constrain.remembering import remembered
from constrain.tables.numbers import NumberTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

FRACTION_DIGITS = 64
"""Most digits that are written after the point, more than any shortest representation of a float has."""

SPARE_FRACTION_DIGITS = 32
"""Digits after the point that numbers may have beyond those of the longest bound."""

MAX_LISTED_MULTIPLES = 1000
"""Integer multiples up to which they are listed, if they take at most MAX_LISTED_BYTES."""

MAX_LISTED_BYTES = 32_000

NUMBER_BYTES = 16 << 20
"""Bytes of remembered expressions of numbers; beyond it, the least recently used are forgotten."""

DIGIT_STEPS, FRACTION_STEPS, SCIENTIFIC_STEPS = 6, 15, 350
"""Compilation steps for one digit of a bound: of integers, of other numbers, and of numbers that may have exponents."""

WHOLE_MULTIPLE_STEPS, MULTIPLE_STEPS = 250, 1_000
"""Compilation steps for multiples of a whole number, and of a fraction, in addition to the steps for their bounds."""

EXCLUDED_STEPS = 40
"""Compilation steps for one digit of an excluded number, whose whole double is excluded."""

_GREATEST_INTEGER: int = 10**MAX_DIGITS - 1
_GREATEST_FLOAT = int(sys.float_info.max)
_GREATEST_SHORT: int = 10**FLOAT_DIGITS - 1


def digits_of(by_double: bool) -> dict[str, int]:  # noqa: FBT001
    """Returns the greatest numbers of digits, by name.

    ``integer``: of an integer. ``before_point`` and ``after_point``: of other numbers; after the point, 32 more than
    the longest bound has, if that is more. With ``by_double`` also ``compared``: digits by which a number is told from
    those of another double; and ``multiple``: of a multiple of a divisor that is no double, such as 0.1.
    """
    found = {
        "integer": FLOAT_DIGITS if by_double else MAX_DIGITS,
        "before_point": FLOAT_DIGITS,
        "after_point": FRACTION_DIGITS,
    }
    return found | {"compared": SIGNIFICANT_DIGITS, "multiple": DECIMAL_DIGITS} if by_double else found


def number_steps(shape: NumberShape, numbers: str, precision: str) -> int:
    """Returns the compilation steps for the terminal of a shape's numbers, estimated from its size."""
    if isinstance(shape.values, NumberTable):
        return 1
    if shape.values is not None:
        return len(shape.values) * (VALUE_STEPS if numbers == "canonical" else SCIENTIFIC_STEPS // 10)
    whole = shape.integer or (shape.multiple is not None and shape.multiple.denominator == 1)
    each = SCIENTIFIC_STEPS if numbers != "canonical" else DIGIT_STEPS if whole else FRACTION_STEPS
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
    """Returns the canonical spellings of the numbers of a shape that has any; ``NOTHING`` if a float can hold none.

    ``by_double``: no text reads as the double of an excluded value or an excluded multiple, integers that no double
    holds are left out with these, and a bound that is no double never decides about a number with a fraction. With
    ``zeros``, fractions may end in zeros; with ``spare_zeros``, those of multiples and constants may also have
    ``FRACTION_DIGITS`` digits, or 32 more than the constant has, and a constant ``0`` is also ``-0``.
    Raises ``LimitError`` for a number with more than ``MAX_DIGITS`` digits.
    """
    listed = shape.values
    if shape.not_multiples and shape.multiple is not None:
        listed = list_numbers(shape, MAX_LISTED_MULTIPLES)
    if listed is not None:
        # Long integers are written without fraction and exponent.
        long = [value for value in listed if by_double and is_long_integer(value)]
        others = [value for value in listed if not is_long_integer(value)] if long else listed
        pointed = shape.pointed or shape.values is None
        constants = _constants(others, integer=shape.integer, pointed=pointed, spare_zeros=spare_zeros)
        return union([constants, _constants(long, integer=True)])
    if by_double and not shape.integer:
        inner = with_doubles(shape)
        if inner is not shape:
            whole = shape._replace(integer=True)
            whole = whole._replace(multiple=None if shape.multiple is None else step_of(whole))
            parts = [settled for each in (inner, whole) if (settled := nonempty(each)) is not None]
            spellings = partial(canonical_spellings, by_double=True, zeros=zeros, spare_zeros=spare_zeros)
            return union(list(map(spellings, parts)))
    return _spellings(shape, by_double=by_double, zeros=zeros, spare_zeros=spare_zeros)


def with_doubles(shape: NumberShape) -> NumberShape:
    """Returns the shape of its numbers with a fraction or an exponent: read as doubles, so with doubles as bounds."""
    low, high = shape.minimum, shape.maximum
    if is_long_integer(low):
        shape = shape._replace(minimum=least_double(int(low)), exclusive_minimum=False)  # type: ignore[arg-type]
    if is_long_integer(high):
        shape = shape._replace(maximum=-least_double(-int(high)), exclusive_maximum=False)  # type: ignore[arg-type]
    return shape


def _constants(
    values: Sequence[Number], *, integer: bool = False, pointed: bool = False, spare_zeros: bool = False
) -> Expression:
    """Returns the spellings of some numbers; ``integer``: of the whole ones. ``NOTHING`` if there are none.

    With ``pointed``, whole numbers are also spelled with ``.0``, unless ``integer``. Values with equally long fractions
    share everything but their digits, so that thousands take a moment.
    """
    by_zeros: dict[Expression, list[bytes]] = {}
    for value in values:
        if integer and not is_multiple(value, ONE):
            continue
        if not _is_written(value):
            raise too_many_digits()
        text, fraction = spelled(value)
        digits = max(FRACTION_DIGITS, fraction + SPARE_FRACTION_DIGITS)
        zeros: Expression = EMPTY_TEXT
        if not fraction and not integer and (pointed or spare_zeros):
            zeros = decimals.zero_fraction(digits, zeros=spare_zeros)
        elif fraction and spare_zeros:
            zeros = repetition(ZERO, 0, digits - fraction)
        by_zeros.setdefault(zeros, []).append(text)
        if spare_zeros and value == 0:
            by_zeros[zeros].append(b"-0")
    return union([sequence(one_of(texts), zeros) for zeros, texts in by_zeros.items()])


def _is_written(value: Number) -> bool:
    """Returns whether a number has at most ``MAX_DIGITS`` digits before the point."""
    # A comparison of a decimal with a long integer is slow.
    return abs(value) <= _GREATEST_INTEGER if isinstance(value, int) else value.adjusted() < MAX_DIGITS


@remembered(2048, NUMBER_BYTES, shape_bytes, tree_bytes)
def _spellings(shape: NumberShape, *, by_double: bool, zeros: bool, spare_zeros: bool) -> Expression:
    """Returns the canonical spellings of a shape without values."""
    shape = shape._replace(excluded=tuple(filter(_is_written, shape.excluded)))
    if shape.integer:
        return _integers(shape, by_double=by_double)
    multiple = None if shape.multiple is None else to_decimal(shape.multiple)
    others = tuple(map(to_decimal, shape.not_multiples))
    digits = _fraction_digits(shape.minimum, shape.maximum, multiple, *others, *shape.excluded)
    most = digits if spare_zeros or multiple is None else max(scaled(multiple)[1], 1)
    numbers = _numbers(shape, most, zeros=zeros or spare_zeros)
    if numbers is NOTHING:
        return NOTHING
    if others and multiple is not None:
        exclusions.check_beside_others(scaled(multiple)[0], multiple, [scaled(other)[0] for other in others])
    outside = [exclusions.values(shape.excluded)] if shape.excluded else []
    if by_double:
        outside += [_reads_as(value, digits) for value in shape.excluded]
        if others and multiple is None:
            numbers = Intersection((numbers, exclusions.apart_from_multiples(others)))
            if 1 in others and all(isinstance(divisor, int) for divisor in others):
                others = ()  # the remaining numbers have a fraction
    divisors = [
        exclusions.values((0,)) if each > _GREATEST_FLOAT else exclusions.multiple(*scaled(each)) for each in others
    ]
    return exclusions.without(numbers, divisors, outside)


def _fraction_digits(*values: Number | None) -> int:
    longest = max((scaled(value)[1] for value in values if value.__class__ is not int and value is not None), default=0)
    return max(FRACTION_DIGITS, longest + SPARE_FRACTION_DIGITS)


def _reads_as(value: Number, digits: int) -> Expression:
    """Returns the numbers, with up to so many digits after the point, that read as the same double as ``value``."""
    if value == 0 and digits <= MAX_UNDERFLOW_DIGITS:
        return exclusions.values((0,))
    cell = around(value)
    return _interval(cell, max(digits, _fraction_digits(cell.minimum, cell.maximum)), zeros=True)


# Integers.


def _integers(shape: NumberShape, *, by_double: bool) -> Expression:
    digits = FLOAT_DIGITS if by_double else MAX_DIGITS
    greatest = _GREATEST_SHORT if by_double else _GREATEST_INTEGER
    low, high = factors(bounded(shape, -greatest, greatest), ONE)
    low, high = max(low, -greatest), min(high, greatest)
    if low > high:
        return NOTHING
    bounds = None if low == -greatest else low, None if high == greatest else high
    divisor = 1 if shape.multiple is None else _integer_divisor(shape.multiple)
    if divisor == 1 and not shape.not_multiples and not shape.excluded:
        return _integer_range(*bounds, digits)
    first, last = -(-low // divisor), high // divisor
    if first > last:
        return NOTHING
    others = list(map(_integer_divisor, shape.not_multiples))
    left_out = {int(value) for value in shape.excluded if is_multiple(value, ONE)}
    cells = [factors(around(value), ONE) for value in shape.excluded if not is_short(value)] if by_double else []
    if _is_short_list(first, last, divisor):
        texts = [
            str(number).encode()
            for number in range(first * divisor, last * divisor + 1, divisor)
            if number not in left_out
            and all(number % other for other in others)
            and not any(least <= number <= most for least, most in cells)
        ]
        return LiteralSet(tuple(texts)) if texts else NOTHING
    integers = _integer_range(*bounds, digits)
    if divisor > 1:
        integers = Intersection((integers, exclusions.multiple(divisor)))
        if others:
            assert shape.multiple is not None
            exclusions.check_beside_others(divisor, to_decimal(shape.multiple), others)
    left_out.update(0 for other in others if other > _GREATEST_INTEGER)
    outside: list[Expression] = [LiteralSet(tuple(str(value).encode() for value in left_out))] if left_out else []
    outside += [_integer_range(least, most, digits) for least, most in cells if least <= most]
    divisors = [exclusions.multiple(other) for other in others if other <= _GREATEST_INTEGER]
    return exclusions.without(integers, divisors, outside)


def _is_short_list(first: int, last: int, divisor: int) -> bool:
    """Returns whether the multiples from ``first`` to ``last`` times the divisor are few enough to list."""
    if last - first >= MAX_LISTED_MULTIPLES:
        return False
    longest = max(abs(first), abs(last)) * divisor
    # 3 bits are a little less than a digit.
    return (last - first + 1) * (longest.bit_length() // 3 + 2) <= MAX_LISTED_BYTES or first == last


def _integer_divisor(divisor: Fraction) -> int:
    """Returns the divisor of the integers among the multiples of a fraction. Raises LimitError for too many digits."""
    scaled(to_decimal(divisor))
    return min(divisor.numerator, _GREATEST_INTEGER + 1)  # any greater one will do: only 0 is left


def _integer_range(low: int | None, high: int | None, digits: int) -> Expression:
    """Returns the integers between two bounds, with at most so many digits on a side without a bound."""
    if low is None and high is None:
        return Alternation((ZERO, Concatenation((ANY_SIGN, naturals(digits)))))
    parts = []
    if high is None or high >= 0:
        parts.append(_naturals(0 if low is None else max(low, 0), high, digits))
    if low is None or low < 0:
        nearest = 1 if high is None else max(-high, 1)
        parts.append(sequence(MINUS, _naturals(nearest, None if low is None else -low, digits)))
    return union(parts)


def _naturals(low: int, high: int | None, digits: int) -> Expression:
    if high is None and low <= 1:
        return naturals(digits) if low else Alternation((ZERO, naturals(digits)))
    return decimals.natural_range(str(low), None if high is None else str(high), digits)


# Other numbers.


def _numbers(shape: NumberShape, digits: int, *, zeros: bool) -> Expression:
    """Returns the numbers within the bounds, with up to so many digits after the point, that are multiples."""
    low, high = shape.minimum, shape.maximum
    if (low is not None and low > _GREATEST_FLOAT) or (high is not None and high < -_GREATEST_FLOAT):
        return NOTHING
    # A side without a bound ends at FLOAT_DIGITS digits, unless the other bound lies beyond them.
    far = any(bound is not None and abs(int(bound)) > _GREATEST_SHORT for bound in (low, high))
    greatest = _GREATEST_FLOAT if far else _GREATEST_SHORT
    if low is None or low < -greatest:
        shape = shape._replace(minimum=-greatest if far else None, exclusive_minimum=False)
    if high is None or high > greatest:
        shape = shape._replace(maximum=greatest if far else None, exclusive_maximum=False)
    step = shape.multiple
    if step is None:
        return _interval(shape, digits, zeros=zeros)
    first, last = factors(bounded(shape, -_GREATEST_SHORT, _GREATEST_SHORT), step)
    if first > last:
        return NOTHING
    if first == last == 0:
        return sequence(ZERO, decimals.zero_fraction(digits, zeros=zeros))
    # For a bound with more digits, the first multiple inside is an equal one.
    if shape.minimum is not None and scaled(shape.minimum)[1] > digits:
        shape = shape._replace(minimum=to_decimal(first * step), exclusive_minimum=False)
    if shape.maximum is not None and scaled(shape.maximum)[1] > digits:
        shape = shape._replace(maximum=to_decimal(last * step), exclusive_maximum=False)
    return Intersection((_interval(shape, digits, zeros=zeros), exclusions.multiple(*scaled(to_decimal(step)))))


def _interval(shape: NumberShape, digits: int, *, zeros: bool) -> Expression:
    """Returns the numbers within the bounds, which are not empty. Zero has no sign."""
    low, high = shape.minimum, shape.maximum
    spellings: list[Expression] = []
    if zero_inside := high is None or high > 0 or (high == 0 and not shape.exclusive_maximum):
        positive = shape if low is not None and low >= 0 else shape._replace(minimum=0, exclusive_minimum=False)
        spellings.append(decimals.fractional_range(positive, digits, zeros=zeros))
    if low is None or low < 0:
        negative = mirrored(shape)
        if zero_inside:
            negative = negative._replace(minimum=0, exclusive_minimum=True)
        spellings.append(sequence(MINUS, decimals.fractional_range(negative, digits, zeros=zeros)))
    return union(spellings)
