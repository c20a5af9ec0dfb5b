"""The quick ways to a mask (runs of units, ways out of them, differences) against stepping through every token.

The oracle's vocabularies are too small for these: they need thousands of tokens made of one unit.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random

import pytest

import constrain
from constrain.language.grammar import Edge, Grammar, Rule, Terminal
from constrain.language.tree import (
    Alternation,
    ByteClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Repetition,
    Window,
)
from tests.support import LONG
from tests.support.matching import accepted_by_forks, mask_of

GRAMMARS = 4_000 if LONG else 60
ANY_TEXT = Repetition(ByteClass(((0, 255),)), 1, None)
ABC = ByteClass(((97, 99),))


@cache
def vocabulary() -> constrain.Vocabulary:
    """All words over a, b, c of 2 to 7 bytes, words that go on with other bytes, and every single byte."""
    words = [bytes(word) for length in range(2, 8) for word in product(b"abc", repeat=length)]
    mixed = [word + end for word in words[:350] for end in (b"1", b"!", b"12", b"!a", b"1ab")]
    tokens = [bytes([byte]) for byte in range(256)] + words + mixed + [b"1a", b"1ab", b"!a", b"12!", b"!!", b""]
    return constrain.Vocabulary.from_tokens(tokens, eos=[len(tokens) - 1])


def random_literal(rng: Random, letters: bytes = b"abc") -> Literal:
    return Literal(bytes(rng.choices(letters, k=rng.randint(1, 4))))


def random_unit(rng: Random) -> Expression:
    ab = ByteClass(((97, 98),))
    of_two_bytes = Alternation((ab, Concatenation((Literal(b"c"), ABC))))
    return rng.choice([ABC, ABC, ABC, ab, ab, of_two_bytes, Concatenation((ABC, ABC))])


def random_run(rng: Random, unit: Expression) -> Expression:
    minimum = rng.choice([0, 0, 0, 1, 2, 4])
    maximum = rng.choice([None, None, minimum + rng.randint(1, 3), minimum + 8])
    return Repetition(unit, minimum, maximum)


def random_expression(rng: Random, depth: int = 0) -> Expression:
    unit = random_unit(rng)
    kind = rng.choice(["run", "closed", "closed", "found", "found", "without", "either", "window", "literal"])
    if kind == "run":
        return random_run(rng, unit)
    if kind == "closed":
        return Concatenation((random_run(rng, unit), random_literal(rng, b"abc1!")))
    if kind == "found":
        end = (Literal(b"!"),) if rng.random() < 0.5 else ()
        return Concatenation((Repetition(unit, 0, None), random_literal(rng), Repetition(unit, 0, None), *end))
    if kind == "without" and depth < 2:
        few = LiteralSet(tuple(sorted({random_literal(rng).text for _ in range(3)})))
        short = Repetition(ByteClass(((97, 98),)), 0, 3)
        closed = Concatenation((random_literal(rng), Literal(b"!")))
        return Intersection((random_expression(rng, depth + 1), Complement(rng.choice([few, short, closed]))))
    if kind == "either" and depth < 2:
        return Alternation((random_expression(rng, depth + 1), random_expression(rng, depth + 1)))
    if kind == "window":
        found = Concatenation((Repetition(ABC, 0, None), random_literal(rng), Repetition(ABC, 0, None)))
        return Window(found, ABC, 0, rng.choice([3, 5, 9, 30]))
    return random_literal(rng, b"abc1!")


def random_grammar(rng: Random) -> Grammar:
    terminals = [
        Terminal(f"T{number}", Intersection((random_expression(rng), ANY_TEXT))) for number in range(rng.randint(1, 3))
    ]
    terminals += [Terminal("ONE", Literal(b"1")), Terminal("MARK", Literal(b"!"))]
    edges = [
        Edge(state, rng.randrange(len(terminals)), state + 1 if rng.random() < 0.8 else state)
        for state in range(3)
        for _ in range(rng.randint(1, 3))
    ]
    return Grammar(tuple(terminals), (Rule("start", tuple(edges), (3,)),), self_delimiting=True)


def check(constraint: constrain.Constraint, rng: Random, steps: int) -> int:
    """Compares masks along one random text; returns how many."""
    matcher = constraint.matcher()
    for step in range(steps):
        wanted = accepted_by_forks(matcher)
        assert mask_of(matcher) == wanted, f"step {step}\n{constraint.grammar.dump()}"
        assert all(wanted[token] == matcher.is_accepting for token in vocabulary().eos)
        tokens = [token for token, fits in enumerate(wanted) if fits and token not in vocabulary().eos]
        if not tokens:
            return step + 1
        matcher.accept(rng.choice(tokens))
    return steps


def check_random(seed: int) -> int:
    rng = Random(seed)
    try:
        constraint = constrain.compile(random_grammar(rng), vocabulary())
    except constrain.GrammarError:
        return 0
    return check(constraint, rng, steps=5)


@pytest.mark.slow
def test_masks_equal_stepping_through_every_token() -> None:
    assert sum(map(check_random, range(GRAMMARS))) > GRAMMARS


def in_turn(*terminals: Expression) -> Grammar:
    """Lexemes of one terminal after the other, over and over."""
    edges = tuple(Edge(state, state, (state + 1) % len(terminals)) for state in range(len(terminals)))
    named = tuple(Terminal(f"T{number}", expression) for number, expression in enumerate(terminals))
    return Grammar(named, (Rule("start", edges, (0,)),), self_delimiting=True)


AB = Repetition(ByteClass(((97, 98),)), 1, None)


def test_tokens_through_many_lexemes_equal_stepping_through_them() -> None:
    check(constrain.compile(in_turn(AB, Literal(b"c")), vocabulary()), Random(1), steps=6)
    check(constrain.compile(in_turn(Literal(b"a"), ByteClass(((98, 99),)), ABC), vocabulary()), Random(2), steps=6)


def test_tokens_of_a_state_that_many_bytes_lead_back_to_equal_stepping_through_them() -> None:
    a_and_more = Concatenation((ByteClass(((97, 98),)), Repetition(ABC, 0, None)))
    closed = Concatenation((a_and_more, Repetition(Literal(b"1b"), 0, 1), Literal(b"!")))
    check(constrain.compile(in_turn(closed, ABC), vocabulary()), Random(3), steps=6)
    check(constrain.compile(in_turn(a_and_more, Literal(b"1")), vocabulary()), Random(4), steps=6)


def test_tokens_longer_than_the_array_of_a_walk_equal_stepping_through_them() -> None:
    runs = [b"a" * length for length in range(1, 90)]
    tokens = [*(bytes([byte]) for byte in range(256)), *runs, *(run + b"b" for run in runs), b""]
    constraint = constrain.compile(
        in_turn(Literal(b"a" * 100 + b"b")), constrain.Vocabulary.from_tokens(tokens, eos=[len(tokens) - 1])
    )
    matcher = constraint.matcher()
    assert mask_of(matcher) == accepted_by_forks(matcher)
