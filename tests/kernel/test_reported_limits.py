"""Limits that are met while a text is written: the mask and ``accept`` agree, and the matcher tells which were met.

Grammars have limits of their own here, so small that nearly every mask meets one.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import constrain
from constrain import kernel
from constrain.engine.constraint import Constraint, Matcher
from constrain.engine.special import resolve_special
from constrain.language.grammar import Grammar
from tests.support import LONG, demo_vocabulary, small_vocabulary
from tests.support.engine.hostile import HOSTILE
from tests.support.matching import accepted_by_forks, mask_of
from tests.support.oracles.kernel.generator import RandomVocabulary, make_case, make_vocabulary

SEEDS = range(600 if LONG else 60)
STEPS = 12
NAMES = {
    "MAX_MASK_WORK",
    "MAX_CALL_WORK",
    "MAX_INTERSECTION_STATES",
    "MAX_SEARCHED_PLACES",
    "MAX_BUDGET_QUESTIONS",
}
SCHEMAS: dict[str, Any] = {
    **{name: schema for name, schema in HOSTILE.items() if name != "negated patterns"},
    "windows": {"type": "string", "pattern": "[ab].{5}[0-9]", "maxLength": 30},
    "keys": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "additionalProperties": {"type": "integer", "multipleOf": 7},
        "minProperties": 2,
    },
    "unique": {"type": "array", "items": {"enum": ["a", "bb", {"x": 1}, {"x": 2}]}, "uniqueItems": True, "minItems": 2},
}


def limits_of(rng: Random) -> dict[str, int]:
    """Small ones; some masks meet none of them."""
    return {
        "MAX_MASK_WORK": rng.choice([0, 1, 5, 30, 300]),
        "MAX_CALL_WORK": rng.choice([0, 1, 5, 30, 300]),
        "MAX_INTERSECTION_STATES": rng.choice([1, 3, 20_000]),
        "MAX_BUDGET_QUESTIONS": rng.choice([0, 3, 4_000]),
    }


def limited(grammar: Grammar, vocabulary: constrain.Vocabulary, limits: dict[str, int], **more: int) -> Constraint:
    constraint = Constraint(grammar, vocabulary, {}, ())
    constraint._core = kernel.CompiledGrammar(
        resolve_special(grammar, vocabulary)[0], vocabulary._core, limits=limits, **more
    )
    return constraint


def check_place(matcher: Matcher, exact: Matcher, rng: Random, *, asks_first: bool) -> list[bool]:
    """The mask here, after it was compared with all that must agree with it. ``exact``: without limits and budget.

    Forks that take tokens before the mask is asked for have masks of their own. A token may differ only if its
    fork or the mask met a limit: later ones know more.
    """
    vocabulary = matcher.constraint.vocabulary
    met = matcher.limited_masks
    forks = [matcher.fork() for _ in range(vocabulary.n_vocab if asks_first else 0)]
    before = [fork.accept(token) for token, fork in enumerate(forks)]
    mask = mask_of(matcher)
    whole = mask_of(exact)
    assert not any(here and not there for here, there in zip(before, whole, strict=False)), "outside the language"
    for token, fork in enumerate(forks):
        if before[token] != mask[token]:
            assert max(matcher.limited_masks, fork.limited_masks) > met, "accept before the mask"
    assert mask_of(matcher) == mask, "the mask once more"
    assert mask_of(matcher.fork()) == mask, "the mask of a fork"
    assert accepted_by_forks(matcher) == mask, "accept after the mask"
    assert matcher.is_accepting == any(mask[token] for token in vocabulary.eos)
    assert matcher.limited_masks in (met, met + 1)
    assert not any(here and not there for here, there in zip(mask, whole, strict=True)), "more than what is possible"
    if mask != whole:
        assert matcher.is_narrowed, "narrowed, and not told"
    assert (matcher.limited_masks > 0) == bool(matcher.limits_met)
    assert set(matcher.limits_met) <= NAMES
    assert any(mask), "a way on"
    token = rng.choice([token for token, bit in enumerate(mask) if bit])
    if token not in vocabulary.eos:
        assert matcher.accept(token)
        mask_of(matcher)
        matcher.rollback(1)
        assert mask_of(matcher) == mask, "the mask after what was taken back"
        assert matcher.limited_masks in (met, met + 1)
    return mask


def finishes(matcher: Matcher) -> bool:
    """Whether the way to finish that the matcher knows is taken to its end."""
    fork = matcher.fork()
    tokens = fork.completion_tokens()
    return fork.accept_many(tokens) == len(tokens) and fork.is_accepting


def walk(constraint: Constraint, whole: Constraint, rng: Random, max_tokens: int | None) -> int:
    """Follows masks at random, and then the way to finish; how many of the masks were limited."""
    matcher, exact = constraint.matcher(max_tokens), whole.matcher()
    met = 0
    for step in range(STEPS):
        mask = check_place(matcher, exact, rng, asks_first=step % 2 == 0)
        met = matcher.limited_masks
        assert finishes(matcher)
        token = rng.choice([token for token, bit in enumerate(mask) if bit])
        if token in constraint.vocabulary.eos:
            break
        assert matcher.accept(token)
        assert exact.accept(token)
        assert matcher.limited_masks == met
    fork = matcher.fork()
    matcher.reset()
    assert (matcher.limited_masks, matcher.limits_met) == (0, ())
    assert fork.limited_masks == met
    assert constraint.report.limited_masks >= met
    return met


def made(v: RandomVocabulary) -> constrain.Vocabulary:
    return constrain.Vocabulary.from_tokens(v.tokens, eos=sorted(v.end), special=sorted(v.special))


@pytest.mark.slow
def test_masks_and_accept_agree_on_random_grammars_and_limits_are_reported() -> None:
    n_limited = n_walks = 0
    for seed in SEEDS:
        case, rng = make_case(seed), Random(seed)
        vocabulary = made(make_vocabulary(rng, case.alphabet, []))
        limits = limits_of(rng)
        try:
            whole = Constraint(case.grammar, vocabulary, {}, ())
            constraint = limited(case.grammar, vocabulary, limits, memory_limit=rng.choice([1, 1 << 26]))
        except constrain.GrammarError:
            continue
        least = whole.matcher().min_tokens_left
        for max_tokens in (None, least, least + rng.randint(1, 8)):
            try:
                n_limited += walk(constraint, whole, rng, max_tokens) > 0
            except constrain.BudgetError:  # the shortest way was not found within the limits, and a longer one is known
                continue
            except Exception as error:
                raise AssertionError(f"seed {seed}, {limits}, max_tokens {max_tokens}: {error}") from error
            n_walks += 1
    assert n_walks > len(SEEDS)
    assert n_limited > n_walks / 3


@pytest.mark.slow(only=("negated patterns of keys", "patterns at once", "windows"))
@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_and_accept_agree_on_schemas_and_limits_are_reported(name: str) -> None:
    vocabulary = small_vocabulary(more=200)
    whole = constrain.compile(SCHEMAS[name], vocabulary, cache=False)
    n_limited = 0
    for seed in range(20 if LONG else 1):
        rng = Random(f"{name} {seed}")
        limits = {**limits_of(rng), "MAX_MASK_WORK": 5}
        constraint = limited(whole.grammar, vocabulary, limits, memory_limit=rng.choice([1, 1 << 26]))
        for more in (None, 4):
            max_tokens = None if more is None else constraint.matcher().min_tokens_left + more
            try:
                n_limited += walk(constraint, whole, rng, max_tokens) > 0
            except Exception as error:
                raise AssertionError(f"seed {seed}, {limits}, max_tokens {max_tokens}: {error}") from error
    assert n_limited


@pytest.mark.slow
def test_at_the_kernels_own_limits_accept_takes_nothing_outside_the_mask() -> None:
    gaps = "".join(
        f"(?=.*{first}.{{{16 + at}}}{second})" for at, (first, second) in enumerate(["ab", "ba", "ca", "da"])
    )
    vocabulary = demo_vocabulary()
    constraint = constrain.compile({"type": "string", "pattern": f"^{gaps}.*$"}, vocabulary, cache=False)
    matcher, rng = constraint.matcher(), Random(0)
    quote = next(token for token in range(vocabulary.n_vocab) if vocabulary.token_bytes(token) == b'"')
    assert matcher.accept(quote)
    mask = mask_of(matcher)
    outside = [token for token in range(vocabulary.n_vocab) if not mask[token]]
    assert [token for token in rng.sample(outside, 400) if matcher.fork().accept(token)] == []
    assert (matcher.limited_masks, matcher.limits_met) == (1, ("MAX_MASK_WORK",))
    left_out = next(token for token in outside if vocabulary.token_bytes(token) == b"the")
    assert "not verified within the limits (MAX_MASK_WORK)" in matcher.explain(left_out)
    for _ in range(2):
        mask = mask_of(matcher)
        assert matcher.accept(
            rng.choice([token for token, bit in enumerate(mask) if bit and token not in vocabulary.eos])
        )
    assert matcher.limited_masks >= 1
    assert constraint.report.limited_masks >= matcher.limited_masks


def test_a_limit_on_decisions_within_decisions_is_reported_by_its_name() -> None:
    schema = {"type": "string", "allOf": [{"not": {"pattern": "a.*b"}}, {"pattern": "c.*d"}]}
    vocabulary = small_vocabulary(more=200)
    grammar = constrain.compile(schema, vocabulary, cache=False).grammar
    matcher = limited(grammar, vocabulary, {"MAX_NESTED_DECISIONS": 0}).matcher()
    mask_of(matcher)
    assert matcher.accept(ord('"'))
    mask_of(matcher)
    assert matcher.limits_met == ("MAX_NESTED_DECISIONS",)
