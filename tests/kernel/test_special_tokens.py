"""Special tokens that a grammar names: they are lexemes of their own, and nothing else is ever one of them."""

from __future__ import annotations

from random import Random

import pytest

import constrain
from constrain import Constraint, Grammar, GrammarError, Vocabulary
from constrain.grammars import GrammarBuilder
from constrain.language.special import special_token
from constrain.language.tree import ByteClass, Complement, Expression, Intersection, Literal, Repetition
from tests.support import byte_vocabulary
from tests.support.matching import allowed_tokens

CALL, SEP, END, JOINED, LOUD = 256, 257, 258, 259, 260
TEXTS = [bytes([byte]) for byte in range(256)] + [b"", b"", b"", b"ab", b"\xff<|call|>\xfe"]
NAMES = {CALL: "<|call|>", SEP: "<|caller|>"}


def encode(text: bytes) -> list[int]:
    return list(text.replace(b"ab", b"\0")) if b"ab" not in text else encode_joined(text)


def encode_joined(text: bytes) -> list[int]:
    first, _, rest = text.partition(b"ab")
    return [*first, JOINED, *encode(rest)]


VOCABULARY = Vocabulary.from_tokens(TEXTS, eos=[END], special=NAMES, encode=encode)
LETTERS = Repetition(ByteClass(((97, 99),)), 1, None)


def grammar(*alternatives: list[Expression]) -> Grammar:
    builder = GrammarBuilder()
    start = builder.rule("start")
    parts = [[builder.terminal(str(part), part) for part in alternative] for alternative in alternatives]
    builder.define(start, parts)
    return builder.build()


def constraint(*alternatives: list[Expression]) -> Constraint:
    return constrain.compile(grammar(*alternatives), VOCABULARY, cache=False)


def test_a_named_token_stands_where_its_name_does() -> None:
    matcher = constraint([LETTERS, special_token("<|call|>"), Literal(b"7")]).matcher()
    assert allowed_tokens(matcher) == {97, 98, 99, JOINED}
    assert matcher.accept_many([97, CALL]) == 2
    assert allowed_tokens(matcher) == {ord("7")}
    assert matcher.accept(ord("7"))
    assert allowed_tokens(matcher) == {END}


def test_tokens_of_text_never_spell_a_name() -> None:
    matcher = constraint([special_token("<|call|>")]).matcher()
    assert allowed_tokens(matcher) == {CALL}
    assert not matcher.accept(0xFF)
    assert not matcher.accept(LOUD)


SOME_BYTES = Repetition(ByteClass(((0, 255),)), 1, None)
ALL_BUT_A = Intersection((SOME_BYTES, Complement(Literal(b"a"))))


@pytest.mark.parametrize("anything", [SOME_BYTES, ALL_BUT_A], ids=["any bytes", "all but one"])
def test_no_terminal_of_text_takes_a_special_token(anything: Expression) -> None:
    matcher = constraint([Literal(b"x"), anything], [Literal(b"x")]).matcher()
    assert matcher.accept(ord("x"))
    assert allowed_tokens(matcher).isdisjoint({CALL, SEP, LOUD, 0xFE, 0xFF})


def test_names_with_a_common_beginning_are_apart() -> None:
    one, other = special_token("<|call|>"), special_token("<|caller|>")
    matcher = constraint([one, Literal(b"1")], [other, Literal(b"2")]).matcher()
    assert allowed_tokens(matcher) == {CALL, SEP}
    assert matcher.forced_bytes() == b""
    assert matcher.accept(SEP)
    assert matcher.forced_bytes() == b"2"


def test_forced_tokens_hold_special_ones_and_join_nothing_with_them() -> None:
    compiled = constraint([Literal(b"cab"), special_token("<|call|>"), Literal(b"ab"), special_token("<|caller|>")])
    assert compiled.matcher().forced_tokens() == [ord("c"), JOINED, CALL, JOINED, SEP]


