"""Masks of random Lark grammars against a search by brute force, bit by bit, at all prefixes up to a few bytes.

A failure names its seed: ``make_case(seed).text`` is the grammar again. Of refused grammars, one that is said to be
empty must be so. Grammars of which terminals are read byte by byte are compared with a reader of the resulting rules;
tests/lark/test_splitting.py has their texts.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import constrain
from constrain.lark import Lark
from tests.support import LONG
from tests.support.matching import mask_of
from tests.support.oracles.kernel.generator import RandomVocabulary, make_vocabulary
from tests.support.oracles.kernel.recognizer import Recognizer
from tests.support.oracles.lark.generator import Case, make_case
from tests.support.oracles.lark.reference import Reference
from tests.support.oracles.search import Oracle

SEEDS = range(4_000 if LONG else 60)
LAZY_SEEDS = range(3_000) if LONG else range(12)
VOCABULARIES = 2
MOST_PREFIXES = 20 if LONG else 12
LONGEST_PREFIX = 5

SEARCH_LIMIT = 400
"""States looked at for one completion."""

MOST_REFUSED = {"fenced": 0.1, "coded": 0.1, "wild": 0.2}
"""The share of a style's grammars that may be refused, for whatever reason."""


class Comparison:
    """One grammar and one vocabulary: all prefixes, shortest first, and a mask after each."""

    def __init__(self, case: Case, oracle: Oracle, vocabulary: RandomVocabulary) -> None:
        self.v = vocabulary
        self.constraint = constrain.compile(
            Lark(case.text),
            constrain.Vocabulary.from_tokens(
                vocabulary.tokens, eos=sorted(vocabulary.end), special=sorted(vocabulary.special)
            ),
        )
        is_split = self.constraint.report.split != ()
        self.oracle = Oracle(Recognizer(self.constraint.grammar), case.alphabet) if is_split else oracle
        self.ordinary = [i for i, token in enumerate(vocabulary.tokens) if token and i not in vocabulary.special]

    def run(self) -> int:
        """How many masks were compared."""
        reached = [(b"", self.constraint.matcher())]
        met = {b""}
        for prefix, matcher in reached:
            expected = self.oracle.mask(prefix, self.v.tokens, self.v.special, self.v.end)
            assert mask_of(matcher) == expected, f"after {prefix!r}"
            completion = bytes(matcher.shortest_completion())
            assert self.oracle.may_end(prefix + completion), (prefix, completion)
            for index in self.ordinary:
                longer = prefix + self.v.tokens[index]
                if expected[index] and longer not in met and len(longer) <= LONGEST_PREFIX:
                    met.add(longer)
                    if len(reached) < MOST_PREFIXES:
                        fork = matcher.fork()
                        assert fork.accept(index)
                        reached.append((longer, fork))
        return len(reached)


def check_seed(seed: int, *, lazy: bool = False) -> Counter[str]:
    """What came out: masks compared, or why the grammar was refused and whether rightly so."""
    case, rng = make_case(seed, lazy=lazy), Random(seed)
    reference = Reference(case.grammar)
    found = Counter({f"made {case.style}": 1, "parametric": int(case.parametric), "nested": int(case.nested)})
    oracle = Oracle(reference, case.alphabet, limit=SEARCH_LIMIT)
    for _ in range(VOCABULARIES):
        try:
            comparison = Comparison(case, oracle, vocabulary_for(rng, oracle))
        except (constrain.GrammarError, constrain.LimitError) as error:
            return found + Counter({f"refused {case.style}": 1, verdict(error, reference): 1})
        assert not reference.is_empty
        found["split" if comparison.oracle is not oracle else "whole"] += 1
        found["masks"] += comparison.run()
    return found + Counter({"search gave up": oracle.gave_up})


def check_and_name(seed: int, *, lazy: bool = False) -> Counter[str]:
    try:
        return check_seed(seed, lazy=lazy)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error}\n{make_case(seed, lazy=lazy).text}") from error


def vocabulary_for(rng: Random, oracle: Oracle) -> RandomVocabulary:
    texts = []
    for _ in range(3):
        text = bytes(rng.choices(oracle.alphabet, k=rng.randrange(3)))
        texts.append(text + (oracle.completion(text) or b"")[:20])
    return make_vocabulary(rng, oracle.alphabet, texts)


def verdict(error: constrain.GrammarError | constrain.LimitError, reference: Reference) -> str:
    if isinstance(error, constrain.LimitError):
        return "limit"
    if "the language is empty" in error.message:
        assert reference.is_empty
        return "empty"
    if "what it has read, which %ignore does not support" in error.message:
        return "ignored text"
    raise error


def test_masks_of_a_grammar_equal_the_references() -> None:
    assert check_and_name(1)["masks"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("lazy", [False, True])
def test_masks_equal_the_references_and_few_grammars_are_refused(lazy: bool) -> None:
    totals, seeds = Counter[str](), LAZY_SEEDS if lazy else SEEDS
    for seed in seeds:
        totals.update(check_and_name(seed, lazy=lazy))
    print(dict(sorted(totals.items())))
    for style, most in MOST_REFUSED.items():
        assert totals[f"refused {style}"] <= max(2, most * totals[f"made {style}"]), totals
    assert totals["masks"] > (0.5 if lazy else 0.8) * MOST_PREFIXES * len(seeds)
    assert totals["whole"] > totals["split"]
    assert totals["search gave up"] <= max(5, 0.01 * totals["masks"])
    if not lazy:
        for kind, least in {"split": 0.01, "parametric": 0.1, "nested": 0.05}.items():
            assert totals[kind] > least * len(seeds), totals
