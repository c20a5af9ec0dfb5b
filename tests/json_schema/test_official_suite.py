"""The official JSON-Schema-Test-Suite as a ratchet: no test may fare worse than ``tests/data`` records."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

import constrain
from tests.support import byte_vocabulary, for_each
from tests.support.json_schema.official_suite import (
    DRAFTS,
    OPTIONAL_RATCHET,
    OUTCOMES,
    RATCHET,
    REGENERATE,
    RUNS,
    Outcome,
    recorded,
    remotes,
    run,
    run_optional,
    suite_folder,
)

WIDEST: dict[str, Any] = {"whitespace": "any", "property_order": "any", "formats": "annotation", "numbers": "any"}

READ_AS_2020_12 = {("ref", "ref overrides any sibling keywords", "ref valid, maxItems ignored")}
"""Up to draft 7, what stands beside ``$ref`` is ignored; a schema without ``$schema`` is one of draft 2020-12."""

CONTENT_IS_AN_ANNOTATION = {
    ("optional/content", group, test)
    for group, test in (
        ("validation of string-encoded content based on media type", "an invalid JSON document"),
        ("validation of binary string-encoding", "an invalid base64 string (% is not a valid character)"),
        ("validation of binary-encoded media type documents", "a validly-encoded invalid JSON document"),
        ("validation of binary-encoded media type documents", "an invalid base64 string that is valid JSON"),
    )
}
"""Draft 7 lets implementations check ``contentEncoding`` and ``contentMediaType``; later drafts do not."""


@cache
def ratchet() -> dict[str, Any]:
    return json.loads(RATCHET.read_text(encoding="utf-8"))


@cache
def outcomes(name: str) -> dict[tuple[str, str, str], Outcome]:
    return flat(run(name))


@cache
def optional_outcomes(draft: str) -> dict[tuple[str, str, str], Outcome]:
    return flat(run_optional(draft))


def flat(files: dict[str, dict[str, dict[str, Outcome]]]) -> dict[tuple[str, str, str], Outcome]:
    return {
        (keyword, group, test): outcome
        for keyword, groups in files.items()
        for group, tests in groups.items()
        for test, outcome in tests.items()
    }


def test_every_draft_is_there() -> None:
    assert list(ratchet()["totals"]) == list(RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_wrong(name: str) -> None:
    """No invalid instance is accepted, and a valid one is rejected only where a documented policy says so."""
    found = outcomes(name)
    assert len(found) > 600
    wrong = {test for test, outcome in found.items() if outcome.wrong}
    assert wrong <= (set() if name in DRAFTS else READ_AS_2020_12)


@pytest.mark.slow(but=("draft4",))
@pytest.mark.parametrize("name", RUNS)
def test_outcomes_are_as_recorded(name: str) -> None:
    compare(outcomes(name), ratchet(), name)


def compare(found: dict[tuple[str, str, str], Outcome], written: dict[str, Any], name: str) -> None:
    worse, other = [], []
    for test, now in found.items():
        before = recorded(written["not ok"], name, *test)
        if now.badness > before.badness:
            worse.append((test, before, now))
        elif now != before:
            other.append((test, before, now))
    assert not worse
    assert not other, f"outcomes are better or explained otherwise; write them down: {REGENERATE}"
    assert totals(found) == written["totals"][name], f"there are other tests; write them down: {REGENERATE}"


def totals(found: dict[tuple[str, str, str], Outcome]) -> str:
    counts = Counter(outcome.kind for outcome in found.values())
    return ", ".join(f"{counts[kind]} {kind}" for kind in OUTCOMES if counts[kind])


@pytest.mark.slow
@pytest.mark.parametrize("draft", DRAFTS)
def test_nothing_optional_is_wrong(draft: str) -> None:
    """Nothing but what a draft lets implementations leave undone."""
    found = optional_outcomes(draft)
    assert len(found) > 300
    assert {keyword for keyword, _, _ in found} >= {"optional/bignum", "optional/format/date-time"}
    wrong = {test for test, outcome in found.items() if outcome.wrong}
    assert wrong == (CONTENT_IS_AN_ANNOTATION if draft == "draft7" else set())


@pytest.mark.slow
@for_each("draft", DRAFTS)
def test_optional_outcomes_are_as_recorded(draft: str) -> None:
    compare(optional_outcomes(draft), json.loads(OPTIONAL_RATCHET.read_text(encoding="utf-8")), draft)


@pytest.mark.long
@pytest.mark.parametrize("draft", DRAFTS)
def test_all_is_right_under_the_widest_policies(draft: str) -> None:
    """Every test of every schema that has a value; the others are refused by the error that says they have none."""
    registry = remotes()
    wrong, right = [], 0
    for path in sorted((suite_folder() / "tests" / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict):
                schema = {"$schema": DRAFTS[draft], **schema}
            try:
                constraint = constrain.compile(schema, byte_vocabulary(), registry=registry, **WIDEST)
            except constrain.UnsatisfiableSchemaError:
                wrong += [(path.stem, group["description"], test) for test in group["tests"] if test["valid"]]
                continue
            for test in group["tests"]:
                try:
                    text = json.dumps(test["data"], ensure_ascii=False).encode()
                except UnicodeEncodeError:  # a lone surrogate, which no text in UTF-8 has
                    continue
                right += 1
                if constraint.accepts(text) != test["valid"]:
                    wrong.append((path.stem, group["description"], test))
    assert not wrong
    assert right > 600
