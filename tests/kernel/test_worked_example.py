"""The worked example of constrain/kernel/README.md, as it is told there."""

from __future__ import annotations

import constrain

GRAMMAR = """
start: "[" NUM ("," NUM)* "]"
NUM: /[0-9]+/
"""
TOKENS = ["[", "1", "12", ",", "]", "1,", "1]", ",1", "[[", "]]"]


def allowed_after(text: str) -> list[str]:
    vocabulary = constrain.Vocabulary.from_tokens([*(token.encode() for token in TOKENS), b""], eos=[len(TOKENS)])
    constraint = constrain.compile(constrain.Lark(GRAMMAR), vocabulary)
    matcher = constraint.matcher()
    for byte in text:
        assert matcher.accept(TOKENS.index(byte))
    row = constraint.allocate_bitmask()[0]
    matcher.fill_bitmask(row)
    return [token for number, token in enumerate([*TOKENS, "end"]) if row[number // 32] >> (number % 32) & 1]


def test_the_mask_after_a_digit_is_the_one_of_the_readme() -> None:
    assert allowed_after("[1") == ["1", "12", ",", "]", "1,", "1]", ",1"]


def test_the_mask_after_the_closing_bracket_only_ends_the_text() -> None:
    assert allowed_after("[1]") == ["end"]
