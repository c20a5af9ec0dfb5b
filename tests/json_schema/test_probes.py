"""Texts by which engines are told apart: each is accepted or rejected as the documented policy says.

A text is probed under every value of the policy it is about; all other policies are at their defaults.
"""

from __future__ import annotations

import copy
import json
import pickle
from itertools import product
from types import MappingProxyType
from typing import Any

import pytest

import constrain
from tests.support import byte_vocabulary, for_each

WHITESPACE = ("flexible", "compact", "any")
ORDERS = ("schema", "any")
FORMATS = ("assert", "annotation", "strict")
NUMBERS = ("canonical", "any")


def compile_probe(schema: Any, **policies: str) -> constrain.Constraint:
    return constrain.compile(schema, byte_vocabulary(), **policies)  # type: ignore[arg-type]


def accepts(schema: Any, text: str | bytes, **policies: str) -> bool:
    """Is the text accepted? Asked as a whole and token by token."""
    constraint = compile_probe(schema, **policies)
    data = text.encode() if isinstance(text, str) else text
    matcher = constraint.matcher()
    fits = matcher.accept_many(list(data)) == len(data) and matcher.is_accepting
    assert constraint.accepts(data) == fits, text
    return fits


# A key twice

TWICE = [
    ({"type": "object"}, '{"a":1,"a":1}'),
    ({"type": "object"}, '{"a":1,"b":2,"a":3}'),
    ({"properties": {"a": {}}}, '{"a":1,"a":1}'),
    ({"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}, '{"a":1,"a":"x"}'),
    ({"properties": {"a": {}}, "required": ["b"]}, '{"b":1,"b":2}'),
    ({"patternProperties": {"^a": {}}, "additionalProperties": False}, '{"ab":1,"ab":2}'),
    ({"type": "object"}, '{"é":1,"é":2}'),
    ({"type": "object"}, '{"":1,"":2}'),
    ({}, '[{"a":{"b":1,"b":1}}]'),
]


@for_each("schema, text", TWICE)
def test_a_key_never_appears_twice(schema: Any, text: str) -> None:
    once = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    for order, whitespace in product(ORDERS, WHITESPACE):
        assert not accepts(schema, text, property_order=order, whitespace=whitespace)
        assert accepts({}, once, property_order=order, whitespace=whitespace)


def test_a_repeated_key_is_not_offered_at_all() -> None:
    """Not even its beginning, where no other key can follow."""
    schema = {"patternProperties": {"^(ab|ac)$": {"const": 1}}, "additionalProperties": False}
    matcher = compile_probe(schema).matcher()
    assert matcher.accept_many(list(b'{"ab":1')) == len(b'{"ab":1')
    assert matcher.fork().accept_many(list(b',"ab"')) == len(b',"a')
    assert matcher.fork().accept_many(list(b',"ac":1}')) == len(b',"ac":1}')
    assert matcher.accept_many(list(b',"ac":1,')) == len(b',"ac":1')


# Order of keys

ORDERED = {"properties": {"b": {}, "a": {}}, "required": ["c"]}


@for_each(
    "text, in_schema_order",
    ('{"b":1,"a":2,"c":3,"d":4}', True),
    ('{"c":3}', True),
    ('{"b":1,"c":3}', True),
    ('{"a":2,"b":1,"c":3}', False),
    ('{"c":3,"a":2}', False),
    ('{"d":4,"c":3}', False),
    ('{"b":1,"d":4,"c":3}', False),
)
def test_order_of_keys(text: str, in_schema_order: bool) -> None:
    """``properties``, then required keys that are not declared, then all others."""
    assert accepts(ORDERED, text) == in_schema_order
    assert accepts(ORDERED, text, property_order="any")


# Numbers

INTEGER, NUMBER = {"type": "integer"}, {"type": "number"}

CANONICAL = [
    # text, as an integer, as a number
    ("1", True, True),
    ("-1", True, True),
    ("1.0", False, True),
    ("0.0", False, True),
    ("1.00", False, False),
    ("-0", False, False),
    ("-0.0", False, False),
    ("0.5", False, True),
    ("-0.05", False, True),
    ("1.50", False, False),
    ("1e5", False, False),
    ("1E5", False, False),
    ("1e0", False, False),
    ("0.1e1", False, False),
    ("9" * 308, True, True),
    ("9" * 309, False, False),  # no double holds it
    ("0." + "1" * 64, False, True),
    ("0." + "1" * 65, False, False),
    ("9" * 400 + ".5", False, False),
]


def test_canonical_numbers() -> None:
    for text, integer, number in CANONICAL:
        assert accepts(INTEGER, text) == integer, text
        assert accepts(NUMBER, text) == accepts({}, text) == number, text


NO_NUMBERS = ("01", "+1", ".5", "1.", "1e", "-", "0x1", "NaN", "Infinity", "-Infinity", "1_000")


@pytest.mark.parametrize("numbers", NUMBERS)
def test_what_json_does_not_call_a_number(numbers: str) -> None:
    assert [text for text in NO_NUMBERS if accepts({}, text, numbers=numbers)] == []
    assert [text for text in NO_NUMBERS if accepts(NUMBER, text, numbers=numbers)] == []


@pytest.mark.parametrize("numbers", NUMBERS)
def test_constants_are_numbers_by_value(numbers: str) -> None:
    for value, right, wrong in (
        (1, "1", "2"),
        (1.0, "1", "1.5"),
        (0, "0", "1"),
        (0.5, "0.5", "0.05"),
        (1e5, "100000", "1"),
    ):
        assert accepts({"const": value}, right, numbers=numbers)
        assert not accepts({"const": value}, wrong, numbers=numbers)
    assert not accepts({"const": 1}, "true", numbers=numbers)
    assert not accepts({"enum": [0, 1]}, "false", numbers=numbers)


# White space

BLANKS = [
    # text, flexible, any
    ("[ 1]", True, True),
    ("[  1]", False, True),
    ("[1 ]", True, True),
    ("[" + " " * 200 + "1]", False, True),
    ("[\n" + " " * 64 + "1\n]", True, True),
    ("[\n" + " " * 65 + "1\n]", False, True),
    ("[\n" + " " * 200 + "1\n]", False, True),
    ("[\n\n1]", False, True),
    ("[\n\t1\n]", True, True),
    ("[1, 2]", True, True),
    ("[1,  2]", False, True),
    ("[1 ,2]", False, True),
    ("[1,\t2]", False, True),
    ('{"a": 1}', True, True),
    ('{"a":  1}', False, True),
    ('{"a" :1}', False, True),
    (" 1", False, True),
    ("1\n", False, True),
    ("[\r\n1]", False, True),
    ("[\x0b1]", False, False),
    ("[\xa01]", False, False),
    ("\ufeff1", False, False),
]


def test_white_space() -> None:
    for text, flexible, anything in BLANKS:
        assert accepts({}, text) == flexible, text
        assert accepts({}, text, whitespace="any") == anything, text
        assert not accepts({}, text, whitespace="compact"), text


@pytest.mark.parametrize("whitespace", WHITESPACE)
def test_texts_without_white_space(whitespace: str) -> None:
    for text in ('{"a":[1,{"b":[]}],"c":{}}', '" "', '["\\n"]'):
        assert accepts({}, text, whitespace=whitespace)
    for text in ("tr ue", "1 2", "[1 2]", '"\n"', "", " "):
        assert not accepts({}, text, whitespace=whitespace)


# Escapes

ESCAPES = [
    # text, whether it is the one spelling of its value
    ('"a"', True),
    ('"\\u0061"', False),
    ('"/"', True),
    ('"\\/"', False),
    ('"\\n"', True),
    ('"\\u000a"', False),
    ('"\\u000A"', False),
    ('"\\b"', True),
    ('"\\u0008"', False),
    ('"\\u0000"', True),
    ('"\\u001F"', False),
    ('"\\u001f"', True),
    ('"\\""', True),
    ('"\\u0022"', False),
    ('"\\\\"', True),
    ('"\\u005c"', False),
    ('"é"', True),
    ('"\\u00e9"', False),
    ('"😀"', True),
    ('"\\ud83d\\ude00"', False),
    ('"\u2028"', True),
    ('"\x7f"', True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "canonical"), ESCAPES)
def test_strings_have_one_spelling(text: str, canonical: bool) -> None:
    """The escaped member of an enum is not offered, nor any other way round of writing a character."""
    value = json.loads(text)
    schemas = (
        {"type": "string"},
        {"enum": [value, "other"]},
        {"const": value},
        {"maxLength": 1},
        {"pattern": "^[^b]$"},
    )
    for schema in schemas:
        assert accepts(schema, text) == canonical, schema
    key = f"{{{text}:1}}"
    for schema in ({}, {"properties": {value: {}}}, {"required": [value]}, {"additionalProperties": INTEGER}):
        for order in ORDERS:
            assert accepts(schema, key, property_order=order) == canonical, (schema, order)


@for_each("text", [b'"\\ud800"', b'"\\udfff"', b'"\\ud800a"', b'"\xed\xa0\x80"', b'"\\udc00\\ud800"'])
def test_lone_surrogates_are_no_text(text: bytes) -> None:
    for schema in ({}, {"type": "string"}, {"maxLength": 2}, {"pattern": "."}):
        assert not accepts(schema, text)
    assert not accepts({}, b"{" + text + b":1}")


def test_a_lone_surrogate_in_a_schema_is_refused() -> None:
    for schema in ({"const": "\ud800"}, {"enum": ["a", "\udfff"]}):
        with pytest.raises(constrain.SchemaError, match="surrogate"):
            constrain.compile(schema, byte_vocabulary())


@pytest.mark.parametrize("keyword", ["$defs", "definitions"])
def test_a_lone_surrogate_may_stand_in_the_name_of_a_part(keyword: str) -> None:
    part = {
        "type": "object",
        "patternProperties": {"\udcca": True},
        "properties": {"a": {"type": "string", "pattern": "a"}},
    }
    schema = {"type": "array", "items": {"$ref": f"#/{keyword}/o\udcca"}, keyword: {"o\udcca": part}}
    constraint = constrain.compile(schema, byte_vocabulary(), cache=False)
    assert constraint.accepts('[{"a": "a"}]')
    matcher = constraint.matcher()
    matcher.accept_many(b'[{"a": ')
    assert "o\udcca" in matcher.explain(ord("x"))


@for_each("text", [b'"\xff"', b'"\xc0\xaf"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b'"\x00"', b'"\x1f"'])
def test_what_is_no_utf8_or_must_be_escaped(text: bytes) -> None:
    assert not accepts({}, text)


# Formats


def test_formats_are_asserted_unless_they_annotate() -> None:
    for name, right, wrong in (("date", "2024-02-29", "2023-02-29"), ("ipv4", "1.2.3.4", "01.2.3.4")):
        schema = {"type": "string", "format": name}
        for formats in FORMATS:
            assert accepts(schema, json.dumps(right), formats=formats)
            assert accepts(schema, json.dumps(wrong), formats=formats) == (formats == "annotation")


def test_unknown_formats() -> None:
    schema = {"type": "string", "format": "shoe-size"}
    assert accepts(schema, '"44"')
    assert any("shoe-size" in warning for warning in compile_probe(schema).report.warnings)
    assert accepts(schema, '"44"', formats="annotation")
    with pytest.raises(constrain.UnsupportedSchemaError) as caught:
        constrain.compile(schema, byte_vocabulary(), formats="strict")
    assert caught.value.pointer == "/format"


# Depth


@pytest.mark.slow
@pytest.mark.parametrize("depth", [10, 5_000])
def test_deep_nesting(depth: int) -> None:
    schema = {
        "$ref": "#/$defs/v",
        "$defs": {"v": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/v"}}, INTEGER]}},
    }
    for any_depth in ({}, schema):
        assert accepts(any_depth, "[" * depth + "1" + "]" * depth)
        assert not accepts(any_depth, "[" * depth + "1" + "]" * (depth - 1))
    assert accepts({}, '{"a":' * depth + "1" + "}" * depth)


def test_policies_are_reported() -> None:
    policies = {"whitespace": "any", "property_order": "any", "formats": "strict", "numbers": "canonical"}
    reported = compile_probe({}, **policies).report.policies
    assert policies.items() <= dict(reported).items()


@for_each("policy", ["whitespace", "property_order", "formats", "numbers"])
def test_unknown_policies_are_refused(policy: str) -> None:
    with pytest.raises(ValueError, match=policy):
        constrain.compile({}, byte_vocabulary(), **{policy: "maybe"})  # type: ignore[arg-type]


def test_a_report_can_be_pickled_and_copied() -> None:
    report = compile_probe({"type": "integer"}, numbers="any").report
    for copied in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
        assert copied == report
        assert isinstance(copied.policies, MappingProxyType)


@pytest.mark.parametrize("language", [{"type": "string"}, constrain.Regex(".*"), constrain.Lark("start: /.*/s")])
def test_a_text_with_a_lone_surrogate_is_in_no_language(language: Any) -> None:
    constraint = constrain.compile(language, byte_vocabulary(), cache=False)
    for text in ("\ud800", '"\udfff"', '"a\ud83d\ud83d"'):
        assert constraint.accepts(text) is False
    assert constraint.accepts('"\U0001f600"')
