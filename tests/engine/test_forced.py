"""Forced text in the tokenizer's own tokens: compared with a tokenizer that merges pairs, whatever comes after."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

import constrain
from constrain.engine.forced import certain_tokens
from constrain.language.grammar import Grammar, GrammarBuilder
from constrain.language.tree import Literal
from tests.support import LONG
from tests.support.pair_merger import PairMerger


def random_merger(random: Random, alphabet: bytes) -> PairMerger:
    merges: list[bytes] = []
    parts = [bytes([byte]) for byte in alphabet]
    for _ in range(random.randint(1, 14)):
        merged = random.choice(parts) + random.choice(parts)
        if merged not in parts:
            parts.append(merged)
            merges.append(merged)
    return PairMerger(alphabet, merges)


def language(texts: Sequence[bytes]) -> Grammar:
    builder = GrammarBuilder()
    alternatives = [[builder.terminal(f"t{place}", Literal(text))] for place, text in enumerate(texts)]
    builder.define(builder.rule("start"), alternatives)
    return builder.build(self_delimiting=True)


def certain(merger: PairMerger, context: bytes, before: bytes, texts: Sequence[bytes]) -> tuple[list[int], bytes]:
    """The certain tokens after ``before``, where the language is ``texts``, and the text they are taken from."""
    matcher = constrain.compile(language(texts), merger.vocabulary).matcher()
    matcher.accept_many([merger.rank[bytes([byte])] for byte in before])
    forced, starts = matcher.forced_after(before)
    text = before + forced
    return certain_tokens(text, starts, context, merger, merger.tokens.__getitem__), text


def random_case(seed: int) -> tuple[PairMerger, bytes, bytes, list[bytes]]:
    random = Random(seed)
    merger = random_merger(random, b"abc")

    def some(low: int, high: int) -> bytes:
        return bytes(random.choices(b"abc", k=random.randint(low, high)))

    context, before, forced = some(0, 4), some(0, 2), some(1, 8)
    endings = [letter + some(0, 5) for letter in (b"a", b"b", b"c")[: random.randint(1, 3)]]
    return merger, context, before, [before + forced + ending for ending in endings]


@pytest.mark.slow
def test_certain_tokens_are_the_tokenizers_own_whatever_follows() -> None:
    kept = compared = 0
    for seed in range(2_000 if LONG else 300):
        merger, context, before, texts = random_case(seed)
        tokens, text = certain(merger, context, before, texts)
        kept += len(tokens)
        size = sum(len(merger.tokens[token]) for token in tokens)
        assert b"".join(merger.tokens[token] for token in tokens) == text[:size]
        ways = [_after(merger, context, whole) for whole in texts]
        if None in ways:  # the tokenizer joins some of these to the context: then the context is no guide
            continue
        compared += 1
        for way in ways:
            assert way is not None
            assert way[: len(tokens)] == tokens, (seed, merger.tokens, context, texts)
    assert compared > 100
    assert kept > 300


def _after(merger: PairMerger, context: bytes, text: bytes) -> list[int] | None:
    """The tokens of ``text`` after ``context``; ``None`` if none begins there."""
    end = 0
    tokens = merger(context + text)
    for place, token in enumerate(tokens):
        if end == len(context):
            return tokens[place:]
        end += len(merger.tokens[token])
    return None


def test_a_token_that_may_begin_a_longer_one_is_left_out() -> None:
    merger = PairMerger(b"abc", [b"ab", b"abc"])
    assert certain(merger, b"", b"", [b"cabc", b"cabb"])[0] == [2]
    assert certain(merger, b"", b"", [b"caba", b"cabb"])[0] == [2, 3], "no token goes on from ab with a or b"


def test_a_context_that_begins_within_a_character_is_shortened() -> None:
    seen = []

    def encode(text: bytes) -> list[int]:
        seen.append(text)
        return list(text)

    assert certain_tokens(b"xy", [], "é".encode()[1:] + b"a", encode, lambda token: bytes([token])) == list(b"xy")
    assert seen == [b"axy"]


def test_forced_tokens_of_a_matcher() -> None:
    merger = PairMerger(b"abc", [b"ab", b"abc"])
    matcher = constrain.compile(language([b"cabc", b"cabb"]), merger.vocabulary).matcher()
    assert matcher.forced_bytes() == b"cab"
    assert matcher.forced_tokens() == [2]
    assert matcher.accept(2)
    assert matcher.forced_tokens() == []
    assert matcher.accept(merger.rank[b"abc"])
    assert matcher.forced_tokens() == []


def test_a_character_that_is_not_whole_is_left_out() -> None:
    texts = [text.encode() for text in ("aé", "aè")]
    tokens = [bytes([byte]) for byte in range(256)] + [b""]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[256], encode=list)
    matcher = constrain.compile(language(texts), vocabulary).matcher()
    assert matcher.forced_bytes() == b"a\xc3"
    assert matcher.forced_after(b"") == (b"a", [])
    assert matcher.forced_tokens() == [ord("a")]
    assert matcher.accept(ord("a"))
    assert matcher.forced_after(b"a") == (b"", [])
