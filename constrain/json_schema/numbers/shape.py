"""The shape of numbers: intersection, complement and values.

Numbers are whole by value: ``1.0`` is an integer, and ``not: {type: integer}`` excludes it. Draft 4 also regards the
spelling ("a number without a fraction or exponent part"), but many of its validators do not. In draft 4, a text is
written only if both readings agree on it, so neither of the two types has ``1.0``. A draft 4 schema that excludes
integers (``not``, ``oneOf`` with overlapping branches) writes all whole numbers as integers (``plainly_whole``),
because there the readings always agree.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import islice
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.language.tree import NODE_BYTES, PART_BYTES
from constrain.tables.numbers import NumberTable
from constrain.work import MAX_ALTERNATIVES, spend

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

Number = int | Decimal
"""An exact decimal number; whole ones are ``int``."""

MAX_DIGITS = 4300
"""Digits of a number in a schema, those before and those after the point: what Python's int() reads by default
(sys.int_info.default_max_str_digits). Beyond: LimitError."""

MAX_WHOLE_EXPONENT = 400
"""Exponent up to which whole decimals become ``int``; floats have smaller ones."""

EXCLUDED_IN_A_ROW = 10_000
"""Consecutive multiples that other divisors may exclude; real divisors leave one of every few."""

VALUE_STEPS = 2
"""Compilation steps for one comparison of a listed or excluded number with bounds."""

TABLE_VALUES_PER_STEP = 100
"""Numbers of a table that are compared with bounds per compilation step: tables are the caller's own, and large."""

_TOO_LONG = 10**MAX_DIGITS


class NumberShape(NamedTuple):
    """The numbers within the bounds that are multiples of ``multiple``; or, with ``values``, exactly these.

    ``integer``: only whole numbers, spelled as integers if the policy has a spelling for these. ``not_multiples``:
    divisors whose multiples are excluded; ``excluded``: further excluded values. A shape with ``values`` has neither.
    ``pointed``: whole ones of the ``values`` are also spelled with ``.0``, because the schema spells them so. The
    ``values`` of a table have one spelling each.
    """

    integer: bool = False
    minimum: Number | None = None
    exclusive_minimum: bool = False
    maximum: Number | None = None
    exclusive_maximum: bool = False
    multiple: Fraction | None = None
    values: tuple[Number, ...] | NumberTable | None = None
    not_multiples: tuple[Fraction, ...] = ()
    excluded: tuple[Number, ...] = ()
    pointed: bool = False


def shape_bytes(shape: NumberShape, **_: object) -> int:
    """Returns the approximate bytes of a shape."""
    return NODE_BYTES + PART_BYTES * (len(shape.excluded) + len(shape.not_multiples) + len(shape.values or ()))


ONE = Fraction(1)
ANY_NUMBER = NumberShape()
ANY_INTEGER = NumberShape(integer=True)
INT64 = NumberShape(integer=True, minimum=-(2**63), maximum=2**63 - 1)

USUAL = 2**42
"""Greatest bound or divisor of integers that the policy ``integers="64-bit"`` narrows: millions of them are left, more
than any text can hold, and times in milliseconds are below it."""


def too_many_digits() -> LimitError:
    """Returns the error for a number that is too long to compute with."""
    return LimitError(f"a number has more digits than MAX_DIGITS = {MAX_DIGITS}; round it")


