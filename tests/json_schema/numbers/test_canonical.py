"""Number expressions: compared with exact arithmetic on every spelling near the bounds."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest

from constrain.errors import LimitError
from constrain.json_schema.numbers.canonical import canonical_spellings
from constrain.json_schema.numbers.shape import MAX_DIGITS, Number, NumberShape
from constrain.language.tree import NOTHING, Expression
from tests.support import for_each
from tests.support.processor_time import finishes_within
from tests.support.regex.derivative_matcher import matches


def numbers(*, integer: bool = False, multiple_of: Number | None = None, **bounds: Number) -> Expression:
    shape = NumberShape(
        integer,
        bounds.get("minimum", bounds.get("exclusive_minimum")),
        "exclusive_minimum" in bounds,
        bounds.get("maximum", bounds.get("exclusive_maximum")),
        "exclusive_maximum" in bounds,
        None if multiple_of is None else Fraction(multiple_of),
    )
    return canonical_spellings(shape, by_double=False)


def constants(*values: Number, integer: bool = False, pointed: bool = False, spare_zeros: bool = False) -> Expression:
    shape = NumberShape(integer, values=values, pointed=pointed)
    return canonical_spellings(shape, by_double=False, spare_zeros=spare_zeros)


@for_each("low, high", [(0, 0), (0, 9), (-3, 12), (95, 1205), (-1005, -7), (100, 100), (999, 1000)])
def test_every_integer_of_an_interval_and_no_other(low: int, high: int) -> None:
    expression = numbers(minimum=low, maximum=high, integer=True)
    found = [number for number in range(-1300, 1300) if matches(expression, str(number).encode())]
    assert found == list(range(low, high + 1))


EMPTY = [
    {"minimum": Decimal("0.1"), "maximum": Decimal("0.9"), "integer": True},
    {"exclusive_minimum": 1, "exclusive_maximum": 2, "integer": True},
    {"minimum": 1, "maximum": 6, "multiple_of": 7},
    {"minimum": Decimal("0.01"), "exclusive_maximum": Decimal("0.3"), "multiple_of": Decimal("0.3")},
    {"minimum": 1, "multiple_of": Decimal("1e5000"), "integer": True},
    {"minimum": Decimal("1e5000"), "integer": True},
    {"minimum": Decimal("1e309")},
]


@for_each("arguments", EMPTY)
def test_an_interval_without_a_value_is_nothing(arguments: dict[str, object]) -> None:
    assert numbers(**{"integer": False, **arguments}) == NOTHING  # type: ignore[arg-type]


EXTREME = [
    ({"minimum": Decimal("1e308")}, ["1" + "0" * 308, "17" + "0" * 307], ["9" * 308, "2" + "0" * 308, "1"]),
    (
        {"exclusive_minimum": 0, "maximum": Decimal("1e-7")},
        ["0.0000001", "0.00000001"],
        ["0", "0.0000002", "0.00000010"],
    ),
    ({"maximum": Decimal("-1e308")}, ["-1" + "0" * 308], ["-" + "9" * 308, "-2" + "0" * 308]),
    ({"minimum": Decimal("1e4000"), "integer": True}, ["1" + "0" * 4000, "9" * 4300], ["9" * 4000, "9" * 4301]),
    ({"maximum": Decimal("-1e4000"), "integer": True}, ["-1" + "0" * 4000], ["-" + "9" * 4000]),
    ({"minimum": Decimal("5e-324")}, ["1", "0." + "0" * 323 + "5"], ["0", "0." + "0" * 323 + "4"]),
    (
        {"multiple_of": Decimal("1e-300"), "maximum": 1, "minimum": 0},
        ["1", "0." + "0" * 299 + "7"],
        ["0." + "0" * 300 + "7"],
    ),
    ({"multiple_of": 10**400}, ["0", "0.0"], ["1", "10", "-0.0"]),
    ({"multiple_of": Decimal("0.01")}, ["1", "1.0", "1.5", "-0.25"], ["1.50", "-0.00", "10.00", "1.500", "1.005"]),
    ({"multiple_of": 7, "exclusive_minimum": Decimal("-0.05")}, ["0", "7"], ["-0", "-0.0", "-7", "-0.1", "-0.00"]),
    ({"multiple_of": 1}, ["1", "1.0"], ["-0.0", "1.00", "1.5"]),
    ({"multiple_of": Decimal("0.50")}, ["0.5", "1.0"], ["0.50"]),
    ({"multiple_of": Decimal("0.1"), "maximum": 0, "exclusive_minimum": Decimal("-0.0999")}, ["0", "0.0"], ["0.00"]),
    (
        {"multiple_of": Decimal("0.1"), "exclusive_minimum": Decimal("0.125"), "maximum": Decimal("-1.005") + 2},
        ["0.2", "0.9"],
        ["0.1", "0.125", "1.0", "0.20", "0.995"],
    ),
    (
        {"multiple_of": Decimal("0.1"), "minimum": Decimal("-0.25"), "exclusive_maximum": Decimal("0.201")},
        ["-0.2", "-0.1", "0.0", "0.2"],
        ["-0.3", "-0.0", "0.3", "0.201"],
    ),
    ({"multiple_of": Decimal("0.75"), "integer": True}, ["0", "3", "-6"], ["1", "74"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "accepted", "rejected"), EXTREME)
def test_extreme_bounds(arguments: dict[str, object], accepted: list[str], rejected: list[str]) -> None:
    expression = numbers(**arguments)  # type: ignore[arg-type]
    assert [text for text in accepted if not matches(expression, text.encode())] == []
    assert [text for text in rejected if matches(expression, text.encode())] == []


def test_what_python_writes_for_a_float_without_exponent_is_a_number() -> None:
    rng = random.Random(0)
    values = [rng.uniform(-1, 1) * 10 ** rng.randrange(-3, 15) for _ in range(300)] + [0.0, -1.0, 1.0, 0.1]
    texts = [repr(value) for value in values if "e" not in repr(value)]
    assert len(texts) > 250
    assert [text for text in texts if not matches(numbers(), text.encode())] == []


def test_integers_have_one_spelling_and_bounded_digits() -> None:
    accepted = [b"0", b"-1", b"120", b"9" * MAX_DIGITS]
    rejected = [b"-0", b"00", b"1.0", b"1e1", b"-", b"", b"9" * (MAX_DIGITS + 1)]
    assert [text for text in accepted if not matches(numbers(integer=True), text)] == []
    assert [text for text in rejected if matches(numbers(integer=True), text)] == []


LITERALS = [
    (1, "pointed", ["1", "1.0"], ["-1", "1.", "01", "1.00", "1.01"]),
    (1, "", ["1"], ["1.0"]),
    (Decimal("1.0"), "integer", ["1"], ["1.0"]),
    (Decimal("-2.50"), "", ["-2.5"], ["2.5", "-2.50", "-2.50001", "-2"]),
    (Decimal("2.5"), "pointed", ["2.5"], ["2.50", "2"]),
    (0, "pointed", ["0", "0.0"], ["-0", "-0.0", "0.1", "00", "0.00"]),
    (0, "integer", ["0"], ["-0", "0.0"]),
    (0, "spare_zeros", ["0", "-0", "0.0", "-0.000"], ["00", "0.1"]),
    (Decimal("1.5"), "integer", [], ["1.5", "1", "2"]),
    (Decimal("1e20"), "", ["1" + "0" * 20], ["1e20"]),
]


@for_each("value, option, accepted, rejected", LITERALS)
def test_spellings_of_a_constant(value: int | Decimal, option: str, accepted: list[str], rejected: list[str]) -> None:
    expression = constants(value, **{option: True} if option else {})
    assert [text for text in accepted if not matches(expression, text.encode())] == []
    assert [text for text in rejected if matches(expression, text.encode())] == []


def test_constants_end_in_no_zeros_unless_these_are_spared() -> None:
    expression = constants(1, Decimal("0.25"), Decimal("-1.5"), pointed=True)
    assert all(matches(expression, text) for text in (b"1", b"1.0", b"0.25", b"-1.5"))
    assert not any(matches(expression, text) for text in (b"1.00", b"0.250", b"-1.50"))
    spare = constants(1, Decimal("0.25"), spare_zeros=True)
    assert matches(spare, b"1." + b"0" * 64)
    assert not matches(spare, b"1." + b"0" * 65)


def test_numbers_beyond_the_limits_are_refused_by_name() -> None:
    with pytest.raises(LimitError, match="MAX_DIGITS"):
        numbers(minimum=Decimal("1e-5000"))
    with pytest.raises(LimitError, match="MAX_DIGITS"):
        constants(Decimal("1e5000"))


@pytest.mark.parametrize("integer", [False, True])
def test_a_number_that_is_too_long_to_be_written_excludes_nothing(integer: bool) -> None:
    expression = canonical_spellings(NumberShape(integer, excluded=(Decimal("1e5000"), 2)), by_double=True)
    assert matches(expression, b"1")
    assert not matches(expression, b"2")


def test_a_divisor_that_is_too_long_to_be_written_is_refused_by_its_first_digits() -> None:
    shape = NumberShape(multiple=Fraction(101 * 10**5000), not_multiples=(Fraction(7),))
    with pytest.raises(LimitError, match=r"multiples of 1010{37} cannot .*MAX_DIVISOR_BESIDE_OTHERS"):
        canonical_spellings(shape, by_double=False)


def _size(expression: Expression) -> int:
    return len(repr(expression))


def test_the_size_grows_with_the_digits_not_with_the_range() -> None:
    low, high = int("1234567890" * 40), int("9876543210" * 40)
    expression = numbers(minimum=low, maximum=high, integer=True)
    assert _size(expression) < 400 * 400
    assert matches(expression, str(low).encode())
    assert not matches(expression, str(low - 1).encode())


@pytest.mark.slow
def test_large_bounds_are_fast() -> None:
    with finishes_within(1):
        numbers(minimum=-(10**4299) + 7, maximum=10**4298 + 3, integer=True, multiple_of=10**4000 + 1)
        numbers(minimum=Decimal("-1.5e300"), maximum=Decimal("1e-300"))
