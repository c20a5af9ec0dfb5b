"""The kernel's masks against the oracle's, bit by bit, on random grammars, vocabularies and prefixes.

``CONSTRAIN_ORACLE_CASES`` sets about how many (grammar, vocabulary, prefix) cases are compared; ``CONSTRAIN_LONG`` asks
for 10,000 of them. A failure names its seed: ``make_case(seed)`` makes the grammar again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

import constrain
from tests.support import LONG
from tests.support.matching import mask_of, require_mask
from tests.support.oracles.kernel.generator import Case, RandomVocabulary, make_case, make_vocabulary
from tests.support.oracles.kernel.recognizer import Recognizer
from tests.support.oracles.search import Oracle

CASES = int(os.environ.get("CONSTRAIN_ORACLE_CASES", "10000" if LONG else "600"))
CASES_PER_GRAMMAR = 10  # about: two vocabularies, and a walk of a few tokens with each
MOST_REFUSED = {"fenced": 0.02, "coded": 0.0, "wild": 0.65}
"""The share of a style's grammars that the kernel may refuse because it cannot tell their lexemes apart."""


def sample_texts(oracle: Oracle, rng: Random) -> list[bytes]:
    samples = []
    for _ in range(4):
        text = b""
        for _ in range(rng.randint(0, 8)):
            following = [byte for byte in oracle.alphabet if oracle.can_go_on(text + bytes([byte]))]
            if not following:
                break
            text += bytes([rng.choice(following)])
        samples.append(text + (oracle.completion(text) or b""))
    return samples


def ordinary(vocabulary: RandomVocabulary) -> list[int]:
    return [index for index in range(len(vocabulary.tokens)) if index not in vocabulary.special]


class Walk:
    """One walk over allowed tokens; everything a matcher says is compared with the oracle on the way."""

    def __init__(self, oracle: Oracle, vocabulary: RandomVocabulary, constraint: constrain.Constraint) -> None:
        self.oracle = oracle
        self.vocabulary = vocabulary
        self.constraint = constraint
        self.by_byte = {t[0]: i for i in ordinary(vocabulary) if len(t := vocabulary.tokens[i]) == 1}

    def check(self, matcher: constrain.Matcher, prefix: bytes) -> list[bool]:
        v = self.vocabulary
        expected = self.oracle.mask(prefix, v.tokens, v.special, v.end)
        require_mask(matcher, expected)
        assert matcher.is_accepting == self.oracle.may_end(prefix), prefix
        completion = bytes(matcher.shortest_completion())
        assert self.oracle.may_end(prefix + completion), (prefix, completion)
        forced = self.oracle.forced(prefix)
        assert bytes(matcher.forced_bytes()) == forced, prefix
        self.check_forced_after(matcher, prefix, forced)
        assert mask_of(matcher) == expected, "a question changed the matcher"
        return expected

    def check_forced_after(self, matcher: constrain.Matcher, prefix: bytes, forced: bytes) -> None:
        before = prefix[-3:]
        text, starts = matcher.forced_after(before)
        whole = (before + forced).decode(errors="surrogateescape").encode(errors="replace")
        assert text == forced or (forced.startswith(text) and whole.endswith(b"?")), (prefix, forced, text)
        size = len(before) + len(text) if text else 0
        expected = self.oracle.open_starts(prefix + text, size, self.vocabulary.tokens, ordinary(self.vocabulary))
        assert starts == expected, (prefix, forced)

    def feed_bytes(self, text: bytes) -> constrain.Matcher:
        matcher = self.constraint.matcher()
        assert matcher.accept_many([self.by_byte[byte] for byte in text]) == len(text), text
        return matcher

    def run(self, rng: Random) -> Iterator[bytes]:
        v = self.vocabulary
        matcher, prefix = self.constraint.matcher(), b""
        first = mask_of(matcher)
        masks: list[list[bool]] = []
        prefixes: list[bytes] = []
        for _ in range(rng.randint(3, 8)):
            expected = self.check(matcher, prefix)
            yield prefix
            assert mask_of(self.feed_bytes(prefix)) == expected, f"fed byte by byte: {prefix!r}"
            masks.append(expected)
            prefixes.append(prefix)
            allowed = [i for i in ordinary(v) if expected[i]]
            if not allowed:
                break
            # tokens that carry on what is being read first: walks get deep, not only to the end
            token = max(rng.choices(allowed, k=2), key=lambda i: len(v.tokens[i]))
            assert matcher.accept(token)
            prefix += v.tokens[token]
            if rng.random() < 0.3:
                back = rng.randint(1, len(masks))
                matcher.rollback(back)
                assert mask_of(matcher) == masks[-back], f"rolled back to {prefixes[-back]!r}"
                del masks[len(masks) - back :], prefixes[len(prefixes) - back + 1 :]
                prefix = prefixes.pop()
        matcher.reset()
        assert mask_of(matcher) == first, "reset"


def check_seed(seed: int) -> tuple[str, int]:
    """The style of a seed's grammar and how many cases were compared; none where the kernel refused it."""
    case, rng = make_case(seed), Random(seed)
    oracle = Oracle(Recognizer(case.grammar), case.alphabet)
    compared = 0
    for _ in range(2):
        everything = make_vocabulary(rng, case.alphabet, [])
        try:
            compile_case(case, everything)
        except constrain.GrammarError as error:
            if any(terminal.name in str(error) for terminal in case.grammar.terminals):
                return case.style, 0
            raise
        vocabulary = make_vocabulary(rng, case.alphabet, sample_texts(oracle, rng))
        constraint = compile_case(case, vocabulary)
        for prefix in Walk(oracle, vocabulary, constraint).run(rng):
            compared += 1
            for text in (prefix, bytes(rng.choices(case.alphabet, k=3))):
                assert constraint.accepts(text) == oracle.may_end(text), text
    return case.style, compared


def compile_case(case: Case, v: RandomVocabulary) -> constrain.Constraint:
    vocabulary = constrain.Vocabulary.from_tokens(v.tokens, eos=sorted(v.end), special=sorted(v.special))
    return constrain.compile(case.grammar, vocabulary)


def check_seeds(seeds: range) -> tuple[Counter[str], Counter[str], int]:
    """Of each style, the grammars made and refused; and the cases compared."""
    made, refused, compared = Counter[str](), Counter[str](), 0
    for seed in seeds:
        try:
            style, cases = check_seed(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}\n{make_case(seed).grammar.dump()}") from error
        made[style] += 1
        refused[style] += cases == 0
        compared += cases
    return made, refused, compared


def test_masks_of_some_grammars_equal_the_oracles() -> None:
    assert check_seeds(range(10_000_000, 10_000_002))[2] > 0


@pytest.mark.slow
def test_masks_equal_the_oracles_and_few_grammars_are_refused() -> None:
    made, refused, compared = check_seeds(range(CASES // CASES_PER_GRAMMAR))
    for style, most in MOST_REFUSED.items():
        assert refused[style] <= max(1, most * made[style]), (style, refused[style], made[style])
    print(f"{compared} cases, grammars made {dict(made)}, refused {dict(refused)}")
    assert compared >= 0.6 * CASES
