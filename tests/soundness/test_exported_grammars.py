"""Grammars in certificates: read back from their JSON, they have the same texts as the compiled ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Lark, Regex
from constrain.certificates.export import grammar_to_json
from constrain.language import tree
from constrain.language.grammar import Action, Condition, Edge, Grammar, Role, Rule, Terminal
from constrain.verify import data
from tests.support import LONG, byte_vocabulary, for_each, maskbench
from tests.support.judging import require_valid

SCHEMAS = 600 if LONG else 25
EDITS = 60
OF_PARTS = {"all": tree.Concatenation, "any": tree.Alternation, "both": tree.Intersection}


def read_node(entry: list[Any], made: list[tree.Expression]) -> tree.Expression:
    kind, *parts = entry
    match kind:
        case "literal":
            return tree.LiteralSet(tuple(map(data, parts[0])))
        case "class":
            ranges = tuple((low, high) for low, high in parts[0])
            return tree.ByteClass(ranges) if parts[1] == "byte" else tree.CharClass(ranges, parts[1] == "json")
        case "all" | "any" | "both":
            return OF_PARTS[kind](tuple(made[part] for part in parts[0]))
        case "not":
            return tree.Complement(made[parts[0]])
        case "repeat":
            return tree.Repetition(made[parts[0]], *parts[1:])
        case "window":
            return tree.Window(made[parts[0]], made[parts[1]], *parts[2:])
    return tree.Multiple(*parts)


def read_edge(edge: list[Any]) -> Edge:
    source, symbol, target, conditions, actions, excluding, distinct = edge
    found = tuple((Action(action), slot) for action, slot in actions)
    return Edge(source, symbol, target, tuple(Condition(*each) for each in conditions), found, excluding, distinct)


def read_back(grammar: Grammar) -> Grammar:
    """The grammar with all parts that its JSON has as they are there."""
    exported = json.loads(json.dumps(grammar_to_json(grammar)))
    nodes: list[tree.Expression] = []
    for entry in exported["expressions"]:
        nodes.append(read_node(entry, nodes))
    terminals = [
        Terminal(
            each["name"],
            nodes[each["expression"]],
            role=Role(each.get("role", Role.SCALAR)),
            label=data(each.get("label", "")),
            lazy=each.get("lazy", False),
            max_tokens=each.get("max_tokens"),
        )
        for each in exported["terminals"]
    ]
    rules = [
        Rule(
            each["name"],
            tuple(map(read_edge, each["edges"])),
            tuple(each["accepting"]),
            tuple(each["slots"]),
            max_tokens=each.get("max_tokens"),
        )
        for each in exported["rules"]
    ]
    flags = {name: exported[name] for name in ("numbers_by_double", "strings_by_value")}
    return replace(grammar, terminals=tuple(terminals), rules=tuple(rules), ignored=tuple(exported["ignored"]), **flags)


def edited(text: str) -> Iterator[str]:
    """Yields all texts that differ in one character."""
    for at, char in enumerate(text):
        yield text[:at] + text[at + 1 :]
        for other in ':,]}"0-\\':
            yield text[:at] + other + text[at + 1 :]
            yield text[:at] + other + char + text[at + 1 :]


def require_equal(source: Any, texts: Iterable[str], **policies: Any) -> list[bool]:
    """Requires that a grammar and what is read back accept the same texts; returns the answers."""
    constraint = constrain.compile(source, byte_vocabulary(), cache=False, **policies)
    other = constrain.compile(read_back(constraint.grammar), byte_vocabulary(), cache=False)
    found = [(text, constraint.accepts(text)) for text in texts]
    assert found == [(text, other.accepts(text)) for text, _ in found]
    return [accepted for _, accepted in found]


UNIQUE = {"type": "array", "items": {"type": ["string", "number", "array", "object"]}, "uniqueItems": True}


@for_each(
    "source, right, wrong",
    (UNIQUE, "[1,2,[1],[2],{}]", "[[1],[1.0]]"),
    (UNIQUE, '[{"a":1,"b":2},{"a":2,"b":1}]', '[{"a":1,"b":2},{"b":2,"a":1}]'),
    (UNIQUE, '[{"a":1},{"b":1}]', '[{"a":[1]},{"a":[1]}]'),
    (UNIQUE, "[0.1,0.2]", "[0.1,0.10000000000000000001]"),
    ({"type": "object"}, '{"a":1,"b":{"a":1}}', '{"a":1,"a":2}'),
    ({"type": "array", "minItems": 2, "maxItems": 3}, "[1,2]", "[1,2,3,4]"),
    ({"type": "integer", "multipleOf": 7}, "49", "50"),
    ({"type": "string", "pattern": "a", "maxLength": 3}, '"xa"', '"xaxx"'),
    ({"type": "string", "not": {"pattern": "b"}}, '"a"', '"ab"'),
    (Lark('start: e\ne: e "+" e | "(" e? ")" | /[0-9]+/\n'), "1+2+(3)+()", "1++2"),
    (Lark('start: a a b\na: "x"?\nb: a c\nc: "y"*\n'), "xxxyy", "xxxx"),
    (Lark('start: "a" "b"\n%ignore " "\n'), "a  b", " ab"),
    (Lark('start: a "."\na[lazy]: /a+b?/'), "a.", "aa."),
    (Regex(r"(?:ab|a)+(?!b)", dialect="ecma"), "aab", "b"),
)
def test_each_part_of_a_grammar_is_exported(source: Any, right: str, wrong: str) -> None:
    assert require_equal(source, [right, wrong]) == [True, False]
    require_equal(source, [right, *list(edited(right))[:200]])


def test_strings_in_two_spellings_are_told_from_different_ones() -> None:
    texts = [r'["a","\u0061"]', r'["a","\u0062"]']
    assert require_equal(UNIQUE, texts, escapes="any") == [False, True]


def test_limits_of_tokens_are_exported() -> None:
    text = 'start: a "," b\na[max_tokens=2]: /[a-z]+/\nb[max_tokens=3]: c\nc: "x" c | "y"'
    grammar = constrain.compile(Lark(text), byte_vocabulary(), cache=False).grammar
    matcher = constrain.compile(read_back(grammar), byte_vocabulary(), cache=False).matcher()
    assert matcher.accept_many(b"abc") == 2
    assert matcher.accept_many(b",xxxy") == 3


def test_tokens_are_exported_by_their_ids() -> None:
    vocabulary = constrain.Vocabulary.from_tokens([b"a", b"", b""], eos=[1], special={2: "<|one|>"})
    grammar = constrain.compile(Lark('start: "a" <|one|>? "a"\n'), vocabulary, cache=False).grammar
    terminals = grammar_to_json(grammar, vocabulary)["terminals"]
    assert [each["tokens"] for each in terminals if "tokens" in each] == [[[2, 2]]]


@pytest.mark.slow
def test_grammars_of_real_schemas_come_back_and_take_nothing_that_is_not_valid() -> None:
    seen, rng = 0, Random(1)
    for row in rng.sample(maskbench(), SCHEMAS):
        texts = [json.dumps(test["data"], ensure_ascii=False) for test in row["tests"]]
        near = [list(edited(text)) for text in texts if len(text) < 600]
        found = [*texts, *(each for edits in near for each in rng.sample(edits, min(EDITS, len(edits))))]
        try:
            answers = require_equal(row["schema"], found)
        except constrain.ConstrainError:
            continue
        for text, accepted in zip(found, answers, strict=True):
            if accepted:
                require_valid(row["schema"], text)
        seen += len(found)
    assert seen > SCHEMAS
