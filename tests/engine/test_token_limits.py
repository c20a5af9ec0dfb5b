"""Limits on the tokens of one lexeme (``Terminal.max_tokens``): it is complete, and has no more tokens."""

from __future__ import annotations

from random import Random

import pytest

import constrain
from constrain.language.grammar import Edge, Grammar, Rule, Terminal
from constrain.regex.parsing.parser import parse_pattern
from tests.support import LONG, allowed, byte_vocabulary, small_vocabulary
from tests.support.engine.token_limits import Judge
from tests.support.matching import mask_of, require_protocol

ALPHABET = b"ab,;"
PATTERNS = ["[ab]+", "a+", "b", "ab", "a{3,}", "[ab]{2,5}", "(ab)+", "(a|b)*b", "a(b|a{4})", "b{1,6}", "[ab]*a;"]
MARKS = (",", ";", ",;")


def terminal(pattern: str, max_tokens: int | None = None) -> Terminal:
    return Terminal(pattern, parse_pattern(pattern, "rust"), max_tokens=max_tokens)


def chain(*terminals: Terminal) -> Grammar:
    """The terminals, one after another."""
    edges = tuple(Edge(index, index, index + 1) for index in range(len(terminals)))
    return Grammar(terminals, (Rule("start", edges, (len(terminals),)),))


def vocabulary_of(*tokens: bytes) -> constrain.Vocabulary:
    """A vocabulary of the bytes of ``ALPHABET``, these tokens, and an end of generation, the last one."""
    return constrain.Vocabulary.from_tokens(
        [bytes([byte]) for byte in ALPHABET] + [*tokens, b""], eos=[4 + len(tokens)]
    )


def tokens_of(vocabulary: constrain.Vocabulary) -> list[bytes]:
    return [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]


def random_grammar(rng: Random) -> Grammar:
    """A rule of a few states; between two lexemes with a limit there is mostly a mark."""
    terminals = tuple(
        terminal(pattern, rng.choice((None, 1, 2, 2, 3, 4)) if pattern not in MARKS else None)
        for pattern in [*rng.sample(PATTERNS, rng.randint(1, 3)), *rng.sample(MARKS, rng.randint(1, 2))]
    )
    states = rng.randint(2, 4)
    edges = {(state, rng.randrange(len(terminals)), state + 1) for state in range(states)}
    edges |= {
        (rng.randrange(states), rng.randrange(len(terminals)), rng.randint(1, states)) for _ in range(rng.randint(1, 5))
    }
    return Grammar(terminals, (Rule("start", tuple(Edge(*edge) for edge in sorted(edges)), (states,)),))


def compare(grammar: Grammar, vocabulary: constrain.Vocabulary, most: int) -> int:
    """Compares the masks at so many places, the nearest first; returns how many of them a limit narrows."""
    judge, constraint = Judge(grammar, tokens_of(vocabulary)), constrain.compile(grammar, vocabulary)
    eos = vocabulary.eos[0]
    reached, met = [(judge.start(), constraint.matcher(), b"")], {judge.start()}
    narrowed = 0
    for at, matcher, text in reached[:most]:
        expected = judge.mask(at, eos)
        assert mask_of(matcher) == expected, (text, at)
        narrowed += matcher.n_shortened > 0
        for token in range(vocabulary.n_vocab):
            fork = matcher.fork()
            assert fork.accept(token) == expected[token], (text, token)
            if expected[token] and token != eos:
                after = judge.after(at, token)
                assert after is not None
                if after not in met:
                    met.add(after)
                    reached.append((after, fork, text + tokens_of(vocabulary)[token]))
    return narrowed


def random_case(seed: int) -> tuple[Grammar, constrain.Vocabulary]:
    rng = Random(seed)
    made = {bytes(rng.choices(ALPHABET, weights=(4, 4, 1, 1), k=rng.randint(2, 4))) for _ in range(rng.randint(0, 7))}
    return random_grammar(rng), vocabulary_of(*sorted(made))