def test_a_special_token_counts_as_one_token_of_the_budget() -> None:
    compiled = constraint([LETTERS, special_token("<|caller|>"), LETTERS])
    assert compiled.report.min_tokens == 3
    matcher = compiled.matcher(max_tokens=3)
    assert matcher.completion_tokens()[1] == SEP
    assert matcher.accept(97)
    assert allowed_tokens(matcher) == {SEP}


def test_names_are_told_in_explanations() -> None:
    matcher = constraint([LETTERS, special_token("<|call|>")]).matcher()
    assert "(<|call|>) may not stand here" in matcher.explain(CALL)
    matcher.accept(97)
    assert matcher.explain(CALL) == "token 256 (<|call|>) is allowed"


def test_a_name_that_the_vocabulary_does_not_know_is_refused_with_what_is_near() -> None:
    with pytest.raises(GrammarError, match=r"no token of this name; it has <\|call\|>"):
        constraint([special_token("<|cal|>")])


def test_a_token_that_ends_the_generation_can_be_named_at_the_end() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b""], eos=[1], special={1: "<|end|>"})
    matcher = constrain.compile(grammar([special_token("<|end|>")]), vocabulary, cache=False).matcher()
    assert not matcher.is_accepting
    assert allowed_tokens(matcher) == {1}
    with pytest.raises(GrammarError, match="this ends the generation, but more may follow"):
        constrain.compile(grammar([special_token("<|end|>"), Literal(b"a")]), vocabulary, cache=False)


def test_the_name_of_a_token_with_a_text_is_that_token_alone() -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"", b"<tag>"]
    vocabulary = Vocabulary.from_tokens(tokens, eos=[256])
    matcher = constrain.compile(grammar([special_token("<tag>")]), vocabulary, cache=False).matcher()
    assert allowed_tokens(matcher) == {257}


def test_vocabularies_with_other_names_have_other_fingerprints() -> None:
    other = Vocabulary.from_tokens(TEXTS, eos=[END], special={CALL: "<|call|>", SEP: "<|other|>"})
    assert other.fingerprint != VOCABULARY.fingerprint


STAND_INS = {CALL: b"\x01", SEP: b"\x02"}


def test_masks_are_those_of_a_letter_in_the_tokens_place() -> None:
    tokens = [b"" if text in STAND_INS.values() or not text else text for text in TEXTS]
    for token, letter in STAND_INS.items():
        tokens[token] = letter
    vocabulary = Vocabulary.from_tokens(tokens, eos=[END])
    for seed in range(30):
        rng = Random(seed)
        text = Repetition(ByteClass(((3, 0xFD),)), 1, rng.choice([2, None]))
        symbols = [text, LETTERS, Literal(b"ab"), Literal(b"c"), *STAND_INS]
        chosen = [rng.choices(symbols, k=rng.randint(1, 5)) for _ in range(rng.randint(1, 4))]
        named = [[special_token(NAMES[part]) if part in STAND_INS else part for part in each] for each in chosen]
        letters = [[Literal(STAND_INS[part]) if part in STAND_INS else part for part in each] for each in chosen]
        try:
            ours = constrain.compile(grammar(*named), VOCABULARY, cache=False).matcher()
        except GrammarError:
            with pytest.raises(GrammarError):
                constrain.compile(grammar(*letters), vocabulary, cache=False)
            continue
        theirs = constrain.compile(grammar(*letters), vocabulary, cache=False).matcher()
        for _ in range(8):
            tokens = allowed_tokens(ours)
            assert tokens == allowed_tokens(theirs), seed
            token = rng.choice(sorted(tokens & {97, 98, 99, JOINED, *STAND_INS}) or sorted(tokens))
            if token == END:
                break
            assert ours.accept(token), seed
            assert theirs.accept(token), seed
            assert ours.min_tokens_left == theirs.min_tokens_left, seed


@pytest.mark.parametrize("text", ['start: <[97]> "x" | "a" "yy"', 'start: <[97]> "yy" | "a" "x"'])
def test_a_token_that_is_read_by_its_id_and_its_text_is_completed_in_the_shorter_way(text: str) -> None:
    matcher = constrain.compile(constrain.Lark(text), byte_vocabulary()).matcher()
    assert matcher.accept(97)
    assert matcher.completion_tokens() == [ord("x")]