def exact(value: object) -> Number | None:
    """Returns the exact number of a parsed JSON number, by its decimal spelling; ``None`` if it is not finite."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if not -_TOO_LONG < value < _TOO_LONG:
            raise too_many_digits()
        return int(value)
    if isinstance(value, float):
        value = Decimal(repr(value))
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    if not value:
        return 0
    if abs(value.adjusted()) > MAX_DIGITS:
        raise too_many_digits()
    if value.adjusted() <= MAX_WHOLE_EXPONENT and value == value.to_integral_value():
        return int(value)
    return value


def intersect_numbers(a: NumberShape, b: NumberShape) -> NumberShape | None:
    """Returns the numbers of both shapes; ``None`` if there are none."""
    if a is ANY_NUMBER or a == b:
        return b
    if b is ANY_NUMBER:
        return a
    if a.values is not None or b.values is not None:
        return _among_values(b, a) if a.values is None else _among_values(a, b)
    divisors = len(a.not_multiples) + len(b.not_multiples)
    spend((1 + len(a.excluded) + len(b.excluded) + divisors * divisors // 2) * VALUE_STEPS)
    lows = [(each.minimum, each.exclusive_minimum) for each in (a, b) if each.minimum is not None]
    highs = [(each.maximum, not each.exclusive_maximum) for each in (a, b) if each.maximum is not None]
    minimum, exclusive_minimum = max(lows, default=(None, False))
    maximum, inclusive_maximum = min(highs, default=(None, True))
    multiple = a.multiple if b.multiple is None else b.multiple if a.multiple is None else lcm(a.multiple, b.multiple)
    return nonempty(
        NumberShape(
            a.integer or b.integer,
            minimum,
            exclusive_minimum,
            maximum,
            not inclusive_maximum,
            multiple,
            not_multiples=a.not_multiples + b.not_multiples,
            excluded=a.excluded + b.excluded,
        )
    )


def _among_values(a: NumberShape, b: NumberShape) -> NumberShape | None:
    """Returns the listed values of ``a`` that are numbers of ``b``."""
    if isinstance(a.values, NumberTable) and isinstance(b.values, tuple):
        a, b = b, a
    if isinstance(a.values, NumberTable):
        return _among_table(a, b)
    assert a.values is not None
    spend(len(a.values) * VALUE_STEPS)
    values, bounds = a.values, b
    if b.values is not None or b.excluded:  # a set, for lists of thousands
        listed = (
            b.values if isinstance(b.values, NumberTable) else frozenset(b.excluded if b.values is None else b.values)
        )
        values = tuple(value for value in values if (value in listed) == (b.values is not None))
        bounds = b._replace(excluded=(), values=None)
    values = tuple(value for value in values if admits_number(bounds, value))
    pointed = a.pointed and (b.values is None or b.pointed)
    return a._replace(values=values, integer=a.integer or b.integer, pointed=pointed) if values else None


def _among_table(a: NumberShape, b: NumberShape) -> NumberShape | None:
    """Returns the values of ``a``, a table, that are numbers of ``b``."""
    assert isinstance(a.values, NumberTable)
    spend(len(a.values) // TABLE_VALUES_PER_STEP)
    integer = a.integer or b.integer
    if isinstance(b.values, NumberTable):
        values = a.values.in_both(b.values)
    elif b == ANY_INTEGER:
        values = a.values if a.values.are_whole else a.values.where(lambda value: value.__class__ is int)
    else:
        values = a.values.where(*_tests_of(b))
    return a._replace(values=values, integer=integer) if values else None


def _tests_of(shape: NumberShape) -> Iterator[Callable[[Number], bool]]:
    """Yields what ``admits_number`` asks, as functions for millions of numbers."""
    if (low := shape.minimum) is not None:
        yield partial(lt if shape.exclusive_minimum else le, low)
    if (high := shape.maximum) is not None:
        yield partial(gt if shape.exclusive_maximum else ge, high)
    if shape.integer:
        yield lambda value: value.__class__ is int
    if shape.multiple is not None or shape.not_multiples:
        divisible = NumberShape(multiple=shape.multiple, not_multiples=shape.not_multiples)
        yield partial(admits_number, divisible)
    if shape.excluded:
        excluded = frozenset(shape.excluded)
        yield lambda value: value not in excluded


def lcm(a: Fraction, b: Fraction) -> Fraction:
    """Returns the least positive number that is a whole multiple of both."""
    return Fraction(math.lcm(a.numerator, b.numerator), math.gcd(a.denominator, b.denominator))


def admits_number(shape: NumberShape, value: Number) -> bool:
    """Returns whether ``value`` is one of the numbers of ``shape``."""
    if shape.values is not None:
        return value in shape.values
    return (
        not (shape.integer and not is_multiple(value, ONE))
        and is_within(shape, value)
        and (shape.multiple is None or is_multiple(value, shape.multiple))
        and not any(is_multiple(value, divisor) for divisor in shape.not_multiples)
        and value not in shape.excluded
    )


def is_within(shape: NumberShape, value: Number) -> bool:
    """Returns whether ``value`` keeps the bounds of ``shape``."""
    low, high = shape.minimum, shape.maximum
    return not (
        (low is not None and (value < low or (shape.exclusive_minimum and value == low)))
        or (high is not None and (value > high or (shape.exclusive_maximum and value == high)))
    )


def is_multiple(value: Number, divisor: Fraction) -> bool:
    """Returns whether the value is a whole multiple of the divisor."""
    if divisor == 1:
        return value.__class__ is int or value == int(value)
    return (Fraction(value) / divisor).denominator == 1


def negated(value: Number) -> Number:
    """Returns the negative value, with all its digits."""
    return -value if isinstance(value, int) else value.copy_negate()


def mirrored(shape: NumberShape) -> NumberShape:
    """Returns the shape with the bounds of the negative numbers."""
    return shape._replace(
        minimum=None if shape.maximum is None else negated(shape.maximum),
        exclusive_minimum=shape.exclusive_maximum,
        maximum=None if shape.minimum is None else negated(shape.minimum),
        exclusive_maximum=shape.exclusive_minimum,
    )


def nonempty(shape: NumberShape) -> NumberShape | None:
    """Returns ``shape`` without redundant exclusions; ``None`` if it has no number. Not for listed values."""
    if shape.not_multiples or shape.excluded:
        return _nonempty_without(shape)
    low, high, step = shape.minimum, shape.maximum, step_of(shape)
    if low is None or high is None:
        return shape
    if step is None:
        empty = low > high or (low == high and (shape.exclusive_minimum or shape.exclusive_maximum))
    else:
        first, last = factors(shape, step)
        empty = first > last
    return None if empty else shape


def _nonempty_without(shape: NumberShape) -> NumberShape | None:
    """Returns ``shape`` without redundant exclusions, or ``None``; for shapes with exclusions."""
    step = step_of(shape)
    divisors: list[Fraction] = []
    reduced: list[Fraction] = []  # the same as multiples of the step
    for divisor in sorted(dict.fromkeys(shape.not_multiples)):
        common = divisor if step is None else lcm(step, divisor)
        if common == step:
            return None
        if not any((common / other).denominator == 1 for other in reduced):
            divisors.append(divisor)
            reduced.append(common)
    bounds = nonempty(shape._replace(not_multiples=(), excluded=()))
    if bounds is None:
        return None
    bounds = bounds._replace(not_multiples=tuple(divisors))
    excluded = tuple(sorted({value for value in shape.excluded if admits_number(bounds, value)}))
    if shape.minimum is not None and shape.minimum == shape.maximum:
        value = shape.minimum
        only = NumberShape(shape.integer, values=(value,), pointed=True)
        return only if not excluded and admits_number(bounds, value) else None
    shape = bounds._replace(excluded=excluded)
    if step is None or shape.minimum is None or shape.maximum is None:
        return shape  # endlessly many numbers: no divisor and no list excludes them all
    return shape if next(_walk(shape, step), None) is not None else None


def within_64_bits(shape: NumberShape) -> NumberShape:
    """Returns the integers of ``shape`` with the bounds of 64 bits on each side without a bound; other shapes as is."""
    if not shape.integer or shape.values is not None:
        return shape
    if shape is ANY_INTEGER:
        return INT64
    named: tuple[Number | Fraction | None, ...] = (shape.minimum, shape.maximum, step_of(shape))
    if not all(number is None or -USUAL <= number <= USUAL for number in named):
        return shape
    return bounded(shape, -(2**63), 2**63 - 1)


def bounded(shape: NumberShape, low: int, high: int) -> NumberShape:
    """Returns the shape with these bounds on each side without a bound."""
    return shape._replace(
        minimum=low if shape.minimum is None else shape.minimum,
        maximum=high if shape.maximum is None else shape.maximum,
    )


def plainly_whole(shapes: tuple[NumberShape, ...]) -> tuple[NumberShape, ...]:
    """Returns the same numbers, with the whole ones spelled as integers."""
    found: list[NumberShape | None] = []
    for shape in shapes:
        if shape.integer or isinstance(shape.values, NumberTable):  # whose spellings are plain
            found.append(shape)
        elif shape.values is None:
            found.append(nonempty(shape._replace(integer=True)))
            found.append(nonempty(shape._replace(not_multiples=(*shape.not_multiples, ONE))))
        else:
            for whole in (True, False):
                values = tuple(value for value in shape.values if is_multiple(value, ONE) == whole)
                found.append(shape._replace(integer=whole, values=values) if values else None)
    return tuple(shape for shape in found if shape is not None)


def step_of(shape: NumberShape) -> Fraction | None:
    """Returns the number of which all numbers of ``shape`` are multiples."""
    step = shape.multiple
    if shape.integer:
        return ONE if step is None else lcm(step, ONE)
    return step


def factors(shape: NumberShape, step: Fraction) -> tuple[int, int]:
    """Returns the least and the greatest whole number whose product with ``step`` is within both bounds."""
    low, high = shape.minimum, shape.maximum
    assert low is not None
    assert high is not None
    if step == 1 and isinstance(low, int) and isinstance(high, int):
        return low + shape.exclusive_minimum, high - shape.exclusive_maximum
    least, most = Fraction(low) / step, Fraction(high) / step
    return (
        math.ceil(least) + (shape.exclusive_minimum and least.denominator == 1),
        math.floor(most) - (shape.exclusive_maximum and most.denominator == 1),
    )


def _walk(shape: NumberShape, step: Fraction) -> Iterator[int]:
    """Yields the numbers of a shape with both bounds, divided by ``step``, their common divisor, in ascending order."""
    first, last = factors(shape, step)
    divisors = _excluded_divisors(shape, step)
    excluded = {Fraction(value) / step for value in shape.excluded}
    in_a_row = 0
    for factor in range(first, last + 1):
        if factor in excluded:
            continue
        if not any(factor % divisor == 0 for divisor in divisors):
            in_a_row = 0
            yield factor
        elif in_a_row == EXCLUDED_IN_A_ROW:
            message = f"other divisors exclude more than {EXCLUDED_IN_A_ROW} multiples in a row"
            raise LimitError(f"{message}; list the numbers in an enum")
        else:
            in_a_row += 1


def _excluded_divisors(shape: NumberShape, step: Fraction) -> list[int]:
    """Returns the divisors of the factors of ``step`` whose products the shape excludes."""
    return [(lcm(step, divisor) / step).numerator for divisor in shape.not_multiples]


def list_numbers(shape: NumberShape, limit: int) -> tuple[Number, ...] | None:
    """Returns all numbers of ``shape``, by value; ``None`` if there are more than ``limit``."""
    if shape.values is not None:
        return tuple(shape.values) if len(shape.values) <= limit else None
    if nonempty(shape) is None:
        return ()
    if shape.minimum is None or shape.maximum is None:
        return None
    step = step_of(shape)
    if step is None:
        return None if shape.minimum != shape.maximum or limit < 1 else (shape.minimum,)
    first, last = factors(shape, step)
    length = last - first + 1
    excluded = len(shape.excluded) + sum(length // divisor + 1 for divisor in _excluded_divisors(shape, step))
    if length - excluded > limit:
        return None
    found = tuple(islice(_walk(shape, step), limit + 1))
    if len(found) > limit:
        return None
    return tuple(factor * step.numerator if step.denominator == 1 else to_decimal(factor * step) for factor in found)


def to_decimal(fraction: Fraction) -> Number:
    """Returns a fraction with a finite decimal expansion, exactly."""
    if fraction.denominator == 1:
        return fraction.numerator
    twos = (fraction.denominator & -fraction.denominator).bit_length() - 1
    scale = max(twos, round(math.log(fraction.denominator >> twos, 5)))
    digits = fraction.numerator * (10**scale // fraction.denominator)
    if not -_TOO_LONG < digits < _TOO_LONG:
        raise too_many_digits()
    return Decimal(f"{digits}e-{scale}")


def scaled(value: Number) -> tuple[int, int]:
    """Returns (n, scale) with value = n / 10**scale and the least scale that is not negative. Raises LimitError."""
    if isinstance(value, int):
        return value, 0
    negative, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "bounds are finite"
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    if max(-exponent, len(text)) > MAX_DIGITS:
        raise too_many_digits()
    number = int(text) * 10 ** max(exponent, 0)
    return -number if negative else number, max(-exponent, 0)


def without_factor(number: int, factor: int = 10) -> tuple[int, int]:
    """Divides a positive integer by a factor while an integer is left. Returns the quotient and how often."""
    power = 0
    while number % factor == 0:
        number, power = number // factor, power + 1
    return number, power


# The complement. A cut lies just before (0) or just after (1) a value; between two adjacent cuts, the same shapes
# hold. ``Divisibility``: a shape between its bounds, its divisor and the divisors it excludes.

Cut = tuple[Number, int]
Divisibility = tuple[Fraction | None, tuple[Fraction, ...]]


def complement_numbers(shapes: tuple[NumberShape, ...]) -> tuple[NumberShape, ...]:
    """Returns shapes of exactly the numbers that none of ``shapes`` has, by value."""
    removed: set[Number] = set()
    returned: dict[Number, None] = {}
    events: dict[Cut, list[tuple[Divisibility, int]]] = {}
    active: Counter[Divisibility] = Counter()
    for shape in shapes:
        if shape.values is not None:
            removed.update(shape.values)
            continue
        if nonempty(shape) is None:
            continue
        returned.update(dict.fromkeys(shape.excluded))
        condition = (step_of(shape), shape.not_multiples)
        if shape.minimum is None:
            active[condition] += 1
        else:
            events.setdefault((shape.minimum, int(shape.exclusive_minimum)), []).append((condition, 1))
        if shape.maximum is not None:
            events.setdefault((shape.maximum, int(not shape.exclusive_maximum)), []).append((condition, -1))
    values = _returned_values(shapes, returned)
    pieces: list[NumberShape] = []
    ordered = sorted(removed)
    for start, end, alternatives in _segments(events, active):
        for shape in alternatives:
            piece = _piece(shape, start, end, ordered)
            if piece is not None and piece.values is not None:
                values.update(dict.fromkeys(piece.values))
            elif piece is not None:
                pieces.append(ANY_NUMBER if piece == ANY_NUMBER else piece)
        if len(pieces) > MAX_ALTERNATIVES:
            raise LimitError(f"not leaves more intervals than MAX_ALTERNATIVES = {MAX_ALTERNATIVES}; exclude fewer")
    if values:
        pieces.append(NumberShape(values=tuple(values)))
    return tuple(pieces)


def _returned_values(shapes: tuple[NumberShape, ...], candidates: Collection[Number]) -> dict[Number, None]:
    """Returns the candidates that no shape has."""
    bounded = [(frozenset(shape.excluded), shape._replace(excluded=())) for shape in shapes if shape.values is None]
    listed = {value for shape in shapes for value in shape.values or ()}
    return {
        value: None
        for value in candidates
        if value not in listed
        and not any(value not in excluded and admits_number(shape, value) for excluded, shape in bounded)
    }


def _segments(
    events: dict[Cut, list[tuple[Divisibility, int]]], active: Counter[Divisibility]
) -> Iterator[tuple[Cut | None, Cut | None, list[NumberShape]]]:
    """Yields intervals, and the shapes of the numbers there that satisfy none of the active conditions."""
    start: Cut | None = None
    current = _alternatives(active)
    for cut in sorted(events):
        for condition, change in events[cut]:
            active[condition] += change
        following = _alternatives(active)
        if following != current:
            yield start, cut, current
            start, current = cut, following
    yield start, None, current


def _alternatives(active: Counter[Divisibility]) -> list[NumberShape]:
    """Returns shapes without bounds: together, the numbers that satisfy none of the conditions."""
    alternatives = [NumberShape()]
    for (step, divisors), count in active.items():
        if not count:
            continue
        choices = [] if step is None else [NumberShape(not_multiples=(step,))]
        choices += (NumberShape(multiple=divisor) for divisor in divisors)
        products = (intersect_numbers(one, other) for one in alternatives for other in choices)
        alternatives = list(dict.fromkeys(shape for shape in products if shape is not None))
        if len(alternatives) > MAX_ALTERNATIVES:
            raise LimitError(
                f"not leaves more alternatives than MAX_ALTERNATIVES = {MAX_ALTERNATIVES}; exclude fewer divisors"
            )
    return alternatives


def _piece(shape: NumberShape, start: Cut | None, end: Cut | None, removed: list[Number]) -> NumberShape | None:
    """Returns the part of ``shape`` between two cuts, without the removed numbers, which are sorted."""
    whole = shape.multiple is not None and shape.multiple.denominator == 1
    minimum, after_minimum = (None, 0) if start is None else start
    maximum, after_maximum = (None, 1) if end is None else end
    inside = slice(
        0 if minimum is None else bisect_left(removed, minimum),
        None if maximum is None else bisect_right(removed, maximum),
    )
    return nonempty(
        shape._replace(
            integer=whole,
            minimum=minimum,
            exclusive_minimum=bool(after_minimum),
            maximum=maximum,
            exclusive_maximum=not after_maximum,
            multiple=None if shape.multiple == 1 else shape.multiple,
            excluded=tuple(removed[inside]),
        )
    )
