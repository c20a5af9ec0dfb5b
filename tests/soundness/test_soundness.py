"""The search at a small size, with seeds of its own; ``python -m tests.soundness`` has the large ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Lark, Regex
from constrain.certificates.export import grammar_to_json
from constrain.language import tree
from constrain.language.grammar import Action, Condition, Edge, Grammar, Role, Rule, Terminal
from constrain.verify import data
from tests.soundness.__main__ import search
from tests.soundness.schemas import DRAFTS
from tests.soundness.search import Case, Tally, without_endless
from tests.support import LONG, byte_vocabulary, for_each, maskbench
from tests.support.judges import Judges
from tests.support.judging import Judge, require_valid, validation_error

SEED = 5_000_000


def assert_sound(tally: Tally) -> None:
    assert not tally.wrong
    assert tally.counts["disputed: unexplained"] == 0, tally.findings
    assert tally.counts["narrowed: UNEXPLAINED"] == 0, tally.findings


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_accepted_texts_are_valid_and_rejected_ones_explained(block: int) -> None:
    schemas = 1_000 if LONG else 80
    tally = search("schemas", schemas, 40, "", range(SEED + 10_000 * block, SEED + 10_000 * (block + 1)))
    assert_sound(tally)
    counts = tally.counts
    assert counts["schemas"] == schemas
    assert counts["texts"] > 38 * schemas
    assert 0.2 < counts["texts accepted"] / counts["texts"] < 0.8
    narrowed = sum(count for kind, count in counts.items() if kind.startswith("narrowed"))
    assert narrowed < 0.15 * counts["texts valid"]


@pytest.mark.slow
def test_walks_end_in_valid_texts_within_their_budget() -> None:
    walks = 10_000 if LONG else 300
    tally = search("walks", walks, 0, "small", range(SEED, SEED + walks))
    assert_sound(tally)
    assert tally.counts["walks"] >= walks
    for kind in ("default", "closed", "widest", "fewest +0", "fewest +15"):
        assert tally.counts[f"walks, {kind}"] > walks / 10, tally.counts


@pytest.mark.slow
def test_models_read_what_is_written() -> None:
    walks = 10_000 if LONG else 200
    tally = search("models", walks, 0, "small", range(SEED, SEED + walks))
    assert_sound(tally)
    assert tally.counts["walks"] >= walks


# The judge


@for_each(
    "schema, text, invalid",
    ({"exclusiveMaximum": 1}, "0.99999999999999999999", {"doubles", "integers and doubles"}),
    ({"maximum": 1}, "1.00000000000000000001", {"decimals"}),
    ({"const": 2**53 + 1}, "9007199254740993.0", {"integers and doubles"}),
    ({"const": 2**53}, "9007199254740993", {"decimals", "integers and doubles"}),
    ({"multipleOf": Decimal("0.1")}, "0.3", set()),
    ({"multipleOf": 0.1}, "0.35", {"decimals", "doubles", "integers and doubles"}),
    ({"multipleOf": 3}, "1e400", {"decimals", "doubles", "integers and doubles"}),
    ({"type": "integer"}, "1e400", {"doubles", "integers and doubles"}),
    ({"uniqueItems": True}, "[[1], [true], [1]]", {"decimals", "doubles", "integers and doubles"}),
    ({"uniqueItems": True}, "[9007199254740992, 9007199254740993]", {"doubles"}),
    ({"pattern": "b$"}, '"b\\n"', {"decimals", "doubles", "integers and doubles"}),
    ({"format": "date", "$schema": DRAFTS[4]}, '"x"', None),
    ({"type": "integer", "$schema": DRAFTS[4]}, "2.0", {"decimals", "integers and doubles"}),
    ({"unevaluatedItems": False, "items": True, "$schema": DRAFTS[2019]}, "[1]", set()),
    ({"unevaluatedItems": False, "contains": {"const": 1}, "$schema": DRAFTS[2019]}, "[1]", None),
    ({"unevaluatedItems": False, "contains": {"const": 1}}, "[1]", set()),
    ({"unevaluatedProperties": False, "anyOf": [{"properties": {"a": True}}, False]}, '{"a": 1}', set()),
    ({"unevaluatedProperties": False, "patternProperties": {"b$": True}}, '{"b\\n": 1}', None),
)
def test_the_judge_reads_numbers_in_every_way(schema: object, text: str, invalid: set[str] | None) -> None:
    errors = Judge(schema).errors(text)
    assert set(errors) == ({"decimals", "doubles", "integers and doubles"} if invalid is None else invalid)
    assert (validation_error(schema, text.encode()) is None) == (not errors)


def test_a_text_that_is_no_json_is_an_error() -> None:
    for text in ("", "NaN", "01", '{"a": 1, "a": 2}', "1e99999999"):
        with pytest.raises(ValueError, match=r".+"):
            Judge({}).error(text)
    assert Judge({}, keys_may_repeat=True).error('{"a": 1, "a": 2}') is None


def test_disputes_name_the_keyword_that_explains_them() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "format": "date"}
    assert Judges(schema, formats=True).verdict('"x"').dispute == "format"
    assert Judges(schema, formats=False).verdict('"x"') == ("", "")
    assert Judges({**schema, "type": "integer"}, formats=True).verdict("1").dispute == ""
    assert json.loads(Judges(schema, formats=True).text) == schema
    huge = {"$schema": DRAFTS[7], "exclusiveMaximum": 1.7976931348623157e308, "multipleOf": 7}
    huge_text = f"18076931348623157{'0' * 291}2.0"
    assert Judges(huge, formats=False).verdict(huge_text).dispute == "multipleOf and exclusiveMaximum"


@pytest.mark.slow
def test_an_endless_reference_is_judged_as_true_and_as_false() -> None:
    """What no value may reach needs no meaning; what decides whether a text is valid does."""
    schema = {
        "$schema": DRAFTS[7],
        "definitions": {"e": {"$ref": "#/definitions/f"}, "f": {"$ref": "#/definitions/e"}, "g": {"type": "null"}},
        "properties": {"a": {"$ref": "#/definitions/e"}, "b": {"$ref": "#/definitions/g"}},
    }
    both = [without_endless(schema, meaning=meaning)["definitions"] for meaning in (True, False)]
    null = {"type": "null"}
    assert both == [{"e": {}, "f": {}, "g": null}, {"e": {"not": {}}, "f": {"not": {}}, "g": null}]
    tally = Tally()
    Case(780_998, tally).check(40)  # an ``if`` that is never met has an endless reference
    assert tally.counts["texts that reach a $ref that never ends"] > 0
    assert not tally.wrong
    case = Case(780_998, tally)
    case.schema = schema
    case.judge_without_endless('{"a": 1}')
    assert [finding.kind for finding in tally.wrong] == ["WRONG: accepted, though a $ref never ends, read as False"]


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