@pytest.mark.slow
def test_masks_of_random_grammars_are_those_of_the_definition() -> None:
    compared = narrowed = 0
    for seed in range(40_000 if LONG else 600):
        grammar, vocabulary = random_case(seed)
        try:
            constrain.compile(grammar, vocabulary)
        except constrain.GrammarError:
            continue
        try:
            narrowed += compare(grammar, vocabulary, 30) > 0
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n{grammar.dump()}\n{tokens_of(vocabulary)}") from error
        compared += 1
    assert compared > 150
    assert narrowed > 15


def walk(matcher: constrain.Matcher, rng: Random) -> list[int]:
    """Tokens picked from the masks until the end; a step may be made without asking for the mask, or taken back."""
    taken: list[int] = []
    row = matcher.constraint.allocate_bitmask()[0]
    for _ in range(500):
        ids = allowed(matcher, row)
        assert len(ids), f"nothing is allowed after {taken}"
        token = int(rng.choice(ids))
        if token in matcher.constraint.vocabulary.eos:
            return taken
        assert matcher.accept(token), taken
        if rng.random() < 0.1:
            matcher.rollback(1)
            assert allowed(matcher, row).tolist() == ids.tolist()
            assert matcher.accept(token)
        taken.append(token)
        if rng.random() < 0.1:
            matcher = matcher.fork()
        if matcher.is_finished or len(taken) > 300:
            break
    closing = matcher.completion_tokens()
    assert matcher.accept_many(closing) == len(closing), (taken, closing)
    assert matcher.is_accepting
    return taken + closing


def test_random_walks_within_a_budget_end_whole() -> None:
    walked = 0
    for seed in range(20_000 if LONG else 150):
        grammar, vocabulary = random_case(seed)
        try:
            constraint = constrain.compile(grammar, vocabulary)
        except constrain.GrammarError:
            continue
        least = constraint.matcher().min_tokens_left
        for budget in (0, 1, 4, 15):
            try:
                taken = walk(constraint.matcher(max_tokens=least + budget), Random(seed))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, budget {budget}: {error}\n{grammar.dump()}") from error
            assert len(taken) <= least + budget
            assert constraint.accepts(b"".join(vocabulary.token_bytes(token) for token in taken))
        walked += 1
    assert walked > 40


def test_matchers_keep_the_protocol_under_limits() -> None:
    constraint = constrain.compile(
        chain(terminal("[ab]{2,}", 2), terminal(","), terminal("a+", 1)), vocabulary_of(b"ab", b"a,")
    )
    for budget in (None, 6):
        matcher = constraint.matcher(max_tokens=budget)
        for token in (0, 4, 2, 0):
            require_protocol(matcher, Random(1))
            assert matcher.accept(token), token


def test_a_lexeme_ends_at_its_limit_though_it_could_go_on() -> None:
    matcher = constrain.compile(chain(terminal("[a-z]+", 3), terminal("!")), byte_vocabulary()).matcher()
    assert matcher.accept_many(b"abcd") == 3
    assert matcher.is_narrowed
    assert matcher.n_shortened == 1
    assert not matcher.is_narrowed_by_budget
    assert "limit on the tokens of the lexeme" in matcher.explain(ord("d"))
    assert matcher.explain(ord("!")).endswith("is allowed")
    assert matcher.completion_tokens() == [ord("!")]


def test_a_budget_and_a_limit_hold_together() -> None:
    """The fewest bytes of the lexeme take too many tokens for its limit; the way to the end takes others."""
    vocabulary = vocabulary_of(b"bbbb")
    constraint = constrain.compile(chain(terminal("aa|bbbb", 1), terminal(",")), vocabulary)
    matcher = constraint.matcher(max_tokens=2)
    assert matcher.min_tokens_left == 2
    assert matcher.completion_tokens() == [4, 2]
    assert allowed(matcher, constraint.allocate_bitmask()[0]).tolist() == [4]


def test_forced_tokens_keep_to_the_limit() -> None:
    def encode(text: bytes) -> list[int]:
        return [ALPHABET.index(byte) for byte in text]

    tokens = [bytes([byte]) for byte in ALPHABET] + [b"bb", b""]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[5], encode=encode)
    matcher = constrain.compile(chain(terminal("abb", 2), terminal(",")), vocabulary).matcher()
    assert matcher.forced_bytes() == b"abb,"
    assert matcher.forced_tokens() == [0]  # the tokenizer writes bb in two tokens
    assert matcher.accept_many([0, 4]) == 2
    assert matcher.forced_tokens() == [2]


