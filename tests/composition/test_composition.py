"""Compositions: which texts they have, what they refuse, and that regular ones are plain concatenation."""

from __future__ import annotations

import itertools
import json
import re
from random import Random
from typing import Any, Literal

import pytest

import constrain
from constrain import Lark, Regex, grammars
from constrain.composition.nodes import MAX_PARTS
from constrain.composition.ways import MAX_WAYS
from constrain.language.digest import source_digest
from constrain.parts import choice, repeat, sequence, text
from constrain.work import MAX_NESTING
from tests.support import LONG, byte_vocabulary, for_each, maskbench_that_compiles

SOFT_TOKENS = 16
"""The last tokens of a budget, in which masks leave out what would begin something new."""

POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
NAMED = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
COUNT = {"type": "integer", "minimum": 0}
SUM = Lark('start: N ("+" N)* \n N: /[0-9]+/ \n %ignore " "')
TOOLS = choice(sequence("call: a\n", POINT), sequence("call: b\n", {"enum": [1, 2]}))

TABLE: list[tuple[object, list[str], list[str]]] = [
    (sequence(), [""], ["a"]),
    (sequence(Regex("a*"), "a"), ["a", "aaa"], ["", "ab"]),
    (sequence(Regex("a*"), sequence("a", Regex("a?b"))), ["ab", "aaab"], ["b", "a"]),
    (choice("a", "ab", "abc"), ["a", "ab", "abc"], ["", "b", "abcd"]),
    (sequence(choice("a", "ab"), choice("c", "bc")), ["ac", "abc", "abbc"], ["abb", "bc"]),
    (repeat("ab"), ["", "ab", "abab"], ["a", "aba"]),
    (repeat("ab", 2), ["abab", "ababab"], ["", "ab"]),
    (repeat("a", 1, 3, separator=","), ["a", "a,a", "a,a,a"], ["", "a,", "aa", "a,a,a,a"]),
    (repeat("a", 0, 2, separator=Regex(",?")), ["", "a", "aa", "a,a"], ["a,", "aaa"]),
    (repeat("a", 0, 0), [""], ["a"]),
    (text(), ["", "a\nb", "é"], []),
    (text(max_length=2), ["", "éé"], ["abc"]),
    (text(until="aba"), ["", "b", "bb"], ["aba", "ab", "xab", "xaba"]),
    (text(until="aa"), ["", "ab"], ["a", "aa", "ba"]),
    (sequence(text(until="-->"), "-->"), ["-->", "a-b->c-->"], ["--->-->", "a", "-->-->"]),
    (sequence(text(until="\n", max_length=3), "\n", "x"), ["\nx", "abc\nx"], ["abcd\nx", "a\n\nx", "abc"]),
    (sequence(text(until="\n\n"), "\n\n", POINT), ['so\n\n{"x": 1}', '\n\n{"x":1}'], ['{"x": 1}', 'so\n\n{"y": 1}']),
    (sequence(text(until="{"), POINT), ['so {"x": 1}', '{"x": 1}'], ['{{"x": 1}', "so "]),
    (TOOLS, ['call: a\n{"x": 1}', "call: b\n2"], ["call: a\n2", "call: c\n1"]),
    (choice(POINT, NAMED), ['{"x": 1}', '{"x": "1"}', '{"y": "1"}'], ['{"y": 1}', "{}"]),
    (choice({"type": "integer"}, {"type": "number"}), ["1", "1.5"], ["a"]),
    (choice(POINT, "none"), ['{"x": 1}', "none"], ["", "null"]),
    (repeat(POINT, 1, separator="\n"), ['{"x": 1}', '{"x": 1}\n{"x": 2}'], ["", '{"x": 1}\n']),
    (repeat(POINT, 2, 3), ['{"x": 1}{"x": 2}', '{"x": 1}' * 3], ['{"x": 1}', '{"x": 1}' * 4]),
    (repeat(sequence(bool, ","), 0, 2), ["", "true,", "true,false,"], ["true", "true,true,true,"]),
    (sequence(repeat(choice(bool, "x")), "x"), ["x", "xx", "truex", "xtruexx"], ["true", "xtrue", ""]),
    (sequence("(", SUM, ")"), ["(1)", "(1 + 2)"], ["( 1)", "(1 )", "()"]),
    (sequence("```\n", grammars.load("sql_select"), "\n```"), ["```\nSELECT a FROM b\n```"], ["```\nSELECT\n```"]),
    (sequence({"type": "integer"}, " ", {"type": "integer"}), ["1 2"], ["12", "1  2"]),
    (sequence(Literal["a", "b"], "!"), ['"a"!'], ['"c"!', "a!"]),
    (sequence("[", True, "]"), ["[1]", '[{"a": []}]'], ["[]", "["]),
    (sequence(Regex(""), repeat("", 3)), [""], ["a"]),
]


