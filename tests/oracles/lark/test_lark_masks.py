"""Masks of random Lark grammars against a search by brute force, bit by bit, at all prefixes up to a few bytes.

A failure names its seed: ``make_case(seed).text`` is the grammar again. Of refused grammars, one that is said to be
empty must be so. Of one whose longest match could not be proved to strand nothing, a stranded text is looked for; the
proof is a sufficient test, so there may be none, and such grammars are counted.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

import constrain
from constrain.lark import Lark
from tests.oracles.kernel.generator import RandomVocabulary, make_vocabulary
from tests.oracles.kernel.test_masks import bits
from tests.oracles.lark.generator import Case, make_case
from tests.oracles.lark.masks import Oracle
from tests.oracles.lark.reference import Reference
from tests.support import LONG

if TYPE_CHECKING:
    import numpy as np

BLOCKS = 20
SEEDS_PER_BLOCK = (4_000 if LONG else 260) // BLOCKS
VOCABULARIES = 2
MOST_PREFIXES = 20
LONGEST_PREFIX = 5

MOST_REFUSED = {"fenced": 0.2, "coded": 0.2, "wild": 0.4}
"""The share of a style's grammars that may be refused, for whatever reason."""


class Comparison:
    """One grammar and one vocabulary: all prefixes, shortest first, and a mask after each."""

    def __init__(self, case: Case, oracle: Oracle, vocabulary: RandomVocabulary) -> None:
        self.oracle = oracle
        self.v = vocabulary
        self.constraint = constrain.compile(
            Lark(case.text),
            constrain.Vocabulary.from_tokens(
                vocabulary.tokens, eos=sorted(vocabulary.end), special=sorted(vocabulary.special)
            ),
        )
        self.row: np.ndarray = self.constraint.allocate_bitmask()[0]
        self.ordinary = [i for i, token in enumerate(vocabulary.tokens) if token and i not in vocabulary.special]

    def run(self) -> int:
        """How many masks were compared."""
        reached = [(b"", self.constraint.matcher())]
        met = {b""}
        for prefix, matcher in reached:
            expected = self.oracle.mask(prefix, self.v.tokens, self.v.special, self.v.end)
            got = bits(matcher, self.row, len(self.v.tokens))
            wrong = [(self.v.tokens[i], "set" if got[i] else "clear") for i in range(len(got)) if got[i] != expected[i]]
            assert not wrong, f"after {prefix!r}: {wrong}"
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


def check_seed(seed: int) -> Counter[str]:
    """What came out: masks compared, or why the grammar was refused and whether rightly so."""
    case, rng = make_case(seed), Random(seed)
    oracle, found = Oracle(Reference(case.grammar), case.alphabet), Counter({f"made {case.style}": 1})
    for _ in range(VOCABULARIES):
        try:
            comparison = Comparison(case, oracle, vocabulary_for(rng, oracle))
        except (constrain.GrammarError, constrain.LimitError) as error:
            return found + Counter({f"refused {case.style}": 1, verdict(error, oracle): 1})
        assert not oracle.reference.is_empty
        found["masks"] += comparison.run()
    return found + Counter({"search gave up": oracle.gave_up})


def check_and_name(seed: int) -> Counter[str]:
    try:
        return check_seed(seed)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {error}\n{make_case(seed).text}") from error


def vocabulary_for(rng: Random, oracle: Oracle) -> RandomVocabulary:
    texts = []
    for _ in range(3):
        text = bytes(rng.choices(oracle.alphabet, k=rng.randrange(3)))
        texts.append(text + (oracle.completion(text) or b"")[:20])
    return make_vocabulary(rng, oracle.alphabet, texts)


def verdict(error: constrain.GrammarError | constrain.LimitError, oracle: Oracle) -> str:
    if isinstance(error, constrain.LimitError):
        return "limit"
    if "the language is empty" in error.message:
        assert oracle.reference.is_empty
        return "empty"
    if "the longest match could swallow it" in error.message:
        return "not shown to strand" if oracle.stranded(longest=8, most=500) is None else "strands"
    if "what it has read, which %ignore does not support" in error.message:
        return "ignored text"
    raise error


@pytest.fixture(scope="module")
def totals() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("block", range(BLOCKS))
def test_masks_equal_the_references(block: int, totals: Counter[str]) -> None:
    for seed in range(block * SEEDS_PER_BLOCK, (block + 1) * SEEDS_PER_BLOCK):
        totals.update(check_and_name(seed))


def test_few_grammars_were_refused(totals: Counter[str]) -> None:
    print(dict(sorted(totals.items())))
    for style, most in MOST_REFUSED.items():
        assert totals[f"refused {style}"] <= most * totals[f"made {style}"], totals
    made = sum(totals[f"made {style}"] for style in MOST_REFUSED)
    assert made == BLOCKS * SEEDS_PER_BLOCK
    assert totals["masks"] > 20 * made
    assert totals["search gave up"] <= 0.01 * totals["masks"]
