"""Spellings of number shapes under both policies: the kernel compared with exact arithmetic, text by text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.errors import LimitError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.numbers import canonical, scientific
from constrain.json_schema.numbers.canonical import MAX_LISTED_MULTIPLES
from constrain.json_schema.numbers.shape import ANY_NUMBER, NumberShape, complement_numbers, nonempty
from constrain.json_schema.numbers.spellings import MAX_SCIENTIFIC_DIVISOR
from constrain.json_schema.numbers.spellings import all_spellings as spellings_of
from constrain.language.grammar import Edge, Grammar, Rule, Terminal
from constrain.language.tree import NOTHING, Expression
from tests.support import LONG, Tokens, Walker, byte_vocabulary, for_each, small_vocabulary
from tests.support.json_schema.number_arithmetic import (
    Language,
    holds,
    number,
    points,
    random_shape,
    spellings,
    value_of,
)
from tests.support.processor_time import finishes_within

SHAPES = 400 if LONG else 12
_CANONICAL = re.compile(r"(-(?!0(\.0)?$))?(0|[1-9][0-9]*)(\.([0-9]*[1-9]|0))?")
all_spellings = partial(spellings_of, by_double=False)
canonical_spellings = partial(canonical.canonical_spellings, by_double=False)
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def near(rng: Random, shape: NumberShape, count: int) -> list[str]:
    values = [*rng.sample(points((shape,)), count), Fraction(0), Fraction(1)]
    return [text for value in values for text in spellings(rng, value)]


@pytest.mark.slow(but=("14", "8", "27"))
@pytest.mark.parametrize("seed", range(SHAPES))
def test_all_spellings_are_those_of_the_numbers_of_the_shape(seed: int) -> None:
    rng = Random(f"all {seed}")
    shape = random_shape(rng)
    language = Language(all_spellings(shape)) if shape.values or nonempty(shape) else None
    for text in near(rng, shape, 30):
        value = value_of(text)
        assert value is not None
        assert (language is not None and language.accepts(text)) == holds(shape, value), (text, shape)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3 * SHAPES))
def test_canonical_spellings_are_those_of_the_numbers_of_the_shape(seed: int) -> None:
    rng = Random(f"canonical {seed}")
    shape = random_shape(rng)
    language = Language(canonical_spellings(shape)) if shape.values or nonempty(shape) else None
    has_point = not shape.integer and (shape.values is None or shape.pointed)
    for text in near(rng, shape, 30):
        value = value_of(text)
        assert value is not None
        form = _CANONICAL if has_point or value.denominator > 1 else _INTEGER
        expected = form.fullmatch(text) is not None and holds(shape, value)
        assert (language is not None and language.accepts(text)) == expected, (text, shape)


@pytest.mark.slow(but=("canonical-10", "any-10", "canonical-0"))
@pytest.mark.parametrize("seed", range(SHAPES // 2))
@pytest.mark.parametrize("policy", ["canonical", "any"])
def test_a_text_is_in_the_complement_or_in_the_shape(policy: str, seed: int) -> None:
    rng = Random(f"complement {seed}")
    shapes = tuple(random_shape(rng) for _ in range(2))
    spelled = canonical_spellings if policy == "canonical" else all_spellings
    pieces = [Language(spelled(piece)) for piece in complement_numbers(shapes)]
    for text in near(rng, shapes[0], 20) + near(rng, shapes[1], 20):
        value = value_of(text)
        assert value is not None
        outside = not any(holds(shape, value) for shape in shapes)
        accepted = any(piece.accepts(text) for piece in pieces)
        if policy == "any":
            assert accepted == outside, (text, shapes)
        else:
            assert outside or not accepted, (text, shapes)


WIDE: list[tuple[NumberShape, list[str], list[str]]] = [
    (
        NumberShape(True, 10**6, False, 10**9),
        ["1e6", "1000000", "1.5E+7", "123456789", "12345678900e-2", "1000000000.0", "0.000000001e18"],
        ["1e5", "999999.5", "1e10", "12345678950e-2", "1000000000.5", "1.0000001e6"],
    ),
    (
        NumberShape(minimum=Decimal("-1e-7"), maximum=Decimal("1e-7"), exclusive_maximum=True),
        ["0", "-1e-7", "-0.00000010", "9.9e-8", "0.99999e-7", "5e-324", "-0e9"],
        ["1e-7", "0.0000001", "-1.1e-7", "1", "10e-8"],
    ),
    (
        NumberShape(multiple=Fraction(1, 10**8)),
        ["1e-8", "12391239123", "1.5e-7", "0.00000001", "1e300", "100e-10"],
        ["1e-9", "1.5e-8", "0.000000001"],
    ),
    (NumberShape(multiple=Fraction(1, 100)), ["0.01", "4.35", "435e-2", "1e-2", "1e5"], ["0.001", "4355e-3", "1e-3"]),
    (NumberShape(multiple=Fraction(3, 2)), ["1.5", "15e-1", "3e0", "1.5e3", "0e5"], ["2", "1.5e-1", "1e1"]),
    (NumberShape(multiple=Fraction(60)), ["60", "6e1", "1.2e2", "600e-1", "18e1"], ["6", "6e0", "30e0", "600e-2"]),
    (NumberShape(multiple=Fraction(10**20)), ["1e20", "3e21", "0", "1" + "0" * 20], ["1e19", "1.5e20", "1"]),
    (NumberShape(True, 0, multiple=Fraction(60_000)), ["6e4", "120000.0", "0", "180000"], ["3e4", "60001", "-6e4"]),
    (NumberShape(not_multiples=(Fraction(10**6),)), ["1e5", "100", "1000001", "1000000.5"], ["0", "1e6", "3000000.0"]),
    (NumberShape(True, not_multiples=(Fraction(13),)), ["14e0", "1.4e1", "131"], ["13", "1.3e1", "130", "0", "0e1"]),
    (
        NumberShape(True, 10**10, False, 10**10 + 10**6, multiple=Fraction(13)),
        ["10000000010", "1.000000001e10", "100000000100e-1", "10000000023"],
        ["1e10", "10000000011", "1.0000000011e10"],
    ),
    (
        NumberShape(minimum=Decimal("1e308")),
        ["1e308", "1.7e308", "1" + "0" * 308],
        ["9e307", "1.8e308", "1e309", "1e400"],
    ),
    (NumberShape(maximum=Decimal("1e-320")), ["-1e308", "1e-320", "5e-324", "0e0"], ["1.1e-320", "1e-319"]),
    (NumberShape(values=(10**20, Decimal("1e-300"), -5)), ["1e20", "10e19", "1e-300", "-5.0", "-50e-1"], ["5", "1e21"]),
    (NumberShape(excluded=(1, Decimal("0.5"))), ["1.5", "2e0", "5e0"], ["1", "1.0", "10e-1", "5e-1", "0.50e0", "0.5"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "accepted", "rejected"), WIDE)
def test_wide_shapes(shape: NumberShape, accepted: list[str], rejected: list[str]) -> None:
    language = Language(all_spellings(shape))
    assert [text for text in accepted if not language.accepts(text)] == []
    assert [text for text in rejected if language.accepts(text)] == []


@pytest.mark.slow(only=("0",))
@pytest.mark.parametrize("seed", range(SHAPES // 4))
def test_multiples_in_wide_and_narrow_ranges(seed: int) -> None:
    rng = Random(f"multiples {seed}")
    step = Fraction(rng.randrange(2, MAX_SCIENTIFIC_DIVISOR + 1)) * rng.choice(
        [1, 10, Fraction(1, 10), Fraction(1, 100)]
    )
    low = Fraction(rng.randrange(10 ** rng.randrange(12)))
    width = step * rng.randrange(MAX_LISTED_MULTIPLES, 10 ** rng.randrange(4, 10))
    bounds = {"minimum": number(low), "maximum": number(low + width)}
    for name in bounds:
        if rng.random() < 0.3:
            bounds.pop(name)
            break
    shapes = NumberShape(multiple=step, **bounds), NumberShape(not_multiples=(step,), **bounds)  # type: ignore[arg-type]
    languages = [Language(all_spellings(shape)) for shape in shapes]
    for _ in range(10):
        value = low // step * step + step * rng.randrange(int(width / step) + 2)
        value += rng.choice([Fraction(0), Fraction(0), Fraction(1, 10), Fraction(1)])
        for text in spellings(rng, value):
            mantissa = text.lower().partition("e")[0].lstrip("-").partition(".")
            if "e" in text.lower() and max(map(len, mantissa)) > scientific.MAX_MANTISSA_DIGITS:
                continue
            for shape, language in zip(shapes, languages, strict=True):
                assert language.accepts(text) == holds(shape, value), (text, shape)


@pytest.mark.slow
def test_long_mantissas_are_compared_to_the_last_digit() -> None:
    low, high = Decimal("0.123456789012345678901234567890"), Decimal("123456789.0123456789012345678901")
    language = Language(all_spellings(NumberShape(False, low, True, high, True)))
    for bound, sign in ((low, 1), (high, -1)):
        digits, position = scientific_parts(bound)
        for count in (5, 16, 17, 18):
            for step in (-1, 0, 1):
                mantissa = int(digits[:count]) + step
                text = f"{str(mantissa)[0]}.{str(mantissa)[1:]}e{position - 1}"
                assert language.accepts(text) == (sign * (Fraction(text) - Fraction(bound)) > 0), text


def scientific_parts(value: Decimal) -> tuple[str, int]:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return "".join(map(str, digits)), len(digits) + exponent


def test_the_limits_of_scientific_notation() -> None:
    language = Language(all_spellings(ANY_NUMBER))
    most, greatest = scientific.MAX_MANTISSA_DIGITS, scientific.MAX_SPELLED_EXPONENT
    assert language.accepts("9" * most + "." + "9" * most + "e-290")
    assert not language.accepts("9" * (most + 1) + "e-290")
    assert not language.accepts("0." + "9" * (most + 1) + "e5")
    assert language.accepts(f"0e{greatest}")
    assert language.accepts(f"0e-{greatest}")
    assert not language.accepts(f"0e{greatest + 1}")
    assert language.accepts("1.7976931348623157e+308")
    assert not language.accepts("1.7976931348623159e+308")
    assert language.accepts("5e-324")
    assert not language.accepts("4e-324")
    assert not language.accepts("1e-325")
    assert not language.accepts("1e0005")


def test_multiples_of_large_divisors_have_no_exponent_unless_they_are_few() -> None:
    language = Language(all_spellings(NumberShape(multiple=Fraction(7919))))
    assert MAX_SCIENTIFIC_DIVISOR < 7919
    assert language.accepts("7919")
    assert language.accepts("15838.0")
    assert language.accepts("0e1")
    assert not language.accepts("7919e1")
    few = Language(all_spellings(NumberShape(minimum=0, maximum=7919_00, multiple=Fraction(7919))))
    assert few.accepts("7919e1")
    assert not few.accepts("7918e1")


def test_what_python_writes_for_a_float_is_a_number() -> None:
    rng = Random(7)
    language = Language(all_spellings(ANY_NUMBER))
    floats = [rng.uniform(-10, 10) * 10.0 ** rng.randrange(-320, 308) for _ in range(500)] + [1e16, 5e-324, 0.0]
    assert [value for value in floats if not language.accepts(json.dumps(value))] == []


# Whole schemas.

PROBES = [
    *("9" * 400, "1.0", "1.00", "-0", "-0.0", "1e2", "1E+2", "100e-2", "1e400", "01", "1.", ".5", "+1", "1e", "--1"),
    "0x1",
]
ACCEPTED: dict[tuple[str, str], list[str]] = {
    ("integer", "canonical"): ["9" * 400],
    ("integer", "any"): ["9" * 400, "1.0", "1.00", "-0", "-0.0", "1e2", "1E+2", "100e-2"],
    ("number", "canonical"): ["1.0"],
    ("number", "any"): ["1.0", "1.00", "-0", "-0.0", "1e2", "1E+2", "100e-2"],
}


@for_each("kind, policy", ACCEPTED)
def test_probes(kind: str, policy: str) -> None:
    constraint = constrain.compile({"type": kind}, byte_vocabulary(), numbers=policy, precision="decimal")
    assert [text for text in PROBES if constraint.accepts(text)] == ACCEPTED[kind, policy]
    assert constraint.report.policies["numbers"] == policy


@pytest.mark.parametrize("policy", ["canonical", "any"])
def test_integers_have_at_most_the_documented_digits(policy: str) -> None:
    for precision, digits in (("decimal", 4300), ("double", 308)):
        constraint = constrain.compile({"type": "integer"}, byte_vocabulary(), numbers=policy, precision=precision)
        assert constraint.accepts("9" * digits)
        assert not constraint.accepts("9" * (digits + 1))


def test_in_draft_4_integers_have_neither_fraction_nor_exponent() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": -5}
    constraint = constrain.compile(schema, byte_vocabulary(), numbers="any")
    assert [text for text in ("1", "-0", "12", "1.0", "1e0", "10e-1", "-6") if constraint.accepts(text)] == [
        "1",
        "-0",
        "12",
    ]
    number = constrain.compile({**schema, "type": "number"}, byte_vocabulary(), numbers="any")
    assert number.accepts("1.0")


DRAFT_4 = "http://json-schema.org/draft-04/schema#"
BY_SPELLING = jsonschema.Draft4Validator
BY_VALUE = jsonschema.validators.extend(BY_SPELLING, type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER)
INTEGERS_OF_DRAFT_4: list[dict[str, Any]] = [
    {"type": "integer"},
    {"not": {"type": "integer"}},
    {"type": "number", "not": {"type": "integer"}},
    {"not": {"not": {"type": "integer"}}},
    {"not": {"not": {"type": "integer", "enum": [2, 3]}}},
    {"not": {"not": {"type": "integer", "minimum": 2, "maximum": 2}}},
    {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]},
    {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    {"oneOf": [{"not": {"type": "integer"}}, {"enum": [2, "a"]}]},
    {"oneOf": [{"not": {"type": "integer"}}, {"multipleOf": 0.5, "minimum": 0}]},
]


@for_each("policy", ["canonical", "any"])
@for_each("by_reference", [False, True])
@for_each("schema", INTEGERS_OF_DRAFT_4)
def test_what_is_written_of_draft_4_is_valid_by_spelling_and_by_value(
    schema: dict[str, Any], by_reference: bool, policy: str
) -> None:
    document: dict[str, Any] = {"$schema": DRAFT_4, **schema}
    asked = {"$ref": "http://e.x/numbers"} if by_reference else document
    constraint = constrain.compile(
        asked, byte_vocabulary(), numbers=policy, registry={"http://e.x/numbers": document}, cache=False
    )
    for text in ("2", "2.0", "2e0", "20e-1", "-2", "3", "3.0", "2.5", "25e-1", "-2.5", "0", "-0", "0.0"):
        valid = [kind(schema).is_valid(json.loads(text)) for kind in (BY_SPELLING, BY_VALUE)]
        if constraint.accepts(text):
            assert valid == [True, True], text
        elif text in ("2", "-2", "3", "2.5", "-2.5", "0"):
            assert valid == [False, False], text


SCHEMAS: list[dict[str, Any]] = [
    {"type": ["integer", "string"], "minimum": -3, "exclusiveMaximum": 12.5},
    {"enum": [1, 2.5, "a", None, 100]},
    {"const": 1.0},
    {"type": "number", "multipleOf": 0.5, "minimum": 0},
    {"type": "integer", "multipleOf": 3},
    {"anyOf": [{"type": "integer", "maximum": 3}, {"minimum": 2.5, "maximum": 2.75}]},
    {},
]


@pytest.mark.slow
@pytest.mark.parametrize("schema", SCHEMAS)
def test_schemas_agree_with_a_validator_on_every_spelling(schema: dict[str, Any]) -> None:
    rng = Random(json.dumps(schema))
    validator = jsonschema.Draft202012Validator(schema)
    constraint = constrain.compile(schema, byte_vocabulary(), numbers="any", precision="decimal")
    for eighths in range(-40, 120, 3):
        for text in spellings(rng, Fraction(eighths, 8)):
            assert constraint.accepts(text.encode()) == validator.is_valid(json.loads(text)), text


@pytest.mark.slow
@pytest.mark.parametrize("shape", [shape for shape, _, _ in WIDE])
def test_walks_over_masks_end_in_numbers_of_the_shape(shape: NumberShape) -> None:
    vocabulary = small_vocabulary()
    rule = Rule("text", (Edge(0, 0, 1),), (1,))
    grammar = Grammar((Terminal("number", all_spellings(shape)),), (rule,), self_delimiting=True)
    walker, tokens = Walker(constrain.compile(grammar, vocabulary), vocabulary), Tokens(vocabulary)
    for seed in range(30 if LONG else 6):
        rng = Random(f"{shape} {seed}")
        text = walker.text(rng, tokens, rng.randrange(12)).decode()
        value = value_of(text)
        assert value is not None, text
        assert holds(shape, value), (text, shape)
        assert math.isfinite(float(text)), text


def test_a_bound_beyond_all_floats_is_refused_or_left_out() -> None:
    with pytest.raises(UnsupportedSchemaError, match="larger than a float"):
        compile_schema({"type": "number", "minimum": Decimal("1e309")})
    with pytest.raises(UnsupportedSchemaError, match="larger than a float"):
        compile_schema({"type": "number", "minimum": Decimal("1e309")}, numbers="any")
    assert all_spellings(NumberShape(minimum=Decimal("1e309"))) == NOTHING


@pytest.mark.parametrize("policy", ["canonical", "any"])
def test_divisors_too_large_are_refused_by_name(policy: str) -> None:
    schema = {"type": "number", "multipleOf": 2**61 - 1}
    with pytest.raises(LimitError, match="MAX_DIVISOR"):
        constrain.compile(schema, byte_vocabulary(), numbers=policy, precision="decimal")


@pytest.mark.parametrize("spelled", [canonical_spellings, all_spellings])
def test_multiples_of_one_divisor_and_not_of_another(spelled: Callable[[NumberShape], Expression]) -> None:
    language = Language(spelled(NumberShape(multiple=Fraction(3, 10), not_multiples=(Fraction(3, 5),))))
    assert [text for text in ("0.3", "-0.9", "1.5", "300.3") if not language.accepts(text)] == []
    assert [text for text in ("0", "0.6", "1.2", "0.4", "3") if language.accepts(text)] == []
    few = Language(spelled(NumberShape(False, 0, False, 9_000, False, Fraction(1000), not_multiples=(Fraction(3000),))))
    assert [text for text in ("1000", "2000.0", "8000") if not few.accepts(text)] == []
    assert [text for text in ("0", "3000", "9000", "500") if few.accepts(text)] == []
    for integer in (False, True):
        with pytest.raises(LimitError, match="MAX_DIVISOR_BESIDE_OTHERS"):
            spelled(NumberShape(integer, multiple=Fraction(101), not_multiples=(Fraction(202),)))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["canonical", "any"])
def test_many_constants_compile_in_a_moment(policy: str) -> None:
    schema = {"enum": [*range(5_000), *(number / 4 for number in range(1, 5_000, 4))]}
    with finishes_within(2):
        constraint = constrain.compile(schema, byte_vocabulary(), numbers=policy)
    assert constraint.accepts("4999")
    assert constraint.accepts("4999.0") == (policy == "any")
    assert constraint.accepts("0.250") == (policy == "any")
    assert not constraint.accepts("5000")
