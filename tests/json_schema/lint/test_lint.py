"""What ``lint_schema`` and ``check_schema`` say about schemas."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema_rs
import pytest

import constrain
from constrain.inspection.check import _Walker, check_schema, filled
from constrain.json_schema.documents.subschemas import subschemas
from constrain.json_schema.formats.expressions import LEFT_OUT
from constrain.json_schema.lint.advice import RULES
from constrain.json_schema.lint.linter import _remove, lint_schema
from tests.support import LONG, byte_vocabulary, demo_vocabulary, for_each, maskbench
from tests.support.oracles.schemas.cases import make_case

STRING = {"type": "string", "maxLength": 5}


def advice(schema: Any) -> list[tuple[str, str]]:
    return [(finding.rule, finding.pointer) for finding in lint_schema(schema).advice]


def unsatisfiable(schema: Any, **policies: str) -> list[tuple[str, str]]:
    return [(finding.rule, finding.pointer) for finding in lint_schema(schema, **policies).unsatisfiable]


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# What is enforced and refused


def test_an_exact_schema() -> None:
    lint = lint_schema({"type": "integer", "minimum": 3})
    assert (lint.exact, lint.refused, lint.unsatisfiable, lint.advice) == (True, (), (), ())
    assert lint.enforced == {"minimum": ("/minimum",), "type": ("/type",)}


def test_all_refused_keywords_are_listed_with_their_places() -> None:
    backreference = {"type": "string", "pattern": "(a)\\1"}
    remote = {"$ref": "https://example.com/schema"}
    lint = lint_schema(object_of(**{"a": backreference, "b~/": {"items": remote}, "c": STRING}))
    assert not lint.exact
    assert [(finding.rule, finding.pointer) for finding in lint.refused] == [
        ("refused", "/properties/a/pattern"),
        ("refused", "/properties/b~0~1/items/$ref"),
    ]
    assert lint.enforced["type"] == ("/type", "/properties/a/type", "/properties/c/type")
    assert "pattern" not in lint.enforced
    assert lint.remaining == object_of(**{"a": {"type": "string"}, "b~/": {"items": {}}, "c": STRING})


def test_formats_that_leave_something_out_are_listed_with_their_places() -> None:
    schema = object_of(a={"format": "regex"}, b={"format": "ipv4"}, c={"items": {"format": "date"}, "format": "colour"})
    lint = lint_schema(schema)
    assert [(finding.rule, finding.pointer) for finding in lint.narrowed] == [
        ("narrowed", "/properties/a/format"),
        ("narrowed", "/properties/c/items/format"),
    ]
    assert LEFT_OUT["date"] in lint.narrowed[1].message
    assert lint.exact
    assert lint_schema(schema, formats="annotation").narrowed == ()
    refusing = lint_schema(schema, inexact="refuse")
    assert [finding.pointer for finding in refusing.refused] == ["/properties/a/format"]
    assert [finding.pointer for finding in refusing.narrowed] == ["/properties/c/items/format"]


def test_references_into_what_is_refused_are_no_findings() -> None:
    wide = {"type": "object", "minProperties": 400, "properties": {"inner~": {"type": "null"}}}
    references = [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/a~1b/properties/inner~0"}, {"$ref": "#/$defs/c/items/1"}]
    choice = {"items": [{"oneOf": [{"pattern": "(a)\\1"}, True]}, wide]}
    lint = lint_schema({"items": references, "$defs": {"a/b": wide, "c": choice}})
    assert [(finding.rule, finding.pointer) for finding in lint.refused] == [
        ("refused", "/$defs/a~1b"),
        ("refused", "/$defs/c/items/1"),
    ]
    assert lint.remaining == {
        "items": [{"$ref": "#/$defs/a~1b"}, {}, {"$ref": "#/$defs/c/items/1"}],
        "$defs": {"a/b": True, "c": {"items": [choice["items"][0], True]}},
    }


def test_a_reference_to_nothing_is_a_finding_beside_others() -> None:
    wide = {"type": "object", "minProperties": 400}
    lint = lint_schema({"properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/ab"}}, "$defs": {"a": wide}})
    assert [(finding.rule, finding.pointer) for finding in lint.refused] == [("malformed", "/properties/b/$ref")]


@for_each(
    "pointer, remaining",
    ("/oneOf/1", {"items": [{"oneOf": {}}], "anyOf": [False]}),
    ("/anyOf/0", {"items": [{"oneOf": {}}], "anyOf": [True], "oneOf": [True, False]}),
    ("/items/0/oneOf", {"items": [{}], "anyOf": [False], "oneOf": [True, False]}),
    ("/anyOf/1", None),
    ("/required/0", None),
    ("", None),
)
def test_removing_a_schema_allows_every_value_in_its_place(pointer: str, remaining: Any) -> None:
    schema = {"items": [{"oneOf": {}}], "anyOf": [False], "oneOf": [True, False]}
    assert _remove(schema, pointer) == (remaining is not None)
    assert remaining in (None, schema)


def test_a_schema_without_values() -> None:
    lint = lint_schema({"type": "integer", "minimum": 5, "maximum": 4})
    assert [finding.rule for finding in lint.refused] == ["no-value"]
    assert lint.remaining is None


def test_a_malformed_schema() -> None:
    lint = lint_schema(object_of(a={"type": "text"}))
    assert [(finding.rule, finding.pointer) for finding in lint.refused] == [("malformed", "/properties/a/type")]


def test_the_schema_is_left_as_it_was() -> None:
    schema = object_of(a={"pattern": "(a)\\1"}, b={"anyOf": [STRING, {"type": "null"}]})
    before = json.dumps(schema)
    check_schema(schema, byte_vocabulary())
    assert json.dumps(schema) == before


def test_keywords_are_found_in_schemas_only() -> None:
    document = {
        "$id": "https://example.com/",
        "$defs": {"pattern": {"type": "string"}},
        "properties": {"enum": {"enum": [{"type": "x"}], "unknown": {"minLength": 1}}},
        "default": {"maxLength": 1},
        "allOf": [{"minimum": 1}, True],
    }
    assert lint_schema(document).enforced == {
        "allOf": ("/allOf",),
        "enum": ("/properties/enum/enum",),
        "minimum": ("/allOf/0/minimum",),
        "properties": ("/properties",),
        "type": ("/$defs/pattern/type",),
    }


def test_subschemas_of_every_keyword() -> None:
    schema = {
        "properties": {"a/b": {}, "c": True},
        "items": [{}],
        "not": {},
        "dependencies": {"x": ["y"], "z": {}},
        "const": {"properties": {"d": {}}},
        "contains": False,
    }
    assert [part.token for part in subschemas(schema)] == [
        *("/properties/a~1b", "/properties/c", "/items/0", "/not", "/dependencies/z", "/contains")
    ]


# What can never hold

NULL = {"type": "null"}
IMPOSSIBLE = {"type": "integer", "minimum": 5, "maximum": 4}

DEAD = {
    "a branch without values": ({"anyOf": [STRING, IMPOSSIBLE]}, [("unsatisfiable-branch", "/anyOf/1")]),
    "a branch that a sibling excludes": (
        {"type": "string", "oneOf": [{"type": "integer"}, {"maxLength": 3}]},
        [("unsatisfiable-branch", "/oneOf/0")],
    ),
    "a branch of oneOf that never holds alone": (
        {"oneOf": [{"type": "integer"}, {"type": "number"}], "minimum": 0},
        [("unsatisfiable-branch", "/oneOf/0")],
    ),
    "a property without values": (object_of(a=STRING, b=IMPOSSIBLE), [("unsatisfiable-property", "/properties/b")]),
    "a property that another schema excludes": (
        {"allOf": [object_of(a=STRING)], "properties": {"a": NULL, "b": NULL}},
        [("unsatisfiable-property", "/properties/a")],
    ),
    "a property that its name excludes": (
        {**object_of(long=STRING, b=STRING), "propertyNames": {"maxLength": 3}},
        [("unsatisfiable-property", "/properties/long")],
    ),
    "a key pattern": (
        {"type": "object", "patternProperties": {"^a": IMPOSSIBLE, "^b": NULL}},
        [("unsatisfiable-property", "/patternProperties/^a")],
    ),
    "items": ({"type": "array", "items": IMPOSSIBLE}, [("unsatisfiable-items", "/items")]),
    "one of the first items": (
        {"type": "array", "prefixItems": [STRING, IMPOSSIBLE], "maxItems": 3},
        [("unsatisfiable-items", "/prefixItems/1")],
    ),
    "a listed value of another type": (
        {"type": "string", "enum": ["a", 1, "b", None]},
        [("unsatisfiable-value", "/enum/1"), ("unsatisfiable-value", "/enum/3")],
    ),
    "a listed value that is too long": ({"enum": ["a", "abc"], "maxLength": 2}, [("unsatisfiable-value", "/enum/1")]),
    "then": (
        {"type": "string", "if": {"type": "integer"}, "then": {"minimum": 1}},
        [("unsatisfiable-branch", "/then")],
    ),
    "else": (
        {"type": "string", "if": {"type": "string"}, "else": {"maxLength": 1}},
        [("unsatisfiable-branch", "/else")],
    ),
    "a definition": (
        {"$defs": {"a": {"enum": []}}, "type": "string", "maxLength": 3},
        [("unsatisfiable-definition", "/$defs/a")],
    ),
    "a branch below a reference": (
        {"$ref": "#/$defs/a", "$defs": {"a": object_of(x={"anyOf": [NULL, IMPOSSIBLE]})}},
        [("unsatisfiable-branch", "/$defs/a/properties/x/anyOf/1")],
    ),
    "a value that would contain itself without end": (
        {
            "anyOf": [NULL, {"$ref": "#/$defs/a"}],
            "$defs": {"a": {**object_of(a={"$ref": "#/$defs/a"}), "required": ["a"]}},
        },
        [("unsatisfiable-branch", "/anyOf/1"), ("unsatisfiable-definition", "/$defs/a")],
    ),
}


@for_each("case", DEAD)
def test_what_can_never_hold(case: str) -> None:
    schema, expected = DEAD[case]
    assert unsatisfiable(schema) == expected


ALIVE: list[Any] = [
    True,
    {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    {"properties": {"a": False}},
    {"properties": {"a": {"not": {}}}},
    {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 0}]},
    {"not": {"enum": []}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}}}},
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/a",
        "enum": [1],
        "definitions": {"a": {}},
    },
    {"if": {"type": "string"}, "then": {"maxLength": 1}, "else": {"minimum": 1}},
    {"enum": [1, "a"]},
    {"type": "array", "items": False},
]


@for_each("schema", ALIVE)
def test_what_can_hold_or_is_excluded_on_purpose(schema: Any) -> None:
    assert unsatisfiable(schema) == []


def test_formats_that_exclude_a_branch_do_so_under_their_policy_only() -> None:
    schema = {"anyOf": [{"type": "string", "format": "date", "maxLength": 5}, NULL]}
    assert unsatisfiable(schema) == [("unsatisfiable-branch", "/anyOf/0")]
    assert unsatisfiable(schema, formats="annotation") == []


@pytest.mark.slow
def test_branches_of_random_schemas_agree_with_enumeration() -> None:
    """A branch of the outermost anyOf or oneOf is found if and only if no value of the universe uses it."""
    asked = dead = 0
    for seed in range(1_500 if LONG else 70):
        case = make_case(seed)
        inner = case.schema["allOf"][1]
        if not isinstance(inner, dict) or not {"anyOf", "oneOf"}.intersection(inner) or not case.texts:
            continue
        if "$ref" in inner:  # up to draft 7 it hides what stands beside it
            continue
        lint = lint_schema(bounded(case.schema, inner))
        if not lint.exact:
            continue
        found = {finding.pointer for finding in lint.unsatisfiable}
        for keyword in ("anyOf", "oneOf"):
            for index, branch in enumerate(inner.get(keyword, ())):
                if branch is False or branch == {"not": {}} or branch == {"not": True}:
                    continue
                asked += 1
                validator = jsonschema_rs.validator_for({**case.schema, "allOf": [branch]})
                used = any(validator.is_valid(json.loads(text)) for text in case.texts)
                dead += not used
                assert (f"/{keyword}/{index}" in found) == (not used), f"seed {seed}: {json.dumps(case.schema)}"
    assert asked > 10
    assert 0 < dead < asked


def bounded(schema: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    """The outermost schema with the bound on its values beside its own keywords."""
    own = inner.get("allOf", [])
    return {"$schema": schema["$schema"], "$defs": schema["$defs"], **inner, "allOf": [schema["allOf"][0], *own]}


# Advice


def test_advice_has_stable_names() -> None:
    assert RULES == (
        "catch-all", "unbounded-string", "unbounded-array", "unbounded-date", "undescribed", "enum-meant",
        "quote-meant", "answer-first",
    )  # fmt: skip


ADVICE = {
    "anything": (True, [("catch-all", "")]),
    "anything with a title": ({"title": "x"}, [("catch-all", "")]),
    "a property of anything": (
        object_of(a={"description": "x"}, b=True),
        [("catch-all", "/properties/a"), ("catch-all", "/properties/b")],
    ),
    "an object of anything": ({"type": "object"}, [("catch-all", "")]),
    "an array of anything": ({"type": "array", "maxItems": 3}, [("catch-all", "")]),
    "items of anything": ({"type": "array", "items": {}, "maxItems": 3}, [("catch-all", "/items")]),
    "a dictionary on purpose": ({"type": "object", "additionalProperties": {"type": "integer"}}, []),
    "a string": ({"type": "string"}, [("unbounded-string", "")]),
    "a string or null": ({"type": ["string", "null"]}, [("unbounded-string", "")]),
    "a short string": (STRING, []),
    "a listed string": ({"type": "string", "enum": ["a"]}, []),
    "a string with a format": ({"type": "string", "format": "uuid"}, []),
    "a date": ({"type": "string", "format": "date"}, [("unbounded-date", "")]),
    "a moment or null": ({"type": ["string", "null"], "format": "date-time"}, [("unbounded-date", "")]),
    "a format that is none": ({"type": "string", "maxLength": 5, "format": ["date"]}, []),
    "a time": ({"type": "string", "format": "time"}, []),
    "a date in this century": ({"type": "string", "format": "date", "pattern": "^20"}, []),
    "a date that is listed": ({"type": "string", "format": "date", "enum": ["2020-01-01"]}, []),
    "a bounded pattern": ({"type": "string", "pattern": "^[a-z]{2,5}$"}, []),
    "an endless pattern": ({"type": "string", "pattern": "^[a-z]+$"}, [("unbounded-string", "")]),
    "a pattern found anywhere": ({"type": "string", "pattern": "[a-z]"}, [("unbounded-string", "")]),
    "an array": ({"type": "array", "items": STRING}, [("unbounded-array", "")]),
    "a tuple": ({"type": "array", "prefixItems": [STRING], "items": False}, []),
    "bounds in another branch": ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, []),
    "what must not hold": ({"type": "integer", "not": {"type": "array"}}, []),
    "no description": (object_of(a=STRING), [("undescribed", "/properties/a")]),
    "a description": (object_of(a={**STRING, "description": "x"}, b={**STRING, "title": "x"}), []),
    "a description at the end of a reference": (
        {**object_of(a={"$ref": "#/$defs/a"}), "$defs": {"a": {**STRING, "description": "x"}}},
        [],
    ),
    "a nested property": (
        {"type": "array", "maxItems": 1, "items": object_of(a=STRING)},
        [("undescribed", "/items/properties/a")],
    ),
    "a category by name": (
        object_of(orderStatus={**STRING, "title": "x"}),
        [("enum-meant", "/properties/orderStatus")],
    ),
    "a category by description": (
        object_of(a={**STRING, "description": "one of red, green or blue"}, b={**STRING, "description": "'x' or 'y'"}),
        [("enum-meant", "/properties/a"), ("enum-meant", "/properties/b")],
    ),
    "a category by examples": (
        object_of(a={**STRING, "title": "x", "examples": ["low", "mid", "high"]}),
        [("enum-meant", "/properties/a")],
    ),
    "a category that is listed": (object_of(status={"enum": ["a", "b"], "title": "x"}), []),
    "a name that contains a category": (object_of(status_text={**STRING, "title": "x"}), []),
    "a piece of a text": (
        object_of(
            a={**STRING, "description": "the sentence, verbatim"},
            b={**STRING, "description": "An excerpt of the contract"},
            c={**STRING, "description": "A quote for the repair, in euros"},
            d={**STRING, "description": "copied from the text", "x-quote": True},
            e={"$ref": "#/$defs/e"},
            f={"$ref": "#/$defs/e", "x-quote": True},
        )
        | {"$defs": {"e": {**STRING, "description": "word for word"}}},
        [("quote-meant", "/properties/a"), ("quote-meant", "/properties/b"), ("quote-meant", "/properties/e")],
    ),
    "an answer first": (
        object_of(final_answer={**STRING, "title": "x"}, reasoning={**STRING, "title": "x"}),
        [("answer-first", "/properties/final_answer")],
    ),
    "reasoning first": (object_of(steps={**STRING, "title": "x"}, answer={**STRING, "title": "x"}), []),
    "an answer alone": (object_of(answer={**STRING, "title": "x"}, name={**STRING, "title": "x"}), []),
}


@for_each("case", ADVICE)
def test_advice(case: str) -> None:
    schema, expected = ADVICE[case]
    assert advice(schema) == expected


# Sizes and tokens


def test_tokens_of_a_constant() -> None:
    check = check_schema({"const": "abc"}, byte_vocabulary())
    assert check.passed
    assert check.report is not None
    assert check.report.policies["close_objects"] is True  # as generate compiles it
    assert (check.report.min_tokens, check.typical_tokens) == (5, 5)


def test_tokens_of_an_answer_do_not_include_end_of_generation() -> None:
    walker = _Walker(constrain.compile({"const": 12.0}, byte_vocabulary()))  # "12" or "12.0"
    assert {walker.length(Random(seed)) for seed in range(50)} == {2, 4}


def test_typical_answers_have_all_properties() -> None:
    schema = object_of(a={"const": 1}, b={"const": 2})
    check = check_schema(schema, byte_vocabulary())
    assert check.report is not None
    assert check.report.min_tokens == len("{}")
    assert check.typical_tokens is not None
    assert len('{"a":1,"b":2}') <= check.typical_tokens <= 2 * len('{"a":1,"b":2}')


@pytest.mark.slow
def test_typical_answers_of_a_schema_that_contains_itself() -> None:
    schema = object_of(name=STRING, next={"$ref": "#"})
    check = check_schema(schema, demo_vocabulary())
    assert check.typical_tokens is not None
    assert check.typical_tokens > 0


def test_longer_strings_take_more_tokens() -> None:
    few, many = (check_schema({"type": "string", "minLength": n, "maxLength": n}, demo_vocabulary()) for n in (3, 300))
    assert few.typical_tokens is not None
    assert many.typical_tokens is not None
    assert few.typical_tokens < 6
    assert many.typical_tokens > 20


def test_filled_requires_all_properties_everywhere() -> None:
    inner = object_of(x=True, y=False)
    schema = {"anyOf": [inner, {"items": [inner]}], "not": inner, "properties": {"a": inner}, "required": ["z"]}
    full = {**inner, "required": ["x"]}
    assert filled(schema) == {
        "anyOf": [full, {"items": [full]}],
        "not": inner,
        "properties": {"a": full},
        "required": ["z", "a"],
    }


def test_what_is_refused_has_sizes_of_the_rest() -> None:
    check = check_schema(object_of(a={"pattern": "(a)\\1"}), byte_vocabulary())
    assert not check.passed
    assert check.report is not None
    assert check_schema({"enum": []}, byte_vocabulary()).report is None


@pytest.mark.slow
def test_real_schemas_can_be_looked_at() -> None:
    """No schema makes the lint fail, and what it calls exact compiles."""
    exact = 0
    for entry in Random(11).sample(maskbench(), 300 if LONG else 8):
        lint = lint_schema(entry["schema"])
        assert {finding.rule for finding in lint.advice} <= set(RULES)
        if lint.exact:
            exact += 1
            constrain.compile(entry["schema"], byte_vocabulary())
    assert exact > 2
