r"""JSON numbers as expressions: intervals and multiples in exact decimal arithmetic.

The canonical spelling policy:

- no exponent, no leading zeros, no ``+``;
- integers: ``-?(0|[1-9][0-9]*)``, no fraction, no ``-0``, at most ``MAX_FLOAT_DIGITS`` digits, or
  ``MAX_INTEGER_DIGITS`` with ``precision="decimal"``;
- other numbers: also a fraction of 1 to ``MAX_FRACTION_DIGITS`` digits, or up to 32 digits more than the longest bound
  has, if that is more. It ends in another digit than zero (``1.5``, not ``1.50``). A whole number has none, or ``.0``:
  Python writes an int as ``1`` and a float as ``1.0``, and a JSON Schema does not tell which of these it means. All are
  finite as binary64: at most ``MAX_FLOAT_DIGITS`` digits before the point; if a bound demands more, up to the greatest
  float;
- constants: a whole one is ``1``, and ``1.0`` only if the schema writes it with a fraction or an exponent.

In the answer of a model, a fraction may end in zeros (``zeros``), in the digits above; multiples have at most as many
as their divisor. Otherwise a model that copies ``12.50`` could not end there and would write ``12.501``.

``digits_of`` lists the limits of digits in force; with ``numbers="any"``, ``every`` has the spellings.
"""

from __future__ import annotations

