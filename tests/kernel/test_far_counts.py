"""Counts that few tokens can use up: masks against stepping through every token, with tokens around the counts."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

import constrain
from constrain.language.grammar import Edge, Grammar, Rule, Terminal
from constrain.language.tree import (
    Alternation,
    ByteClass,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    Repetition,
    Window,
)
from tests.support import LONG
from tests.support.matching import accepted_by_forks, mask_of

EXPRESSIONS = 1_200 if LONG else 100
AB = ByteClass(((97, 98),))
ANY = ByteClass(((32, 32), (97, 99)))
WORD = Concatenation((Repetition(AB, 1, None), Repetition(Literal(b" "), 1, None)))


@cache
def vocabulary() -> constrain.Vocabulary:
    """Single bytes, short words, and tokens of 17 to 70 bytes: runs, words and repeated pieces, some with an end."""
    rng = Random(1)
    tokens = {bytes(rng.choices(b"ab  c!", k=rng.randint(2, 16))) for _ in range(150)}
    pieces = [b"a", b"b", b"ab", b"abc", b"a ", b"ab ", b"b  ", b"c", b" "]
    for _ in range(220):
        length = rng.randint(17, 70)
        run = (rng.choice(pieces) * length)[:length]
        tokens.add(run[: rng.randint(12, length)] + rng.choice([b"", b"", b"!", b"!a", b"c", run[:20], b" b"]))
    return constrain.Vocabulary.from_tokens(
        [*(bytes([byte]) for byte in range(256)), *sorted(tokens), b""], eos=[256 + len(tokens)]
    )


def random_counted(rng: Random) -> Expression:
    unit = rng.choice([AB, AB, ANY, WORD, WORD, Concatenation((AB, Repetition(Literal(b"c"), 0, 1))), Literal(b"ab")])
    minimum = rng.choice([0, 0, 0, 1, 3, 16, 17, 18, 25])
    return Repetition(unit, minimum, rng.choice([None, *(minimum + more for more in (0, 2, 8, 16, 17, 18, 30, 50))]))


def random_expression(rng: Random) -> Expression:
    counted = random_counted(rng)
    kind = rng.choice(["chain", "chain", "either", "nested", "window", "window", "both"])
    if kind == "either":
        return Concatenation((Alternation((counted, random_counted(rng))), Literal(b"!")))
    if kind == "nested":
        inner = Concatenation((counted, rng.choice([Literal(b"c"), Literal(b" ")])))
        return Concatenation((Repetition(inner, 0, rng.choice([2, 17, 40])), Repetition(AB, 1, 1), Literal(b"!")))
    if kind == "window":
        part = Concatenation((counted, Repetition(AB, 1, None), Literal(b"!")))
        return Window(part, rng.choice([ANY, ANY, AB]), rng.choice([0, 0, 0, 2]), rng.choice([5, 18, 25, 40, 60, 90]))
    if kind == "both":
        other = Concatenation((Repetition(ANY, 0, rng.choice([18, 40])), Literal(b"!")))
        return Intersection((Concatenation((counted, Literal(b"!"))), other))
    return Concatenation((counted, Repetition(AB, 0, rng.choice([1, 20, None])), Literal(b"!")))


def grammar_of(expressions: list[Expression]) -> Grammar:
    """One of the expressions, then a space."""
    terminals = [Terminal(f"T{number}", each) for number, each in enumerate(expressions)]
    edges = [Edge(0, number, 1) for number in range(len(terminals))]
    rule = Rule("start", (*edges, Edge(1, len(terminals), 2)), (2,))
    return Grammar((*terminals, Terminal("MARK", Literal(b" "))), (rule,), self_delimiting=True)


def check(grammar: Grammar, rng: Random) -> int:
    """Compares masks along one random text of long and short tokens; returns how many."""
    try:
        matcher = constrain.compile(grammar, vocabulary(), cache=False).matcher()
    except constrain.GrammarError:
        return 0
    for step in range(6):
        wanted = accepted_by_forks(matcher)
        assert mask_of(matcher) == wanted, f"step {step}\n{grammar.dump()}"
        tokens = [token for token, fits in enumerate(wanted) if fits and token not in vocabulary().eos]
        if not tokens:
            return step + 1
        inside = [token for token in tokens if b"!" not in vocabulary().token_bytes(token)]
        matcher.accept(rng.choice(inside or tokens))
    return 6


@pytest.mark.slow
def test_masks_equal_stepping_through_every_token() -> None:
    compared = 0
    for seed in range(EXPRESSIONS):
        rng = Random(seed)
        compared += check(grammar_of([random_expression(rng) for _ in range(rng.choice([1, 1, 2]))]), rng)
    assert compared > 3 * EXPRESSIONS


def words_up_to(number: int) -> Expression:
    return Window(
        Concatenation((Repetition(WORD, 0, number), Repetition(AB, 1, None), Literal(b"!"))), ANY, 0, 10 * number
    )


def test_masks_near_the_end_of_a_count_equal_stepping() -> None:
    matcher = constrain.compile(grammar_of([words_up_to(19)]), vocabulary(), cache=False).matcher()
    for word in range(19):
        assert matcher.accept_many(b"ab ") == 3
        assert mask_of(matcher) == accepted_by_forks(matcher), word
    assert matcher.accept_many(b"ab ") == 2
