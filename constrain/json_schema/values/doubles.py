"""``precision="double"`` for the goals of a schema: narrows their numbers, and refuses constants that doubles confuse.

``numbers.doubles`` narrows one shape. Two constants of a schema with the same double are refused, because readers of
doubles cannot tell them apart.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isinf
from typing import TYPE_CHECKING

from constrain.errors import LimitError, UnsupportedSchemaError, describe_pointer
from constrain.json_schema.numbers.cells import is_short, nearest
from constrain.json_schema.numbers.doubles import read, settle
from constrain.json_schema.numbers.shape import is_multiple, plainly_whole
from constrain.json_schema.shapes.goal import place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.numbers.shape import Number
    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.goals import Goals

ONLY_DECIMALS = (
    "no number is valid both as a decimal and as an IEEE double within the digits that are written; "
    'precision="decimal" allows numbers that are valid as decimals'
)


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
                of_double = isinf(double) or is_multiple(read(double), Fraction(divisor))
                if is_multiple(value, Fraction(divisor)) != of_double:
                    raise UnsupportedSchemaError(
                        f"readers of IEEE doubles take {value!s:.40} for {double!r}, and is it a multiple of "
                        f'{divisor!s:.40}? Decimals and doubles differ; precision="decimal" compares exact decimals',
                        pointer=pointer,
                    )