@pytest.mark.parametrize(("pattern", "max_tokens", "needed"), [("a{5}", 4, 5), ("(ab){3}", 2, 3), ("a{9}|b{3}", 1, 3)])
def test_a_limit_below_the_shortest_text_is_refused_with_the_number_needed(
    pattern: str, max_tokens: int, needed: int
) -> None:
    message = (
        rf"max_tokens={max_tokens} is too few: its shortest text takes {needed} tokens .*; give it {needed} or more"
    )
    with pytest.raises(constrain.GrammarError, match=message) as caught:
        constrain.compile(chain(terminal(pattern, max_tokens)), vocabulary_of(b"ab"))
    assert caught.value.line is None
    constrain.compile(chain(terminal(pattern, needed)), vocabulary_of(b"ab"))


def test_the_error_has_the_place_of_the_limit() -> None:
    placed = Terminal("A", parse_pattern("a{5}", "rust"), max_tokens=2, place=(3, 7))
    with pytest.raises(constrain.GrammarError) as caught:
        constrain.compile(chain(placed), vocabulary_of())
    assert (caught.value.line, caught.value.column) == (3, 7)


def test_a_limit_that_leaves_only_what_the_longest_match_takes_is_refused() -> None:
    """Behind a+, the lexeme could only begin with b; but such texts take six tokens, and a is read as a+."""
    grammar = chain(terminal("a+"), terminal("a|b{6}", 2))
    with pytest.raises(constrain.GrammarError, match="some of its texts take 6 tokens"):
        constrain.compile(grammar, vocabulary_of())
    constrain.compile(chain(terminal("a+"), terminal("a|b{6}", 6)), vocabulary_of())
    constrain.compile(chain(terminal(","), terminal("a|b{6}", 2)), vocabulary_of())


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(constrain.GrammarError, match="max_tokens is 0; it must be 1 or more"):
        constrain.compile(chain(terminal("a", 0)), vocabulary_of())
    ignored = Grammar((terminal("a"), terminal(",", 3)), (Rule("start", (Edge(0, 0, 1),), (1,)),), ignored=(1,))
    with pytest.raises(constrain.GrammarError, match="it is ignored"):
        constrain.compile(ignored, vocabulary_of())
    edge = Edge(0, 0, 1, distinct=0)
    compared = Grammar((terminal("a+", 3),), (Rule("start", (edge,), (1,), (-2,)),))
    with pytest.raises(constrain.GrammarError, match="compared with others"):
        constrain.compile(compared, vocabulary_of())


def test_a_lexeme_of_too_many_states_is_refused() -> None:
    with pytest.raises(constrain.LimitError, match="MAX_LIMITED_STATES = 5000"):
        constrain.compile(chain(terminal("a{9000}", 9000)), vocabulary_of())


def test_a_stored_constraint_keeps_its_limits(tmp_path: object) -> None:
    grammar = chain(terminal("[ab]+", 2), terminal(","))
    constrain.compile(grammar, vocabulary_of(), cache=str(tmp_path)).precompute(max_masks=5)
    matcher = constrain.compile(grammar, vocabulary_of(), cache=str(tmp_path)).matcher()
    assert matcher.accept_many([0, 1, 0]) == 2


def test_limits_hold_through_generations() -> None:
    from constrain import kernel

    vocabulary = small_vocabulary()
    grammar = chain(terminal("([a-z]{1,9}|[0-9]{3}x)+", 4), terminal(","), terminal("[a-z]{2,}", 3))
    compiled = kernel.CompiledGrammar(grammar, vocabulary._core, memory_limit=1)
    matcher, rng = kernel.Matcher(compiled), Random(1)
    row = constrain.compile(grammar, vocabulary).allocate_bitmask()[0]
    other = constrain.compile(grammar, vocabulary).matcher()
    for _ in range(12):
        ids = allowed(matcher, row)
        assert ids.tolist() == allowed(other, row).tolist()
        token = int(rng.choice(ids))
        if token in vocabulary.eos:
            break
        assert matcher.accept(token)
        assert other.accept(token)
