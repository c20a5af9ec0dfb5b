"""Grammars that ask for tokens by id: every mask against brute force over all readings of the tokens before it.

In the reference, the sets of tokens are letters that no text has. A token may be read as its text, or as the letter of
a set that it is in; tokens match if some of these texts does. Budgets are walked, too.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import pytest

import constrain
from constrain.lark import Lark
from tests.oracles.lark.test_lark_masks import SEARCH_LIMIT, verdict, vocabulary_for
from tests.support import LONG
from tests.support.matching import mask_of, require_protocol
from tests.support.oracles.kernel.generator import RandomVocabulary
from tests.support.oracles.kernel.recognizer import Recognizer
from tests.support.oracles.lark.generator import make_case
from tests.support.oracles.lark.reference import Reference
from tests.support.oracles.search import Oracle

SEEDS = range(3_000 if LONG else 50)
MOST_PREFIXES = 16
LONGEST_PREFIX = 4
WALKS = 4

SAMPLE_LIMIT = 30
"""States looked at for the end of a text without sets, which gives tokens."""

LETTERS = "XYZ"
"""The letters of the sets."""


def written_set(rng: Random, n_vocab: int, ends: set[int]) -> tuple[str, set[int]]:
    """Ids as a grammar writes them, and the tokens meant."""
    others = set(range(n_vocab)) - ends
    if rng.random() < 0.1:
        return "<[*]>", others
    items: list[str] = []
    ids: set[int] = set()
    for _ in range(rng.choice((1, 1, 2, 3))):
        first = last = rng.choice(sorted(others))
        if rng.random() < 0.3:
            last = rng.randrange(first, n_vocab)
        items.append(f"{first}-{last}" if last > first else str(first))
        ids |= set(range(first, last + 1))
    if rng.random() < 0.3 and others - ids:
        return f"<[^{','.join(items)}]>", others - ids
    return f"<[{','.join(items)}]>", ids - ends


class Comparison:
    """One grammar and one vocabulary; ``sets`` are the tokens of each letter."""

    def __init__(
        self, oracle: Oracle, constraint: constrain.Constraint, v: RandomVocabulary, sets: list[set[int]]
    ) -> None:
        self.oracle = oracle
        self.constraint = constraint
        self.v = v
        letters = [(letter.encode(), ids) for letter, ids in zip(LETTERS, sets, strict=True)]
        self.readings = [[letter for letter, ids in letters if token in ids] for token in range(len(v.tokens))]
        for token, text in enumerate(v.tokens):
            if text and token not in v.special:
                self.readings[token].append(text)

    def allowed(self, before: set[bytes]) -> list[bool]:
        """The mask after tokens with these readings."""
        return [
            any(map(self.oracle.may_end, before))
            if token in self.v.end
            else any(self.oracle.can_go_on(text + more) for text, more in product(before, readings))
            for token, readings in enumerate(self.readings)
        ]

    def compare(self) -> tuple[int, int]:
        """How many masks were compared, and how many of them after several readings."""
        reached = [({b""}, 0, self.constraint.matcher())]
        several = 0
        for before, length, matcher in reached:
            expected = self.allowed(before)
            assert mask_of(matcher) == expected, sorted(before)
            several += len(before) > 1
            if length == LONGEST_PREFIX:
                continue
            for token in (token for token, allowed in enumerate(expected) if allowed and token not in self.v.end):
                if len(reached) == MOST_PREFIXES:
                    break
                fork = matcher.fork()
                assert fork.accept(token)
                after = {text + more for text, more in product(before, self.readings[token])}
                reached.append(({text for text in after if self.oracle.can_go_on(text)}, length + 1, fork))
        return len(reached), several

    def walk(self, rng: Random) -> None:
        """A random text within a budget: it ends in time, and each mask is what ``accept`` takes."""
        budget = self.constraint.report.min_tokens + rng.randint(0, 6)
        matcher, before = self.constraint.matcher(max_tokens=budget), {b""}
        for _ in range(budget):
            require_protocol(matcher, rng)
            mask = mask_of(matcher)
            chosen = [token for token, is_allowed in enumerate(mask) if is_allowed and token not in self.v.end]
            if not chosen:
                break
            token = rng.choice(chosen if rng.random() < 0.7 else matcher.completion_tokens()[:1] or chosen)
            assert matcher.accept(token)
            before = {text + more for text, more in product(before, self.readings[token])}
        assert matcher.is_accepting
        assert any(map(self.oracle.may_end, before))


def check_seed(seed: int) -> Counter[str]:
    rng, case = Random(seed), make_case(seed, LETTERS)
    reference = Reference(case.grammar)
    oracle = Oracle(reference, case.alphabet, limit=SEARCH_LIMIT)
    v = vocabulary_for(rng, Oracle(reference, case.alphabet.translate(None, LETTERS.encode()), limit=SAMPLE_LIMIT))
    written = [written_set(rng, len(v.tokens), v.end) for _ in LETTERS]
    text = case.text
    for letter, (ids, _) in zip(LETTERS, written, strict=True):
        text = text.replace(f'"{letter}"', ids)
    vocabulary = constrain.Vocabulary.from_tokens(v.tokens, eos=sorted(v.end), special=sorted(v.special))
    try:
        constraint = constrain.compile(Lark(text), vocabulary, cache=False)
    except (constrain.GrammarError, constrain.LimitError) as error:
        return Counter({verdict(error, reference): 1})
    if constraint.report.split:
        oracle = Oracle(Recognizer(Lark(case.text).grammar()), case.alphabet)
    comparison = Comparison(oracle, constraint, v, [ids for _, ids in written])
    masks, several = comparison.compare()
    for _ in range(WALKS):
        comparison.walk(rng)
    return Counter({"masks": masks, "several readings": several, "gave up": oracle.gave_up, "sets": text != case.text})


def check_and_name(seed: int) -> Counter[str]:
    try:
        return check_seed(seed)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error}\n{make_case(seed, LETTERS).text}") from error


@pytest.mark.slow
def test_masks_equal_those_of_all_readings_and_many_follow_several() -> None:
    totals = Counter[str]()
    for seed in SEEDS:
        totals.update(check_and_name(seed))
    print(dict(totals))
    assert totals["sets"] > 0.5 * len(SEEDS)
    assert totals["masks"] > 5 * len(SEEDS)
    assert totals["several readings"] > 0.1 * len(SEEDS)
    assert totals["gave up"] <= max(5, 0.01 * totals["masks"])
