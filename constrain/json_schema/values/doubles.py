"""``precision="double"`` (``compiler`` decides): numbers that are valid as exact decimals and as IEEE doubles.

Rounding to a double keeps the order of numbers, so the double of a number keeps every inclusive bound that the number
keeps. Other constraints are narrowed:

- An exclusive bound: 0.99999999999999999999 is less than 1, and its double is 1. The bound moves to the end of its cell
  (see ``cells``).
- Multiples stay in the range where the double of each multiple is a multiple, too.
- Excluded values and excluded multiples: their whole cells are excluded (``number_expression``). With excluded
  multiples, numbers are at most 2**53, beyond which each double stands for many integers.
- Two constants of a schema with the same double: readers of doubles cannot tell them apart, so the schema is refused.
- Integers of more than 53 bits: many readers (Python's ``json`` is one) read an integer exactly, and a number with a
  fraction or an exponent as a double. So an integer that is no double equals a constant only if both are written as
  integers. As an inclusive bound, it holds for integers as it is (and as its double, too, if it is written with a
  fraction or an exponent), and for numbers with a fraction or an exponent as the next double inside: see
  ``canonical_spellings``.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isinf
from typing import TYPE_CHECKING

from constrain.errors import LimitError, UnsupportedSchemaError, describe_pointer
from constrain.json_schema.shapes.data import Shapes
from constrain.json_schema.shapes.goal import place
from constrain.json_schema.shapes.number_texts import canonical_spellings, scalar_steps
from constrain.json_schema.shapes.numeric import (
    NumberShape,
    intersect_numbers,
    lcm,
    nonempty,
    plainly_whole,
    step_of,
    to_decimal,
)
from constrain.json_schema.spelling.cells import (
    DECIMAL_DIGITS,
    GREATEST_EXACT,
    LEAST_DOUBLE,
    MAX_UNDERFLOW_DIGITS,
    cell,
    is_short,
    nearest,
    rounded_up,
)
from constrain.json_schema.spelling.languages import is_surely_empty
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.goals import Goals
    from constrain.json_schema.spelling.cells import Number

ONLY_DECIMALS = (
    "no number is valid both as a decimal and as an IEEE double within the digits that are written; "
    'precision="decimal" allows numbers that are valid as decimals'
)

_ONE = Fraction(1)
_SPARE_DIGITS = 32

_PLAIN = 1 << 40
"""Integers, and quotients of integers, up to this size are told from whole numbers by doubles as well."""


def split_whole_numbers(order: Iterable[Goal]) -> None:
    """Gives the whole numbers of all goals shapes of their own, spelled as integers: doubles narrow the others."""
    for goal in order:
        shapes = goal.shapes
        assert shapes is not None
        if shapes.numbers and not goal.is_fixed:  # none of these numbers is narrowed
            goal.shapes = shapes._replace(numbers=plainly_whole(shapes.numbers))


def settle_numbers(goals: Goals, order: Iterable[Goal]) -> None:
    """Narrows the numbers of all goals to those that are valid as decimals and as doubles.

    Raises UnsupportedSchemaError for constants that readers of doubles would confuse: see ``_check_constants``.
    """
    _check_constants(goals)
    for goal in order:
        shapes = goal.shapes
        assert shapes is not None
        if not shapes.numbers or goal.is_fixed:  # these have neither bounds nor divisors
            continue
        try:
            numbers = tuple(settled for shape in shapes.numbers for settled in settle(shape, goals.float_bounds))
        except LimitError as error:
            place(error, goal)
            raise
        if numbers != shapes.numbers:
            goal.shapes = shapes._replace(numbers=numbers)
            if not numbers:
                goals.shortages[goal] = ONLY_DECIMALS
                place_of = describe_pointer(goals.pointer_of(goal))
                goals.warnings[f"no number is written at {place_of}: {ONLY_DECIMALS}"] = None


def settle(shape: NumberShape, floats: Collection[Number]) -> list[NumberShape]:
    """Returns the numbers of a shape that keep its bounds and divisors both as decimals and as doubles, as shapes.

    ``floats``: bounds that are no doubles but are read as doubles, so that integers are compared with these doubles,
    too.
    """
    if shape.values is not None:
        return [shape]
    if shape.exclusive_minimum:
        assert shape.minimum is not None
        bound, exclusive = _beyond(shape.minimum, shape)
        shape = shape._replace(minimum=bound, exclusive_minimum=exclusive)
    if shape.exclusive_maximum:
        assert shape.maximum is not None
        bound, exclusive = _beyond(-shape.maximum, shape)
        shape = shape._replace(maximum=-bound, exclusive_maximum=exclusive)
    low, high = shape.minimum, shape.maximum
    if low is not None and low in floats:
        shape = shape._replace(minimum=max(low, _read(nearest(low))))
    if high is not None and high in floats:
        shape = shape._replace(maximum=min(high, _read(nearest(high))))
    step = step_of(shape)
    if step is not None:
        found = _exact_multiples(shape, step)
    elif shape.not_multiples:  # beyond, whether a number is a multiple is another question than whether its double is
        found = _both(shape, NumberShape(minimum=-GREATEST_EXACT, maximum=GREATEST_EXACT))
    else:
        found = iter((shape,))
    return [settled for each in found if (settled := nonempty(each)) is not None and _has_text(settled)]


def _has_text(shape: NumberShape) -> bool:
    """Returns whether a number remains whose double differs from all excluded doubles."""
    if not shape.not_multiples and not shape.excluded:
        return True
    if _has_plain_integer(shape):
        return True
    spend(scalar_steps(Shapes(numbers=(shape,)), "canonical", "double"))
    return not is_surely_empty((canonical_spellings(shape, by_double=True),))


def _has_plain_integer(shape: NumberShape) -> bool:
    """Returns whether an integer of at most ``_PLAIN`` remains; for exclusions of integers and their multiples only."""
    divisors = (*(() if shape.multiple is None else (shape.multiple,)), *shape.not_multiples)
    if any(divisor.denominator != 1 for divisor in divisors):
        return False
    if any(not isinstance(value, int) or abs(value) > _PLAIN for value in shape.excluded):
        return False
    plain = NumberShape(integer=True, minimum=-_PLAIN, maximum=_PLAIN)
    try:
        return intersect_numbers(shape, plain) is not None
    except LimitError:  # not found soon; the texts decide
        return False


def _beyond(bound: Number, shape: NumberShape) -> tuple[Number, bool]:
    """Returns the lower bound of numbers above ``bound`` in both readings, and whether it is exclusive."""
    whole = shape.integer or (shape.multiple is not None and shape.multiple.denominator == 1)
    if whole and bound.__class__ is int and -GREATEST_EXACT <= bound < GREATEST_EXACT:
        return bound, True
    if not bound:
        others = (shape.minimum, shape.maximum, None if shape.multiple is None else to_decimal(shape.multiple))
        places = max((_places(other) for other in others if other is not None), default=0)
        return (LEAST_DOUBLE, False) if places + _SPARE_DIGITS > MAX_UNDERFLOW_DIGITS else (bound, True)
    double = nearest(bound)
    if isinf(double):
        return bound, True
    if not double:
        return LEAST_DOUBLE, False
    inside = cell(double)
    rounded, is_end = rounded_up(inside.high)
    return rounded, is_end and inside.closed


def _exact_multiples(shape: NumberShape, step: Fraction) -> Iterator[NumberShape]:
    """Yields the multiples of a shape whose doubles are multiples, too; all are multiples of ``step``."""
    limit = _greatest_exact(step, shape)
    if limit is None:
        yield shape
        return
    yield from _both(shape, NumberShape(minimum=-limit, maximum=limit))
    if step.denominator == 1:
        return
    whole = lcm(step, _ONE)  # integers are exact for longer
    beyond = _greatest_exact(whole, shape)
    if beyond is None and not shape.not_multiples:
        # Doubles from 2**53 on are integers and so multiples, whatever number they are read from.
        yield from _both(shape, NumberShape(minimum=GREATEST_EXACT), NumberShape(maximum=-GREATEST_EXACT))
        beyond = GREATEST_EXACT
    if beyond is not None and beyond > limit:
        yield from _both(
            shape._replace(multiple=whole),
            NumberShape(minimum=limit, exclusive_minimum=True, maximum=beyond),
            NumberShape(minimum=-beyond, maximum=-limit, exclusive_maximum=True),
        )


def _greatest_exact(step: Fraction, shape: NumberShape) -> Number | None:
    """Returns the bound below which doubles of multiples of ``step`` are multiples; ``None`` without a bound."""
    odd = step.numerator
    while odd % 2 == 0:
        odd //= 2
    is_binary = step.denominator & (step.denominator - 1) == 0
    if is_binary and odd == 1 and not shape.not_multiples:
        return None  # rounding to a double keeps multiples of a power of two
    if not is_binary or odd > GREATEST_EXACT:
        return to_decimal(Fraction(10) ** (DECIMAL_DIGITS - _places(to_decimal(step))))
    exact = GREATEST_EXACT * step / odd  # these multiples are doubles
    return to_decimal(min(exact, Fraction(GREATEST_EXACT)) if shape.not_multiples else exact)


def _both(shape: NumberShape, *others: NumberShape) -> Iterator[NumberShape]:
    """Yields the intersections of a shape with each of the others."""
    for other in others:
        common = intersect_numbers(shape, other)
        if common is not None:
            yield common


def _places(value: Number) -> int:
    """Returns the number of digits after the point."""
    if isinstance(value, int):
        return 0
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def _check_constants(goals: Goals) -> None:
    """Refuses constants that keywords of the schema judge differently as decimals and as doubles.

    Such constants have the same double as another (unless one ``enum`` lists both); or are multiples of a divisor in
    only one of the two readings; or are long integers in ``const`` or ``enum``, written with a fraction or an exponent.
    """
    if goals.long_floats:
        at, keyword, value = goals.long_floats[0]
        raise UnsupportedSchemaError(
            f"with a fraction or an exponent, {Decimal(value):.6e} is read as the double {int(nearest(value))!s:.40}, "
            'which it is not; write it as an integer, or compile with precision="decimal"',
            pointer=at.pointer(keyword),
        )
    if all(is_short(value) for _, _, values in goals.numbers for value in values):
        return
    divisors = {1, *(value for _, keyword, values in goals.numbers if keyword == "multipleOf" for value in values)}
    known: dict[float, dict[Number, str]] = {}
    several: set[float] = set()  # values that more than one keyword names
    for at, keyword, values in goals.numbers:
        pointer = at.pointer(keyword)
        for value in values:
            double = nearest(value)
            same = known.setdefault(double, {})
            if any(place != pointer for place in same.values()):
                several.add(double)
            other = next((each for each in same if each != value), None)
            same.setdefault(value, pointer)
            if other is not None and double in several:
                raise UnsupportedSchemaError(
                    f"readers of IEEE doubles cannot tell {value!s:.40} from {other!s:.40} (at {same[other]}); "
                    'precision="decimal" compares numbers as exact decimals',
                    pointer=pointer,
                )
            for divisor in () if is_short(value) else divisors:
                if _is_multiple(value, divisor) != _is_multiple(_read(double), divisor):
                    raise UnsupportedSchemaError(
                        f"readers of IEEE doubles take {value!s:.40} for {double!r}, and is it a multiple of "
                        f'{divisor!s:.40}? Decimals and doubles differ; precision="decimal" compares exact decimals',
                        pointer=pointer,
                    )


def _read(double: float) -> Number:
    """Returns the number that a reader makes of a double: its shortest decimal, or the integer that it is."""
    if isinf(double):
        return Decimal("Infinity")
    return int(double) if double.is_integer() else Decimal(repr(double))


def _is_multiple(value: Number, divisor: Number) -> bool:
    if isinstance(value, Decimal) and value.is_infinite():
        return True
    return (Fraction(value) / Fraction(divisor)).denominator == 1
