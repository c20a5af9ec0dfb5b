"""Numbers that are valid however they are read: as exact decimals and as IEEE doubles."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal, localcontext
from typing import Any

import jsonschema_rs
import pytest

import constrain
from tests.support import LONG, byte_vocabulary, for_each
from tests.support.judging import Judge, written

ARRAYS = 4_000 if LONG else 50


def accepts(schema: dict[str, Any], text: str, **policies: str) -> bool:
    return constrain.compile(written(schema), byte_vocabulary(), cache=False, **policies).accepts(text)


NEAREST_1E23 = "99999999999999991611392"

# One text that is valid as a decimal, one that is valid as a double, and what both readers take.
BOTH: list[tuple[dict[str, Any], list[str], list[str]]] = [
    ({"exclusiveMaximum": 1}, ["0.9999999999999999", "0.99999999999999994"], ["0.99999999999999999999", "1"]),
    ({"exclusiveMinimum": 0.1}, ["0.10000000000000002", "0.11"], ["0.10000000000000000001", "0.1"]),
    ({"not": {"const": 1}}, ["1.0000000000000002", "2"], ["1.00000000000000000001", "0.99999999999999999999", "1.0"]),
    ({"not": {"enum": [0.1, 3]}}, ["0.2", "0.10000000000000002"], ["0.1000000000000000001", "3.0"]),
    ({"not": {"minimum": 0.3}}, ["0.29999999999999993"], ["0.29999999999999999999"]),
    ({"const": 0.1}, ["0.1"], ["0.10000000000000000001"]),
    ({"enum": [0.1, 2.0]}, ["0.1", "2.0"], ["0.10000000000000000001", "2.00000000000000000001"]),
    ({"not": {"anyOf": [{"multipleOf": 1.5}, {"multipleOf": 1}]}}, ["1.25"], ["4.50000000000000000001", "3"]),
    ({"not": {"type": "integer", "multipleOf": 2}}, ["3", "0.5"], ["21694757070695024555239232091"]),
    ({"not": {"multipleOf": 12}}, ["13", "0.5", "9007199254740991"], ["12", "99999999999999980000"]),
    ({"not": {"type": "integer"}}, ["0.5", "0.000000000000001"], ["1.00000000000000000001", "9007199254740993.5"]),
    ({"exclusiveMinimum": 2**53}, ["9007199254740994"], ["9007199254740993", "9007199254740992.5"]),
    ({"type": "integer", "exclusiveMinimum": 2**53}, ["9007199254740994"], ["9007199254740993"]),
    ({"type": "integer", "exclusiveMaximum": 2**53}, ["9007199254740991"], ["9007199254740992"]),
    ({"type": "integer", "not": {"const": 2**53}}, ["9007199254740991", "9007199254740994"], ["9007199254740993"]),
    ({"multipleOf": 3}, ["9007199254740990", "-3.0"], ["9007199254740993", "9007199254740993.0", "4"]),
    ({"multipleOf": 0.1}, ["0.3", "9007199254740993.3"], ["0.30000000000000000001", "1234567890123456.7", "0.35"]),
    ({"multipleOf": 0.01}, ["0.07", "19.99", "1000000000000000"], ["0.075", "1234567890123456.01"]),
    ({"multipleOf": 0.5}, ["0.5", "9007199254740993"], ["0.25"]),
    ({"type": "integer"}, ["12345678901234567890", "9" * 308], ["9" * 309]),
    ({"type": "number"}, ["0.30000000000000004", "52.370216000000001", "0.99999999999999999999"], []),
    (
        {"uniqueItems": True},
        ["[0.3,0.30000000000000004]", "[1,2]", "[1,1.0000000000000002]"],
        [
            "[0.3,0.30000000000000000001]",
            "[1.0,1.00000000000000000001]",
            "[9007199254740992,9007199254740993]",
            "[[0.3],[0.30000000000000000001]]",
        ],
    ),
    (
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        ["[1234567890123456788,1234567890123457788]"],
        ["[1234567890123456788,1234567890123456789]"],
    ),
    ({"oneOf": [{"type": "integer"}, {"exclusiveMinimum": 1}]}, ["1", "1.5"], ["2", "1.00000000000000000001"]),
    ({"contains": {"exclusiveMaximum": 1}, "items": {"type": "number"}}, ["[0.5]"], ["[0.99999999999999999999]"]),
    ({"const": 2**53 + 1}, ["9007199254740993"], ["9007199254740993.0", "9007199254740992"]),
    ({"enum": [[2**53 + 1, 2.5]]}, ["[9007199254740993, 2.5]"], ["[9007199254740993.0, 2.5]"]),
    ({"minimum": 2**53 + 1}, ["9007199254740993", "9007199254740994.0"], ["9007199254740993.0", "9007199254740992.5"]),
    ({"maximum": 2**53 + 1}, ["9007199254740993", "9007199254740992.0"], ["9007199254740993.0", "9007199254740993.5"]),
    ({"maximum": Decimal("9007199254740993.0")}, ["9007199254740992"], ["9007199254740993", "9007199254740993.0"]),
    ({"maximum": 2**63 - 1}, ["9223372036854775807", "9223372036854774784.0"], ["9223372036854775807.0"]),
    ({"maximum": Decimal("1e23")}, [NEAREST_1E23, NEAREST_1E23 + ".0"], ["1" + "0" * 23, "9" * 23, "9" * 23 + ".0"]),
    ({"type": "integer", "minimum": Decimal("-1e23")}, ["-" + NEAREST_1E23], ["-1" + "0" * 23, "-" + "9" * 23]),
    ({"type": "integer", "multipleOf": 7, "maximum": 10**16}, ["7"], ["9007199254740995"]),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["canonical", "any"])
@pytest.mark.parametrize(("schema", "accepted", "refused"), BOTH, ids=lambda each: written(each)[:40])
def test_numbers_are_valid_in_either_reading(
    schema: dict[str, Any], accepted: list[str], refused: list[str], policy: str
) -> None:
    constraint = constrain.compile(written(schema), byte_vocabulary(), cache=False, numbers=policy)
    assert [text for text in accepted if not constraint.accepts(text)] == []
    assert [text for text in refused if constraint.accepts(text)] == []


@for_each(
    "schema, text",
    ({"exclusiveMaximum": 1}, "0.99999999999999999999"),
    ({"not": {"const": 1}}, "1.00000000000000000001"),
    ({"not": {"type": "integer"}}, "1.0000000000000001"),
    ({"multipleOf": 3}, "9007199254740993"),
    ({"multipleOf": 0.1}, "1234567890123456.7"),
    ({"uniqueItems": True}, "[0.3,0.30000000000000000001]"),
    ({"type": "integer"}, "9" * 4300),
    ({"enum": [2**53, 2**53 + 1], "exclusiveMinimum": 2**53}, str(2**53 + 1)),
)
def test_exact_decimals_are_had_for_the_asking(schema: dict[str, Any], text: str) -> None:
    assert accepts(schema, text, precision="decimal")
    try:
        assert not accepts(schema, text)
    except constrain.UnsupportedSchemaError as error:
        assert 'precision="decimal"' in str(error)  # noqa: PT017


LONG_INTEGERS = [each for each in BOTH if any(len(text) > 15 and "[0." not in text for text in (*each[1], *each[2]))]


@pytest.mark.parametrize(("schema", "accepted", "refused"), LONG_INTEGERS, ids=lambda each: written(each)[:40])
def test_pythons_reading_agrees(schema: dict[str, Any], accepted: list[str], refused: list[str]) -> None:
    """Integers exactly, all else as doubles: so ``json.loads`` reads the schema, and what is accepted."""
    read = json.loads(written(schema))
    assert [text for text in accepted if not jsonschema_rs.validator_for(read).is_valid(json.loads(text))] == []
    judge = Judge(written(schema))
    assert [text for text in accepted if judge.error(text)] == []
    assert refused == [] or any(judge.error(text) for text in refused)


def test_a_value_that_is_read_as_another_integer_is_refused() -> None:
    for schema in ('{"const": 1e300}', '{"enum": [1, [1e23]]}', '{"const": 9007199254740993.0}'):
        with pytest.raises(constrain.UnsupportedSchemaError, match=r'is read as the double .* precision="decimal"'):
            constrain.compile(schema, byte_vocabulary(), cache=False)
    exact = constrain.compile('{"const": 1e300}', byte_vocabulary(), cache=False, precision="decimal")
    assert exact.accepts("1" + "0" * 300)
    assert constrain.compile('{"const": 1e22}', byte_vocabulary(), cache=False).accepts("1" + "0" * 22)


def test_what_differs_from_a_value_may_have_an_exponent() -> None:
    schema = '{"not": {"enum": [2, 0, 1e-30, 5e-324, 9007199254740993]}}'
    constraint = constrain.compile(schema, byte_vocabulary(), cache=False, numbers="any")
    judge = Judge(schema)
    texts = "5e-1 2e0 20e-1 2.0000000000000001e0 2.0000000000000005e0 0e5 10e-31 1.0000000000000002e-30 5e-324 7e-324 "
    texts += "8e-324 9.007199254740993e15 9007199254740993e0 9007199254740994e0 -2e0 1e300"
    for text in texts.split():
        assert constraint.accepts(text) == (judge.error(text) is None), text


def test_the_report_names_the_policy_and_its_digits() -> None:
    both = constrain.compile({"type": "number"}, byte_vocabulary()).report
    exact = constrain.compile({"type": "number"}, byte_vocabulary(), precision="decimal").report
    assert (both.policies["precision"], exact.policies["precision"]) == ("double", "decimal")
    common = {"before_point": 308, "after_point": 64}
    assert both.digits == {"integer": 308, **common, "compared": 20, "multiple": 15}
    assert exact.digits == {"integer": 4300, **common}
    assert constrain.compile(constrain.Regex("a"), byte_vocabulary()).report.digits == {}


def test_constants_that_doubles_cannot_tell_apart_are_refused_with_their_places() -> None:
    schema = {"properties": {"a": {"minimum": 2**53}, "b": {"const": 2**53 + 1}}}
    with pytest.raises(constrain.UnsupportedSchemaError, match="9007199254740993 from 9007199254740992") as caught:
        constrain.compile(schema, byte_vocabulary())
    assert caught.value.pointer == "/properties/b/const"
    assert "/properties/a/minimum" in str(caught.value)
    ids = {"enum": [1234567890123456788, 1234567890123456789]}
    assert accepts(ids, "1234567890123456789")  # one keyword lists both: either reading takes both


def test_integers_of_draft_4_are_narrowed_as_all_others() -> None:
    """The whole numbers of a shape are spelled as integers there, and are odd only up to where doubles are."""
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "not": {"type": "integer", "multipleOf": 2}}
    assert accepts(schema, "9007199254740991")
    assert not accepts(schema, "9007199254740993")
    assert accepts(schema, "9007199254740993", precision="decimal")


def test_a_schema_that_only_decimals_can_meet_says_so() -> None:
    with pytest.raises(constrain.UnsupportedSchemaError, match='precision="decimal"'):
        constrain.compile({"type": "number", "multipleOf": 3, "minimum": 1e17}, byte_vocabulary())
    assert accepts({"type": "number", "multipleOf": 3, "minimum": 1e17}, "100000000000000002", precision="decimal")


def test_an_optional_key_that_only_decimals_can_have_is_a_warning() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 3, "minimum": 1e17}}}
    (warning,) = constrain.compile(schema, byte_vocabulary()).report.warnings
    assert warning.startswith("no number is written at /properties/a: ")
    assert 'precision="decimal"' in warning
    assert constrain.compile(schema, byte_vocabulary(), precision="decimal").report.warnings == ()


def test_items_that_must_differ_are_counted_by_their_doubles() -> None:
    few = {"type": "array", "items": {"type": "integer", "minimum": 2**53, "maximum": 2**53 + 3}, "uniqueItems": True}
    longest = max(n for n in range(6) if _can_have(few, n))
    assert longest == 3  # the doubles are 2**53, 2**53 + 2 and 2**53 + 4
    with pytest.raises(constrain.UnsatisfiableSchemaError):
        constrain.compile({**few, "minItems": 4}, byte_vocabulary())


def _can_have(schema: dict[str, Any], count: int) -> bool:
    try:
        constrain.compile({**schema, "minItems": count}, byte_vocabulary())
    except constrain.UnsatisfiableSchemaError:
        return False
    return True


# Random items, judged by arithmetic.

CONSTANTS = [
    "0", "1", "0.1", "0.3", "1e22", "9007199254740992", "9007199254740993", "0.5", "3", "1.5", "-1", "100", "0.07",
    "-0.1", "1234567890123456789", "5e-7", "2.5", "123456.789", "0.30000000000000004", "1e-7", "99999999999999999999",
]  # fmt: skip


def _near(rng: random.Random, constant: str) -> list[str]:
    """Texts of numbers near a constant, near its double, and near the ends of what reads as that."""
    with localcontext() as context:
        context.prec = 100
        value, double = Decimal(constant), float(constant)
        found = [value]
        for each in (double, math.nextafter(double, math.inf), math.nextafter(double, -math.inf)):
            found += [Decimal(each), Decimal(repr(each)), (Decimal(each) + Decimal(double)) / 2]
        for digits in (1, 2, 5, 15, 16, 17, 18, 19, 20, 21, 25, 30):
            step = Decimal(10) ** (value.adjusted() - digits if value else -digits)
            found += [value + step, value - step]
        anything = rng.randrange(10 ** rng.randrange(1, 18))
        found += [Decimal(anything), Decimal(anything) / 10, Decimal(anything) / 100, Decimal(anything) / 8]
        texts = [f"{each:f}" for each in found]
    texts = [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
    return [text for text in texts if text not in ("", "-0") and len(text.partition(".")[2]) <= 64]


@pytest.mark.slow(only=("any",))
@pytest.mark.parametrize("policy", ["canonical", "any"])
def test_random_items_differ_as_decimals_and_as_doubles(policy: str) -> None:
    forms = ["[%s,%s]", "[[%s],[%s]]", '[{"a":%s},{"a":%s}]', "[[1,%s],[1,%s]]"]
    accepted = 0
    for seed in range(ARRAYS):
        rng = random.Random(f"items {seed}")
        item = rng.choice([{}, {"type": ["number", "array", "object"]}, {"anyOf": [{"type": "number"}, {}]}])
        constraint = constrain.compile(
            {"type": "array", "uniqueItems": True, "items": item}, byte_vocabulary(), numbers=policy
        )
        texts = _near(rng, rng.choice(CONSTANTS))
        for _ in range(12):
            one, two = rng.choice(texts), rng.choice(texts)
            if policy == "any":
                two = rng.choice([two, f"{Decimal(two):e}", two if "." in two else f"{two}.0"])
            text = rng.choice(forms) % (one, two)
            taken = constraint.accepts(text)
            differ = float(one) != float(two)
            assert differ or not taken, (seed, text)
            if differ and max(len(each.strip("-0.").replace(".", "")) for each in (one, two)) <= 17 and "e" not in two:
                assert taken, (seed, text)
            accepted += taken
    assert accepted > ARRAYS
