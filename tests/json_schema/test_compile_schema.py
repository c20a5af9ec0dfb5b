"""What ``compile_schema`` reports, its policies, its limits, and that it can be called from several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

import constrain
from constrain.errors import ConstrainError, SchemaError, UnsatisfiableSchemaError
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.keywords.unknown import with_hints
from constrain.json_schema.shapes.data import PLAIN
from tests.support import byte_vocabulary, for_each
from tests.support.processor_time import finishes_within


def compiled(schema: Any, **options: Any) -> constrain.Constraint:
    return constrain.compile(compile_schema(schema, whitespace="compact", **options).grammar, byte_vocabulary())


def accepts(schema: Any, text: str, **options: Any) -> bool:
    return compiled(schema, **options).accepts(text)


def nested(depth: int, wrap: Callable[[Any], Any], leaf: Any) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)


def test_policies_are_reported() -> None:
    policies = compile_schema({}, whitespace="any", close_objects=True).policies
    assert policies == {
        "whitespace": "any",
        "property_order": "schema",
        "formats": "assert",
        "inexact": "narrow",
        "numbers": "canonical",
        "precision": "double",
        "escapes": "canonical",
        "years": "1000-2999",
        "integers": "64-bit",
        "close_objects": True,
    }


def test_unknown_policy_values_are_errors_of_the_caller() -> None:
    with pytest.raises(ValueError, match="whitespace must be one of"):
        compile_schema({}, whitespace="none")


def test_what_is_ignored_is_reported_with_its_first_place() -> None:
    schema = {
        "$schema": "https://example.com/dialect",
        "properties": {"a": {"type": "string", "format": "int64", "x-note": 1}, "b": {"format": "int64", "x-note": 2}},
    }
    warnings = compile_schema(schema).warnings
    assert any("'https://example.com/dialect'" in warning for warning in warnings)
    assert ["/properties/a/format" in warning for warning in warnings if "'int64'" in warning] == [True]
    assert [warning for warning in warnings if "x-note" in warning] == [
        "the keyword 'x-note' is not one of draft 2020-12 and is ignored (first at /properties/a/x-note)"
    ]


MEANT = {
    # draft, keyword, what the warning ends with
    "nullable": (2020, "nullable", 'to allow null, write "type": [..., "null"]'),
    "optional": (2020, "optional", "unless the required of its object lists it"),
    "letters that changed places": (2020, "requierd", "did you mean required?"),
    "a missing s": (2020, "definition", "did you mean definitions?"),
    "a keyword that says nothing about values": (2020, "example", "/example)"),
    "an author's own keyword": (2020, "_format", "/_format)"),
    "another case": (2020, "anyof", "did you mean anyOf?"),
    "another style": (2020, "max_length", "did you mean maxLength?"),
    "a short name in another style": (2020, "any_of", "did you mean anyOf?"),
    "one for many": (2020, "property", "did you mean properties?"),
    "a keyword of a later draft": (7, "prefixItems", "it is of draft 2020-12, which $schema must name"),
    "a keyword of an earlier draft": (2020, "$recursiveRef", "it is of draft 2019-09, which $schema must name"),
    "one of the author's own": (2020, "x-type", "(first at /properties/a/x-type)"),
    "unlike all others": (2020, "unlike", "(first at /properties/a/unlike)"),
    "the opposite": (2020, "inclusiveMinimum", ": minimum is inclusive"),
}


@for_each("case", MEANT)
def test_a_keyword_that_is_ignored_is_reported_with_the_one_that_was_meant(case: str) -> None:
    draft, keyword, end = MEANT[case]
    uri = "http://json-schema.org/draft-07/schema#" if draft == 7 else "https://json-schema.org/draft/2020-12/schema"
    schema = {"$schema": uri, "properties": {"a": {"type": "string", keyword: True}}}
    (warning,) = compile_schema(schema).warnings
    assert warning.startswith(f"the keyword {keyword!r} is not one of draft {'7' if draft == 7 else '2020-12'}")
    assert f"is ignored (first at /properties/a/{keyword})" in warning
    assert warning.endswith(end)


def test_a_schema_without_keywords_tells_where_keys_belong() -> None:
    warnings = compile_schema({"name": "str", "age": "int"}).warnings
    assert len(warnings) == 2
    assert all(warning.endswith("keys of an object belong in its properties") for warning in warnings)
    assert [*with_hints(warnings)] == [*warnings]
    assert [*with_hints(compile_schema({"type": "string", "unlike": 1, "x-name": 2}).warnings)] == []


def test_the_discriminator_of_openapi_asserts_nothing() -> None:
    assert compile_schema({"type": "object", "discriminator": {"propertyName": ["a"]}}).warnings == ()


def test_required_of_a_property_itself_tells_where_it_belongs() -> None:
    with pytest.raises(SchemaError, match="name the property in the required of the object") as caught:
        compile_schema({"properties": {"a": {"type": "string", "required": True}}})
    assert caught.value.pointer == "/properties/a/required"


PROPERTIES: dict[str, Any] = {"name": {}, "first_name": {}, "repository": {}, "a" * 80: {}}


@for_each(
    "key, meant",
    ("nmae", "name"),
    ("Name", "name"),
    ("names", "name"),
    ("firstName", "first_name"),
    ("reposotory", "repository"),
    ("last_name", None),
    ("npmRepository", None),
    ("age", None),
)
def test_a_required_key_that_no_property_has_is_told_with_the_one_that_was_meant(key: str, meant: str | None) -> None:
    schema: dict[str, Any] = {"properties": PROPERTIES, "required": [key]}
    told = f"required names {key!r}, which no property has: did you mean {meant!r}?"
    inner = {"type": "object", "properties": {"a": schema}}
    assert [*with_hints(compile_schema(inner).warnings)] == (
        [f"{told} (first at /properties/a/required)"] if meant else []
    )
    with pytest.raises(UnsatisfiableSchemaError, match=f"/{key} is required and can have no value") as caught:
        compile_schema({**schema, "type": "object", "additionalProperties": False})
    assert str(caught.value).endswith(f"; did you mean {meant!r}?") == (meant is not None)


@for_each(
    "schema",
    {"properties": {"name": {}}, "required": ["nmae", "name"]},
    {"properties": {"name": {}}, "patternProperties": {"^n": {}}, "required": ["nmae"]},
    {"properties": {f"name{n}": {} for n in range(200)}, "required": [f"nmae{n}" for n in range(200)]},
    {"properties": {"name": {}}, "anyOf": [{"required": ["nmae"]}, {"required": ["name"]}]},
)
def test_a_required_key_without_a_property_may_be_meant(schema: dict[str, Any]) -> None:
    assert compile_schema({"type": "object", **schema}).warnings == ()


def test_nothing_is_reported_for_annotations() -> None:
    assert compile_schema({"title": "t", "description": "d", "default": 1, "type": "integer"}).warnings == ()


def test_references_are_looked_up_in_the_registry() -> None:
    schema = {"type": "array", "items": {"$ref": "https://example.com/types.json#/$defs/flag"}}
    types = {"$defs": {"flag": {"$ref": "#/$defs/truth"}, "truth": {"type": "boolean"}}}
    resource = Resource.from_contents(types, default_specification=DRAFT202012)
    registry = Registry().with_resource("https://example.com/types.json", resource)
    for given in (registry, {"https://example.com/types.json": types}):
        assert accepts(schema, "[true,false]", registry=given)
        assert not accepts(schema, "[1]", registry=given)


def test_the_schema_is_not_changed() -> None:
    schema = {"allOf": [{"properties": {"a": {"enum": [[1], {"b": 2}]}}}], "required": ["a"], "$defs": {"x": {}}}
    copy = {"allOf": [{"properties": {"a": {"enum": [[1], {"b": 2}]}}}], "required": ["a"], "$defs": {"x": {}}}
    compile_schema(schema, close_objects=True)
    assert schema == copy


def test_a_subschema_object_may_occur_in_several_places() -> None:
    shared = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    schema = {"type": "array", "prefixItems": [shared, shared], "items": {"not": True}}
    grammar = compile_schema(schema).grammar
    assert sum(rule.name == "/prefixItems/0" for rule in grammar.rules) == 1
    assert accepts(schema, '[{"a":1},{}]')


def test_goals_used_twice_share_a_rule() -> None:
    schema = {"$defs": {"a": {"type": "array", "minItems": 1}}, "properties": {k: {"$ref": "#/$defs/a"} for k in "xyz"}}
    assert [rule.name for rule in compile_schema(schema).grammar.rules].count("/$defs/a") == 1


def test_edges_are_linear_in_the_number_of_properties() -> None:
    def edges(count: int, **options: Any) -> int:
        schema = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(count)}}
        return sum(len(rule.edges) for rule in compile_schema(schema, **options).grammar.rules)

    for options in ({}, {"property_order": "any"}):
        assert edges(500, **options) - edges(300, **options) == edges(300, **options) - edges(100, **options)


PATHOLOGICAL: dict[str, Callable[[], Any]] = {
    "an enum of 100,000 strings": lambda: {"enum": [f"value {i}" for i in range(100_000)]},
    "a maxLength of 10^9": lambda: {"type": "string", "maxLength": 10**9},
    "a minLength of 10^9 under a pattern": lambda: {"type": "string", "minLength": 10**9, "pattern": "^(ab|cde)+$"},
    "a maxItems of 10^9": lambda: {"type": "array", "minItems": 10**8, "maxItems": 10**9},
    "a pattern with an exponential automaton": lambda: {"type": "string", "pattern": ".*a.{1000}"},
    "two such patterns": lambda: {"allOf": [{"pattern": ".*a.{300}"}, {"pattern": ".*b.{300}"}], "type": "string"},
    "two that exclude each other": lambda: {
        "allOf": [{"pattern": "a.{20}$"}, {"pattern": "b.{20}$"}],
        "type": "string",
    },
    "such patterns for keys": lambda: {
        "patternProperties": {"^.*a.{99}$": {"type": "null"}, "^.*b.{99}$": {"type": "string"}}
    },
    "10^8 items": lambda: {"type": "array", "minItems": 10**8},
    "more items than a counter holds": lambda: {"type": "array", "minItems": 10**400},
    "1,000 undeclared keys": lambda: {"type": "object", "minProperties": 1000},
    "1,000 different items": lambda: {
        "type": "array",
        "items": {"type": "string"},
        "uniqueItems": True,
        "minItems": 1000,
    },
    "10,000 decimals": lambda: {"enum": [i + 0.5 for i in range(10_000)]},
    "3,000 objects": lambda: {"enum": [{"a": i} for i in range(3_000)]},
    "eight counted constants": lambda: {"allOf": [{"contains": {"const": i}, "maxContains": 3} for i in range(8)]},
    "10,000 levels of items": lambda: nested(10_000, lambda s: {"items": s}, {"type": "string"}),
    "10,000 levels of allOf": lambda: nested(10_000, lambda s: {"allOf": [s]}, {"type": "string"}),
    "10,000 levels in a constant": lambda: {"const": nested(10_000, lambda v: [v], 1)},
    "10,000 levels beside an anchor": lambda: {
        "$ref": "#a",
        **nested(10_000, lambda s: {"$defs": {"a": s}}, {"$anchor": "a"}),
    },
    "a chain of 20,000 references": lambda: {
        "$ref": "#/$defs/0",
        "$defs": {**{str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(20_000)}, "20000": {"type": "null"}},
    },
    "a chain of 3,000 required references": lambda: {
        "properties": {str(i): {"$ref": f"#/$defs/{i}"} for i in range(3_000)},
        "$defs": {
            "0": {"type": "string"},
            **{str(i): {"required": ["x"], "properties": {"x": {"$ref": f"#/$defs/{i - 1}"}}} for i in range(1, 3_000)},
        },
    },
    "alternatives that multiply": lambda: {
        "type": "object",
        "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(30)],
    },
    "oneOf of 5,000 constants": lambda: {"oneOf": [{"const": i} for i in range(5_000)]},
    "oneOf of 150 tagged objects": lambda: {
        "oneOf": [{"properties": {"t": {"const": i}}, "required": ["t"], "type": "object"} for i in range(150)]
    },
    "1,000 key patterns": lambda: {"patternProperties": {f"^k{i}_": {"type": "string"} for i in range(1_000)}},
    "100 key patterns that take long to tell apart": lambda: {
        "patternProperties": {f"^[a-z]{{1,9}}{i:02}[a-z0-9]{{30}}-{i:02}$": {"maximum": i} for i in range(100)}
    },
    "300 patterns with lengths": lambda: {
        "properties": {
            f"p{i}": {"pattern": f"^([a-z]{{{i}}}[0-9]{{40}}|x)+$", "type": "string", "minLength": 9999}
            for i in range(300)
        }
    },
    "key patterns with long texts": lambda: {"patternProperties": {"^a{5000000}$": {}}, "additionalProperties": False},
    "a long constant under a pattern": lambda: {"enum": ["a" * 1_000_000, "b"], "pattern": "a"},
    "300 alternatives that take long to tell apart": lambda: {
        "type": "string",
        "oneOf": [{"pattern": f"^.*a.{{8}}-{i:03}$"} for i in range(300)],
    },
    "recursion that combines ever more goals": lambda: {
        "$ref": "#/$defs/0",
        "$defs": {
            str(i): {
                "type": "object",
                "properties": {
                    "a": {"allOf": [{"$ref": f"#/$defs/{(i * 2 + 1) % 40}"}, {"$ref": f"#/$defs/{(i * 3 + 2) % 40}"}]},
                    "b": {"allOf": [{"$ref": f"#/$defs/{(i * 5 + 3) % 40}"}, {"$ref": f"#/$defs/{(i * 7 + 1) % 40}"}]},
                },
            }
            for i in range(40)
        },
    },
    "exactly one of 14 prime divisors": lambda: {"oneOf": [{"multipleOf": prime} for prime in PRIMES]},
    "arrays with multiples of 12 primes": lambda: {
        "type": "array",
        "allOf": [{"contains": {"multipleOf": prime}} for prime in PRIMES[:12]],
    },
    "80 tools told apart by a required key": lambda: {
        "oneOf": [
            {"type": "object", "properties": {f"t{i}": {"type": "object"}}, "required": [f"t{i}"]} for i in range(80)
        ]
    },
    "exactly one of 80 required keys": lambda: {"oneOf": [{"required": [f"k{i}"]} for i in range(80)]},
    "exactly one of 80 properties": lambda: {
        "oneOf": [{"properties": {f"k{i}": {"type": "integer"}}} for i in range(80)]
    },
    "exactly one of 80 constants in an array": lambda: {"oneOf": [{"contains": {"const": i}} for i in range(80)]},
    "unevaluated keys beside 150 exclusive branches": lambda: {
        "oneOf": [{"properties": {f"k{i}": {"type": "integer"}}, "required": [f"k{i}"]} for i in range(150)],
        "unevaluatedProperties": False,
    },
    "unevaluated items beside 300 branches": lambda: {
        "anyOf": [{"prefixItems": [{"const": i}] * (i % 5 + 1)} for i in range(300)],
        "unevaluatedItems": False,
    },
    "no interval of 400": lambda: {
        "type": "integer",
        "allOf": [{"not": {"minimum": 10 * i, "maximum": 10 * i + 3}} for i in range(400)],
    },
    "names that contain 50 texts": lambda: {"allOf": [{"propertyNames": {"pattern": f"k{i}"}} for i in range(50)]},
    "none of 100,000 objects": lambda: {"type": "object", "not": {"enum": [{"a": i} for i in range(100_000)]}},
    "20,000 required keys": lambda: {"type": "object", "required": [f"k{i}" for i in range(20_000)]},
    "a huge pattern": lambda: {"type": "string", "pattern": "a?" * 3_000, "maxLength": 9},
    "numbers of 5,000 digits": lambda: {"type": "integer", "maximum": 10**5_000},
    "100 bounds of alternatives": lambda: {"anyOf": [{"minimum": 10 * i} for i in range(100)]},
    "100 bounds of properties": lambda: {
        "properties": {f"k{i}": {"type": "integer", "minimum": i, "maximum": 7 * i} for i in range(50)}
    },
}


@pytest.mark.parametrize("count", [3, 8])
def test_exactly_one_of_many_branches_that_all_overlap(count: int) -> None:
    schema = {"type": "object", "oneOf": [{"required": [f"k{i}"]} for i in range(count)]}
    constraint = compiled(schema, property_order="any")
    for i in range(count):
        assert constraint.accepts(f'{{"k{i}":1}}')
        assert not constraint.accepts(f'{{"k{i}":1,"k{(i + 1) % count}":1}}')
    assert not constraint.accepts("{}")


@pytest.mark.slow
def test_exactly_one_of_many_branches_of_which_some_overlap() -> None:
    divisors = (2, 3, 5, 7)
    lengths = [{"minLength": i, "maxLength": i + 1} for i in range(0, 12, 2)]
    branches: list[Any] = [*({"type": "integer", "multipleOf": d} for d in divisors), {"minimum": 40}, {"maxLength": 3}]
    schema = {"type": ["integer", "string"], "oneOf": [{"type": "string", **each} for each in lengths] + branches}
    constraint = compiled(schema)
    for number in range(-50, 80):
        holding = sum(number % d == 0 for d in divisors) + (number >= 40) + 1  # maxLength holds for numbers
        assert constraint.accepts(str(number)) == (holding == 1), number
    for length in range(15):
        holding = (length < 12) + 1 + (length <= 3)  # minimum holds for strings
        assert constraint.accepts(f'"{"a" * length}"') == (holding == 1), length


def test_names_that_several_schemas_restrict() -> None:
    names = [{"pattern": "^a"}, {"pattern": "b$"}, {"maxLength": 3}, {"not": {"const": "axb"}}]
    schema = {
        "allOf": [{"propertyNames": each} for each in names],
        "properties": {"axb": {}, "ayb": {}, "abc": {}},
        "patternProperties": {"z": {"type": "string"}},
    }
    constraint = compiled(schema)
    for name, value, valid in (
        ("ab", 1, True), ("ayb", 1, True), ("axb", 1, False), ("abc", 1, False), ("b", 1, False), ("a", 1, False),
        ("a12b", 1, False), ("azb", 1, False), ("azb", '"x"', True),
    ):  # fmt: skip
        assert constraint.accepts(f'{{"{name}":{value}}}') == valid, name


@pytest.mark.parametrize("unique", [1, 2, 5])
def test_unevaluated_keys_beside_many_exclusive_branches(unique: int) -> None:
    branches = [{"properties": {f"k{i}": {"const": i}}, "required": [f"k{i}"]} for i in range(7)]
    schema = {"type": "object", "oneOf": branches, "unevaluatedProperties": False}
    assert accepts(schema, f'{{"k{unique}":{unique}}}')
    assert not accepts(schema, f'{{"k{unique}":{unique},"x":1}}')
    assert not accepts(schema, f'{{"k0":0,"k{unique}":{unique}}}')


LIMITS = {
    "10^8 items": "MAX_LEAST_COUNT",
    "more items than a counter holds": "MAX_LEAST_COUNT",
    "1,000 undeclared keys": "MAX_DISTINCT = ",
    "1,000 different items": "MAX_DISTINCT = ",
    "eight counted constants": "MAX_COMPILE_WORK",
    "10,000 levels of items": "MAX_SCHEMA_DEPTH",
    "10,000 levels of allOf": "MAX_IN_PLACE_DEPTH",
    "two that exclude each other": "MAX_INTERSECTION_STATES",
    "alternatives that multiply": "MAX_CASES",
    "recursion that combines ever more goals": "MAX_COMPILE_WORK",
    "exactly one of 14 prime divisors": "MAX_JOINT_REMAINDERS",
    "none of 100,000 objects": "MAX_CASES",
    "300 alternatives that take long to tell apart": "MAX_COMPILE_WORK",
}


@pytest.mark.slow(but=("a maxItems of 10^9", "1,000 undeclared keys", "1,000 different items"))
@pytest.mark.parametrize("case", PATHOLOGICAL)
def test_pathological_schemas_compile_or_are_refused_soon_by_the_limit_they_meet(case: str) -> None:
    met, schema = "", PATHOLOGICAL[case]()
    with finishes_within(20):
        try:
            compile_schema(schema, numbers="any" if "bounds" in case else "canonical")
        except ConstrainError as error:
            met = error.message
    assert LIMITS.get(case, "") in met


def test_compilation_in_threads() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^x+$", "maxLength": 40}, "b": {"$ref": "#"}},
        "patternProperties": {"^s[a-z]{1,3}$": {"type": "string"}},
    }
    expected = compile_schema(schema).grammar.dump()
    with ThreadPoolExecutor(8) as pool:
        dumps = list(pool.map(lambda _: compile_schema(schema).grammar.dump(), range(64)))
    assert set(dumps) == {expected}


def test_what_all_compilations_share_stays_as_it_is() -> None:
    compile_schema({"type": "object", "not": {"properties": {"a": {"type": "string"}}}})
    negation = PLAIN["string"].negation
    assert negation is not None
    assert negation.is_fixed
    assert negation.productive


def test_a_schema_has_the_same_grammar_each_time() -> None:
    schema = {
        "if": {"contains": {"const": "a"}},
        "then": {"if": {"contains": {"const": "b"}}, "then": {"if": {"contains": {"const": "c"}}}},
        "unevaluatedItems": False,
    }
    dumps, elsewhere = set(), []
    for _ in range(20):
        dumps.add(compile_schema(schema).grammar.dump())
        elsewhere.append([object() for _ in range(977)])  # goals must not depend on where they lie in memory
    assert len(dumps) == 1
