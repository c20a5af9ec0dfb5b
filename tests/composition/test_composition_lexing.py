"""Schemas beside grammars: little is refused needlessly, and nothing accepted that may come to a dead end."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Lark, Regex, grammars
from constrain.parts import choice, repeat, sequence
from tests.support import LONG, byte_vocabulary, for_each, maskbench_that_compiles

WORDS = Lark('start: W+\nW: /[a-z]+/\n%ignore " "')
SUM = Lark('start: N ("+" N)*\nN: /[0-9]+/')
LARGE = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(60)}}
LONG_STRINGS = {
    "type": "object",
    "properties": {f"s{i}": {"type": "string", "maxLength": 3_000 + 37 * i} for i in range(6)},
    "additionalProperties": False,
}
ANYTHING: dict[str, object] = {"type": ["object", "array", "string", "number", "boolean", "null"]}

ACCEPTED: dict[str, tuple[object, list[str], list[str]]] = {
    "large schemas around a grammar": (
        sequence(LARGE, "\n", grammars.load("sql_select"), ";", LARGE),
        ['{"p1": 1}\nSELECT a FROM b;{"p2": 2}', "{}\nSELECT 1;{}"],
        ['{"p1": 1}SELECT a FROM b;{}', '{"p1": ""}\nSELECT a FROM b;{}'],
    ),
    "strings of several great lengths": (
        sequence(WORDS, LONG_STRINGS, WORDS),
        ['so{"s1": "a"}it', 'so it{"s0": "' + "a" * 3_000 + '", "s1": "' + "b" * 3_037 + '"}is', "a{}b"],
        ["so{}", 'a{"s0": "' + "a" * 3_001 + '"}b'],
    ),
    "a string in a grammar of the same schema": (
        Lark('start: (W | %json {"type": "string", "maxLength": 9000} | %json {"maxLength": 8000})+\nW: /[A-Z]+!/'),
        ['A!"b"[1]C!', '"' + "a" * 9_000 + '"'],
        ["a", '"' + "a" * 9_001 + '"'],
    ),
    "words around anything": (
        sequence(WORDS, "=", ANYTHING, ";", WORDS),
        ['a b={"c": [1]};d', "a=1;b"],
        ["a=;b", "a=1b"],
    ),
    "a number, and digits behind a comma": (
        sequence({"type": "number"}, ",", SUM),
        ["1,2", "1.5,3+4"],
        ["1", "1,", "1,2+"],
    ),
    "a sum, and a number that may be negative": (
        sequence(SUM, {"type": "integer"}),
        ["1+2-3", "1-10"],
        ["1+2", "1+-1", "1-0"],
    ),
}


def compiled(part: object) -> constrain.Constraint:
    return constrain.compile(part, byte_vocabulary())


@for_each("name", ACCEPTED)
def test_schemas_may_stand_beside_grammars(name: str) -> None:
    composition, accepted, rejected = ACCEPTED[name]
    constraint = compiled(composition)
    assert [text for text in accepted if not constraint.accepts(text)] == []
    assert [text for text in rejected if constraint.accepts(text)] == []


REFUSED: dict[str, object] = {
    "digits behind an integer": sequence({"type": "integer"}, SUM),
    "digits behind a number": sequence({"type": "number"}, SUM),
    "an integer behind digits": sequence(SUM, {"type": "integer", "minimum": 0}),
    "an integer behind an integer in a grammar": Lark('start: %json {"type": "integer"} /[0-9]/'),
    "words behind a name": sequence(WORDS, {"enum": [True, False]}),
    "one of several numbers behind digits": sequence(SUM, {"enum": [1, 12]}),
}


@for_each("name", REFUSED)
def test_text_that_a_value_would_read_on_into_is_refused(name: str) -> None:
    with pytest.raises(constrain.GrammarError, match="For example, "):
        compiled(REFUSED[name])


LEAVES: list[object] = [
    {"enum": [1, 11]},
    {"type": "integer", "minimum": 0},
    {"enum": ["1", ""]},
    {"type": "string", "pattern": "^[1,]*$", "maxLength": 40},
    {"type": "array", "items": {"const": 1}, "maxItems": 2},
    "1",
    ",",
    Regex("[1,]*"),
    Lark('start: N ("," N)*\nN: /1+/'),
    Lark('start: "[" start? "]"'),
    Lark('start: "\\"" /[1,]+/ "\\""'),
    Lark("start: (A | B)+\nA: /1,*/\nB: /,1?/"),
    Lark('start: %json {"enum": [1, "1"]} ","?'),
    Lark('start: "1"+ %json {"type": "array", "items": {"const": 1}, "maxItems": 1}'),
]


def random_composition(rng: Random, depth: int) -> Any:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(LEAVES)
    parts = [random_composition(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    kind = rng.randrange(3)
    if kind == 0:
        return sequence(*parts)
    if kind == 1:
        return choice(*parts)
    return repeat(parts[0], 0, 2)


def beginnings(matcher: constrain.Matcher, read: bytes, depth: int) -> Iterator[bytes]:
    """All texts that may be begun, up to some length, each with what is said to complete it."""
    yield read + matcher.shortest_completion()
    for byte in b'1,"[]' if depth else b"":
        if matcher.accept(byte):
            yield from beginnings(matcher, read + bytes([byte]), depth - 1)
            matcher.rollback(1)


@pytest.mark.slow
def test_no_text_that_is_begun_comes_to_a_dead_end() -> None:
    accepted = refused = 0
    for seed in range(250 if LONG else 60):
        composition = sequence(random_composition(Random(seed), 3))
        try:
            constraint = compiled(composition)
        except constrain.GrammarError:
            refused += 1
            continue
        accepted += not constraint.grammar.self_delimiting
        for begun in beginnings(constraint.matcher(), b"", 5):
            assert constraint.accepts(begun), (seed, composition, begun)
    assert accepted > 10
    assert refused > 4


@pytest.mark.slow
def test_real_schemas_stand_before_and_behind_grammars() -> None:
    sql = grammars.load("sql_select")
    for entry, _ in maskbench_that_compiles(byte_vocabulary(), seed=5, count=3):
        schema = entry["schema"]
        constraint = compiled(sequence(schema, "\n", sql, ";", schema))
        value = compiled(schema).matcher().shortest_completion()
        assert constraint.accepts(value + b"\nSELECT a FROM b;" + value)


def test_a_composition_names_the_terminals_that_are_split() -> None:
    constraint = constrain.compile(sequence("a:", Lark('start: "x" ","? /.+/ "\\n"'), "b"), byte_vocabulary())
    assert constraint.accepts("a:x,,\nb")
    names = constraint.report.split
    assert [name.partition(" (")[0] for name in names] == ['","', "/.+/"]
    assert all("Lark" in name for name in names)
