"""llguidance reads the same grammars: every text of the tables is put to it, and each difference has a reason."""

from __future__ import annotations

from functools import cache
from typing import Any

import llguidance
import pytest

from tests.lark.test_lark import cases

DIFFERENCES = {
    "escapes in strings": "it has the escapes of JSON alone, and ours Lark's, too",
    "comments, blank lines and alternatives on lines of their own": "it takes no line between two alternatives",
    "comments and blank lines anywhere between statements": "it takes no line between two alternatives",
    "several imported terminals, one of them twice": "it takes no import twice",
    "a string that stops at its quote": "its ESCAPED_STRING may hold line breaks; Lark's may not",
    "ignored text between lexemes": "it ignores text behind the last lexeme, too",
    "ignored text that separates words": "it ignores text behind the last lexeme, too",
    "ignored text in rules that may be empty": "it ignores text behind the last lexeme, too",
    "ignored text beside JSON, and its own inside": "it does not follow both readings of a blank",
    "counts in braces": "it takes no count of 0",
    "a text up to its stop, at the end": "it reads the stop, and takes its tokens back; ours is not written at all",
    "a lazy lexeme that may be empty is empty": "its own page says so, but it reads one byte",
}
"""Cases with other answers, and why."""


@cache
def tokenizer() -> Any:
    """A tokenizer whose tokens are bytes."""
    return llguidance.LLTokenizer("byte")


def accepts(grammar: str, text: str) -> bool | str:
    """Whether llguidance accepts a text; or why it refuses the grammar."""
    matcher = llguidance.LLMatcher(tokenizer(), llguidance.LLMatcher.grammar_from_lark(grammar), log_level=0)
    if matcher.is_error():
        return str(matcher.get_error())
    return all(map(matcher.consume_token, text.encode())) and matcher.is_accepting()


@pytest.mark.parametrize("case", cases("accepted.toml"), ids=lambda case: case["name"])
def test_llguidance_has_the_same_texts(case: dict[str, Any]) -> None:
    expected = {text: kind == "accepted" for kind in ("accepted", "rejected") for text in case[kind]}
    found = {text: accepts(case["grammar"], text) for text in expected}
    assert (found != expected) == (case["name"] in DIFFERENCES), found