def compiled(part: object) -> constrain.Constraint:
    return constrain.compile(part, byte_vocabulary())


@for_each("composition, accepted, rejected", TABLE)
def test_texts_are_accepted_and_rejected(composition: object, accepted: list[str], rejected: list[str]) -> None:
    constraint = compiled(composition)
    assert [text for text in accepted if not constraint.accepts(text)] == []
    assert [text for text in rejected if constraint.accepts(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("composition", "accepted", "_"), TABLE, ids=[str(row[0])[:60] for row in TABLE])
def test_every_beginning_can_be_completed_within_its_tokens(
    composition: object, accepted: list[str], _: object
) -> None:
    constraint = compiled(composition)
    for each in map(str.encode, accepted):
        unlimited = constraint.matcher()
        for end, byte in enumerate(each, start=1):
            assert unlimited.accept(byte)
            assert constraint.accepts(each[:end] + unlimited.shortest_completion())
        budgeted = constraint.matcher(max_tokens=len(each) + SOFT_TOKENS)
        assert budgeted.accept_many(list(each)) == len(each)
        assert budgeted.is_accepting


def random_regular(rng: Random, depth: int) -> tuple[Any, str]:
    """A composition of regular parts, and the same as a pattern of ``re``."""
    kind = rng.randrange(3) if depth == 0 else rng.randrange(6)
    if kind == 0:
        literal = "".join(rng.choices("ab", k=rng.randrange(3)))
        return literal, literal
    if kind == 1:
        pattern = rng.choice(["a*", "a|ab", "[ab]?", "b+", "(?:ab)*"])
        return Regex(pattern), f"(?:{pattern})"
    if kind == 2:
        return rng.choice([(text(until="a"), "[^a]*"), (text(until="b"), "[^b]*"), (text(max_length=1), ".?")])
    if kind == 3:
        parts = [random_regular(rng, depth - 1) for _ in range(rng.randrange(4))]
        return sequence(*(part for part, _ in parts)), "".join(f"(?:{pattern})" for _, pattern in parts)
    if kind == 4:
        parts = [random_regular(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        return choice(*(part for part, _ in parts)), "|".join(f"(?:{pattern})" for _, pattern in parts)
    part, pattern = random_regular(rng, depth - 1)
    separator, between = random_regular(rng, 0)
    least = rng.randrange(3)
    most = rng.choice([None, least, least + 2])
    if most == 0:
        return repeat(part, 0, 0, separator=separator), ""
    counts = f"{max(least - 1, 0)},{'' if most is None else most - 1}"
    whole = f"(?:{pattern})(?:(?:{between})(?:{pattern})){{{counts}}}"
    return repeat(part, least, most, separator=separator), whole if least else f"(?:{whole})?"


@pytest.mark.slow
def test_regular_compositions_are_plain_concatenation() -> None:
    for seed in range(1_000 if LONG else 100):
        composition, pattern = random_regular(Random(seed), 3)
        constraint = compiled(sequence(composition))
        assert len(constraint.grammar.terminals) <= 1
        for length in range(7):
            for letters in itertools.product("ab", repeat=length):
                each = "".join(letters)
                assert constraint.accepts(each) == bool(re.fullmatch(pattern, each)), (composition, pattern, each)


@for_each("until", ["a", "aa", "ab", "aba", "abab", "aab", "abba"])
def test_a_delimiter_is_found_where_it_is_first(until: str) -> None:
    free, ended = compiled(text(until=until)), compiled(sequence(text(until=until), until))
    for length in range(9):
        for letters in itertools.product("ab", repeat=length):
            each = "".join(letters)
            assert free.accepts(each) == ((each + until).find(until) == len(each))
            assert ended.accepts(each) == (0 <= each.find(until) == len(each) - len(until))


LEAVES: list[tuple[object, str]] = [
    ({"enum": [1, 11]}, "11?"),
    ({"enum": ["1", ""]}, '"1?"'),
    ({"type": "array", "items": {"const": 1}, "maxItems": 2}, r"\[(1(,1)?)?\]"),
    ("1", "1"),
    (",", ","),
    (Regex("[1,]*"), "[1,]*"),
    (Regex('"?'), '"?'),
]


def random_mixed(rng: Random, depth: int) -> tuple[Any, str]:
    """A composition of schemas and regular parts, and its plain concatenation as a pattern of ``re``."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(LEAVES)
    parts = [random_mixed(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    kind = rng.randrange(3)
    if kind == 0:
        return sequence(*(part for part, _ in parts)), "".join(f"(?:{pattern})" for _, pattern in parts)
    if kind == 1:
        return choice(*(part for part, _ in parts)), "|".join(f"(?:{pattern})" for _, pattern in parts)
    return repeat(parts[0][0], 0, 3), f"(?:{parts[0][1]}){{0,3}}"


@pytest.mark.slow
def test_parts_that_need_no_longest_match_are_plainly_concatenated() -> None:
    proved = 0
    for seed in range(300 if LONG else 80):
        composition, pattern = random_mixed(Random(seed), 3)
        try:
            constraint = compiled(sequence(composition))
        except constrain.GrammarError:
            continue
        proved += constraint.grammar.self_delimiting and len(constraint.grammar.rules) > 1
        for length in range(5):
            for letters in itertools.product('1,"[]', repeat=length):
                each = "".join(letters)
                accepted, there = constraint.accepts(each), bool(re.fullmatch(pattern, each))
                assert there or not accepted, (seed, composition, each)
                assert accepted or not there or not constraint.grammar.self_delimiting, (seed, composition, each)
    assert proved > 15


def test_long_texts_may_stand_before_a_schema() -> None:
    constraint = compiled(sequence(text(until="</think>", max_length=4_000), "</think>\n", POINT))
    assert [n for n in (0, 3_992, 4_000, 4_001) if constraint.accepts("<" * n + '</think>\n{"x": 1}')] == [
        0,
        3_992,
        4_000,
    ]


KINDS = {
    "literal": ("<", "<"),
    "pattern": (Regex("<[0-9]+>"), "<12>"),
    "schema": (POINT, '{"x": 1}'),
    "type": (bool, "true"),
    "grammar": (Lark('start: "(" start? ")"'), "(())"),
    "ready": (grammars.load("uuid"), "123e4567-e89b-12d3-a456-426614174000"),
    "given": (compiled({"type": "array", "maxItems": 0}).grammar, "[]"),
    "free": (sequence("'", text(until="'"), "'"), "'free'"),
}


@for_each("kind", KINDS)
def test_every_kind_of_part_stands_in_every_other(kind: str) -> None:
    def put(form: str, part: object, text: str) -> tuple[object, str]:
        return {
            "sequence": (sequence("A", part, "B"), f"A{text}B"),
            "choice": (choice("none", part), text),
            "repeat": (repeat(sequence(part, ";"), 2), f"{text};{text};"),
            "separator": (repeat("X", 1, separator=part), f"X{text}X{text}X"),
        }[form]

    for inner, outer in itertools.product(("sequence", "choice", "repeat", "separator"), repeat=2):
        part, each = put(outer, *put(inner, *KINDS[kind]))
        constraint = compiled(part)
        assert constraint.accepts(each), (inner, outer)
        assert not constraint.accepts(each + "?"), (inner, outer)


@for_each(
    "composition, written",
    [
        (sequence({"type": "integer"}, Regex("[0-9]+")), ['{"type": "integer"}', "Regex('[0-9]+')"]),
        (sequence(SUM, Regex("[0-9]")), ["Lark(", "Regex('[0-9]')"]),
        (sequence(Regex("[0-9]+"), COUNT), ["Regex('[0-9]+')", '{"type": "integer", "minimum": 0}']),
        (repeat(COUNT, 2), ["follow terminal integer of {"]),
        (sequence(text(max_length=5), bool), ["text(max_length=5)", "bool"]),
    ],
)
def test_a_refusal_names_both_parts(composition: object, written: list[str]) -> None:
    with pytest.raises(constrain.GrammarError) as caught:
        compiled(composition)
    for part in written:
        assert part in str(caught.value)


def test_errors_of_parts_say_where_they_are() -> None:
    nothing = {
        "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}},
        "required": ["a"],
        "type": "object",
    }
    with pytest.raises(constrain.UnsatisfiableSchemaError) as caught:
        compiled(sequence("a", repeat(nothing)))
    assert (caught.value.pointer or "").startswith("/1/part/properties/a")
    with pytest.raises(constrain.GrammarError, match="at /0") as found:
        compiled(sequence(Lark("start: a"), "b"))
    assert (found.value.line, found.value.column) == (1, 8)
    with pytest.raises(constrain.PatternError, match="matches no text"):
        compiled(choice("a", Regex("[a&&b]")))


@for_each("part", [None, 3, 1.5, b"a", ["a"], ("a", "b"), object()])
def test_a_value_that_is_no_part_is_refused_at_once(part: object) -> None:
    for make in (sequence, choice, repeat):
        with pytest.raises(TypeError, match="cannot be composed"):
            make(part)


@for_each(
    "make, error, message",
    [
        (choice, ValueError, "at least one part"),
        (lambda: repeat("a", 2, 1), ValueError, "1 is less than 2"),
        (lambda: repeat("a", -1), ValueError, "min must be 0 or more"),
        (lambda: repeat("a", 1, "b"), TypeError, "max"),
        (lambda: text(until=""), ValueError, "until must not be empty"),
        (lambda: text(until=b"a"), TypeError, "until must be a str"),
        (lambda: text(max_length=-1), ValueError, "max_length must be 0 or more"),
        (lambda: sequence("\ud800"), ValueError, "surrogate"),
        (lambda: sequence({"a": {1}}), constrain.SchemaError, "that JSON cannot express"),
        (lambda: choice(*["a"] * (MAX_PARTS + 1)), constrain.LimitError, "MAX_PARTS"),
    ],
)
def test_wrong_arguments_are_refused_at_once(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_grammar_that_is_empty_or_ignores_terminals_is_no_part() -> None:
    builder = constrain.grammars.GrammarBuilder()
    start = builder.rule("start")
    builder.define(start, [[start]])
    with pytest.raises(constrain.GrammarError, match="language is empty"):
        sequence(builder.build())
    builder.define(start, [[]])
    builder.ignore(builder.terminal("SPACE", constrain.language.tree.Literal(b" ")))
    with pytest.raises(constrain.GrammarError, match="with ignored terminals"):
        choice("a", builder.build())


def test_limits_are_named() -> None:
    with pytest.raises(constrain.LimitError, match="MAX_WAYS"):
        compiled(repeat(POINT, 0, MAX_WAYS + 2))
    nested = sequence("a")
    for _ in range(MAX_NESTING - 1):
        nested = sequence(nested)
    assert compiled(nested).accepts("a")
    with pytest.raises(constrain.LimitError, match="MAX_NESTING"):
        sequence(nested)


def test_counts_of_schemas_and_patterns_may_be_high() -> None:
    points = compiled(repeat(POINT, 100, 200, separator=", "))
    assert [n for n in (99, 100, 200, 201) if points.accepts(", ".join(['{"x": 1}'] * n))] == [100, 200]
    letters = compiled(repeat("a", 10_000, 20_000))
    assert [n for n in (9_999, 10_000, 20_000, 20_001) if letters.accepts("a" * n)] == [10_000, 20_000]


def test_terminals_keep_their_names_and_say_the_place_of_their_part() -> None:
    constraint = compiled(sequence("a", repeat(POINT, 1, separator=SUM)))
    places = {terminal.pointer for terminal in constraint.grammar.terminals}
    assert {place[:7] for place in places} == {"/0", "/1/part", "/1/sepa"}
    assert any(terminal.name.startswith("key x of {") for terminal in constraint.grammar.terminals)
    assert "'a' (from /0)" in constraint.matcher().explain(ord("b"))


def test_equal_compositions_are_one_and_others_are_told_apart() -> None:
    parts = [row[0] for row in TABLE]
    assert len({source_digest(part) for part in parts}) == len(parts)
    assert sequence("a", POINT) == sequence("a", json.loads(json.dumps(POINT)))
    assert compiled(sequence("a", POINT)) is compiled(sequence("a", dict(POINT)))
    one, other = compiled(True).grammar, compiled({"type": "null"}).grammar
    assert source_digest(sequence(one)) != source_digest(sequence(other))


def test_a_schema_that_changes_later_does_not_change_a_composition() -> None:
    schema = {"enum": ["a"]}
    composition = sequence(schema, "!")
    schema["enum"].append("b")
    assert not compiled(composition).accepts('"b"!')


def test_objects_are_closed_for_generation_only() -> None:
    composition = sequence("a", choice({"type": "object", "properties": {"x": {}}}))
    open_, closed = compiled(composition), compiled(composition.closed())
    assert [each.accepts('a{"y": 1}') for each in (open_, closed)] == [True, False]


def test_policies_of_a_composition_are_refused_as_it_is_no_schema() -> None:
    with pytest.raises(ValueError, match="whitespace applies to JSON Schemas"):
        constrain.compile(sequence("a", POINT), byte_vocabulary(), whitespace="compact")
    compact = constrain.compile(POINT, byte_vocabulary(), whitespace="compact").grammar
    assert not compiled(sequence("a", compact)).accepts('a{"x": 1}')


@pytest.mark.slow
def test_real_schemas_stand_between_texts_and_beside_each_other() -> None:
    entries = [entry["schema"] for entry, _ in maskbench_that_compiles(byte_vocabulary(), seed=5, count=10)]
    for schema, other in itertools.pairwise(entries):
        constraint = compiled(sequence(text(until="\n\n"), "\n\n", choice(schema, other), "\n"))
        assert constraint.accepts(b"so\n\n" + compiled(schema).matcher().shortest_completion() + b"\n")
        assert constraint.accepts(b"so\n\n" + compiled(other).matcher().shortest_completion() + b"\n")


def test_the_prompt_shows_parts_as_what_they_are() -> None:
    shown = sequence(
        "Thoughts: ", text(until="\n", max_length=80), "\n", choice({"type": "integer"}, Regex("a+"))
    ).describe()
    assert "Thoughts: [any text of at most 80 characters without" in shown
    assert "- [JSON: integer]" in shown
    assert "- [text matching a+]" in shown
