"""Options of rules: where they are split, budgets, and texts of a stop against a search by brute force."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

import constrain
from constrain.lark import Lark
from tests.support import byte_vocabulary, for_each
from tests.support.oracles.lark.generator import make_case

PAGE = r"""
start: ( f_foo | f_bar )* f_end
f_end: TEXT
TEXT: /(.|\n)*/
f_foo_hd[lazy]: TEXT "<function"
f_foo: f_foo_hd "=foo>" %json { "type": "object" } "</function>"
f_bar_hd[lazy]: TEXT "<function"
f_bar: f_bar_hd "=bar>" /[0-9]+/ "</function>"
"""


def compiled(grammar: str) -> constrain.Constraint:
    return constrain.compile(Lark(grammar), byte_vocabulary(), cache=False)


def test_after_the_beginning_of_a_call_only_a_call_follows() -> None:
    constraint = compiled(PAGE)
    assert constraint.report.split == ()
    matcher = constraint.matcher()
    assert matcher.accept_many(b"Well, <function") == len(b"Well, <function")
    assert matcher.forced_bytes() == b"="
    assert not matcher.is_accepting


def test_a_terminal_that_a_lazy_one_always_precedes_is_split_with_it() -> None:
    constraint = compiled('start: b "2" | a "1"\na[lazy]: /a+b/\nb[lazy]: /a+b?/')
    assert constraint.report.split == ("a (line 2, column 1)", "b (line 3, column 1)")
    assert constraint.accepts("ab1")
    assert not constraint.accepts("aa2")


@for_each("stop", ["a", "aa", "ab", "aba", "bb"])
@for_each("body", ["[ab]*", "a*b?", "(ab)*", "(a|bb)*"])
def test_a_text_before_its_stop_is_what_a_search_finds(body: str, stop: str) -> None:
    constraint = compiled(f'start: x\nx[stop="{stop}"]: /{body}/')
    followed = compiled(f'start: x "{stop}"\nx[stop="{stop}"]: /{body}/')
    apart = compiled(f'start: x y\ny: "{stop}"\nx[stop="{stop}"]: /{body}/')
    plain = compiled(f"start: X\nX: /{body}/")
    for text in map("".join, (text for size in range(7) for text in product("ab", repeat=size))):
        ends = [
            end for end in range(len(text) + 1) if text[:end].endswith(stop) and plain.accepts(text[: end - len(stop)])
        ]
        whole = bool(ends) and ends[0] == len(text)
        assert followed.accepts(text) == apart.accepts(text) == whole, text
        if whole:
            assert constraint.accepts(text[: len(text) - len(stop)]), text
        longer = text + stop
        first = [
            end
            for end in range(len(longer) + 1)
            if longer[:end].endswith(stop) and plain.accepts(longer[: end - len(stop)])
        ]
        assert constraint.accepts(text) == (bool(first) and first[0] == len(longer)), text


@pytest.mark.slow
def test_texts_end_within_their_budgets() -> None:
    walked = 0
    for seed in range(40):
        try:
            constraint = compiled(make_case(seed, lazy=True).text)
        except constrain.GrammarError:
            continue
        least = constraint.report.min_tokens
        for spare in (0, 1, 3, 8):
            rng = Random(seed)
            matcher = constraint.matcher(max_tokens=max(least + spare, 1))
            written = 0
            while not matcher.is_finished:
                allowed = [byte for byte in range(256) if matcher.fork().accept(byte)]
                if not allowed or (matcher.is_accepting and rng.random() < 0.1):
                    break
                assert matcher.accept(rng.choice(allowed))
                written += 1
            assert matcher.is_accepting, seed
            assert written <= max(least + spare, 1)
            walked += 1
    assert walked > 60
