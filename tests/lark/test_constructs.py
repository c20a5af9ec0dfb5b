"""Every construct of llguidance's page of its syntax: texts that are accepted and rejected, wrong uses, refusals."""

from __future__ import annotations

import re
from typing import Any

import pytest

import constrain
from constrain import Lark
from tests.lark.test_lark import cases
from tests.support import check_each
from tests.support.processor_time import finishes_within

NAMES = {257: "<|call|>", 258: "<|x|>"}
VOCABULARY = constrain.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b"", b"", b""], eos=[256], special=NAMES
)
CASES = cases("constructs.toml")
READ = [case for case in CASES if "refused" not in case]
REFUSED = [case for case in CASES if "refused" in case]
BAD = [tuple(bad) for case in CASES for bad in case.get("bad", [])]
SECONDS = 2


def tokens_of(text: str) -> list[int]:
    """The tokens of a text: its bytes, and special tokens where it names them."""
    ids = {name: token for token, name in NAMES.items()}
    parts = re.split("|".join(f"({re.escape(name)})" for name in ids), text)
    return [token for part in parts if part for token in ([ids[part]] if part in ids else part.encode())]


def compiled(grammar: str) -> constrain.Constraint:
    return constrain.compile(Lark(grammar), VOCABULARY, cache=False)


def accepts(constraint: constrain.Constraint, text: str) -> bool:
    matcher, tokens = constraint.matcher(), tokens_of(text)
    return matcher.accept_many(tokens) == len(tokens) and matcher.is_accepting


def test_constructs_have_their_texts() -> None:
    check_each(READ, require_texts)


def require_texts(case: dict[str, Any]) -> None:
    constraint = compiled(case["grammar"])
    assert case["accepted"]
    assert case["rejected"]
    assert [text for text in case["accepted"] if not accepts(constraint, text)] == []
    assert [text for text in case["rejected"] if accepts(constraint, text)] == []


def test_constructs_that_are_refused_are_refused_by_name() -> None:
    refused = [(case["grammar"], case["refused"], *case.get("place", (None, None))) for case in REFUSED]
    check_each(refused, lambda case: require_refusal(*case))


def test_wrong_uses_have_a_place_and_a_remedy() -> None:
    check_each(BAD, lambda bad: require_refusal(*bad))


def require_refusal(grammar: str, message: str, line: int | None, column: int | None) -> None:
    with finishes_within(SECONDS):
        with pytest.raises(constrain.ConstrainError, match=re.escape(message)) as caught:
            compiled(grammar)
        assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.slow
@pytest.mark.parametrize(
    "grammar",
    ["start: " + "(" * 50_000, "start: " + '"a" | ' * 2_000 + ")", "start: <" + "a" * 9_999],
    ids=lambda text: text[:12],
)
def test_huge_wrong_grammars_are_refused_soon(grammar: str) -> None:
    with finishes_within(SECONDS):
        with pytest.raises(constrain.ConstrainError) as caught:
            compiled(grammar)
        assert caught.value.line == 1
