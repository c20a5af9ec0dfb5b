"""Parametric rules: every function and condition against all texts up to a length."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cache
from random import Random
from typing import NamedTuple

import pytest

import constrain
from constrain.lark import Lark, lark_grammar
from constrain.lark.parameters import MAX_PARAMETER_VALUES
from constrain.work import MAX_NESTING
from tests.support import LONG, byte_vocabulary, for_each
from tests.support.oracles.lark.values import CONDITIONS, VALUES, random_condition, random_value
from tests.support.processor_time import finishes_within

LETTERS = "abc"
LONGEST = 6 if LONG else 5
SEEDS = range(12 if LONG else 6)


class Way(NamedTuple):
    """An alternative: a letter (or none, at the end), the next rule with its new value, and a condition."""

    letter: str
    target: str
    written: str
    change: Callable[[int], int]
    condition: str
    test: Callable[[int], bool]


class Machine(NamedTuple):
    """Rules that read from left to right: each text can be followed by hand."""

    start: int
    rules: dict[str, list[Way]]

    def text(self) -> str:
        lines = [f"start: r::{self.start}"]
        for name, ways in self.rules.items():
            parts = [
                f'"{way.letter}" {way.target}::{way.written} %if {way.condition}'
                if way.letter
                else f'"" %if {way.condition}'
                for way in ways
            ]
            lines.append(f"{name}::_: " + "\n  | ".join(parts))
        return "\n".join(lines)

    def accepts(self, text: str) -> bool:
        places = {("r", self.start)}
        for letter in text:
            places = {
                (way.target, way.change(value))
                for rule, value in places
                for way in self.rules[rule]
                if way.letter == letter and way.test(value)
            }
        return any(not way.letter and way.test(value) for rule, value in places for way in self.rules[rule])

    def is_empty(self) -> bool:
        """Whether no place at which a text may end can be reached."""
        reached = {("r", self.start)}
        waiting = list(reached)
        for rule, value in waiting:
            for way in self.rules[rule]:
                place = (way.target, way.change(value))
                if way.test(value) and not way.letter:
                    return False
                if way.test(value) and place not in reached:
                    reached.add(place)
                    waiting.append(place)
        return True


def machine(rng: Random, value: str, condition: str, names: str) -> Machine:
    """A random machine of one or two rules, in which a function and a condition are used."""
    rules: dict[str, list[Way]] = {}
    for name in names:
        ways = [
            Way(letter, rng.choice(names), *random_value(rng), *random_condition(rng, depth=1)) for letter in LETTERS
        ]
        ways.append(Way("", "", "", lambda p: p, *random_condition(rng)))
        rules[name] = ways
    rules["r"][0] = Way("a", "r", *random_value(rng, value), *random_condition(rng))
    rules["r"][1] = Way("b", names[-1], *random_value(rng), *random_condition(rng, condition))
    rules["r"][3] = Way("", "", "", lambda p: p, *random_condition(rng, condition))
    return Machine(rng.randrange(8), rules)


TEXTS = ["".join(text) for length in range(LONGEST + 1) for text in itertools.product(LETTERS, repeat=length)]


@cache
def compiled(grammar: str) -> constrain.Constraint:
    return constrain.compile(Lark(grammar), byte_vocabulary(), cache=False)


def check(made: Machine) -> int:
    """The number of accepted texts; all texts up to a length were compared."""
    expected = {text: made.accepts(text) for text in TEXTS}
    grammar = made.text()
    if made.is_empty():
        with pytest.raises(constrain.GrammarError, match="the language is empty"):
            compiled(grammar)
        return 0
    constraint = compiled(grammar)
    assert [text for text in TEXTS if constraint.accepts(text) != expected[text]] == [], grammar
    return sum(expected.values())


@pytest.mark.slow(but=("set_bit",))
@pytest.mark.parametrize("value", VALUES)
def test_each_function_gives_the_texts_of_its_definition(value: str) -> None:
    made = [machine(Random(f"{value} {seed}"), value, "", ("r", "rs")[seed % 2]) for seed in SEEDS]
    assert sum(check(each) for each in made) > 0


@pytest.mark.slow
@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition_leaves_the_texts_of_its_definition(condition: str) -> None:
    made = [machine(Random(f"{condition} {seed}"), "", condition, ("r", "rs")[seed % 2]) for seed in SEEDS]
    assert sum(check(each) for each in made) > 0


PAGE = {
    "permutations": (
        """
        start    :  perm::0x0
        perm::_  :  ""                       %if is_ones([0:3])
                 |  "a" perm::set_bit(0)     %if bit_clear(0)
                 |  "b" perm::set_bit(1)     %if bit_clear(1)
                 |  "c" perm::set_bit(2)     %if bit_clear(2)
        """,
        lambda text: sorted(text) == list("abc"),
    ),
    "each at least once": (
        """
        start    :  perm::0x0
        perm::_  :  ""                       %if is_ones([0:3])
                 |  "a" perm::set_bit(0)
                 |  "b" perm::set_bit(1)
                 |  "c" perm::set_bit(2)
        """,
        lambda text: set(text) == set("abc"),
    ),
    "at most four letters": (
        """
        start  : aa::0
        aa::_  : "a" aa::incr(_)    %if lt(_, 4)
               | bb::_
        bb::_  : "b" bb::incr(_)    %if lt(_, 4)
               | ""
        """,
        lambda text: len(text) <= 4 and text == "a" * text.count("a") + "b" * text.count("b"),
    ),
    "counters side by side": (
        """
        start  : lst::0x0
        lst::_ : "a" lst::incr([0:3])  %if lt([0:3], 1)
               | "b" lst::incr([3:6])  %if lt([3:6], 2)
               | "c" lst::incr([6:9])  %if lt([6:9], 3)
               | ""
        """,
        lambda text: text.count("a") <= 1 and text.count("b") <= 2 and text.count("c") <= 3,
    ),
    "one or two different letters": (
        """
        start    :  perm::0x0
        perm::_  :  ""                       %if bit_count_ge(_, 1)
                 |  "a" perm::set_bit(0)     %if and(bit_clear(0), bit_count_lt(_, 2))
                 |  "b" perm::set_bit(1)     %if and(bit_clear(1), bit_count_lt(_, 2))
                 |  "c" perm::set_bit(2)     %if and(bit_clear(2), bit_count_lt(_, 2))
        """,
        lambda text: 1 <= len(text) <= 2 and len(set(text)) == len(text),
    ),
    "at least three, without an upper bound": (
        'start: r::0\nr::_: "a" r::incr(_) | "" %if ge(_, 3)',
        lambda text: set(text) <= {"a"} and len(text) >= 3,
    ),
    "values that no condition reads": (
        'start: r::0\nr::_: "a" r::incr(_) | "b" s::incr([0:60])\ns::_: "c" s::decr([3:64])?',
        lambda text: re.fullmatch("a*bc+", text) is not None,
    ),
    "conditions in parentheses": (
        'start: r::0\nr::_: ("a" r::incr([0:2]) %if lt([0:2], 2) | "b" %if ge(_, 2))',
        lambda text: text == "aab",
    ),
    "left recursion": (
        'start: r::0\nr::_: r::incr([0:2]) "a" %if lt([0:2], 2) | "b" %if ge([0:2], 1)',
        lambda text: text in ("ba", "baa"),
    ),
    "copies of a rule with a value": (
        'start: r::0\nr::_: x::incr(_){2} x::0\nx::_: "a" %if eq(_, 1) | "b" %if eq(_, 0)',
        lambda text: text == "aab",
    ),
    "all bits": (
        'start: r::18446744073709551615\nr::_: "a" r::clear_bit(63) %if bit_set(63) | "b" %if is_ones([0:63])',
        lambda text: text in ("b", "ab"),
    ),
}
"""The examples of llguidance's page, and others: grammars with a definition of their texts."""


