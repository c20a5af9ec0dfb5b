"""The algebra of number shapes: compared with exact arithmetic on values on, between and beyond all bounds."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from constrain.errors import LimitError
from constrain.json_schema.numbers.shape import (
    ANY_INTEGER,
    ANY_NUMBER,
    NumberShape,
    admits_number,
    complement_numbers,
    exact,
    intersect_numbers,
    list_numbers,
    nonempty,
    to_decimal,
)
from constrain.json_schema.shapes.data import Shapes
from constrain.json_schema.shapes.shapes import union
from tests.support import LONG, for_each
from tests.support.json_schema.number_arithmetic import holds, number, points, random_shape

SEEDS = range(400 if LONG else 40)


def shapes_of(seed: str, most: int) -> tuple[NumberShape, ...]:
    rng = Random(seed)
    return tuple(random_shape(rng) for _ in range(rng.randrange(1, most + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_complement_has_exactly_the_other_numbers(seed: int) -> None:
    shapes = shapes_of(f"complement {seed}", 4)
    complement = complement_numbers(shapes)
    again = complement_numbers(complement)
    assert all(piece.values or nonempty(piece) is not None for piece in (*complement, *again))
    for value in points(shapes):
        inside = any(holds(shape, value) for shape in shapes)
        assert any(holds(piece, value) for piece in complement) != inside, (value, shapes, complement)
        assert any(holds(piece, value) for piece in again) == inside, (value, shapes, again)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_an_intersection_has_the_numbers_of_both(seed: int) -> None:
    first, second = shapes_of(f"intersection {seed}", 1) + shapes_of(f"with {seed}", 1)
    both = intersect_numbers(first, second)
    for value in points((first, second)):
        expected = holds(first, value) and holds(second, value)
        assert (both is not None and holds(both, value)) == expected, (value, first, second, both)
        assert (both is not None and admits_number(both, number(value))) == expected


@for_each("seed", SEEDS)
def test_emptiness_and_listing_agree_with_enumeration(seed: int) -> None:
    rng = Random(f"listing {seed}")
    shape = random_shape(rng)._replace(values=None, integer=True)
    found = [value for value in map(Fraction, range(-30, 31)) if holds(shape, value)]
    if shape.minimum is not None and shape.maximum is not None:
        assert (nonempty(shape) is None) == (not found)
        assert list_numbers(shape, len(found)) == tuple(map(number, found))
        assert not found or list_numbers(shape, len(found) - 1) is None
    else:
        assert list_numbers(shape, 10_000) in (None, ())  # () where a divisor that is left out leaves nothing


def test_an_empty_complement_and_the_complement_of_nothing() -> None:
    assert complement_numbers(()) == (ANY_NUMBER,)
    assert complement_numbers(())[0] is ANY_NUMBER
    assert complement_numbers((ANY_NUMBER,)) == ()
    assert complement_numbers((NumberShape(minimum=3), NumberShape(maximum=3))) == ()
    assert complement_numbers(complement_numbers((ANY_INTEGER,))) == (ANY_INTEGER,)


def test_complements_are_small() -> None:
    touching = tuple(NumberShape(True, start, False, start + 1) for start in range(50))
    assert len(complement_numbers(touching)) == 3
    listed = NumberShape(values=tuple(range(10_000)))
    (piece,) = complement_numbers((listed,))
    assert len(piece.excluded) == 10_000
    assert complement_numbers((piece,)) == (listed,)


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
EMPTY = [
    NumberShape(True, 1, False, 3, excluded=(1, 2, 3)),
    NumberShape(True, 1, True, 4, True, excluded=(2, 3)),
    NumberShape(multiple=Fraction(2), not_multiples=(Fraction(1),)),
    NumberShape(True, not_multiples=(HALF,)),
    NumberShape(multiple=HALF, minimum=0, maximum=1, not_multiples=(Fraction(1),), excluded=(Decimal("0.5"),)),
    NumberShape(minimum=2, maximum=2, not_multiples=(Fraction(1),)),
    NumberShape(True, 6, False, 6, not_multiples=(Fraction(4), Fraction(3))),
]
NOT_EMPTY = [
    NumberShape(multiple=QUARTER, not_multiples=(HALF,)),
    NumberShape(multiple=QUARTER, minimum=0, maximum=1, not_multiples=(HALF,)),
    NumberShape(True, 1, False, 3, excluded=(1, 2)),
    NumberShape(minimum=1, maximum=2, not_multiples=(Fraction(1, 100),), excluded=(1, 2)),
    NumberShape(True, 0, False, 10**30, not_multiples=(Fraction(2), Fraction(3), Fraction(5))),
]


def test_emptiness_is_exact() -> None:
    assert [shape for shape in EMPTY if nonempty(shape) is not None] == []
    assert [shape for shape in NOT_EMPTY if nonempty(shape) is None] == []


def test_a_long_list_is_not_walked() -> None:
    assert list_numbers(NumberShape(True, 0, False, 10**4000), 1_000) is None
    assert list_numbers(NumberShape(minimum=0, maximum=1, multiple=Fraction(1, 10**300)), 1_000) is None
    assert list_numbers(NumberShape(minimum=0, maximum=1), 1_000) is None
    assert list_numbers(NumberShape(minimum=Decimal("0.1"), maximum=Decimal("0.3"), multiple=Fraction(1, 10)), 3) == (
        Decimal("0.1"),
        Decimal("0.2"),
        Decimal("0.3"),
    )
    assert list_numbers(NumberShape(values=(1, 2)), 2) == (1, 2)
    assert list_numbers(NumberShape(values=(1, 2)), 1) is None
    assert list_numbers(NumberShape(minimum=Decimal("0.5"), maximum=Decimal("0.5")), 1) == (Decimal("0.5"),)


def test_a_union_keeps_lists_and_exclusions_apart() -> None:
    without = NumberShape(excluded=(1,))
    parts = union([Shapes(numbers=(without,)), Shapes(numbers=(NumberShape(values=(1, 2)),))])
    assert parts.numbers == (without, NumberShape(values=(1, 2)))


def test_whole_decimals_beyond_floats_are_integers() -> None:
    value = exact(Decimal("1e500"))
    assert value is not None
    assert admits_number(ANY_INTEGER, value)
    assert admits_number(NumberShape(multiple=Fraction(10**499)), value)
    assert not admits_number(ANY_INTEGER, Decimal("1.5"))


def test_decimals_are_exact_and_bounded() -> None:
    for text in ("0.01", "1e-7", "1e-8", "1e-1000", "123456789.000000001", "-0.125"):
        assert to_decimal(Fraction(text)) == Decimal(text)
    assert to_decimal(Fraction(5)) == 5
    with pytest.raises(LimitError, match="MAX_DIGITS"):
        to_decimal(Fraction(10**5000 + 1, 10))
