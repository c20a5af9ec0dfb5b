"""``check_compiler``: no accusation without cause, and all that it leaves out is counted."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

import constrain
from constrain import Lark, Regex
from constrain.certificates.export import grammar_to_json
from constrain.engine.compiling import compile_any, describe_source
from constrain.generation.proofs.sources import source_to_json
from tests.soundness.compiler import validators
from tests.soundness.compiler.check import CompilerReport, check_compiler
from tests.support import LONG, byte_vocabulary, for_each, maskbench

SCHEMAS = 400 if LONG else 5
VOCABULARY = byte_vocabulary()


def check(source: Any, *, of: Any = None, close_objects: bool = False, **options: Any) -> CompilerReport:
    """Checks the grammar of a source, or of another one (``of``), against the source."""
    limits = {name: options.pop(name) for name in ("max_values", "max_seconds", "answer") if name in options}
    settings = {"close_objects": close_objects, **options}
    constraint = compile_any(source if of is None else of, VOCABULARY, cache=False, **settings)
    described = source_to_json(describe_source(source, VOCABULARY, **settings))
    return check_compiler(grammar_to_json(constraint.grammar), described, **limits)


SOUND = [
    {"type": "integer", "minimum": -3, "exclusiveMaximum": 12, "multipleOf": 5},
    {"type": "number", "multipleOf": 0.25, "maximum": 2},
    {"enum": [1, "1", None, [1], {"a": [True]}]},
    {"type": "string", "pattern": "^[A-Z]{2,3}-[0-9]+$", "maxLength": 9},
    {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}, "maxItems": 3},
    {"type": "array", "contains": {"const": 1}, "minContains": 2},
    {"oneOf": [{"type": "integer", "minimum": 2}, {"type": "integer", "maximum": 4}]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "patternProperties": {"^x-": {"type": "null"}}},
    {"type": "object", "required": ["b", "a"], "minProperties": 2, "maxProperties": 3},
    {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
]


@pytest.mark.slow(but=("0",))
@pytest.mark.parametrize("number", range(len(SOUND)))
@for_each("policies", [{}, {"property_order": "any", "numbers": "any", "escapes": "any"}])
def test_a_right_grammar_agrees(number: int, policies: dict[str, str]) -> None:
    report = check(SOUND[number], max_values=800, **policies)
    assert report.agrees, list(report.lines())
    assert report.accepted >= 3


def test_closed_objects_are_left_out_and_counted() -> None:
    report = check({"type": "object", "properties": {"a": {"type": "integer"}}}, close_objects=True, max_values=300)
    assert report.agrees
    assert any("close_objects" in reason for reason in report.left_out)


def test_the_order_of_keys_is_the_policys() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1]}, "b": {"enum": [1]}}, "required": ["a", "b"]}
    assert check(schema, max_values=200).agrees
    ordered = compile_any(schema, VOCABULARY, close_objects=False, cache=False)
    described = source_to_json(describe_source(schema, VOCABULARY, close_objects=False, property_order="any"))
    report = check_compiler(grammar_to_json(ordered.grammar), described, max_values=200)
    assert '{"b":1,"a":1}' in report.differences[0].text


@for_each(
    "schema, other, problem",
    [
        ({"type": "integer", "maximum": 7}, {"type": "integer", "maximum": 8}, "accepted"),
        ({"type": "integer", "maximum": 7}, {"type": "integer", "maximum": 6}, "refused"),
        ({"type": "array", "minItems": 1}, {"type": "array"}, "accepted"),
        ({"const": {"a": [1, 2]}}, {"const": {"a": [1]}}, "accepted"),
    ],
)
def test_the_grammar_of_another_schema_differs(schema: Any, other: Any, problem: str) -> None:
    report = check(schema, of=other, max_values=400)
    assert not report.agrees
    assert report.counts[problem]
    assert "DIFFERS" in next(report.lines())


@pytest.mark.slow
def test_values_near_the_answer_are_compared() -> None:
    properties = {f"p{number}": {"type": "integer", "maximum": 7} for number in range(6)}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    other = {**schema, "properties": {**properties, "p5": {"type": "integer", "maximum": 8}}}
    answer = json.dumps(dict.fromkeys(properties, 1))
    report = check(schema, of=other, answer=answer, max_values=2_000)
    assert report.counts["accepted"]
    assert "$.p5" in report.differences[0].place


def test_a_limit_is_reported() -> None:
    assert check({"type": "array"}, max_values=50).cut == "50 values"
    report = check({"type": "array"}, max_seconds=0)
    assert "time" in report.not_compared
    assert not report.agrees


@for_each("dialect", ["python", "ecma"])
@for_each("pattern", [r"[A-Z]{1,2}-\d", r"(a|bc)*d?", r"(?=a.)[ab]+", r"\bfoo\b|x+"])
def test_patterns(pattern: str, dialect: Any) -> None:
    report = check(Regex(pattern, dialect=dialect), max_values=800)
    assert report.agrees, list(report.lines())
    assert report.accepted


def test_a_wrong_pattern_differs() -> None:
    report = check(Regex("a{2,3}", dialect="python"), of=Regex("a{2,4}", dialect="python"), max_values=500)
    assert "'aaaa'" in {each.text for each in report.differences}


def test_grammars_of_lark() -> None:
    report = check(Lark('start: e\ne: e "+" t | t\nt: "(" e ")" | /[0-9]+/\n%ignore " "\n'), max_values=800)
    assert report.agrees, list(report.lines())
    assert report.accepted > 10
    assert any("ignored" in reason for reason in report.left_out)


def test_a_wrong_grammar_differs() -> None:
    report = check(Lark('start: "a"~2..3'), of=Lark('start: "a"~2..4'), max_values=200)
    assert report.differences[0].text == "'aaaa'"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (Regex("a+"), "dialect rust"),
        (constrain.sequence("a", {"type": "integer"}), "kind composition"),
        (Lark('start: "a" name\nname[max_tokens=3]: /[a-z]+/\n'), "lark does not read"),
    ],
)
def test_sources_without_a_judge_are_not_compared(source: Any, reason: str) -> None:
    report = check(source)
    assert reason in report.not_compared
    assert not report.agrees
    assert "not compared" in next(report.lines())


def test_without_validators_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validators, "find_spec", lambda _: None)
    report = check({"type": "integer"})
    assert "not installed" in report.not_compared


@pytest.mark.slow
def test_real_schemas() -> None:
    compared = 0
    for row in Random(1).sample(maskbench(), SCHEMAS):
        try:
            answer = next((json.dumps(test["data"]) for test in row["tests"] if test["valid"]), None)
            report = check(row["schema"], answer=answer, max_values=400, max_seconds=20)
        except constrain.ConstrainError:
            continue
        assert not report.differences, (row["id"], list(report.lines()))
        compared += report.agrees
    assert compared > SCHEMAS // 2
