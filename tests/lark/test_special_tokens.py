"""Special tokens in grammar texts: ``<|name|>`` stands for the token of that name."""

from __future__ import annotations

import pytest

import constrain
from constrain.language.special import mark
from tests.support import for_each

NAMES = {257: "<|call|>", 258: "<s>"}
VOCABULARY = constrain.Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(256)] + [b"", b"", b""], eos=[256], special=NAMES
)
CALL, START = mark("<|call|>"), mark("<s>")


def accepts(grammar: str, text: bytes) -> bool:
    return constrain.compile(constrain.Lark(grammar), VOCABULARY, cache=False).accepts(text)


@for_each(
    "grammar, accepted, rejected",
    [
        ('start: "a" <|call|> "b"', [b"a" + CALL + b"b"], [b"ab", b"a<|call|>b", b"a " + CALL + b"b"]),
        ("start: A <|call|>\nA: /.+/", [b"<|call|>" + CALL], [CALL, b"a" + CALL + CALL]),
        ('start: ("a"|<s>)*', [b"", START + b"a" + START], [CALL]),
        ('start: <|call|>?<s>"a"', [START + b"a", CALL + START + b"a"], [b"a"]),
        ("start:<s>", [START], [b"<s>", b""]),
        ('start: "<|call|>" // <|call|>', [b"<|call|>"], [CALL]),
    ],
)
def test_a_name_stands_for_its_token_and_for_nothing_else(
    grammar: str, accepted: list[bytes], rejected: list[bytes]
) -> None:
    assert all(accepts(grammar, text) for text in accepted)
    assert not any(accepts(grammar, text) for text in rejected)


def test_ignored_text_may_stand_on_both_sides_but_not_at_the_ends() -> None:
    grammar = 'start: <s>? "a" <|call|> "b" <s>?\n%ignore " "'
    for text in (b"a" + CALL + b"b", b"a  " + CALL + b" b", START + b" a" + CALL + b"b " + START):
        assert accepts(grammar, text), text
    for text in (b" " + START + b"a" + CALL + b"b", b"a" + CALL + b"b" + START + b" ", b"a" + CALL + b"b "):
        assert not accepts(grammar, text), text


def test_a_token_that_the_vocabulary_does_not_have_is_named_with_its_place() -> None:
    with pytest.raises(constrain.GrammarError, match=r"line 2, column 4: <\|cal\|>: .*it has <\|call\|>"):
        accepts("start: a\na: <|cal|>", b"")


def test_masks_hold_the_token_where_the_grammar_names_it() -> None:
    matcher = constrain.compile(constrain.Lark('start: "a" <|call|>'), VOCABULARY, cache=False).matcher()
    assert matcher.accept(ord("a"))
    assert matcher.forced_bytes() == b""
    assert matcher.completion_tokens() == [257]
    assert matcher.accept(257)
    assert matcher.is_finished


def test_an_explanation_takes_names_for_tokens() -> None:
    grammar = constrain.Lark('start: "a" <|call|> "é" <s>')
    found = constrain.explain(grammar, "a<|call|>éx")
    assert (found.offset, found.column) == (len("a<|call|>é".encode()), 11)
    assert found.completion == b"<s>"
    assert "<s> (line 1" in str(found)
    assert constrain.explain(grammar, "a<|call|>é<s>").matches
    early = constrain.explain(grammar, "a<s>")
    assert (early.offset, early.completion) == (1, "<|call|>é<s>".encode())