@for_each("name", PAGE)
def test_examples_accept_the_texts_that_they_describe(name: str) -> None:
    grammar, is_right = PAGE[name]
    constraint = compiled(grammar)
    assert [text for text in TEXTS if constraint.accepts(text) != is_right(text)] == []


def permutations(size: int) -> str:
    ways = [f'"{chr(97 + bit)}" perm::set_bit({bit}) %if bit_clear({bit})' for bit in range(size)]
    return f'start: perm::0\nperm::_: "" %if is_ones([0:{size}])\n  | ' + "\n  | ".join(ways)


@pytest.mark.slow
def test_permutations_of_ten_elements_compile_in_two_seconds() -> None:
    with finishes_within(2):
        constraint = constrain.compile(Lark(permutations(10)), byte_vocabulary(), cache=False)
    rng = Random(10)
    for _ in range(50):
        letters = rng.sample("abcdefghij", 10)
        assert constraint.accepts("".join(letters))
        letters[rng.randrange(10)] = rng.choice("abcdefghij")
        assert constraint.accepts("".join(letters)) == (len(set(letters)) == 10)


def test_a_value_has_a_rule_of_its_own_only_where_it_matters() -> None:
    rules = {rule.name for rule in lark_grammar(Lark(PAGE["values that no condition reads"][0])).rules}
    assert rules == {"start", "r::0x0", "s::0x0"}
    counted = lark_grammar(Lark(PAGE["at least three, without an upper bound"][0]))
    assert len(counted.rules) <= 6


