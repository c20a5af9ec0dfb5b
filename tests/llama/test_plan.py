"""The completion an answer falls back on."""

from __future__ import annotations

from random import Random

import pytest

from constrain.llama.plan import Plan, _common_suffix

TOKENS = [b"a", b"b", b"aa", b"ab", b"bbb", b"aaab"]


def encode(text: bytes) -> list[int]:
    tokens = []
    while text:
        tokens.append(max((t for t in range(len(TOKENS)) if text.startswith(TOKENS[t])), key=lambda t: len(TOKENS[t])))
        text = text[len(TOKENS[tokens[-1]]) :]
    return tokens


def next_plan(plan: Plan, text: bytes, limit: int) -> Plan | None:
    return plan.followed_by(text, limit, encode, TOKENS.__getitem__)


def test_a_short_text_fits_untokenized() -> None:
    assert next_plan(Plan(b"", ()), b"aab", 3) == Plan(b"aab")


def test_a_long_text_fits_if_its_tokens_do() -> None:
    assert next_plan(Plan(b"x"), b"aaab", 1) == Plan(b"aaab", (5,))
    assert next_plan(Plan(b"x"), b"aaabb", 1) is None


def test_the_tokens_of_the_end_are_kept() -> None:
    before = Plan(b"aabab", (2, 1, 3))
    # "abab" is the same from its second byte on; the token before that is spelled anew.
    assert next_plan(before, b"bbab", 3) == Plan(b"bbab", (1, 1, 3))
    assert encode(b"bbab") == [1, 1, 3]
    assert next_plan(Plan(b"aaaab", (0, 0, 0, 0, 1)), b"baaab", 4) == Plan(b"baaab", (1, 5))
    assert next_plan(Plan(b"abaaab", (3, 0, 0, 3)), b"baaab", 4) == Plan(b"baaab", (1, 0, 0, 3))


@pytest.mark.parametrize("seed", range(200))
def test_plans_always_spell_their_text_within_the_limit(seed: int) -> None:
    random = Random(seed)
    text = bytes(random.choices(b"ab", k=random.randint(1, 40)))
    plan = Plan(text, tuple(encode(text)))
    for _ in range(10):
        cut = random.randint(0, len(plan.text))
        text = bytes(random.choices(b"ab", k=random.randint(0, 5))) + plan.text[cut:]
        limit = random.randint(0, 30)
        following = next_plan(plan, text, limit)
        if following is None:
            assert len(encode(text)) > limit
            continue
        assert following.text == text
        tokens = encode(text) if following.tokens is None else following.tokens
        assert b"".join(TOKENS[token] for token in tokens) == text
        assert len(tokens) <= limit
        plan = following


@pytest.mark.parametrize(
    ("one", "other", "length"), [(b"", b"", 0), (b"abc", b"xbc", 2), (b"a", b"ba", 1), (b"a", b"b", 0)]
)
def test_common_suffix(one: bytes, other: bytes, length: int) -> None:
    assert _common_suffix(one, other) == _common_suffix(other, one) == length
