"""Tokens in GBNF grammars: ``<name>``, ``<[id]>``, ``!<name>``, ``!<[id]>``, beside llama.cpp's own matcher."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import constrain
from constrain.gbnf import Gbnf
from tests.support import LONG, for_each
from tests.support.llama.grammar_sampler import LlamaMatcher
from tests.support.matching import allowed_tokens as allowed
from tests.support.matching import mask_of

WALKS = 40 if LONG else 2

VOCABULARY = constrain.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b"", b"", b"", b"word"],
    eos=[256],
    special={256: "<|end|>", 257: "<think>", 258: "</think>"},
)
N = VOCABULARY.n_vocab


def compiled(grammar: str) -> constrain.Constraint:
    return constrain.compile(Gbnf(grammar), VOCABULARY, cache=False)


@for_each(
    "grammar, ids",
    ("root ::= <[259]>", {259}),
    ("root ::= <think>", {257}),
    ("root ::= <[258]> | <think>", {257, 258}),
    ("root ::= !</think>", set(range(N)) - {256, 258}),
    ("root ::= !<[65]>", set(range(N)) - {65, 256}),
    ("root ::= !<[259]> | <[259]>", set(range(N)) - {256}),
    ('root ::= <[259]> "x" | "w"', {ord("w"), 259}),
    ("root ::= <|end|>", {256}),
)
def test_masks_have_the_named_tokens(grammar: str, ids: set[int]) -> None:
    assert allowed(compiled(grammar).matcher()) == ids


def test_reasoning_is_read_token_by_token() -> None:
    constraint = compiled("root ::= <think> thinking </think> .*\nthinking ::= !</think>*")
    matcher = constraint.matcher()
    assert matcher.accept_many([257, 259, 32, 257, 258, 259]) == 6
    assert matcher.is_accepting
    assert 258 not in allowed(matcher)
    assert constraint.accepts(b"\xff<think>\xfea word\xff</think>\xfethe answer")
    assert not constraint.accepts(b"\xff<think>\xfea word")


@for_each(
    "grammar, message, place",
    ("root ::= <[260]>", "there is no token 260; the vocabulary has 260 tokens", (1, 10)),
    ('root ::= "a"\n  | !<[260]>', "there is no token 260", (2, 5)),
    ("root ::= !<|none|>", "this vocabulary has no token of this name", (1, 10)),
    ("root ::= <[1-2]>", "GBNF names one token by its id", (1, 10)),
    ("root ::= !<[*]>", "GBNF names one token by its id", (1, 10)),
    ("root ::= <[]>", "GBNF names one token by its id", (1, 10)),
    ('root ::= <|end|> "a"', "this ends the generation, but more may follow it", (1, 10)),
)
def test_refusals_name_the_place(grammar: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(constrain.GrammarError) as caught:
        compiled(grammar)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place


@pytest.fixture(scope="module")
def model() -> Iterator[constrain.Model]:
    with constrain.Model(n_ctx=256, n_threads=1) as found:
        yield found


@pytest.fixture(scope="module")
def whole(model: constrain.Model) -> list[int]:
    """The tokens that are a text of whole characters, or special ones."""
    return [token for token in range(model.vocabulary.n_vocab) if is_whole(model.vocabulary, token)]


GRAMMARS = (
    *("root ::= <|im_start|> thinking <file_sep> [0-9]\nthinking ::= !<file_sep>*", 'root ::= !<[THE]> "b"'),
    *('root ::= <[THE]> [a-z]+ | "the" [0-9]', 'root ::= (<[THE]> | "x")+ "."', "root ::= !<[THE]>{2,3}"),
    *("root ::= !<|im_start|>* <|im_start|>", 'root ::= word (" " word)*\nword ::= <[THE]> | [a-z]+ ":"'),
)
"""THE is the token of the text "the"."""


@pytest.mark.slow
@pytest.mark.parametrize("grammar", GRAMMARS)
def test_llama_cpp_allows_the_same_tokens(grammar: str, model: constrain.Model, whole: list[int]) -> None:
    """Except for tokens that llama.cpp cannot show as text, or that are a part of a character: it never takes them."""
    vocabulary = model.vocabulary
    (the,) = vocabulary._tokens_named("the")
    written = grammar.replace("THE", str(the))
    constraint = constrain.compile(Gbnf(written), vocabulary, cache=False)
    rng = Random(grammar)
    for _ in range(WALKS):
        ours, theirs = constraint.matcher(), LlamaMatcher(model, written)
        for _ in range(6):
            mask = mask_of(ours)
            taken = theirs.mask()
            assert [token for token in whole if mask[token] != taken[token]] == []
            chosen = [token for token in whole if mask[token] and token not in vocabulary.eos]
            if not chosen:
                break
            token = rng.choice([*chosen, *(each for each in (the, 1) if mask[each])])
            assert ours.accept(token)
            theirs.accept(token)


@pytest.mark.slow
def test_no_token_is_asked_for_in_the_middle_of_another(model: constrain.Model) -> None:
    """llama.cpp's masks have such tokens, at which its own matcher then fails."""
    (the,), (longer,) = (model.vocabulary._tokens_named(text) for text in ("the", "and"))
    grammar = f'root ::= "a" !<[{the}]>'
    assert LlamaMatcher(model, grammar).mask()[longer]
    assert not mask_of(constrain.compile(Gbnf(grammar), model.vocabulary, cache=False).matcher())[longer]


def is_whole(vocabulary: constrain.Vocabulary, token: int) -> bool:
    """Whether a token is a text of whole characters, or a special one."""
    text = vocabulary.token_bytes(token)
    if not text:
        return token in vocabulary.special
    return text.decode("utf-8", "ignore").encode() == text and b"\0" not in text