import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import gcd, lcm
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.numbers import decimals
from constrain.json_schema.numbers.cells import (
    DECIMAL_DIGITS,
    GREATEST_EXACT,
    MAX_UNDERFLOW_DIGITS,
    SIGNIFICANT_DIGITS,
    Number,
    around,
    is_short,
)
from constrain.json_schema.numbers.decimals import DIGIT, NONZERO_DIGIT, Magnitude
from constrain.language.tree import (
    EMPTY_TEXT,
    NOTHING,
    PART_BYTES,
    Alternation,
    Complement,
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
    from collections.abc import Iterable

MAX_INTEGER_DIGITS = 4300
"""Digits of an integer: what Python's int() reads by default (sys.int_info.default_max_str_digits). Beyond: LimitError
for a number of a schema; longer ones are not written."""

MAX_FLOAT_DIGITS = 308
"""Digits before the point of a number: every such number is finite as binary64. Beyond: longer ones are not written."""

MAX_FRACTION_DIGITS = 64
"""Digits after the point, more than any shortest representation of a float has. Beyond: longer ones are not written."""

MAX_BOUND_FRACTION_DIGITS = 1100
"""Digits after the point of a bound, a divisor or a constant; every float has fewer. Beyond: LimitError."""

MAX_LISTED_MULTIPLES = 1000
"""Integer multiples up to which they are listed, if they take at most MAX_LISTED_BYTES."""

MAX_LISTED_BYTES = 32_000

MAX_DIVISOR_BESIDE_OTHERS = 100
"""A divisor, without zeros at its end, of numbers that other divisors must not divide; multiples of larger ones are too
far apart to prove, digit by digit, that one can still be reached. Beyond: LimitError."""

MAX_JOINT_REMAINDERS = 1_000_000
"""Least common multiple of a divisor and the excluded divisors up to MAX_DIVISOR_BESIDE_OTHERS; seven primes reach it.
Beyond: LimitError.

Larger excluded divisors exclude too few numbers to matter.
"""

FRACTION_DIGITS = 16
"""Digits, those before the point included, by which a number that must not be an integer differs from all integers."""

LEAST_TRAILING_ZEROS = 4
"""Zeros at the end of a divisor from which on they are read as zeros, not as remainders."""

_SPARE_FRACTION_DIGITS = 32
_MINUS = Literal(b"-")
_ANY_SIGN = Repetition(_MINUS, 0, 1)
_GREATEST_INTEGER: int = 10**MAX_INTEGER_DIGITS - 1
_GREATEST_FLOAT = int(sys.float_info.max)
_GREATEST_SHORT: int = 10**MAX_FLOAT_DIGITS - 1


def _positive(digits: int) -> Expression:
    return Concatenation((NONZERO_DIGIT, Repetition(DIGIT, 0, digits - 1)))


def _any_integer(digits: int) -> Expression:
    return Alternation((Literal(b"0"), Concatenation((_ANY_SIGN, _positive(digits)))))


_SHORT_NATURAL = Alternation(
    (Literal(b"0"), Concatenation((NONZERO_DIGIT, Repetition(DIGIT, 0, MAX_FLOAT_DIGITS - 1))))
)

INTEGER: Expression = _any_integer(MAX_INTEGER_DIGITS)
"""Any integer."""


NUMBER_BYTES = 16 << 20
"""Bytes of remembered expressions of numbers; beyond it, the least recently used are forgotten."""


def _key_bytes(**named: object) -> int:
    return sum(PART_BYTES * (1 + len(value)) if isinstance(value, tuple) else PART_BYTES for value in named.values())


@remembered(2048, NUMBER_BYTES, _key_bytes, tree_bytes)
def number_expression(
    *,
    minimum: Number | None = None,
    maximum: Number | None = None,
    exclusive_minimum: Number | None = None,
    exclusive_maximum: Number | None = None,
    integer: bool,
    multiple_of: Number | None = None,
    not_multiples_of: tuple[Number, ...] = (),
    excluded: tuple[Number, ...] = (),
    by_double: bool = False,
    zeros: bool = False,
    spare_zeros: bool = False,
) -> Expression:
    """Returns the spellings of the numbers within all given bounds; ``NOTHING`` if there is none.

    ``integer``: only integers, without a fraction. Divisors are greater than 0. Bounds are finite. Multiples of any of
    ``not_multiples_of`` are left out, and so are the ``excluded`` values; with ``by_double``, also numbers that read as
    the double of one of these, and integers that no double holds. With ``zeros``, fractions may end in zeros; with
    ``spare_zeros``, those of multiples may also have ``MAX_FRACTION_DIGITS`` digits.
    Raises ``LimitError`` for a bound or divisor with more than ``MAX_BOUND_FRACTION_DIGITS`` digits after the point or
    ``MAX_INTEGER_DIGITS`` in all.

    >>> number_expression(minimum=1, maximum=12, integer=True)  # doctest: +ELLIPSIS
    Alternation(parts=(ByteClass(ranges=((49, 57),)), Concatenation(parts=(Literal(text=b'1'), ...
    """
    low, low_open = _tighter(minimum, exclusive_minimum, upper=False)
    high, high_open = _tighter(maximum, exclusive_maximum, upper=True)
    if integer:
        first = None if low is None else _to_integer(low, ROUND_CEILING) + (low_open and _is_integer(low))
        last = None if high is None else _to_integer(high, ROUND_FLOOR) - (high_open and _is_integer(high))
        return _integers(first, last, multiple_of, not_multiples_of, excluded, by_double=by_double)
    digits = _fraction_digits(low, high, multiple_of, *not_multiples_of, *excluded)
    most = digits if spare_zeros or multiple_of is None else max(_scaled(multiple_of)[1], 1)
    zeros |= spare_zeros
    numbers = _numbers(
        low, high, low_open=low_open, high_open=high_open, multiple_of=multiple_of, digits=most, zeros=zeros
    )
    if not_multiples_of and multiple_of is not None and numbers != NOTHING:
        _check_beside_others(multiple_of, multiple_of, not_multiples_of)
    outside = [_any_zeros(excluded)] if excluded else []
    if by_double and numbers != NOTHING:
        outside += [_reads_as(value, digits) for value in excluded]
        if not_multiples_of and multiple_of is None:
            numbers = Intersection((numbers, _apart_from_multiples(not_multiples_of)))
            if 1 in not_multiples_of and all(isinstance(divisor, int) for divisor in not_multiples_of):
                not_multiples_of = ()  # the remaining numbers have a fraction
    return _without(numbers, [_multiples_of(divisor) for divisor in not_multiples_of], outside)


def digits_of(by_double: bool) -> dict[str, int]:  # noqa: FBT001
    """Returns the greatest numbers of digits, by name.

    ``integer``: of an integer. ``before_point`` and ``after_point``: of other numbers; after the point, 32 more than
    the longest bound has, if that is more. With ``by_double`` also ``compared``: digits by which a number is told from
    those of another double; and ``multiple``: of a multiple of a divisor that is no double, such as 0.1.
    """
    found = {
        "integer": MAX_FLOAT_DIGITS if by_double else MAX_INTEGER_DIGITS,
        "before_point": MAX_FLOAT_DIGITS,
        "after_point": MAX_FRACTION_DIGITS,
    }
    return found | {"compared": SIGNIFICANT_DIGITS, "multiple": DECIMAL_DIGITS} if by_double else found


def number_literal_expression(
    *values: Number, integer: bool = False, pointed: bool = False, spare_zeros: bool = False
) -> Expression:
    """Returns the spellings of some numbers; ``integer``: of the whole ones.

    With ``pointed``, whole numbers are also spelled with ``.0``, unless ``integer``. With ``spare_zeros``, fractions
    may end in zeros, with up to ``MAX_FRACTION_DIGITS`` digits or 32 more than the value has, and ``0`` is also ``-0``.

    Values with equally long fractions share everything but their digits, so that thousands take a moment. ``NOTHING``
    if ``integer`` and no value is one. Raises ``LimitError`` for a value with more than ``MAX_INTEGER_DIGITS`` digits
    before the point or ``MAX_BOUND_FRACTION_DIGITS`` after it.
    """
    by_zeros: dict[Expression, list[bytes]] = {}
    for value in values:
        if integer and not _is_integer(value):
            continue
        if not (  # no comparison of a decimal with a long integer, which is slow
            -_GREATEST_INTEGER <= value <= _GREATEST_INTEGER
            if isinstance(value, int)
            else value.adjusted() < MAX_INTEGER_DIGITS
        ):
            raise LimitError(f"a number has more than {MAX_INTEGER_DIGITS} digits (MAX_INTEGER_DIGITS)")
        text, fraction = _text(value)
        digits = max(MAX_FRACTION_DIGITS, fraction + _SPARE_FRACTION_DIGITS)
        zeros: Expression = EMPTY_TEXT
        if not fraction and not integer and (pointed or spare_zeros):
            zeros = decimals.zero_fraction(digits, zeros=spare_zeros)
        elif fraction and spare_zeros:
            zeros = repetition(Literal(b"0"), 0, digits - fraction)
        by_zeros.setdefault(zeros, []).append(text)
        if spare_zeros and value == 0:
            by_zeros[zeros].append(b"-0")
    return decimals.union(
        [
            sequence(Literal(texts[0]) if len(texts) == 1 else LiteralSet(tuple(texts)), zeros)
            for zeros, texts in by_zeros.items()
        ]
    )


def _text(value: Number) -> tuple[bytes, int]:
    """Returns the shortest spelling, and the number of its digits after the point."""
    whole, fraction = _magnitude(value)
    return f"{'-' if value < 0 else ''}{whole}{'.' if fraction else ''}{fraction}".encode(), len(fraction)


# Exclusions.


def _without(numbers: Expression, divisors: list[Expression], outside: list[Expression]) -> Expression:
    """Returns the numbers that none of the divisors divides, without those in ``outside``.

    The kernel settles an intersection with a multiple by arithmetic, which is useless beside other divisors. Then the
    multiple is written as the complement of its complement.
    """
    if numbers == NOTHING:
        return numbers
    parts = [numbers]
    if divisors and isinstance(numbers, Intersection):  # of two; correct for any two
        interval, multiple = numbers.parts
        parts = [interval]
        divisors = [Alternation((Complement(multiple), *divisors))]
    parts += map(Complement, (*divisors, *outside))
    return parts[0] if len(parts) == 1 else Intersection(tuple(parts))


def _reads_as(value: Number, digits: int) -> Expression:
    """Returns the numbers, with up to so many digits after the point, that read as the same double as ``value``."""
    if value == 0 and digits <= MAX_UNDERFLOW_DIGITS:
        return _any_zeros((0,))
    low, low_open, high, high_open = around(value)
    digits = max(digits, _fraction_digits(low, high))
    return _number_range(low, high, low_open=low_open, high_open=high_open, digits=digits, zeros=True)


def _apart_from_multiples(divisors: tuple[Number, ...]) -> Expression:
    """Returns the numbers that are multiples of one of the divisors if their doubles are."""
    if not all(isinstance(divisor, int) for divisor in divisors):
        return Alternation((_SHORT_DECIMALS, _any_zeros((0,))))
    if 1 in divisors:
        return _FRACTIONS
    zeros = Repetition(Concatenation((Literal(b"."), Repetition(Literal(b"0"), 1, None))), 0, 1)
    whole = sequence(_ANY_SIGN, decimals.natural_range("0", str(GREATEST_EXACT)), zeros)
    return Alternation((_FRACTIONS, whole))


def _fractions() -> Expression:
    """Returns the numbers whose doubles are not integers: one of their first ``FRACTION_DIGITS`` digits shows it.

    A number below 10**n, n < 16, differs from its double by less than 10**(n - 16); near 0 by much less.
    """
    any_digits = Repetition(DIGIT, 0, None)
    only_zeros = Repetition(Literal(b"0"), 1, None)

    def fractions(kept: int, near: Iterable[bytes]) -> Expression:
        left_out = [only_zeros, *(sequence(repetition(Literal(digit), kept, kept), any_digits) for digit in near)]
        return Intersection((Repetition(DIGIT, 1, None), Complement(Alternation(tuple(left_out)))))

    parts: list[Expression] = [sequence(_ANY_SIGN, Literal(b"0."), fractions(FRACTION_DIGITS, (b"9",)))]
    for whole in range(1, FRACTION_DIGITS):
        integer = sequence(NONZERO_DIGIT, repetition(DIGIT, whole - 1, whole - 1))
        parts.append(sequence(_ANY_SIGN, integer, Literal(b"."), fractions(FRACTION_DIGITS - whole, (b"0", b"9"))))
    return Alternation(tuple(parts))


def _short_decimals() -> Expression:
    """Returns the numbers below 10**15 with up to ``DECIMAL_DIGITS`` significant digits, and any zeros after these."""
    zeros = Repetition(Literal(b"0"), 0, None)
    parts: list[Expression] = []
    for whole in range(1, DECIMAL_DIGITS + 1):
        fraction = sequence(Literal(b"."), Repetition(DIGIT, 0, DECIMAL_DIGITS - whole), zeros)
        parts.append(
            Concatenation((NONZERO_DIGIT, Repetition(DIGIT, whole - 1, whole - 1), Repetition(fraction, 0, 1)))
        )
    small = sequence(zeros, NONZERO_DIGIT, Repetition(DIGIT, 0, DECIMAL_DIGITS - 1), zeros)
    parts.append(Concatenation((Literal(b"0."), small)))
    return sequence(_ANY_SIGN, Alternation(tuple(parts)))


def _any_zeros(values: tuple[Number, ...]) -> Expression:
    """Returns the spellings of some numbers, with any number of zeros after the point."""
    texts: dict[bool, list[bytes]] = {}
    for value in values:
        text, fraction = _text(value)
        texts.setdefault(fraction > 0, []).append(text)
        if value == 0:
            texts[False].append(b"-0")
    zeros = Repetition(Literal(b"0"), 0, None)
    point_and_zeros = Repetition(Concatenation((Literal(b".0"), zeros)), 0, 1)
    return Alternation(
        tuple(
            Concatenation((LiteralSet(tuple(spelled)), zeros if has_fraction else point_and_zeros))
            for has_fraction, spelled in texts.items()
        )
    )


def _check_beside_others(divisor: Number, multiple_of: Number, others: Iterable[Number]) -> None:
    """Raises LimitError if the multiples of ``divisor`` cannot be told from those of the others.

    ``multiple_of``: the divisor as the schema has it, for the message.
    """
    digits = _without_zeros(_scaled(divisor)[0])

    def too_large(limit: str) -> LimitError:
        return LimitError(
            f"multiples of {_text(multiple_of)[0].decode()} cannot be enforced together with excluded multiples of "
            f"other numbers ({limit}); leave out multipleOf under not and oneOf, or list the numbers in an enum"
        )

    if digits > MAX_DIVISOR_BESIDE_OTHERS:
        raise too_large(f"MAX_DIVISOR_BESIDE_OTHERS = {MAX_DIVISOR_BESIDE_OTHERS}")
    remainders = digits
    for other in others:
        other_digits = _without_zeros(_scaled(other)[0])
        if other_digits <= MAX_DIVISOR_BESIDE_OTHERS:
            remainders = lcm(remainders, other_digits)
            if remainders > MAX_JOINT_REMAINDERS:
                raise too_large(f"MAX_JOINT_REMAINDERS = {MAX_JOINT_REMAINDERS}")


def _without_zeros(number: int) -> int:
    while number % 10 == 0:
        number //= 10
    return number


def _multiples_of(divisor: Number) -> Expression:
    """Returns the multiples of a divisor, in any plain spelling, among numbers as large as a float."""
    return _any_zeros((0,)) if divisor > _GREATEST_FLOAT else _multiple(*_scaled(divisor))


def _multiple(divisor: int, scale: int = 0) -> Expression:
    """Returns ``Multiple``; a small number with many zeros becomes one with literal zeros, to keep remainders small."""
    digits, zeros = divisor, 0
    while digits % 10 == 0:
        digits, zeros = digits // 10, zeros + 1
    if scale or zeros < LEAST_TRAILING_ZEROS or digits > MAX_DIVISOR_BESIDE_OTHERS:
        return Multiple(divisor, scale)
    front: Expression = Concatenation((_ANY_SIGN, NONZERO_DIGIT, Repetition(DIGIT, 0, None)))
    if digits > 1:
        front = Intersection((front, Multiple(digits)))
    point_and_zeros = Repetition(Concatenation((Literal(b".0"), Repetition(Literal(b"0"), 0, None))), 0, 1)
    return Alternation((_any_zeros((0,)), Concatenation((front, Literal(b"0" * zeros), point_and_zeros))))


# Integers.


def _integers(
    low: int | None,
    high: int | None,
    multiple_of: Number | None,
    not_multiples_of: tuple[Number, ...],
    excluded: tuple[Number, ...],
    *,
    by_double: bool,
) -> Expression:
    greatest = _GREATEST_SHORT if by_double else _GREATEST_INTEGER
    bounds = _bounds_within(low, high, greatest)
    if bounds is None:
        return NOTHING
    low, high = bounds
    digits = MAX_FLOAT_DIGITS if by_double else MAX_INTEGER_DIGITS
    divisor = 1 if multiple_of is None else _integer_divisor(multiple_of)
    if divisor == 1 and not not_multiples_of and not excluded:
        return _integer_range(low, high, digits)
    first = -((greatest if low is None else -low) // divisor)
    last = (greatest if high is None else high) // divisor
    if first > last:
        return NOTHING
    others = [_integer_divisor(other) for other in not_multiples_of]
    left_out = {int(value) for value in excluded if _is_integer(value)}
    cells = [_integers_around(value) for value in excluded if not is_short(value)] if by_double else []
    if _is_short_list(first, last, divisor):
        texts = [
            str(number).encode()
            for number in range(first * divisor, last * divisor + 1, divisor)
            if number not in left_out
            and all(number % other for other in others)
            and not any(least <= number <= most for least, most in cells)
        ]
        return LiteralSet(tuple(texts)) if texts else NOTHING
    numbers_of_divisor = _integer_range(low, high, digits)
    if divisor > 1:
        numbers_of_divisor = Intersection((numbers_of_divisor, _multiple(divisor)))
        if others:
            assert multiple_of is not None
            _check_beside_others(divisor, multiple_of, others)
    left_out.update(0 for other in others if other > _GREATEST_INTEGER)
    outside: list[Expression] = [LiteralSet(tuple(str(value).encode() for value in left_out))] if left_out else []
    outside += [_integer_range(least, most, digits + 1) for least, most in cells if least <= most]
    divisors = [_multiple(other) for other in others if other <= _GREATEST_INTEGER]
    return _without(numbers_of_divisor, divisors, outside)


def _bounds_within(low: int | None, high: int | None, greatest: int) -> tuple[int | None, int | None] | None:
    """Returns the bounds, ``None`` for those beyond ``greatest`` of either sign; ``None`` if no integer is left."""
    if low is not None and (low > greatest or (high is not None and low > high)):
        return None
    if high is not None and high < -greatest:
        return None
    return None if low is None or low <= -greatest else low, None if high is None or high >= greatest else high


def _is_short_list(first: int, last: int, divisor: int) -> bool:
    """Returns whether the multiples from ``first`` to ``last`` times the divisor are few enough to list."""
    if last - first >= MAX_LISTED_MULTIPLES:
        return False
    longest = (
        max(abs(first * divisor), abs(last * divisor)).bit_length() // 3 + 2
    )  # 3 bits are a little less than a digit
    return (last - first + 1) * longest <= MAX_LISTED_BYTES or first == last


def _integer_divisor(multiple_of: Number) -> int:
    """Returns the divisor of the integers among the multiples of a decimal: its reduced numerator."""
    if multiple_of > _GREATEST_INTEGER:
        return _GREATEST_INTEGER + 1  # any divisor will do: only 0 is left
    numerator, scale = _scaled(multiple_of)
    return numerator // gcd(numerator, 10**scale)


def _integers_around(value: Number) -> tuple[int, int]:
    """Returns the least and the greatest integer that read as the same double as ``value``, or nearly so."""
    low, low_open, high, high_open = around(value)
    return (
        _to_integer(low, ROUND_CEILING) + (low_open and _is_integer(low)),
        _to_integer(high, ROUND_FLOOR) - (high_open and _is_integer(high)),
    )


def _integer_range(low: int | None, high: int | None, digits: int) -> Expression:
    """Returns the integers between two bounds, with at most so many digits on a side without a bound."""
    if low is None and high is None:
        return INTEGER if digits == MAX_INTEGER_DIGITS else _any_integer(digits)
    parts = []
    if high is None or high >= 0:
        parts.append(_naturals(0 if low is None else max(low, 0), high, digits))
    if low is None or low < 0:
        nearest = 1 if high is None else max(-high, 1)
        parts.append(sequence(_MINUS, _naturals(nearest, None if low is None else -low, digits)))
    return decimals.union(parts)


def _naturals(low: int, high: int | None, digits: int) -> Expression:
    if high is not None:
        return decimals.natural_range(str(low), str(high))
    if low <= 1:
        positive = _positive(digits)
        return positive if low else Alternation((Literal(b"0"), positive))
    return decimals.naturals_from(str(low), digits)


# Other numbers.


def _numbers(
    low: Number | None,
    high: Number | None,
    *,
    low_open: bool,
    high_open: bool,
    multiple_of: Number | None,
    digits: int,
    zeros: bool,
) -> Expression:
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        return NOTHING
    if (low is not None and low > _GREATEST_FLOAT) or (high is not None and high < -_GREATEST_FLOAT):
        return NOTHING
    # A side without a bound ends at MAX_FLOAT_DIGITS digits, unless the other bound lies beyond them.
    far = any(bound is not None and abs(int(bound)) > _GREATEST_SHORT for bound in (low, high))
    if low is None or low < (-_GREATEST_FLOAT if far else -_GREATEST_SHORT):
        low, low_open = (-_GREATEST_FLOAT, False) if far else (None, False)
    if high is None or high > (_GREATEST_FLOAT if far else _GREATEST_SHORT):
        high, high_open = (_GREATEST_FLOAT, False) if far else (None, False)
    if multiple_of is None:
        return _number_range(low, high, low_open=low_open, high_open=high_open, digits=digits, zeros=zeros)
    return _multiples(
        low, high, low_open=low_open, high_open=high_open, multiple_of=multiple_of, digits=digits, zeros=zeros
    )


def _multiples(
    low: Number | None,
    high: Number | None,
    *,
    low_open: bool,
    high_open: bool,
    multiple_of: Number,
    digits: int,
    zeros: bool,
) -> Expression:
    if multiple_of > _GREATEST_FLOAT:
        multiple_of = _GREATEST_FLOAT + 1  # any divisor will do: only 0 is left
    bottom, bottom_scale = _scaled(-_GREATEST_SHORT if low is None else low)
    top, top_scale = _scaled(_GREATEST_SHORT if high is None else high)
    divisor, divisor_scale = _scaled(multiple_of)
    scale = max(bottom_scale, top_scale, divisor_scale)
    bottom, top = bottom * 10 ** (scale - bottom_scale), top * 10 ** (scale - top_scale)
    step = divisor * 10 ** (scale - divisor_scale)
    first = -((-bottom - low_open) // step)
    last = (top - high_open) // step
    if first > last:
        return NOTHING
    if first == last == 0:
        return sequence(Literal(b"0"), decimals.zero_fraction(digits, zeros=zeros))
    if low is not None and bottom_scale > digits:  # the first multiple inside is an equal bound with fewer digits
        low, low_open = Decimal(f"{first * step}E-{scale}"), False
    if high is not None and top_scale > digits:
        high, high_open = Decimal(f"{last * step}E-{scale}"), False
    numbers = _number_range(low, high, low_open=low_open, high_open=high_open, digits=digits, zeros=zeros)
    return Intersection((numbers, _multiple(divisor, divisor_scale)))


def _number_range(
    low: Number | None, high: Number | None, *, low_open: bool, high_open: bool, digits: int, zeros: bool
) -> Expression:
    """Returns the numbers of a nonempty interval. Zero has no sign."""
    spellings: list[Expression] = []
    if zero_inside := high is None or high > 0 or (high == 0 and not high_open):
        start, start_open = (0, False) if low is None or low < 0 else (low, low_open)
        spellings.append(_magnitudes(start, high, low_open=start_open, high_open=high_open, digits=digits, zeros=zeros))
    if low is None or low < 0:
        end = None if low is None else _negated(low)
        near, near_open = (0, True) if high is None or zero_inside else (_negated(high), high_open)
        magnitudes = _magnitudes(near, end, low_open=near_open, high_open=low_open, digits=digits, zeros=zeros)
        spellings.append(sequence(_MINUS, magnitudes))
    return decimals.union(spellings)


def _magnitudes(
    low: Number, high: Number | None, *, low_open: bool, high_open: bool, digits: int, zeros: bool
) -> Expression:
    if high is not None:
        return decimals.fractional_range(
            _magnitude(low), _magnitude(high), low_open=low_open, high_open=high_open, digits=digits, zeros=zeros
        )
    if low == 0 and not low_open:
        return sequence(_SHORT_NATURAL, decimals.any_fraction(digits, zeros=zeros))
    return decimals.fractions_from(
        _magnitude(low), low_open=low_open, digits=digits, integer_digits=MAX_FLOAT_DIGITS, zeros=zeros
    )


# Exact decimal arithmetic: the operations used here ignore the context's precision.


def _tighter(closed: Number | None, opened: Number | None, *, upper: bool) -> tuple[Number | None, bool]:
    """Returns the tighter of an inclusive and an exclusive bound, and whether it is exclusive."""
    if opened is None:
        return closed, False
    if closed is None or (opened <= closed if upper else opened >= closed):
        return opened, True
    return closed, False


def _is_integer(value: Number) -> bool:
    return isinstance(value, int) or bool(value == value.to_integral_value())


def _to_integer(value: Number, rounding: str) -> int:
    """Returns the value rounded to an integer; beyond the greatest one, the next after it."""
    if value > _GREATEST_INTEGER:
        return _GREATEST_INTEGER + 1
    if value < -_GREATEST_INTEGER:
        return -_GREATEST_INTEGER - 1
    return value if isinstance(value, int) else int(value.to_integral_value(rounding))


def _scaled(value: Number) -> tuple[int, int]:
    """Returns (n, scale) with value = n / 10**scale and the least scale that is not negative."""
    if isinstance(value, int):
        return value, 0
    negative, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "bounds are finite"
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    if -exponent > MAX_BOUND_FRACTION_DIGITS:
        message = f"a number has more than {MAX_BOUND_FRACTION_DIGITS} digits after the point"
        raise LimitError(f"{message} (MAX_BOUND_FRACTION_DIGITS)")
    if len(text) > MAX_INTEGER_DIGITS:
        raise LimitError(f"a number has more than {MAX_INTEGER_DIGITS} digits (MAX_INTEGER_DIGITS)")
    if not text:
        return 0, 0
    number = int(text) * 10 ** max(exponent, 0)
    return -number if negative else number, max(-exponent, 0)


def _magnitude(value: Number) -> Magnitude:
    number, scale = _scaled(value)
    text = str(abs(number)).rjust(scale + 1, "0")
    return (text[:-scale], text[-scale:]) if scale else (text, "")


def _negated(value: Number) -> Number:
    return -value if isinstance(value, int) else value.copy_negate()


def _fraction_digits(*values: Number | None) -> int:
    longest = max(
        (_scaled(value)[1] for value in values if value.__class__ is not int and value is not None), default=0
    )
    return max(MAX_FRACTION_DIGITS, longest + _SPARE_FRACTION_DIGITS)


_FRACTIONS = _fractions()
_SHORT_DECIMALS = _short_decimals()
