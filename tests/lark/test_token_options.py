"""The options ``max_tokens`` and ``temperature`` of rules in Lark grammars."""

from __future__ import annotations

import itertools
from random import Random

import pytest

import constrain
from constrain import Lark
from tests.support import allowed, byte_vocabulary, for_each, small_vocabulary


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


def test_a_rule_has_its_own_temperature() -> None:
    matcher = compiled(
        'start: name ":" value\nname[temperature=0.2]: /[a-z]+/\nvalue[temperature=0]: /[0-9]+/'
    ).matcher()
    found = []
    for byte in b"ab:1":
        found.append(matcher.temperature)
        assert matcher.accept(byte)
    assert [*found, matcher.temperature] == [0.2, 0.2, 0.2, 0.0, 0.0]


def test_a_rule_has_its_own_temperature_beside_tokens_by_id() -> None:
    constraint = compiled('start: <[97]> name ":"\nname[temperature=0.2]: /[a-z]+/')
    assert temperatures(constraint, b"axy:") == [None, 0.2, 0.2, 0.2]


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


@for_each(
    "text, message, place",
    [
        ('start: a\na[max_tokens=0]: "a"', "max_tokens is a whole number from 1", (2, 3)),
        ('start: a\na[max_tokens=2]: "abc"', "max_tokens=2 is too few: its shortest text takes 3 tokens", (2, 14)),
        ('start: a\na[temperature=9]: "a"', "temperature is a number from 0 to 2", (2, 3)),
        ('start: a\na[temperature=1]: b\nb: "a"', "option temperature needs a rule of strings", (2, 3)),
    ],
)
def test_options_that_cannot_hold_are_refused_with_their_place(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(constrain.GrammarError, match=message) as caught:
        compiled(text)
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.slow
def test_a_lexeme_that_is_split_has_as_many_tokens_in_every_way_to_divide_the_text() -> None:
    tokens = [b"i", b"n", b"in", b"nin", b"ni", b""]
    vocabulary = constrain.Vocabulary.from_tokens(tokens, eos=[5])
    grammar = constrain.Lark('start: a "in" a\na[max_tokens=2]: /[in]+/')
    constraint = constrain.compile(grammar, vocabulary, cache=False)
    assert constraint.report.split

    def is_text(taken: tuple[int, ...]) -> bool:
        return any(
            b"".join(tokens[each] for each in taken[begin:end]) == b"in"
            for begin in (1, 2)
            for end in (len(taken) - 2, len(taken) - 1)
        )

    for length in range(6):
        for taken in itertools.product(range(5), repeat=length):
            matcher = constraint.matcher()
            accepted = matcher.accept_many(list(taken)) == length and matcher.is_accepting
            assert accepted == is_text(taken), taken


def test_only_limited_lexemes_that_are_in_the_way_become_rules() -> None:
    text = """
    start: word "in" word ";" pair
    word[max_tokens=2]: /[a-z]+/
    pair[max_tokens=9]: "<" name ">" %json {"type": "integer"}
    name[max_tokens=3]: /[a-z]+/
    """
    matcher = compiled(text).matcher()
    assert matcher.accept_many(b"abinc;<xyz>12") == 13
    assert matcher.is_accepting


def test_a_grammar_that_cannot_be_split_says_why_and_not_that_of_a_limit() -> None:
    text = 'start: name %json {"type": "string"}\nname[max_tokens=3]: /[a-z]+/ /.+"/'
    with pytest.raises(constrain.GrammarError) as caught:
        compiled(text)
    assert "may follow" in caught.value.message


def temperatures(constraint: constrain.Constraint, text: bytes) -> list[float | None]:
    """The temperature before each byte of a text."""
    matcher, found = constraint.matcher(), []
    for byte in text:
        found.append(matcher.temperature)
        assert matcher.accept(byte)
    return found


@pytest.mark.parametrize(
    "inner", ["%lark {\n start: A\n A: /[0-9]+/\n}", '%lark {\n start: %json {"type": "integer"}\n}']
)
def test_a_grammar_in_a_grammar_has_its_own_temperature(inner: str) -> None:
    constraint = compiled(f'start: "a" inner "b"\ninner[temperature=0.7]: {inner}\n')
    assert temperatures(constraint, b"a12b") == [None, 0.7, 0.7, 0.7]


def test_a_grammar_with_a_name_has_its_own_temperature_where_it_is_read_with_one() -> None:
    text = 'start: warm "," plain ";" odd\nwarm[temperature=0.7]: @n\nplain: @n\nodd: @m'
    named = {"n": {"const": "ab"}, "m": "start: x\nx[temperature=0.1]: /[a-z]+/"}
    constraint = constrain.compile(Lark(text, grammars=named), byte_vocabulary(), cache=False)
    assert temperatures(constraint, b'"ab","ab";ab') == [*[0.7] * 4, *[None] * 6, 0.1, 0.1]


def test_a_rule_keeps_its_temperature_inside_a_grammar_with_another() -> None:
    constraint = compiled(
        'start: "a" inner\ninner[temperature=0.7]: %lark {\n start: "x" y\n y[temperature=0.1]: /[0-9]+/\n}\n'
    )
    assert temperatures(constraint, b"ax1") == [None, 0.7, 0.1]


@for_each("budget", [None, 0, 1, 4])
@for_each("ends", ["lazy", 'suffix=";"'])
def test_lazy_rules_with_max_tokens_end_within_them(ends: str, budget: int | None) -> None:
    vocabulary = small_vocabulary()
    body = r"/[a-z ]*;/" if ends == "lazy" else r"/[a-z ]*/"
    constraint = compiled(f'start: (head "=" /[0-9]+/ ",")* "."\nhead[{ends}, max_tokens=3]: {body}', vocabulary)
    unlimited = compiled(f'start: (head "=" /[0-9]+/ ",")* "."\nhead[{ends}]: {body}', vocabulary)
    row, least = constraint.allocate_bitmask()[0], constraint.matcher().min_tokens_left
    for seed in range(4):
        rng, written = Random(f"{ends} {budget} {seed}"), b""
        matcher = constraint.matcher(max_tokens=None if budget is None else least + budget)
        while not matcher.is_finished and len(written) < 200:
            token = int(rng.choice(allowed(matcher, row)))
            if token in vocabulary.eos:
                break
            assert matcher.accept(token), written
            written += vocabulary.token_bytes(token)
        for token in matcher.completion_tokens():
            assert matcher.accept(token), written
            written += vocabulary.token_bytes(token)
        assert unlimited.accepts(written), written
        assert constraint.accepts(written), written
