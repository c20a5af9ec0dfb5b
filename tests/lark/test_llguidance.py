"""llguidance reads the same grammars: every text of the tables is put to it, and each difference has a reason.

The reasons stand beside the cases, in data/accepted.toml and data/constructs.toml.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import llguidance
import pytest

from tests.lark.test_constructs import NAMES, READ, REFUSED, tokens_of
from tests.lark.test_lark import cases
from tests.support import check_each


class Bytes:
    """The tokens of ``test_constructs``, as llguidance asks for them: bytes, and special ones."""

    eos_token_id = 256
    bos_token_id = None
    tokens = (
        *(bytes([byte]) for byte in range(256)),
        b"\xff<|end|>",
        *(b"\xff" + name.encode() for name in NAMES.values()),
    )
    special_token_ids = (256, *NAMES)

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


@cache
def tokenizer() -> Any:
    """A tokenizer whose tokens are bytes, and special ones."""
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))


def accepts(grammar: str, text: str) -> bool | str:
    """Whether llguidance accepts a text; or why it refuses the grammar."""
    matcher = llguidance.LLMatcher(tokenizer(), llguidance.LLMatcher.grammar_from_lark(grammar), log_level=0)
    if matcher.is_error():
        return str(matcher.get_error())
    return all(map(matcher.consume_token, tokens_of(text))) and matcher.is_accepting()


def answers(case: dict[str, Any]) -> dict[str, bool | str]:
    return {text: accepts(case["grammar"], text) for kind in ("accepted", "rejected") for text in case.get(kind, [])}


@pytest.mark.slow
def test_llguidance_has_the_same_texts() -> None:
    def check(case: dict[str, Any]) -> None:
        expected = {text: kind == "accepted" for kind in ("accepted", "rejected") for text in case[kind]}
        found = answers(case)
        assert (found != expected) == ("difference" in case), found

    check_each([*cases("accepted.toml"), *READ], check)


def test_the_page_says_whether_llguidance_refuses_what_is_refused_here() -> None:
    there = {case["construct"]: isinstance(accepts(case["grammar"], ""), str) for case in REFUSED}
    assert there == {case["construct"]: case.get("there_too", False) for case in REFUSED}
