"""The options ``max_tokens`` and ``temperature`` of rules in Lark grammars."""

from __future__ import annotations

from random import Random

import pytest

import constrain
from constrain import Lark
from tests.support import allowed, byte_vocabulary, small_vocabulary


def compiled(text: str, vocabulary: constrain.Vocabulary | None = None) -> constrain.Constraint:
    return constrain.compile(Lark(text), vocabulary or byte_vocabulary(), cache=False)


def test_a_rule_with_max_tokens_is_one_lexeme_within_them() -> None:
    matcher = compiled('start: name "."\nname[max_tokens=3]: /[a-z]+/ | "X" NUMBER\nNUMBER: /[0-9]+/').matcher()
    assert matcher.accept_many(b"abcd") == 3
    assert matcher.is_narrowed
    assert matcher.accept(ord("."))
    matcher.reset()
    assert matcher.accept_many(b"X123") == 3


def test_a_rule_that_may_be_empty_is_limited_where_it_is_not() -> None:
    constraint = compiled('start: "<" name ">"\nname[max_tokens=2]: /[a-z]*/')
    assert constraint.accepts("<>")
    assert constraint.matcher().accept_many(b"<abc") == 3


def test_the_same_text_without_the_option_is_not_limited() -> None:
    matcher = compiled('start: name "," WORD\nname[max_tokens=2]: WORD\nWORD: /[a-z]+/').matcher()
    assert matcher.accept_many(b"abc") == 2
    assert matcher.accept_many(b",abcdef") == 7


def test_ignored_text_before_a_lexeme_counts_for_it() -> None:
    constraint = compiled('start: "<" name ">"\nname[max_tokens=3]: /[a-z]+/\n%ignore " "')
    assert constraint.matcher().accept_many(b"< abc") == 4
    assert constraint.matcher().accept_many(b"<abc ") == 5


@pytest.mark.parametrize("budget", [None, 0, 1, 4, 15])
def test_walks_end_within_limits_and_budget(budget: int | None) -> None:
    vocabulary = small_vocabulary()
    text = """
        start: item ("," item)* "."
        item: key ":" (value | "[" value ("," value)* "]")
        key[max_tokens=2]: /[a-z_]{3,12}/
        value[max_tokens=4]: /[0-9]+(\\.[0-9]+)?/ | /"[^"\\n]*"/
        %ignore /[ ]/
    """
    constraint = compiled(text, vocabulary)
    row, least = constraint.allocate_bitmask()[0], constraint.matcher().min_tokens_left
    for seed in range(10):
        rng, written = Random(f"{budget} {seed}"), b""
        matcher = constraint.matcher(max_tokens=None if budget is None else least + budget)
        while not matcher.is_finished:
            token = int(rng.choice(allowed(matcher, row)))
            if token in vocabulary.eos:
                break
            assert matcher.accept(token), written
            written += vocabulary.token_bytes(token)
            if len(written) > 400:
                break
        for token in matcher.completion_tokens():
            assert matcher.accept(token), written
            written += vocabulary.token_bytes(token)
        assert constraint.accepts(written), written


def test_a_rule_has_its_own_temperature() -> None:
    matcher = compiled(
        'start: name ":" value\nname[temperature=0.2]: /[a-z]+/\nvalue[temperature=0]: /[0-9]+/'
    ).matcher()
    found = []
    for byte in b"ab:1":
        found.append(matcher.temperature)
        assert matcher.accept(byte)
    assert [*found, matcher.temperature] == [0.2, 0.2, 0.2, 0.0, 0.0]


def test_json_has_its_own_temperature() -> None:
    matcher = compiled(
        'start: "x=" value "."\nvalue[temperature=1.5]: %json {"type": "array", "items": {"const": 1}}'
    ).matcher()
    found = []
    for byte in b"x=[1].":
        found.append(matcher.temperature)
        assert matcher.accept(byte)
    assert found[0] is None
    assert found[2:5] == [1.5, 1.5, 1.5]
    assert found[5] is None


def test_terminals_that_are_split_keep_their_temperature() -> None:
    constraint = compiled('start: name "in" name\nname[temperature=0.5]: /[a-z]+/')
    assert constraint.report.split
    matcher = constraint.matcher()
    assert matcher.temperature == 0.5
    assert matcher.accept(ord("x"))
    assert matcher.temperature == 0.5


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ('start: a\na[max_tokens=0]: "a"', "max_tokens is a whole number from 1", (2, 3)),
        ('start: a\na[max_tokens=2]: "abc"', "max_tokens=2 is too few: its shortest text takes 3 tokens", (2, 14)),
        ('start: a\na[temperature=9]: "a"', "temperature is a number from 0 to 2", (2, 3)),
        ('start: a\na[max_tokens=2]: b\nb: "a"', "option max_tokens needs a rule of strings", (2, 3)),
        ('start: a\na[max_tokens=2]: %json {"type": "null"}', "option max_tokens needs a rule of strings", (2, 3)),
        ('start: a\na[temperature=1]: b\nb: "a"', "option temperature needs a rule of strings", (2, 3)),
        ('start: a "in" a\na[max_tokens=9]: /[a-z]+/', "every way to divide the text counts here", (2, 14)),
    ],
)
def test_options_that_cannot_hold_are_refused_with_their_place(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(constrain.GrammarError, match=message) as caught:
        compiled(text)
    assert (caught.value.line, caught.value.column) == place
