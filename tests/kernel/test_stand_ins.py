"""Masks after texts that must not be repeated allow exactly the tokens that can be accepted, also when taken over."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import kernel
from constrain.language import tree
from constrain.language.grammar import TEXT_SET, VALUE_SET, Action, Edge, Grammar, Rule, Terminal
from tests.support import LONG, Tokens, byte_vocabulary, real_vocabulary
from tests.support.matching import allowed

PIECES = (
    r"""
"id"~"id":~, "id": ~,"ab~{"ab":1,"~"a"~"a~b"~b":~ab":~i~id~"b~{"~": ~":~, "~,"~"}~"]~","~", "~": "~":"a","~1,"~
1, "a": 1~"x": 1, "id": 2~":1,"ab":~\u00~61~\u0061~"\u0061"~["a","~","a~","a"~","ab"]~"ab","ab"~bb~aa~true~1~12~}}~],"
""".replace("\n", "")
    .encode()
    .split(b"~")
)
FREE = {"type": "object", "additionalProperties": {"type": "integer"}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "free": FREE,
    "nested": {"type": "object", "additionalProperties": FREE},
    "declared": {"properties": {"ab": {"type": "string"}, "id": FREE}, "additionalProperties": {"type": "boolean"}},
    "required": {"properties": {"a": True}, "required": ["id", "a"], "additionalProperties": {"type": "integer"}},
    "counted": {"type": "object", "additionalProperties": {"const": 1}, "minProperties": 2, "maxProperties": 4},
    "short": {"type": "object", "propertyNames": {"maxLength": 2}, "additionalProperties": {"const": 1}},
    "patterns": {
        "type": "object",
        "patternProperties": {"^a": {"const": 1}, "b$": {"type": "integer"}},
        "additionalProperties": False,
    },
    "few names": {"type": "object", "propertyNames": {"pattern": "^[ab]{1,2}$"}, "additionalProperties": {"const": 1}},
    "either": {
        "anyOf": [
            {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": {"type": "boolean"}},
            {"type": "object", "properties": {"b": {"const": 1}}, "additionalProperties": {"type": "integer"}},
        ]
    },
    "recursive": {"type": "object", "additionalProperties": {"$ref": "#"}},
    "list": {"type": "array", "items": FREE},
    "distinct texts": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    "distinct short texts": {"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": True},
    "distinct scalars": {"type": "array", "items": {"type": ["string", "integer", "boolean"]}, "uniqueItems": True},
    "distinct and free": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
}
ENDS_WELL = b'"}],: '


def vocabulary() -> constrain.Vocabulary:
    tokens = [bytes([byte]) for byte in range(128)] + PIECES
    return constrain.Vocabulary.from_tokens([*tokens, b""], eos=[len(tokens)])


def likely(rng: Random, tokens: list[int], vocab: constrain.Vocabulary) -> int:
    """A token of few letters, so that texts are short, and many equal."""
    wanted = [token for token in tokens if set(vocab.token_bytes(token)) <= set(b'abid1"{}[],: \\u06')]
    closing = [token for token in wanted if vocab.token_bytes(token)[-1:] in ENDS_WELL]
    return rng.choice(closing if closing and rng.random() < 0.4 else wanted or tokens)


@pytest.mark.slow(only=("canonical",))
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("escapes", ["any", "canonical"])
def test_masks_are_what_the_tokens_say_one_by_one(name: str, escapes: str) -> None:
    vocab, rng = vocabulary(), Random(name)
    constraint = constrain.compile(SCHEMAS[name], vocab, escapes=escapes)
    row = constraint.allocate_bitmask()[0]
    for _ in range(60 if LONG else 6):
        matcher, text = constraint.matcher(), b""
        for _ in range(30):
            tokens = allowed(matcher, row).tolist()
            for token in range(vocab.n_vocab):
                taken = matcher.accept(token)
                if taken:
                    matcher.rollback(1)
                assert taken == (token in tokens), (text, token)
            tokens = [token for token in tokens if token not in vocab.eos]
            if not tokens:
                break
            token = likely(rng, tokens, vocab)
            assert matcher.accept(token)
            text += vocab.token_bytes(token)


def of_bytes(first: str, last: str) -> tree.Expression:
    return tree.ByteClass(((ord(first), ord(last)),))


NAME = tree.Concatenation((of_bytes('"', '"'), tree.Repetition(of_bytes("a", "z"), 0, None), of_bytes('"', '"')))


def test_two_readings_of_a_text_stay_apart() -> None:
    """Of two rules that read the same name, one may read it again: only that one can go on after it."""
    once = [Edge(0, 0, 1, (), ((Action.REMEMBER, 0),)), Edge(1, 1, 2), Edge(2, 0, 3, excluding=0), Edge(3, 2, 7)]
    again = [Edge(0, 0, 4), Edge(4, 1, 5), Edge(5, 0, 6, excluding=0), Edge(6, 3, 7)]
    terminals = [Terminal("name", NAME), *(Terminal(each, of_bytes(each, each)) for each in ",.!")]
    grammar = kernel.CompiledGrammar(
        Grammar(tuple(terminals), (Rule("start", (*once, *again), (7,), (TEXT_SET,)),)), byte_vocabulary()._core
    )
    row = np.zeros(grammar.n_words, np.uint32)
    for last, following in ((b"another", b".!"), (b"onename", b"!")):
        matcher = kernel.Matcher(grammar)
        for byte in b'"onename","' + last + b'"':
            matcher.fill_bitmask(row)
            assert matcher.accept(byte)
        matcher.fill_bitmask(row)
        assert {byte for byte in range(256) if row[byte // 32] >> (byte % 32) & 1} == set(following)


WORD = tree.Repetition(of_bytes("a", "z"), 1, None)
ONE = tree.Literal(b"1.")
REMEMBERING: dict[str, tuple[list[tree.Expression], list[Edge], tuple[int, ...], int, bytes]] = {
    "only another terminal is remembered": (
        [WORD, tree.Alternation((WORD, tree.Literal(b"*"))), tree.Literal(b","), tree.Literal(b".")],
        [Edge(0, 0, 1, (), ((Action.REMEMBER, 0),)), Edge(1, 2, 2), Edge(2, 1, 3, excluding=0), Edge(3, 3, 4)],
        (),
        TEXT_SET,
        b"xy,ab.",
    ),
    "a value begins like a number": (
        [
            tree.Alternation(
                (
                    tree.Concatenation((ONE, tree.Repetition(tree.Literal(b"0"), 1, None))),
                    tree.Concatenation((ONE, tree.Literal(b"x"))),
                )
            ),
            tree.Literal(b","),
            tree.Literal(b";"),
        ],
        [Edge(0, 0, 1, distinct=0), Edge(1, 1, 2), Edge(2, 0, 1, distinct=0), Edge(2, 2, 4), Edge(1, 2, 4)],
        (),
        VALUE_SET,
        b"1.0,1.x,;",
    ),
    "names are also ignored": (
        [NAME, tree.Literal(b","), tree.Literal(b".")],
        [Edge(0, 0, 1, (), ((Action.REMEMBER, 0),)), Edge(1, 1, 2), Edge(2, 0, 3, excluding=0), Edge(3, 2, 4)],
        (0,),
        TEXT_SET,
        b'"xy","xy".',
    ),
}


@pytest.mark.parametrize("name", REMEMBERING)
def test_masks_of_grammars_made_in_code(name: str) -> None:
    expressions, edges, ignored, slot, text = REMEMBERING[name]
    terminals = tuple(Terminal(f"t{number}", each) for number, each in enumerate(expressions))
    rules = (Rule("start", tuple(edges), (4,), (slot,)),)
    grammar = kernel.CompiledGrammar(Grammar(terminals, rules, ignored), byte_vocabulary()._core)
    row = np.zeros(grammar.n_words, np.uint32)
    matcher = kernel.Matcher(grammar)
    for place, byte in enumerate(text):
        matcher.fill_bitmask(row)
        for token in range(257):
            taken = matcher.accept(token)
            if taken:
                matcher.rollback(1)
            assert taken == bool(row[token // 32] >> (token % 32) & 1), (text[:place], token)
        if not matcher.accept(byte):
            assert name == "names are also ignored"
            return


@pytest.mark.parametrize(
    ("schema", "documents"),
    [
        (FREE, [{"river stone": 1, "cloud": 22}, {"lion of town": 3, "zebra": 4, "fish number": 567}]),
        (
            {
                "type": "object",
                "patternProperties": {"^x-": {"type": "integer"}, "^v[0-9]$": {"type": "integer"}},
                "additionalProperties": {"type": "integer"},
            },
            [{"river stone": 1, "x-cloud": 22}, {"lion of town": 3, "x-fish number": 4}],
        ),
    ],
    ids=["flat", "classes of keys"],
)
def test_keys_that_nobody_has_met_find_the_masks_of_others(schema: dict[str, Any], documents: list[Any]) -> None:
    vocab = real_vocabulary("gpt-2")
    split = Tokens(vocab).split
    grammar = kernel.CompiledGrammar(constrain.compile(schema, vocab).grammar, vocab._core)
    row = np.zeros(grammar.n_words, np.uint32)
    sizes = []
    for document in documents:
        matcher, before = kernel.Matcher(grammar), grammar.stats()["masks"]
        for token in split(json.dumps(document).encode()):
            matcher.fill_bitmask(row)
            assert matcher.accept(token)
        sizes.append(grammar.stats()["masks"] - before)
    assert sizes[0] >= 6
    assert sizes[1] < 3
