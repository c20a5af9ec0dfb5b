"""``Acceptor`` against the engine: exported grammars, by texts of real schemas and texts near them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Lark, Regex
from constrain.certificates.export import grammar_to_json
from tests.soundness.compiler.acceptor import Acceptor
from tests.soundness.compiler.check import _edited
from tests.support import LONG, byte_vocabulary, for_each, maskbench

SCHEMAS = 600 if LONG else 40
EDITS = 60


def require_equal(source: Any, texts: Iterable[str]) -> list[bool]:
    """Requires that engine and acceptor say the same of texts; returns their answers."""
    constraint = constrain.compile(source, byte_vocabulary(), cache=False)
    acceptor, found = Acceptor(grammar_to_json(constraint.grammar)), []
    for text in texts:
        found.append(acceptor.accepts(text.encode()))
        assert found[-1] == constraint.accepts(text), text
    return found


UNIQUE = {"type": "array", "items": {"type": ["string", "number", "array", "object"]}, "uniqueItems": True}


@for_each(
    "schema, right, wrong",
    [
        (UNIQUE, "[1,2,[1],[2],{}]", "[[1],[1.0]]"),
        (UNIQUE, '[{"a":1,"b":2},{"a":2,"b":1}]', '[{"a":1,"b":2},{"b":2,"a":1}]'),
        (UNIQUE, '[{"a":1},{"b":1}]', '[{"a":[1]},{"a":[1]}]'),
        ({"type": "object"}, '{"a":1,"b":{"a":1}}', '{"a":1,"a":2}'),
        ({"type": "array", "minItems": 2, "maxItems": 3}, "[1,2]", "[1,2,3,4]"),
        ({"type": "integer", "multipleOf": 7}, "49", "50"),
        ({"type": "string", "pattern": "a", "maxLength": 3}, '"xa"', '"xaxx"'),
        ({"type": "string", "not": {"pattern": "b"}}, '"a"', '"ab"'),
    ],
)
def test_memory_and_expressions(schema: Any, right: str, wrong: str) -> None:
    assert require_equal(schema, [right, wrong]) == [True, False]
    require_equal(schema, list(_edited(right))[:200])


def test_recursion_on_both_sides() -> None:
    grammar = Lark('start: e\ne: e "+" e | "(" e? ")" | /[0-9]+/\n')
    assert require_equal(grammar, ["1+2+(3)+()", "1++2", "((1)", ""]) == [True, False, False, False]


def test_rules_that_read_nothing() -> None:
    grammar = Lark('start: a a b\na: "x"?\nb: a c\nc: "y"*\n')
    assert require_equal(grammar, ["", "xxx", "xxxyy", "xxxx"]) == [True, True, True, False]


def test_text_before_which_text_is_ignored() -> None:
    grammar = Lark('start: "a" "b"\n%ignore " "\n')
    assert require_equal(grammar, ["ab", "a  b", " ab", "ab "]) == [True, True, False, False]


def test_a_pattern() -> None:
    assert require_equal(Regex(r"(?:ab|a)+(?!b)", dialect="ecma"), ["ab", "aab", "b"]) == [True, True, False]


def test_furthest_is_where_a_text_stops() -> None:
    constraint = constrain.compile({"enum": ["red", "rose"]}, byte_vocabulary(), cache=False)
    acceptor = Acceptor(grammar_to_json(constraint.grammar))
    assert not acceptor.accepts(b'"red",')
    assert acceptor.furthest == len(b'"red"')


def test_tokens_match_no_text() -> None:
    vocabulary = constrain.Vocabulary.from_tokens([b"a", b"", b""], eos=[1], special={2: "<|one|>"})
    constraint = constrain.compile(Lark('start: "a" <|one|>? "a"\n'), vocabulary, cache=False)
    acceptor = Acceptor(grammar_to_json(constraint.grammar, vocabulary))
    assert acceptor.accepts(b"aa")
    assert not acceptor.accepts(b"a<|one|>a")


@pytest.mark.slow
def test_instances_of_real_schemas() -> None:
    seen = 0
    for row in Random(1).sample(maskbench(), SCHEMAS):
        try:
            constraint = constrain.compile(row["schema"], byte_vocabulary(), cache=False)
        except constrain.ConstrainError:
            continue
        acceptor = Acceptor(grammar_to_json(constraint.grammar))
        for test in row["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            for each in [text, *list(_edited(text))[:EDITS]] if len(text) < 600 else []:
                seen += 1
                assert acceptor.accepts(each.encode()) == constraint.accepts(each), (row["id"], each)
    assert seen > SCHEMAS
