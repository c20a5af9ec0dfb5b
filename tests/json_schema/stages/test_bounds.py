"""Bounds by other fields are exact: of all small answers, the valid ones are accepted; or the schema is refused."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import pytest

import constrain
from constrain import SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.certificates import certify
from constrain.json_schema.compiler import compile_schema
from tests.json_schema.stages.judging import Schema, is_valid
from tests.support import LONG, byte_vocabulary, for_each

VOCABULARY = byte_vocabulary()
INTEGER: Schema = {"type": "integer"}
DATE: Schema = {"type": "string", "format": "date"}


def data(pointer: str) -> Schema:
    return {"$data": pointer}


def between(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def record(*optional: str, **fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": [name for name in fields if name not in optional]}


def array(items: Any, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def compiled(schema: Schema, **options: Any) -> constrain.Constraint:
    return constrain.compile(schema, VOCABULARY, whitespace="compact", cache=False, **options)


def numbers(*names: str, low: int = -1, high: int = 5) -> list[Any]:
    return [dict(zip(names, each, strict=True)) for each in itertools.product(range(low, high), repeat=len(names))]


PAIRS = [{"a": a, "b": b} for a in range(4) for b in range(4)]
LISTS = [[*each] for count in range(3) for each in itertools.product(PAIRS, repeat=count)][::13]
WORDS = [[*each] for count in range(3) for each in itertools.product("abc", repeat=count)]
PAIR = record(a=between(0, 3), b={**INTEGER, "minimum": data("1/a"), "maximum": 2})


@for_each(
    "schema, answers",
    (record(a=between(0, 5), b={**INTEGER, "minimum": data("1/a"), "maximum": 3}), numbers("a", "b")),
    (record(a=between(0, 5), b={**INTEGER, "exclusiveMinimum": data("1/a"), "maximum": 3}), numbers("a", "b")),
    (record(a=INTEGER, b={**INTEGER, "maximum": data("1/a"), "minimum": 1}), numbers("a", "b")),
    (record(a=INTEGER, b={**INTEGER, "exclusiveMaximum": data("/a"), "minimum": 1}), numbers("a", "b")),
    (record(a=between(0, 5), b={**INTEGER, "minimum": data("1/a"), "enum": [1, 3]}), numbers("a", "b")),
    (record(a=between(0, 5), b={**INTEGER, "minimum": data("1/a"), "not": {"minimum": 3}}), numbers("a", "b")[::2]),
    (record(a=between(0, 5), b={**INTEGER, "minimum": data("1/a"), "maximum": 5, "multipleOf": 2}), numbers("a", "b")),
    (
        record(
            c={**INTEGER, "exclusiveMinimum": data("1/b"), "maximum": 4},
            b={**INTEGER, "minimum": data("1/a")},
            a=INTEGER,
        ),
        numbers("a", "b", "c"),
    ),
    (
        record(a=between(0, 2), b=between(3, 5), c={**INTEGER, "minimum": data("1/a"), "maximum": data("1/b")}),
        numbers("a", "b", "c")[::3],
    ),
    (record(a=between(1, 5), b={**between(0, 3), "const": data("1/a")}), numbers("a", "b")),
    (
        record(a=INTEGER, b={**INTEGER, "const": data("/a")}, c={**between(0, 3), "const": data("/b")}),
        numbers("a", "b", "c"),
    ),
)
def test_numbers(schema: Schema, answers: list[Any]) -> None:
    require_exact(schema, answers)


@for_each(
    "schema, answers",
    (
        record("b", a=between(0, 5), b={**INTEGER, "minimum": data("1/a"), "maximum": 3}),
        [*numbers("a", "b"), *numbers("a")],
    ),
    (
        record(a=between(0, 5), b={"anyOf": [{**INTEGER, "minimum": data("1/a"), "maximum": 3}, {"type": "null"}]}),
        [*numbers("a", "b"), *({"a": a, "b": None} for a in range(-1, 6))],
    ),
    (
        record(a=between(0, 5), b={"type": ["integer", "null"], "minimum": data("1/a"), "maximum": 3}),
        [*numbers("a", "b"), *({"a": a, "b": None} for a in range(-1, 6))],
    ),
    (
        record("o", a=between(0, 5), o=record(b={**INTEGER, "maximum": 2, "minimum": data("2/a")})),
        [*numbers("a"), *({"a": a, "o": {"b": b}} for a in range(6) for b in range(4))],
    ),
    (record("b", a=between(0, 5), b={**between(0, 2), "const": data("1/a")}), [*numbers("a", "b"), *numbers("a")]),
    (
        {"anyOf": [PAIR, record(a={"type": "integer", "minimum": 0}, c=INTEGER), {"type": "null"}]},
        [*PAIRS, *numbers("a", "c"), None, {"a": 79610520512207928, "c": 1}],
    ),
    ({"allOf": [PAIR, {"type": "object"}]}, PAIRS),
    (
        {"oneOf": [record(kind={"const": "x"}, a=INTEGER), {"$ref": "#/$defs/y"}]}
        | {
            "$defs": {
                "y": record(kind={"const": "y"}, a=between(0, 3), b={**INTEGER, "minimum": data("1/a"), "maximum": 2})
            }
        },
        [{"kind": kind, **each} for kind in "xyz" for each in (*PAIRS, {"a": 7})],
    ),
    ({"$ref": "#/$defs/pair", "$defs": {"pair": PAIR}}, PAIRS),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/$defs/pair", "minProperties": 9}
        | {
            "$defs": {
                "pair": {**PAIR, "properties": {**PAIR["properties"], "c": {"$ref": "#/$defs/one"}}},
                "one": INTEGER,
            }
        },
        [*PAIRS, {"a": 0, "b": 1, "c": 2}, {"a": 0, "b": 1, "c": "x"}],
    ),
    (
        record(o={"$ref": "#/$defs/pair"}, p={"$ref": "#/$defs/pair"}) | {"$defs": {"pair": PAIR}},
        [{"o": one, "p": other} for one in PAIRS for other in PAIRS][::11],
    ),
)
def test_what_may_be_absent_and_where_schemas_are_joined(schema: Schema, answers: list[Any]) -> None:
    require_exact(schema, answers)


@for_each(
    "schema, answers",
    (array(PAIR), LISTS),
    (array(PAIR, minItems=2, prefixItems=[between(1, 2)]), [[n, *items] for items in LISTS for n in (1, 3)]),
    (
        record(a=between(0, 4), xs=array({**INTEGER, "maximum": data("2/a"), "minimum": 1})),
        [{"a": a, "xs": xs} for a in range(4) for xs in ([], [1], [2, 3], [3, 1], [0])],
    ),
    (
        record(a=between(0, 4), xs=array({**INTEGER, "maximum": data("/a"), "minimum": 1}, minItems=1)),
        [{"a": a, "xs": xs} for a in range(4) for xs in ([], [1], [2, 3], [3, 1], [0])],
    ),
    (
        {
            "type": "array",
            "prefixItems": [between(0, 5)],
            "items": {**INTEGER, "minimum": data("1/0"), "maximum": 3},
            "minItems": 1,
        },
        [[*each] for count in range(4) for each in itertools.product(range(5), repeat=count)][::2],
    ),
    (
        array(
            record(lo=between(0, 3), xs=array(record(a={**INTEGER, "minimum": data("3/lo"), "maximum": 3}, b=INTEGER)))
        ),
        [
            [{"lo": lo, "xs": xs}, {"lo": 1, "xs": xs}]
            for lo in range(4)
            for xs in ([], PAIRS[4:6], PAIRS[9:14:4], PAIRS[14:])
        ],
    ),
    (
        record(n=between(0, 2), xs=array(INTEGER, minItems=data("1/n"), maxItems=data("1/n"))),
        [{"n": n, "xs": [1] * k} for n in range(4) for k in range(4)],
    ),
    (
        record(n=between(0, 2), xs=array(INTEGER, minItems=data("1/n"))),
        [{"n": n, "xs": [1] * k} for n in range(4) for k in range(4)],
    ),
    (
        record(n=between(0, 9), xs=array(INTEGER, maxItems=data("1/n"))),
        [{"n": n, "xs": [1] * k} for n in range(4) for k in range(4)],
    ),
    (
        record(n=between(0, 2), s={"type": "string", "minLength": 1, "maxLength": data("1/n")}),
        [{"n": n, "s": "é" * k} for n in range(4) for k in range(4)],
    ),
    (
        record(
            "p", n=between(0, 3), o=record("x", "y", x=INTEGER, y=INTEGER) | {"minProperties": data("1/n")}, p=INTEGER
        ),
        [{"n": n, "o": o} for n in range(4) for o in ({}, {"x": 1}, {"y": 1}, {"x": 1, "y": 2})],
    ),
    (
        record(ns=array({"type": "string"}), x={"type": "string", "enum": data("/ns")}),
        [{"ns": ns, "x": x} for ns in WORDS for x in "abd"],
    ),
    (
        record(ns=array({"type": "string"}), x={"type": "string", "enum": data("/ns"), "pattern": "^[ac]$"}),
        [{"ns": ns, "x": x} for ns in WORDS for x in "abd"],
    ),
    (
        record(ns=array({"type": "string"}), xs=array({"type": "string", "enum": data("2/ns")})),
        [{"ns": ns, "xs": xs} for ns in WORDS[::2] for xs in WORDS[::3]],
    ),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"p": PAIR}}
        | array({"$ref": "#/definitions/p", "maxProperties": 0}),
        LISTS,
    ),
)
def test_arrays(schema: Schema, answers: list[Any]) -> None:
    require_exact(schema, answers)


def require_exact(schema: Schema, answers: list[Any]) -> None:
    constraint = compiled(schema)
    assert constraint.staged is not None
    accepted = 0
    for answer in (each for at, each in enumerate(answers) if LONG or at % 3 == 0 or is_valid(schema, each)):
        order = answer
        if isinstance(answer, dict) and "properties" in schema:
            order = dict(sorted(answer.items()))
        text = json.dumps(order, separators=(",", ":"), ensure_ascii=False)
        assert constraint.accepts(text) == is_valid(schema, answer), text
        accepted += constraint.accepts(text)
    assert 0 < accepted < len(answers), accepted


@for_each(
    "name, keyword, texts",
    ("date", "formatMinimum", ["2024-02-28", "2024-02-29", "2024-03-01"]),
    ("time", "formatExclusiveMaximum", ["00:00:00Z", "00:00:01Z", "23:59:59Z"]),
    ("date-time", "formatMaximum", ["2024-02-28T23:59:59Z", "2024-02-29T00:00:00Z", "2999-12-31T23:59:59Z"]),
)
def test_days_and_times(name: str, keyword: str, texts: list[str]) -> None:
    field = {"type": "string", "format": name}
    schema = record(a=field, b={**field, keyword: data("1/a")})
    constraint = compiled(schema, years="1000-2999")
    for one, other in itertools.product(texts, repeat=2):
        text = json.dumps({"a": one, "b": other}, separators=(",", ":"))
        assert constraint.accepts(text) == is_valid(schema, json.loads(text)), text


def test_first_field_has_only_values_that_leave_one_for_the_second() -> None:
    bounded = record(a=DATE, b={**DATE, "formatExclusiveMinimum": data("1/a"), "formatMaximum": "2024-03-01"})
    matcher = compiled(bounded).matcher()
    start = b'{"a":"2024-0'
    assert matcher.accept_many(list(start)) == len(start)
    assert not matcher.accept(ord("3"))
    assert matcher.accept_many(list(b'2-29","b":"')) == 11
    assert matcher.forced_bytes() == b'2024-03-01"'


@for_each(
    "schema, policies, warning",
    (record(a=INTEGER, b={**INTEGER, "minimum": data("1/a")}), {}, "at most 15 digits"),
    (
        record(a={"type": "number"}, b={"type": "number", "minimum": data("1/a")}),
        {},
        "at most 6 digits after its point",
    ),
    (
        record(a={"type": "number", "minimum": 0, "maximum": 99}, b={"type": "number", "minimum": data("1/a")}),
        {},
        "at most 13 digits after",
    ),
    (record(a=INTEGER, b={**INTEGER, "const": data("1/a")}), {}, "at most 15 digits"),
)
def test_narrowed_sources_are_told(schema: Schema, policies: dict[str, str], warning: str) -> None:
    assert any(warning in each for each in compiled(schema, **policies).warnings)


REFUSED = (
    ({"minimum": data("1/b")}, SchemaError, "minimum", "points at the value that it bounds itself"),
    ({"minimum": data("0/b")}, SchemaError, "minimum", "points at the value that it bounds itself"),
    ({"minimum": data("1")}, SchemaError, "minimum", "points at the value that it bounds itself"),
    ({"minimum": data("1/first")}, SchemaError, "minimum", "did you mean 'fist'?"),
    ({"minimum": data("7/a")}, SchemaError, "minimum", "goes up 7 levels"),
    ({"minimum": data("1#")}, UnsupportedSchemaError, "minimum", "not for a value"),
    ({"minimum": data("a")}, SchemaError, "minimum", "must be a JSON Pointer such as /start"),
    ({"minimum": {"$data": 1}}, SchemaError, "minimum", "must be a JSON Pointer"),
    ({"minimum": data("1/o")}, UnsupportedSchemaError, "minimum", "may be absent"),
    ({"minimum": data("1/s")}, UnsupportedSchemaError, "minimum", "must be of the type integer or number"),
    ({"minimum": data("1/u")}, UnsupportedSchemaError, "minimum", "must be of the type integer or number"),
    ({"minimum": data("1/xs/0")}, UnsupportedSchemaError, "minimum", "describe it in prefixItems"),
    ({"formatMinimum": data("1/s")}, UnsupportedSchemaError, "formatMinimum", "name the type"),
    ({"multipleOf": data("1/a")}, UnsupportedSchemaError, "multipleOf", "not supported for multipleOf"),
    ({"const": data("1/xs")}, UnsupportedSchemaError, "const", "must be of the type"),
    ({"enum": data("1/a")}, UnsupportedSchemaError, "enum", "must be of the type array"),
    ({"not": {"minimum": data("1/a")}}, UnsupportedSchemaError, "not", "inside not"),
    ({"oneOf": [{"minimum": data("1/a")}, {"minimum": 3}]}, UnsupportedSchemaError, "oneOf/0", "inside oneOf"),
    ({"anyOf": [{"minimum": data("1/a")}]}, UnsupportedSchemaError, "anyOf", "add one that does not"),
    ({"minimum": data("1/a"), "maximum": data("1/c")}, UnsupportedSchemaError, "minimum", "as a chain"),
    ({"const": data("1/a"), "minimum": data("1/c")}, UnsupportedSchemaError, "const", "leave out the other"),
)


@for_each("keywords, kind, keyword, words", *REFUSED)
def test_refused(keywords: Schema, kind: type[SchemaError], keyword: str, words: str) -> None:
    fields = {
        "a": INTEGER,
        "c": INTEGER,
        "fist": INTEGER,
        "s": {"type": "string"},
        "xs": array(INTEGER),
        "o": INTEGER,
        "u": {},
    }
    schema = record("o", **fields, b={**INTEGER, **keywords})
    with pytest.raises(SchemaError) as caught:
        compiled(schema)
    assert type(caught.value) is kind, caught.value
    assert caught.value.pointer == f"/properties/b/{keyword}"
    assert words in caught.value.message


@for_each(
    "schema, pointer, words",
    (
        record(a={**INTEGER, "minimum": data("1/b")}, b={**INTEGER, "maximum": data("1/a")}),
        "/properties/",
        "bound each other",
    ),
    (record(n=INTEGER, xs=array(INTEGER, minItems=data("1/n"))), "/properties/xs/minItems", "minimum of at least 0"),
    (
        record(n={**INTEGER, "minimum": 0}, xs=array({}, minItems=data("1/n"))),
        "/properties/xs/minItems",
        "needs a maximum",
    ),
    (record(a=DATE, b={"type": "string", "formatMinimum": data("1/a")}), "/properties/b/formatMinimum", "same format"),
    (PAIR | {"minProperties": 2}, "/minProperties", "cannot stand in a schema around fields"),
    (PAIR | {"patternProperties": {"^b": {}}}, "/patternProperties", "cannot stand in a schema around"),
    (PAIR | {"anyOf": [{"properties": {"b": {"maximum": 1}}}, {"required": ["a"]}]}, "/anyOf", "cannot stand beside"),
    (array(PAIR, uniqueItems=True), "/uniqueItems", "cannot stand in a schema around"),
    (
        {"anyOf": [array(PAIR), array(record(a=INTEGER, b=INTEGER), maxItems=1)]},
        "/anyOf",
        "must have different types",
    ),
    (PAIR | {"properties": PAIR["properties"] | {"next": {"$ref": "#"}}}, "/properties/next/$ref", "contains itself"),
    (
        {"allOf": [record(a=INTEGER), record(b={**INTEGER, "minimum": data("1/a")})]},
        "/allOf/1/properties/b/minimum",
        "same properties",
    ),
    (PAIR | {"$schema": "http://json-schema.org/draft-04/schema#"}, "/$schema", "draft 6 or later"),
)
def test_refused_schemas(schema: Schema, pointer: str, words: str) -> None:
    with pytest.raises(UnsupportedSchemaError if "bound each other" not in words else SchemaError) as caught:
        compiled(schema)
    assert (caught.value.pointer or "").startswith(pointer), caught.value
    assert words in caught.value.message


def test_finished_items_within_one_token_keep_their_bounds() -> None:
    tokens = [b'{"a":"x","b":"y"},{"a":"x"', b'x","b":"y"},{"a":"x"', b'x","b":"x"},{"a":"y"']
    vocabulary = constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"", *tokens], eos=[256])
    word = {"enum": ["x", "y"]}
    schema = array(record(a=word, b={**word, "const": data("1/a")}) | {"additionalProperties": False})
    matcher = constrain.compile(schema, vocabulary, whitespace="compact", cache=False).matcher()
    assert matcher.accept(ord("["))
    assert not matcher.fork().accept(257)
    matcher.accept_many([*b'{"a":"'])
    assert not matcher.fork().accept(258)
    assert matcher.fork().accept(259)


@for_each("text", ['{"a":1,"b":2}}', "}", "]", "{]", '{"a":"', '{"a":1,"b":2,}', "[{}", '{"a":1,"b":}', "\x00"])
def test_texts_that_are_no_json_are_refused(text: str) -> None:
    constraint = compiled(PAIR)
    assert not constraint.accepts(text)
    with pytest.raises(ValueError):  # noqa: PT011 - of JSON or of the certificate
        certify(constraint, [*text.encode()])


def test_other_errors_name_their_place_in_the_schema_as_it_was_given() -> None:
    schema = record(a={**INTEGER, "minimum": 0}, b={"$ref": "#/$defs/b"})
    schema["$defs"] = {"b": {**INTEGER, "minimum": data("1/a"), "multipleOf": "x"}}
    with pytest.raises(SchemaError) as caught:
        compiled(schema)
    assert caught.value.pointer == "/$defs/b/multipleOf"


def test_refused_options() -> None:
    with pytest.raises(UnsupportedSchemaError, match='property_order="schema"'):
        compiled(PAIR, property_order="any")
    with pytest.raises(UnsupportedSchemaError, match="one JSON text"):
        compile_schema(PAIR)
    with pytest.raises(UnsatisfiableSchemaError):
        compiled(record(a=between(3, 5), b={**INTEGER, "minimum": data("1/a"), "maximum": 2}))


def test_stages_of_equal_schemas_are_equal_and_can_be_pickled() -> None:
    stages = compile_schema(PAIR, in_stages=True).stages
    assert stages is not None
    copy = pickle.loads(pickle.dumps(stages))
    assert copy == stages == compile_schema(dict(PAIR), in_stages=True).stages
    assert hash(copy) == hash(stages)
    assert compile_schema(PAIR, in_stages=True, whitespace="compact").stages != stages
    text = b'{"a": 1, "b'
    assert copy.begin().read(text).key == stages.begin().read(text[:4]).read(text[4:]).key == ((0, (), b"1"),)


def test_data_that_is_no_keyword_is_left_alone() -> None:
    plain = record(a={"default": data("1/b")}, **{"$data": {"type": "string"}})
    assert compile_schema(plain).stages is None