WIDE = "|".join(f'"a{way}" r::decr(_) %if gt(_, 0)' for way in range(300))
CONDITION = "and(" * 45 + "gt(_, 0)" + ", gt(_, 0))" * 45
TOO_MANY = {
    "counted up": ('start: r::0\nr::_: "a" r::incr(_) | "" %if eq([3:64], 1000000)', "MAX_PARAMETER_VALUES"),
    "counted down": ('start: r::0xFFFFFFFFFFFFFFFF\nr::_: "a" r::decr(_) | "" %if is_zeros(_)', "MAX_PARAMETER_VALUES"),
    "permutations": (permutations(20), "MAX_PARAMETER_VALUES"),
    "alternatives": (f'start: r::4000\nr::_: {WIDE} | "" %if is_zeros(_)', "MAX_PARAMETER_VALUES"),
    "conditions": (f'start: r::4000\nr::_: "a" r::decr(_) %if {CONDITION} | "b"', "MAX_PARAMETER_VALUES"),
}
"""Grammars with too many values, or with too much for each value; and the limits."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TOO_MANY)
def test_too_many_values_are_refused_in_time(name: str) -> None:
    grammar, limit = TOO_MANY[name]
    with finishes_within(2), pytest.raises(constrain.LimitError, match=limit) as caught:
        lark_grammar(Lark(grammar))
    assert caught.value.line == 2
    assert "use fewer bits, such as incr([0:3])" in caught.value.message


@pytest.mark.slow
def test_values_up_to_the_limit_are_accepted() -> None:
    text = f'start: r::{MAX_PARAMETER_VALUES - 1}\nr::_: "a" r::decr(_) %if gt(_, 0) | "" %if is_zeros(_)'
    constraint = compiled(text)
    assert constraint.accepts("a" * (MAX_PARAMETER_VALUES - 1))
    assert not constraint.accepts("a" * (MAX_PARAMETER_VALUES - 2))


def test_conditions_nest_up_to_the_limit() -> None:
    def nested(depth: int) -> str:
        return 'start: r::0\nr::_: "a" %if ' + "not(" * depth + "true" + ")" * depth

    assert compiled(nested(MAX_NESTING - 2)).accepts("a")
    with pytest.raises(constrain.GrammarError, match="MAX_NESTING") as caught:
        compiled(nested(MAX_NESTING))
    assert caught.value.line == 2


def test_errors_name_the_rule_that_has_no_text_for_any_value() -> None:
    with pytest.raises(constrain.GrammarError, match="the language is empty") as caught:
        compiled('%ignore " "\nstart: r::0\nr::_: "a" r::set_bit(1) %if bit_set(0)')
    assert (caught.value.line, caught.value.column) == (2, 1)


def test_ignored_text_stands_between_lexemes_of_parametric_rules() -> None:
    grammar = permutations(3) + '\n%ignore " "'
    texts = ["".join(text) for length in range(6) for text in itertools.product("abc ", repeat=length)]
    constraint = compiled(grammar)
    for text in texts:
        is_right = sorted(text.replace(" ", "")) == list("abc") and text == text.strip()
        assert constraint.accepts(text) == is_right, text
