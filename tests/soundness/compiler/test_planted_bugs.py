"""Bugs planted on purpose in keywords and in what writes certificates: the check of the compiler finds each of them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import constrain
from constrain import verify
from constrain.certificates import certificate as certificates
from constrain.certificates.certificate import certify
from constrain.engine.compiling import describe_source
from constrain.generation.proofs.sources import source_to_json
from constrain.json_schema.documents.dialects import DRAFT_2020
from constrain.json_schema.keywords import numeric
from constrain.json_schema.keywords.table import KEYWORDS
from tests.soundness.compiler.acceptor import Acceptor
from tests.soundness.compiler.check import check_compiler
from tests.soundness.planting import VOCABULARY, compile_one, decode, refuses
from tests.support.judging import validation_error

UNIQUE = {"type": "array", "items": {"type": ["string", "number", "array"]}, "uniqueItems": True}
OBJECT = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
ARRAY = {"type": "array", "items": {"enum": [1]}, "minItems": 2, "maxItems": 3}
KEYS = {"type": "object", "additionalProperties": {"enum": [1]}}


def find(constraint: constrain.Constraint, source: Any, tokens: list[int], **budget: Any) -> tuple[str, str]:
    """Returns what finds an answer wrong, and the place that it reports."""
    try:
        certificate = certify(constraint, tokens, **budget)
    except ValueError as error:
        return "creation", str(error)
    try:
        verify.verify(json.loads(json.dumps(certificate)))
    except ValueError as error:
        return "verification", str(error)
    policies = dict(constraint.policies)
    closes = policies.pop("close_objects", False)
    described = source_to_json(describe_source(source, VOCABULARY, close_objects=bool(closes), **policies))
    report = check_compiler(certificate["grammar"], described, answer=certificate["text"], max_values=600)
    if report.differences:
        return "compiler", "\n".join(report.lines())
    return "nothing", "\n".join(report.lines())


# Bugs of the compiler: the keyword does nothing, or something else.


def ignore(*_: object) -> None:
    """A keyword that asserts nothing."""


COMPILER = {
    "maxItems": (ignore, {"type": "array", "items": {"enum": [1]}, "maxItems": 2}, "[1,1,1]"),
    "minItems": (ignore, {"type": "array", "items": {"enum": [1]}, "minItems": 1}, "[]"),
    "uniqueItems": (ignore, {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, "[1,1]"),
    "required": (ignore, OBJECT, "{}"),
    "maximum": (ignore, {"type": "integer", "maximum": 7}, "8"),
    "multipleOf": (ignore, {"type": "integer", "multipleOf": 7}, "8"),
    "exclusiveMaximum": (numeric.maximum, {"type": "integer", "exclusiveMaximum": 7}, "7"),
    "maxLength": (ignore, {"type": "string", "maxLength": 2}, '"aaa"'),
    "pattern": (ignore, {"type": "string", "pattern": "^a$"}, '""'),
    "not": (ignore, {"type": "integer", "not": {"const": 7}}, "7"),
    "additionalProperties": (ignore, {**OBJECT, "additionalProperties": False}, '{"a":1,"b":2}'),
    "dependentRequired": (ignore, {**OBJECT, "dependentRequired": {"a": ["b"]}}, '{"a":1}'),
    "enum": (ignore, {"enum": [1, 2]}, "null"),
    "contains": (ignore, {"type": "array", "contains": {"const": 1}}, "[]"),
    "propertyNames": (ignore, {"type": "object", "propertyNames": {"maxLength": 2}}, '{"abc":1}'),
}


@pytest.mark.parametrize("keyword", COMPILER)
def test_a_wrong_keyword_is_found(keyword: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handler, schema, wrong = COMPILER[keyword]
    assert validation_error(schema, wrong.encode()) is not None
    assert refuses(compile_one(schema), list(wrong.encode()))
    monkeypatch.setitem(KEYWORDS.handlers[DRAFT_2020], keyword, handler)
    marked = {**schema, "$comment": f"{keyword} is wrong"}  # another schema, which is not remembered
    constraint = compile_one(marked)
    decode(constraint, list(wrong.encode()))
    by, place = find(constraint, marked, list(wrong.encode()))
    assert by == "compiler", place
    assert "the grammar takes" in place
    assert " $" in place, place


def test_a_keyword_that_refuses_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "integer", "maximum": 7, "$comment": "maximum is wrong, too"}
    monkeypatch.setitem(KEYWORDS.handlers[DRAFT_2020], "maximum", numeric.exclusive_maximum)
    constraint = compile_one(schema)
    assert refuses(constraint, list(b"7"))
    by, place = find(constraint, schema, list(b"6"))
    assert by == "compiler", place
    assert "the grammar refuses 7" in place


# Bugs of what makes certificates.


def forget_conditions(exported: dict[str, Any]) -> None:
    for rule in exported["rules"]:
        for edge in rule["edges"]:
            edge[3] = []


def forget_excluding(exported: dict[str, Any]) -> None:
    for rule in exported["rules"]:
        for edge in rule["edges"]:
            edge[5] = -1


def forget_distinct(exported: dict[str, Any]) -> None:
    for rule in exported["rules"]:
        for edge in rule["edges"]:
            edge[6] = -1


def widen_classes(exported: dict[str, Any]) -> None:
    for node in exported["expressions"]:
        if node[0] == "class":
            node[1] = [[low, high + 1] for low, high in node[1]]


def let_rules_end(exported: dict[str, Any]) -> None:
    for rule in exported["rules"]:
        rule["accepting"] = sorted({edge[2] for edge in rule["edges"]})


EXPORTER = {
    "conditions": (forget_conditions, ARRAY, "[1,1]", "[1,1,1,1]"),
    "keys": (forget_excluding, KEYS, '{"k":1}', '{"k":1,"k":1}'),
    "values": (forget_distinct, UNIQUE, "[1,2]", "[1,1]"),
    "classes": (widen_classes, {"type": "integer"}, "12", "1:"),
    "ends": (let_rules_end, OBJECT, '{"a":1}', '{"a":1'),
}


@pytest.mark.parametrize("name", EXPORTER)
def test_a_wrong_export_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, schema, right, wrong = EXPORTER[name]
    original = certificates.grammar_to_json

    def export(*arguments: Any) -> dict[str, Any]:
        exported = copy.deepcopy(original(*arguments))
        spoil(exported)
        return exported

    assert not Acceptor(original(compile_one(schema).grammar, VOCABULARY)).accepts(wrong.encode())
    monkeypatch.setattr(certificates, "grammar_to_json", export)
    constraint = compile_one(schema)
    assert Acceptor(certificates.grammar_to_json(constraint.grammar, VOCABULARY)).accepts(wrong.encode())
    by, place = find(constraint, schema, list(right.encode()))
    assert by == "compiler", place
    assert "the grammar takes" in place
