"""Parts of given texts as expressions: every text and every mask agrees with lists of all parts."""

from __future__ import annotations

import itertools
import json
import pickle
import random
from functools import cache

import numpy as np
import pytest

import constrain
from constrain import kernel
from constrain.errors import LimitError
from constrain.language.grammar import Grammar, GrammarBuilder
from constrain.language.tree import Alternation, Complement, Concatenation, Expression, Intersection, Literal, Substring
from tests.support import byte_vocabulary, for_each
from tests.support.matching import allowed_tokens

ALPHABET = ["a", "b", " ", '"', "\\", "\n", "\x00", "é", "×", "€", "😀", "😁"]


def written(text: str, *, json_: bool) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode() if json_ else text.encode()


def grammar_of(*expressions: Expression) -> Grammar:
    builder = GrammarBuilder()
    start = builder.rule("start")
    builder.define(start, [[builder.terminal(f"T{i}", each)] for i, each in enumerate(expressions)])
    return builder.build(self_delimiting=True)


def bracketed(expression: Expression) -> Expression:
    return Concatenation((Literal(b"<"), expression, Literal(b">")))


def parts_of(node: Substring) -> set[str]:
    """All parts, by definition."""
    found = set()
    for number, text in enumerate(node.texts):
        cuts = node.cuts[number] if node.cuts else bytes([1]) * len(text)
        ends = [at for at in range(len(text) + 1) if at == len(text) or cuts[at]]
        for begin, end in itertools.combinations_with_replacement(ends, 2):
            if node.minimum <= end - begin and (node.maximum is None or end - begin <= node.maximum):
                found.add(text[begin:end])
    return found


def random_node(rng: random.Random) -> Substring:
    letters = rng.sample(ALPHABET, rng.randint(1, 4))
    texts = tuple("".join(rng.choices(letters, k=rng.randint(0, 8))) for _ in range(rng.randint(1, 2)))
    cuts = tuple(bytes(rng.choices([0, 1], k=len(text))) for text in texts) if rng.random() < 0.5 else ()
    cuts = tuple(b"\1" + cut[1:] if cut else cut for cut in cuts)
    minimum = rng.choice([0, 0, 1, 2, 3])
    maximum = rng.choice([None, None, minimum, minimum + 1, minimum + 3])
    return Substring(texts, minimum, maximum, json=rng.random() < 0.7, cuts=cuts)


@cache
def vocabulary() -> constrain.Vocabulary:
    """Single bytes, and tokens that cut characters and escapes in two."""
    rng = random.Random(5)
    pieces = {bytes([byte]) for byte in range(256)}
    for _ in range(400):
        text = "".join(rng.choices(ALPHABET, k=rng.randint(1, 4)))
        data = written(text, json_=rng.random() < 0.7)
        begin, end = sorted(rng.choices(range(len(data) + 1), k=2))
        pieces |= {data, data[begin:end], b'"' + data, data + b'"'}
    tokens = sorted(pieces - {b""})
    return constrain.Vocabulary.from_tokens([*tokens, b""], eos=[len(tokens)])


@for_each("seed", range(60))
def test_exactly_the_parts_match_and_masks_allow_exactly_their_beginnings(seed: int) -> None:
    rng = random.Random(seed)
    node = random_node(rng)
    texts = {written(part, json_=node.json) for part in parts_of(node)}
    if not texts:
        assert kernel.is_empty(node)
        return
    quoted = {b'"' + text + b'"' for text in texts}
    grammar = grammar_of(Concatenation((Literal(b'"'), node, Literal(b'"'))))
    constraint = constrain.compile(grammar, vocabulary())
    pieces = [vocabulary().token_bytes(token) for token in range(vocabulary().n_vocab)]
    single = {piece[0]: token for token, piece in enumerate(pieces) if len(piece) == 1}
    beginnings = {text[:end] for text in quoted for end in range(len(text) + 1)}
    for text in beginnings:
        assert constraint.accepts(text) == (text in quoted)
        assert constraint.accepts(text + b"a") == (text + b"a" in quoted)
    for text in rng.sample(sorted(beginnings), min(12, len(beginnings))):
        matcher = constraint.matcher()
        assert all(matcher.accept(single[byte]) for byte in text)
        expected = {token for token, piece in enumerate(pieces) if piece and text + piece in beginnings}
        assert allowed_tokens(matcher) == expected | ({len(pieces) - 1} if text in quoted else set()), text


@for_each("seed", range(30))
def test_parts_combine_with_other_expressions(seed: int) -> None:
    rng = random.Random(seed)
    one, two = (random_node(rng) for _ in range(2))
    texts = [{written(part, json_=node.json) for part in parts_of(node)} for node in (one, two)]
    candidates = sorted(texts[0] | texts[1])
    for expression, expected in (
        (Intersection((one, two)), texts[0] & texts[1]),
        (Intersection((one, Complement(two))), texts[0] - texts[1]),
        (Alternation((one, two)), texts[0] | texts[1]),
    ):
        assert kernel.is_empty(expression) == (not expected)
        if expected:
            constraint = constrain.compile(grammar_of(bracketed(expression)), byte_vocabulary())
            assert {text for text in candidates if constraint.accepts(b"<" + text + b">")} == expected
            assert constraint.matcher().shortest_completion()[1:-1] in expected


@pytest.mark.slow
def test_long_texts_are_linear_and_go_through_storage_and_pickles() -> None:
    node = Substring(("ab" * 60_000 + "c",), 2, 90_000)
    assert pickle.loads(pickle.dumps(node)) == node
    assert len(repr(node)) < 200
    grammar = grammar_of(bracketed(node))
    compiled = kernel.CompiledGrammar(grammar, byte_vocabulary()._core)
    assert compiled.stats()["memory_bytes"] < 200 * 120_000
    stored = np.frombuffer(compiled.store(), np.uint8).copy()
    for each in (compiled, kernel.CompiledGrammar.restore(stored.data, byte_vocabulary()._core)):
        assert each.accepts(b"<" + b"ba" * 40_000 + b">")
        assert not each.accepts(b"<" + b"ba" * 50_000 + b">")
        assert not each.accepts(b"<b>")
        assert not each.accepts(b"<bac>")


def test_texts_beyond_the_limit_are_refused_by_name() -> None:
    with pytest.raises(LimitError, match="MAX_QUOTE_CHARACTERS"):
        kernel.is_empty(Substring(("a" * 1_000_001, "b" * 1_000_000)))
