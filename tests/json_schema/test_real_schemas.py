"""Real schemas: what their valid and invalid instances say about the grammar, and what compiling costs."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from constrain.errors import ConstrainError
from constrain.json_schema.compiler import compile_schema
from tests.support import LONG, maskbench
from tests.support.json_schema.grammar_interpreter import Interpreter

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 20
SAMPLE = None if LONG else 400
MAX_TEXT = 20_000  # bytes; longer instances are left to the kernel's own tests


def sample() -> list[dict[str, Any]]:
    rows = maskbench()
    return rows if SAMPLE is None else random.Random(SEED).sample(rows, SAMPLE)


def outcomes(row: dict[str, Any], **options: Any) -> Iterator[tuple[bool, bool, bytes]]:
    """For each instance: is it valid, was it accepted, its text."""
    try:
        grammar = compile_schema(row["schema"], **options).grammar
    except ConstrainError:
        return
    if any(edge.distinct >= 0 for rule in grammar.rules for edge in rule.edges):
        return  # the interpreter does not compare values; tests of unique items and of masks do
    interpreter = Interpreter(grammar)
    for test in row["tests"]:
        text = json.dumps(test["data"], ensure_ascii=False).encode()
        if len(text) <= MAX_TEXT:
            yield test["valid"], interpreter.accepts(text), text


@pytest.mark.slow
def test_no_invalid_instance_is_accepted() -> None:
    checked = 0
    for row in sample():
        for valid, accepted, text in outcomes(row):
            if not valid:
                checked += 1
                assert not accepted, f"{row['id']} (seed {SEED}): {text[:300]!r}"
    assert checked > 500


@pytest.mark.slow
def test_every_valid_instance_is_accepted_in_some_order_of_keys() -> None:
    """Some instances do not have their keys in schema order; apart from that none is rejected."""
    checked = reordered = 0
    for row in sample():
        if all(accepted or not valid for valid, accepted, _ in outcomes(row)):
            checked += 1
            continue
        for valid, accepted, text in outcomes(row, property_order="any"):
            reordered += valid
            assert accepted or not valid, f"{row['id']} (seed {SEED}): {text[:300]!r}"
    assert checked > 300
    assert reordered < 0.05 * checked


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"whitespace": "compact"}, {"whitespace": "any"}, {"close_objects": True}])
def test_other_policies_accept_no_invalid_instance(options: dict[str, Any]) -> None:
    for row in sample()[:100]:
        for valid, accepted, text in outcomes(row, **options):
            assert valid or not accepted, f"{row['id']} (seed {SEED}): {text[:300]!r}"


@pytest.mark.slow
@pytest.mark.parametrize("style", [{"separators": (",", ":")}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}])
def test_other_spellings_of_white_space_are_accepted_alike(style: dict[str, Any]) -> None:
    compared = 0
    for row in sample()[:60]:
        try:
            interpreter = Interpreter(compile_schema(row["schema"]).grammar)
        except ConstrainError:
            continue
        for test in row["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            other = json.dumps(test["data"], ensure_ascii=False, **style)
            if len(other) <= MAX_TEXT:
                compared += 1
                assert interpreter.accepts(text.encode()) == interpreter.accepts(other.encode()), row["id"]
    assert compared > 100


def compiles(row: dict[str, Any]) -> bool:
    try:
        compile_schema(row["schema"])
    except ConstrainError:
        return False
    return True


@pytest.mark.slow
def test_most_real_schemas_compile() -> None:
    rows = sample()
    assert sum(map(compiles, rows)) > 0.85 * len(rows)
