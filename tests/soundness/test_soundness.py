"""The search at a small size, with seeds of its own; ``python -m tests.soundness`` has the large ones."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from tests.soundness.__main__ import search
from tests.soundness.schemas import DRAFTS
from tests.soundness.search import Case, Tally, without_endless
from tests.support import LONG, for_each
from tests.support.judges import Judges
from tests.support.judging import Judge, validation_error

SEED = 5_000_000


def assert_sound(tally: Tally) -> None:
    assert not tally.wrong
    assert tally.counts["disputed: unexplained"] == 0, tally.findings
    assert tally.counts["narrowed: UNEXPLAINED"] == 0, tally.findings


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_accepted_texts_are_valid_and_rejected_ones_explained(block: int) -> None:
    schemas = 1_000 if LONG else 80
    tally = search("schemas", schemas, 40, "", range(SEED + 10_000 * block, SEED + 10_000 * (block + 1)))
    assert_sound(tally)
    counts = tally.counts
    assert counts["schemas"] == schemas
    assert counts["texts"] > 38 * schemas
    assert 0.2 < counts["texts accepted"] / counts["texts"] < 0.8
    narrowed = sum(count for kind, count in counts.items() if kind.startswith("narrowed"))
    assert narrowed < 0.15 * counts["texts valid"]


@pytest.mark.slow
def test_walks_end_in_valid_texts_within_their_budget() -> None:
    walks = 10_000 if LONG else 300
    tally = search("walks", walks, 0, "small", range(SEED, SEED + walks))
    assert_sound(tally)
    assert tally.counts["walks"] >= walks
    for kind in ("default", "closed", "widest", "fewest +0", "fewest +15"):
        assert tally.counts[f"walks, {kind}"] > walks / 10, tally.counts


@pytest.mark.slow
def test_models_read_what_is_written() -> None:
    walks = 10_000 if LONG else 200
    tally = search("models", walks, 0, "small", range(SEED, SEED + walks))
    assert_sound(tally)
    assert tally.counts["walks"] >= walks


# The judge


@for_each(
    "schema, text, invalid",
    ({"exclusiveMaximum": 1}, "0.99999999999999999999", {"doubles", "integers and doubles"}),
    ({"maximum": 1}, "1.00000000000000000001", {"decimals"}),
    ({"const": 2**53 + 1}, "9007199254740993.0", {"integers and doubles"}),
    ({"const": 2**53}, "9007199254740993", {"decimals", "integers and doubles"}),
    ({"multipleOf": Decimal("0.1")}, "0.3", set()),
    ({"multipleOf": 0.1}, "0.35", {"decimals", "doubles", "integers and doubles"}),
    ({"multipleOf": 3}, "1e400", {"decimals", "doubles", "integers and doubles"}),
    ({"type": "integer"}, "1e400", {"doubles", "integers and doubles"}),
    ({"uniqueItems": True}, "[[1], [true], [1]]", {"decimals", "doubles", "integers and doubles"}),
    ({"uniqueItems": True}, "[9007199254740992, 9007199254740993]", {"doubles"}),
    ({"pattern": "b$"}, '"b\\n"', {"decimals", "doubles", "integers and doubles"}),
    ({"format": "date", "$schema": DRAFTS[4]}, '"x"', None),
    ({"type": "integer", "$schema": DRAFTS[4]}, "2.0", {"decimals", "integers and doubles"}),
    ({"unevaluatedItems": False, "items": True, "$schema": DRAFTS[2019]}, "[1]", set()),
    ({"unevaluatedItems": False, "contains": {"const": 1}, "$schema": DRAFTS[2019]}, "[1]", None),
    ({"unevaluatedItems": False, "contains": {"const": 1}}, "[1]", set()),
    ({"unevaluatedProperties": False, "anyOf": [{"properties": {"a": True}}, False]}, '{"a": 1}', set()),
    ({"unevaluatedProperties": False, "patternProperties": {"b$": True}}, '{"b\\n": 1}', None),
)
def test_the_judge_reads_numbers_in_every_way(schema: object, text: str, invalid: set[str] | None) -> None:
    errors = Judge(schema).errors(text)
    assert set(errors) == ({"decimals", "doubles", "integers and doubles"} if invalid is None else invalid)
    assert (validation_error(schema, text.encode()) is None) == (not errors)


def test_a_text_that_is_no_json_is_an_error() -> None:
    for text in ("", "NaN", "01", '{"a": 1, "a": 2}', "1e99999999"):
        with pytest.raises(ValueError, match=r".+"):
            Judge({}).error(text)
    assert Judge({}, keys_may_repeat=True).error('{"a": 1, "a": 2}') is None


def test_disputes_name_the_keyword_that_explains_them() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "format": "date"}
    assert Judges(schema, formats=True).verdict('"x"').dispute == "format"
    assert Judges(schema, formats=False).verdict('"x"') == ("", "")
    assert Judges({**schema, "type": "integer"}, formats=True).verdict("1").dispute == ""
    assert json.loads(Judges(schema, formats=True).text) == schema
    huge = {"$schema": DRAFTS[7], "exclusiveMaximum": 1.7976931348623157e308, "multipleOf": 7}
    huge_text = f"18076931348623157{'0' * 291}2.0"
    assert Judges(huge, formats=False).verdict(huge_text).dispute == "multipleOf and exclusiveMaximum"


@pytest.mark.slow
def test_an_endless_reference_is_judged_as_true_and_as_false() -> None:
    """What no value may reach needs no meaning; what decides whether a text is valid does."""
    schema = {
        "$schema": DRAFTS[7],
        "definitions": {"e": {"$ref": "#/definitions/f"}, "f": {"$ref": "#/definitions/e"}, "g": {"type": "null"}},
        "properties": {"a": {"$ref": "#/definitions/e"}, "b": {"$ref": "#/definitions/g"}},
    }
    both = [without_endless(schema, meaning=meaning)["definitions"] for meaning in (True, False)]
    null = {"type": "null"}
    assert both == [{"e": {}, "f": {}, "g": null}, {"e": {"not": {}}, "f": {"not": {}}, "g": null}]
    tally = Tally()
    Case(780_998, tally).check(40)  # an ``if`` that is never met has an endless reference
    assert tally.counts["texts that reach a $ref that never ends"] > 0
    assert not tally.wrong
    case = Case(780_998, tally)
    case.schema = schema
    case.judge_without_endless('{"a": 1}')
    assert [finding.kind for finding in tally.wrong] == ["WRONG: accepted, though a $ref never ends, read as False"]
