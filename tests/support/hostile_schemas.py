"""Schemas, patterns and grammars that are legal and made to take long, of any size; what compiling one takes.

Each of ``FAMILIES`` makes one of a given size. ``benchmarks/hostile.py`` writes a table of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import constrain

Language = Any
"""What ``constrain.compile`` takes."""


@dataclass(frozen=True)
class Family:
    """Languages that differ in size. ``size``: one that is large, but no larger than a request may be."""

    make: Callable[[int], Language]
    size: int
    options: tuple[tuple[str, str], ...] = ()


def _each(count: int, make: Callable[[int], Any]) -> list[Any]:
    return [make(number) for number in range(count)]


def _named(prefix: str, count: int, make: Callable[[int], Any]) -> dict[str, Any]:
    return {f"{prefix}{number}": make(number) for number in range(count)}


def _nested(depth: int, inner: Any, wrap: Callable[[Any, int], Any]) -> Any:
    for level in range(depth):
        inner = wrap(inner, level)
    return inner


def _branch(number: int) -> dict[str, Any]:
    return {"properties": {f"k{number}": {"const": number}}, "required": [f"k{number}"]}


def _ref_chain(size: int) -> Language:
    definitions = _named("d", size, lambda i: {"properties": {"x": {"$ref": f"#/$defs/d{i + 1}"}}})
    return {"$defs": {**definitions, f"d{size}": {}}, "$ref": "#/$defs/d0"}


def _bare_ref_chain(size: int) -> Language:
    definitions = _named("d", size, lambda i: {"$ref": f"#/$defs/d{i + 1}"})
    return {"$defs": {**definitions, f"d{size}": {"type": "null"}}, "items": {"$ref": "#/$defs/d0"}}


def _refs_into_bare_chain(size: int) -> Language:
    chain = _bare_ref_chain(size)
    return {"$defs": chain["$defs"], "properties": _named("p", size, lambda i: {"$ref": f"#/$defs/d{i}"})}


def _definitions(size: int) -> Language:
    definitions = _named("d", size, lambda i: {"type": "object", "properties": {"v": {"const": i}}})
    return {"$defs": definitions, "properties": _named("p", size, lambda i: {"$ref": f"#/$defs/d{i}"})}


def _mutual_definitions(size: int) -> Language:
    def definition(i: int) -> Any:
        others = [{"items": {"$ref": f"#/$defs/d{(i * 7 + j) % size}"}} for j in range(1, 5)]
        return {"anyOf": [*others, {"type": "object", "maxProperties": i}]}

    return {"$defs": _named("d", size, definition), "items": {"$ref": "#/$defs/d0"}}


def _object_definitions(size: int) -> Language:
    def definition(i: int) -> Any:
        return {"type": "object", "properties": _named("p", 5, lambda j: {"$ref": f"#/$defs/d{(i * 7 + j) % size}"})}

    return {"$defs": _named("d", size, definition), "$ref": "#/$defs/d0"}


def _anchors(size: int) -> Language:
    definitions = _named("d", size, lambda i: {"$anchor": f"a{i}", "const": i})
    return {"$defs": definitions, "properties": _named("p", size, lambda i: {"$ref": f"#a{i}"})}


def _resources(size: int) -> Language:
    definitions = _named("d", size, lambda i: {"$id": f"http://example.com/{i}", "const": i})
    refs = _named("p", size, lambda i: {"$ref": f"http://example.com/{i}"})
    return {"$id": "http://example.com/", "$defs": definitions, "properties": refs}


def _dynamic(size: int) -> Language:
    def resource(i: int) -> Any:
        return {
            "$id": f"r{i}",
            "$dynamicAnchor": "n",
            "properties": {"x": {"$ref": f"r{(i + 1) % size}"}, "y": {"$dynamicRef": "#n"}},
        }

    return {"$id": "http://example.com/", "$defs": _named("d", size, resource), "$ref": "r0"}


def _conditions(size: int) -> Language:
    inner: Any = {"type": "null"}
    for number in range(size):
        inner = {"if": {"const": number}, "then": {"const": number}, "else": inner}
    return inner


def _many_conditions(size: int) -> Language:
    def condition(i: int) -> Any:
        return {"if": {"properties": {"k": {"const": i}}}, "then": {"required": [f"a{i}"]}}

    return {"type": "object", "allOf": _each(size, condition)}


def _string_conditions(size: int) -> Language:
    def condition(i: int) -> Any:
        return {"if": {"const": f"k{i}"}, "then": {"maxLength": i + 1}}

    return {"type": "string", "allOf": _each(size, condition)}


def _products(size: int) -> Language:
    return {"allOf": _each(size, lambda i: {"anyOf": [_branch(2 * i), _branch(2 * i + 1)]})}


def _string_products(size: int) -> Language:
    def choice(i: int) -> Any:
        return {"anyOf": [{"minLength": i}, {"pattern": f"^a{{{i}}}"}, {"const": f"c{i}"}]}

    return {"type": "string", "allOf": _each(size, choice)}


def _number_products(size: int) -> Language:
    return {"allOf": _each(size, lambda i: {"anyOf": [{"maximum": i}, {"minimum": i + 1}]}), "type": "number"}


def _unevaluated(size: int) -> Language:
    return {"anyOf": _each(size, _branch), "unevaluatedProperties": False}


def _unevaluated_all(size: int) -> Language:
    return {"allOf": _each(size, _branch), "unevaluatedProperties": False}


def _unevaluated_items(size: int) -> Language:
    return {
        "anyOf": _each(size, lambda i: {"prefixItems": _each(i % 50 + 1, lambda j: {"const": i * j})}),
        "unevaluatedItems": False,
    }


def _keys_named(size: int) -> Language:
    return {"type": "object", "propertyNames": {"enum": _each(size, lambda i: f"key{i}")}}


def _keys_named_and_declared(size: int) -> Language:
    names = _each(size, lambda i: f"key{i}")
    return {"propertyNames": {"enum": names}, "properties": {name: {"maxLength": 9} for name in names}}


def _patterns_and_keys(size: int) -> Language:
    patterns = _named("^a", 150, lambda i: {"minimum": i})
    return {"properties": _named("a", size, lambda i: {"type": "integer", "maximum": i}), "patternProperties": patterns}


def _overlapping_key_patterns(size: int) -> Language:
    def pattern(i: int) -> str:
        return f"{chr(97 + i % 26)}.*{chr(97 + i * 7 % 26)}.*{i}"

    return {"patternProperties": {pattern(i): {"minimum": i} for i in range(size)}}


def _dependent(size: int) -> Language:
    return {"dependentRequired": _named("a", size, lambda i: [f"a{i * 7 % size}"])}


def _dependent_lists(size: int) -> Language:
    names = _each(size, lambda i: f"a{i}")
    return {"properties": dict.fromkeys(names, True), "dependentRequired": dict.fromkeys(names, names)}


def _dependent_schemas(size: int) -> Language:
    return {"dependentSchemas": _named("a", size, lambda i: {"required": [f"a{i * 7 % size}"]})}


def _one_of_tagged(size: int) -> Language:
    def tagged(i: int) -> Any:
        return {
            "type": "object",
            "properties": {"kind": {"const": f"k{i}"}, "value": {"type": "integer"}},
            "required": ["kind"],
        }

    return {"oneOf": _each(size, tagged)}


def _alternatives(keyword: str, make: Callable[[int], Any], *, not_one: bool = False) -> Callable[[int], Language]:
    def language(size: int) -> Language:
        parts = _each(size, make)
        return {"not": {keyword: parts}} if not_one else {keyword: parts}

    return language


def _negated(make: Callable[[int], Any], **beside: Any) -> Callable[[int], Language]:
    return lambda size: {"allOf": _each(size, lambda i: {"not": make(i)}), **beside}


def _pydantic_union(size: int) -> Language:
    import pydantic

    kinds: list[Any] = _each(size, lambda i: pydantic.create_model(f"Kind{i}", name=(str, ...), number=(int, i)))
    union: Any = kinds[0]
    for kind in kinds[1:]:
        union = union | kind
    return union


def _pydantic_fields(size: int) -> Language:
    import pydantic

    fields: dict[str, Any] = _named("field", size, lambda i: (int, pydantic.Field(ge=i, lt=i + 7)))
    return pydantic.create_model("Wide", **fields)


def _pydantic_nested(size: int) -> Language:
    import pydantic

    inner: Any = int
    for level in range(size):
        inner = pydantic.create_model(f"Level{level}", child=(inner, ...), other=(inner | None, None))
    return inner


def _pydantic_literal(size: int) -> Language:
    from typing import Literal

    return Literal.__getitem__(tuple(f"value {i}" for i in range(size)))


def _lark_terminals(size: int) -> Language:
    terminals = _each(size, lambda i: f"T{i}: /x{i}[0-9]*y/")
    return constrain.Lark(f"start: ({' | '.join(f'T{i}' for i in range(size))})+\n" + "\n".join(terminals))


def _lark_words(size: int) -> Language:
    return constrain.Lark("start: (" + " | ".join(f'"word{i} "' for i in range(size)) + ")+")


def _lark_rules(size: int) -> Language:
    rules = _each(size, lambda i: f'r{i}: "a{i}," r{i + 1} | "b{i},"')
    return constrain.Lark("start: r0\n" + "\n".join(rules) + f'\nr{size}: "end"')


def _lark_nullable(size: int) -> Language:
    rules = _each(size, lambda i: f"r{i}: r{i + 1}? r{i + 1}?")
    return constrain.Lark("start: r0\n" + "\n".join(rules) + f'\nr{size}: "end"')


def _lark_ambiguous(size: int) -> Language:
    rules = _each(size, lambda i: f'r{i}: r{(i + 1) % size} r{(i * 7 + 1) % size} | "a{i},"')
    return constrain.Lark("start: r0\n" + "\n".join(rules))


def _lark_terminal_chain(size: int) -> Language:
    terminals = _each(size, lambda i: f'T{i}: "a" T{i + 1} | "b" T{i + 1}')
    return constrain.Lark("start: T0\n" + "\n".join(terminals) + f'\nT{size}: "c"')


def _lark_many_ways(size: int) -> Language:
    parts = " ".join(_each(size, lambda i: f'("a{i},"|"b{i},")?'))
    return constrain.Lark(f'start: {parts} "."')


def _lark_left_recursion(size: int) -> Language:
    rules = _each(size, lambda i: f'r{i}: r{i} "+{i}," r{i + 1} | r{i + 1}')
    return constrain.Lark("start: r0\n" + "\n".join(rules) + f'\nr{size}: "x" | "(" r0 ")"')


def _lark_embedded(size: int) -> Language:
    rules = _each(size, lambda i: f'r{i}: %json {{"enum": [{i}, "v{i}"]}}')
    return constrain.Lark(f'start: ({" | ".join(f"r{i}" for i in range(size))}) ";"\n' + "\n".join(rules))


def _regex(make: Callable[[int], str], dialect: str = "rust") -> Callable[[int], Language]:
    return lambda size: constrain.Regex(make(size), dialect=dialect)


def _pattern(make: Callable[[int], str]) -> Callable[[int], Language]:
    return lambda size: {"type": "string", "pattern": make(size)}


def _periods(size: int) -> Language:
    periods = (11, 13, 17, 19, 23, 29, 31, 37)
    return {"allOf": [{"type": "string", "pattern": f"^(.{{{period}}}a?){{{size},}}$"} for period in periods]}


FAMILIES: dict[str, Family] = {
    "enum of objects": Family(lambda n: {"enum": _each(n, lambda i: {"a": i})}, 45_000),
    "enum of different objects": Family(lambda n: {"enum": _each(n, lambda i: {f"a{i}": i, "b": [i]})}, 20_000),
    "enum of arrays": Family(lambda n: {"enum": _each(n, lambda i: [i, str(i), None])}, 45_000),
    "enum of strings": Family(lambda n: {"enum": _each(n, lambda i: f"value {i}")}, 200_000),
    "enum of long strings": Family(lambda n: {"enum": _each(n, lambda i: f"{i} " + "long text " * 500)}, 1_000),
    "enum of strings of quotes": Family(lambda n: {"enum": _each(n, lambda i: f"{i} " + '"\n\\' * 500)}, 1_000),
    "enum of integers": Family(lambda n: {"enum": _each(n, lambda i: i)}, 200_000),
    "enum of fractions": Family(lambda n: {"enum": _each(n, lambda i: i + 0.1)}, 50_000),
    "enum of fractions, any spelling": Family(
        lambda n: {"enum": _each(n, lambda i: i + 0.1)}, 20_000, (("numbers", "any"),)
    ),
    "enum of huge integers": Family(lambda n: {"enum": _each(n, lambda i: 10**300 + i)}, 5_000),
    "many enums": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"enum": _each(20, lambda j: f"{i} {j}")})}, 5_000
    ),
    "const of a long array": Family(lambda n: {"const": _each(n, lambda i: i)}, 40_000),
    "const of a wide object": Family(lambda n: {"const": _named("k", n, lambda i: i)}, 20_000),
    "const of nested arrays": Family(lambda n: {"const": _nested(n, 1, lambda inner, i: [inner, i])}, 400),
    "references one after the other": Family(_ref_chain, 20_000),
    "references to references": Family(_bare_ref_chain, 20_000),
    "references into a chain of references": Family(_refs_into_bare_chain, 5_000),
    "definitions": Family(_definitions, 20_000),
    "definitions that name each other": Family(_mutual_definitions, 1_000),
    "definitions of objects of each other": Family(_object_definitions, 8_000),
    "anchors": Family(_anchors, 20_000),
    "resources": Family(_resources, 5_000),
    "dynamic references": Family(_dynamic, 300),
    "properties": Family(
        lambda n: {"type": "object", "properties": _named("p", n, lambda i: {"maxLength": i + 1})}, 40_000
    ),
    "properties of strings": Family(
        lambda n: {"type": "object", "properties": _named("p", n, lambda i: {"type": "string", "maxLength": i + 1})},
        40_000,
    ),
    "properties of bounded integers": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"type": "integer", "minimum": i, "maximum": 3 * i})}, 20_000
    ),
    "properties of bounded numbers": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"type": "number", "minimum": i / 7, "maximum": 3 * i})},
        5_000,
    ),
    "properties of bounded numbers, any spelling": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"type": "number", "minimum": i / 7, "maximum": 3 * i})},
        2_000,
        (("numbers", "any"),),
    ),
    "properties of multiples": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"type": "integer", "multipleOf": i + 1})}, 5_000
    ),
    "properties of fractions of multiples": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"type": "number", "multipleOf": (i + 1) / 100})}, 2_000
    ),
    "properties with patterns": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"type": "string", "pattern": f"^[a-z]{{{i}}}x*$"})}, 10_000
    ),
    "properties with open patterns": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"type": "string", "pattern": f"a{i}.*b{i}"})}, 10_000
    ),
    "properties with lookahead": Family(
        lambda n: {"properties": _named("p", n, lambda i: {"pattern": f"^(?=.*a{i})(?!.*b{i}).*$", "type": "string"})},
        2_000,
    ),
    "properties with formats": Family(
        lambda n: {
            "properties": _named(
                "p",
                n,
                lambda i: {
                    "type": "string",
                    "format": ("email", "uri", "date-time", "ipv6", "hostname", "idn-email", "iri", "time")[i % 8],
                    "maxLength": i + 100,
                },
            )
        },
        2_000,
    ),
    "required properties": Family(
        lambda n: {"properties": _named("p", n, lambda _: {"type": "integer"}), "required": _each(n, "p{}".format)},
        40_000,
    ),
    "required properties in any order": Family(
        lambda n: {"properties": _named("p", n, lambda _: {"type": "integer"}), "required": _each(n, "p{}".format)},
        5_000,
        (("property_order", "any"),),
    ),
    "properties in any order": Family(
        lambda n: {"properties": _named("p", n, lambda _: {"type": "integer"})}, 10_000, (("property_order", "any"),)
    ),
    "required and undeclared": Family(lambda n: {"type": "object", "required": _each(n, "p{}".format)}, 20_000),
    "properties and a minimum": Family(
        lambda n: {
            "properties": _named("p", n, lambda i: {"const": i}),
            "additionalProperties": False,
            "minProperties": n // 2,
        },
        5_000,
    ),
    "draft-4 bounds": Family(
        lambda n: {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": _named(
                "p",
                n,
                lambda i: {"minimum": i, "exclusiveMinimum": True, "maximum": i * 9 + 5, "exclusiveMaximum": True},
            ),
        },
        5_000,
    ),
    "long property names": Family(
        lambda n: {"properties": _named("long name " * 1000, n, lambda _: {"type": "null"})}, 300
    ),
    "prefix items": Family(lambda n: {"prefixItems": _each(n, lambda i: {"const": i})}, 40_000),
    "prefix items, at least": Family(
        lambda n: {"prefixItems": _each(n, lambda i: {"enum": [i, str(i)]}), "minItems": n, "items": False}, 20_000
    ),
    "count of items": Family(lambda n: {"items": {"enum": [1, 2]}, "minItems": n, "maxItems": 2 * n}, 10**9),
    "arrays in arrays": Family(
        lambda n: _nested(n, {"type": "null"}, lambda inner, _: {"items": inner, "type": "array"}), 400
    ),
    "objects in objects": Family(
        lambda n: _nested(n, {}, lambda inner, i: {"properties": {"a": inner, "b": {"const": i}}}), 400
    ),
    "allOf in allOf": Family(lambda n: _nested(n, {"minimum": 1}, lambda inner, _: {"allOf": [inner, inner]}), 13),
    "anyOf in anyOf": Family(
        lambda n: _nested(n, {"minimum": 1}, lambda inner, i: {"anyOf": [inner, {"const": i}]}), 50
    ),
    "not in not": Family(
        lambda n: _nested(n, {"pattern": "a.*b"}, lambda inner, i: {"not": {"allOf": [inner, {"minLength": i}]}}), 25
    ),
    "not of objects in not": Family(
        lambda n: _nested(
            n,
            {"required": ["a"]},
            lambda inner, i: {"not": {"allOf": [{"properties": {f"p{i}": inner}}, {"required": [f"q{i}"]}]}},
        ),
        20,
    ),
    "allOf of not const": Family(_negated(lambda i: {"const": i}), 5_000),
    "allOf of not const strings": Family(_negated(lambda i: {"const": f"value {i}"}), 5_000),
    "allOf of not enum": Family(_negated(lambda i: {"enum": [i, str(i), i + 0.5]}, type=["string", "number"]), 3_000),
    "allOf of not const objects": Family(_negated(lambda i: {"const": {"a": i}}), 1_000),
    "allOf of not const arrays": Family(_negated(lambda i: {"const": [i]}), 1_000),
    "allOf of not required": Family(_negated(lambda i: {"required": [f"a{i}"]}), 3_000),
    "allOf of not properties": Family(_negated(lambda i: {"properties": {f"a{i}": {"const": i}}}), 1_000),
    "allOf of not patterns": Family(_negated(lambda i: {"pattern": f"^a{i}"}, type="string"), 1_000),
    "allOf of not open patterns": Family(_negated(lambda i: {"pattern": f"a{i}b"}, type="string"), 500),
    "allOf of not multiples": Family(_negated(lambda i: {"multipleOf": i + 2}, type="integer"), 1_000),
    "allOf of not ranges": Family(_negated(lambda i: {"minimum": 3 * i, "maximum": 3 * i + 1}, type="integer"), 1_000),
    "allOf of not ranges of numbers": Family(_negated(lambda i: {"minimum": 3 * i, "maximum": 3 * i + 1}), 500),
    "allOf of not lengths": Family(
        _negated(lambda i: {"minLength": 3 * i, "maxLength": 3 * i + 1}, type="string"), 1_000
    ),
    "allOf of not items": Family(_negated(lambda i: {"items": {"const": i}}), 1_000),
    "not of anyOf const": Family(_alternatives("anyOf", lambda i: {"const": i}, not_one=True), 20_000),
    "not of enum of objects": Family(lambda n: {"not": {"enum": _each(n, lambda i: {"a": i})}}, 5_000),
    "not of enum of strings": Family(lambda n: {"not": {"enum": _each(n, str)}, "type": "string"}, 20_000),
    "not of enum of integers": Family(lambda n: {"not": {"enum": _each(n, int)}, "type": "integer"}, 20_000),
    "not of enum of fractions": Family(lambda n: {"not": {"enum": _each(n, lambda i: i / 7)}, "type": "number"}, 5_000),
    "allOf of minimums": Family(_alternatives("allOf", lambda i: {"minimum": i}), 20_000),
    "allOf of multiples": Family(_alternatives("allOf", lambda i: {"multipleOf": i % 90 + 1}), 20_000),
    "allOf of lengths": Family(_alternatives("allOf", lambda i: {"minLength": i}), 20_000),
    "allOf of patterns": Family(_alternatives("allOf", lambda i: {"pattern": f"a{i}"}), 500),
    "allOf of anchored patterns": Family(_alternatives("allOf", lambda i: {"pattern": f"^.{{{i}}}a"}), 200),
    "allOf of objects": Family(_alternatives("allOf", _branch), 3_000),
    "allOf of closed objects": Family(
        _alternatives("allOf", lambda i: {"properties": {"a": {"maximum": i}}, "additionalProperties": False}), 5_000
    ),
    "allOf of the same key": Family(_alternatives("allOf", lambda i: {"properties": {"a": {"minLength": i}}}), 5_000),
    "allOf of key patterns": Family(
        _alternatives("allOf", lambda i: {"patternProperties": {f"^a{i}": {"minLength": i}}}), 190
    ),
    "allOf of items": Family(_alternatives("allOf", lambda i: {"items": {"minimum": i}}), 5_000),
    "allOf of prefix items": Family(
        _alternatives("allOf", lambda i: {"prefixItems": [True] * i + [{"const": 1}]}), 500
    ),
    "allOf of contains": Family(_alternatives("allOf", lambda i: {"contains": {"const": i}}), 100),
    "allOf of references": Family(
        lambda n: {"$defs": _named("d", n, _branch), "allOf": _each(n, lambda i: {"$ref": f"#/$defs/d{i}"})}, 3_000
    ),
    "allOf of enums": Family(_alternatives("allOf", lambda _: {"enum": _each(1000, str)}), 500),
    "anyOf of consts": Family(_alternatives("anyOf", lambda i: {"const": f"value {i}"}), 50_000),
    "anyOf of objects": Family(_alternatives("anyOf", _branch), 900),
    "anyOf of arrays": Family(_alternatives("anyOf", lambda i: {"type": "array", "items": {"const": i}}), 900),
    "anyOf of patterns": Family(_alternatives("anyOf", lambda i: {"type": "string", "pattern": f"a{i}.*b"}), 900),
    "anyOf of ranges": Family(
        _alternatives("anyOf", lambda i: {"type": "integer", "minimum": 3 * i, "maximum": 3 * i + 1}), 900
    ),
    "oneOf of consts": Family(_alternatives("oneOf", lambda i: {"const": f"value {i}"}), 20_000),
    "oneOf of tagged objects": Family(_one_of_tagged, 900),
    "oneOf of objects": Family(_alternatives("oneOf", _branch), 300),
    "oneOf of patterns": Family(_alternatives("oneOf", lambda i: {"type": "string", "pattern": f"a{i}"}), 300),
    "oneOf of prefixes": Family(_alternatives("oneOf", lambda i: {"type": "string", "pattern": f"^a{i}x"}), 300),
    "oneOf of ranges": Family(
        _alternatives("oneOf", lambda i: {"type": "integer", "minimum": 3 * i, "maximum": 3 * i + 1}), 900
    ),
    "oneOf of enums of objects": Family(
        lambda n: {"oneOf": [{"enum": [[j, {"a": [i % 50]}] for j in range(i, i + 40)]} for i in range(n)]}, 3_000
    ),
    "oneOf of multiples": Family(_alternatives("oneOf", lambda i: {"type": "integer", "multipleOf": i + 2}), 100),
    "products of objects": Family(_products, 60),
    "products of strings": Family(_string_products, 30),
    "products of numbers": Family(_number_products, 500),
    "unevaluated keys of anyOf": Family(_unevaluated, 290),
    "unevaluated keys of allOf": Family(_unevaluated_all, 1_000),
    "unevaluated items of anyOf": Family(_unevaluated_items, 290),
    "property names": Family(_keys_named, 20_000),
    "property names and properties": Family(_keys_named_and_declared, 10_000),
    "property names that are excluded": Family(
        lambda n: {"type": "object", "propertyNames": {"not": {"enum": _each(n, lambda i: f"key{i}")}}}, 20_000
    ),
    "key patterns": Family(lambda n: {"patternProperties": _named("^a", n, lambda i: {"minimum": i})}, 190),
    "key patterns and properties": Family(_patterns_and_keys, 5_000),
    "key patterns that overlap": Family(_overlapping_key_patterns, 190),
    "dependentRequired": Family(_dependent, 2_000),
    "dependentRequired, lists": Family(_dependent_lists, 500),
    "dependentSchemas": Family(_dependent_schemas, 500),
    "conditions in conditions": Family(_conditions, 55),
    "conditions on a key": Family(_many_conditions, 200),
    "conditions on a string": Family(_string_conditions, 1_000),
    "unique items of a range": Family(
        lambda n: {"items": {"type": "integer", "minimum": 0, "maximum": n}, "uniqueItems": True, "minItems": 290},
        9_000,
    ),
    "unique items of objects": Family(
        lambda n: {"items": {"enum": _each(n, lambda i: {"k": i, f"v{i}": i})}, "uniqueItems": True}, 9_000
    ),
    "unique prefix items": Family(
        lambda n: {"prefixItems": _each(n, lambda i: {"enum": [i, i + 1]}), "uniqueItems": True}, 3_000
    ),
    "many unique arrays": Family(
        lambda n: {
            "properties": _named("p", n, lambda i: {"items": {"enum": [i, i + 1, str(i)]}, "uniqueItems": True})
        },
        3_000,
    ),
    "many unique arrays of objects": Family(
        lambda n: {
            "properties": _named(
                "p",
                n,
                lambda i: {
                    "type": "array",
                    "items": {"properties": {"a": {"enum": [i, i + 1]}, "b": {"type": "boolean"}}},
                    "uniqueItems": True,
                },
            )
        },
        1_000,
    ),
    "contains, counted": Family(lambda n: {"contains": {"const": 1}, "minContains": n, "maxContains": 2 * n}, 5_000),
    "arguments in conditions": Family(
        lambda n: {"type": "object", "anyOf": _each(n, lambda i: {"not": _branch(i)})}, 500
    ),
    "periods": Family(_periods, 9),
    "pattern: long": Family(_pattern(lambda n: "^" + "ab" * n + "$"), 200_000),
    "pattern: alternatives": Family(_pattern(lambda n: "^(" + "|".join(f"w{i}" for i in range(n)) + ")$"), 30_000),
    "pattern: open alternatives": Family(_pattern(lambda n: "|".join(f"w{i}x" for i in range(n))), 5_000),
    "pattern: optional parts": Family(
        _pattern(lambda n: "^" + "".join(f"{chr(97 + i % 26)}?" for i in range(n)) + "$"), 3_000
    ),
    "pattern: classes": Family(_pattern(lambda n: "^" + "[a-zA-Z\u00e4-\u00ff]" * n + "$"), 20_000),
    "pattern: classes of letters": Family(_pattern(lambda n: "^" + r"\p{L}" * n + "$"), 5_000),
    "pattern: groups": Family(_pattern(lambda n: "^" + "(" * n + "a" + ")" * n + "$"), 900),
    "pattern: counts": Family(_pattern(lambda n: f"^((a{{1,50}}b){{1,50}}c){{1,{n}}}$"), 50),
    "pattern: counts in counts": Family(_pattern(lambda n: _nested(n, "a", lambda inner, _: f"({inner}){{1,3}}")), 20),
    "pattern: lookahead": Family(_pattern(lambda n: "^" + "".join(f"(?=.*a{i})" for i in range(n)) + ".*$"), 100),
    "pattern: negative lookahead": Family(
        _pattern(lambda n: "^" + "".join(f"(?!.*a{i}b)" for i in range(n)) + ".*$"), 200
    ),
    "pattern: stars": Family(_pattern(lambda n: "^" + "".join(f"([a-z]*{i})*" for i in range(n)) + "$"), 1_000),
    "pattern: any and length": Family(lambda n: {"pattern": f"a.{{{n}}}b", "maxLength": 500, "type": "string"}, 14),
    "regex: alternatives": Family(_regex(lambda n: "|".join(f"w{i}[0-9]*" for i in range(n))), 20_000),
    "regex: parts": Family(_regex(lambda n: "".join(f"(a{i}|b{i}*)" for i in range(n))), 10_000),
    "regex: case": Family(_regex(lambda n: "(?i)" + "straße" * n), 5_000),
    "regex: words": Family(_regex(lambda n: "|".join(rf"(\w+\s)*\bw{i}\b" for i in range(n)), "python"), 100),
    "lark: terminals": Family(_lark_terminals, 4_500),
    "lark: words": Family(_lark_words, 5_000),
    "lark: rules": Family(_lark_rules, 3_000),
    "lark: nullable rules": Family(_lark_nullable, 1_000),
    "lark: ambiguous rules": Family(_lark_ambiguous, 500),
    "lark: chain of terminals": Family(_lark_terminal_chain, 1_000),
    "lark: optional parts": Family(_lark_many_ways, 1_000),
    "lark: left recursion": Family(_lark_left_recursion, 500),
    "lark: embedded schemas": Family(_lark_embedded, 1_000),
    "pydantic: a union": Family(_pydantic_union, 300),
    "pydantic: fields": Family(_pydantic_fields, 1_000),
    "pydantic: nested": Family(_pydantic_nested, 100),
    "pydantic: a literal": Family(_pydantic_literal, 10_000),
}


@dataclass(frozen=True)
class Cost:
    """What compiling took. ``outcome``: "compiles", or the error's name and what it says."""

    outcome: str
    seconds: float
    memory: int
    steps: int = 0


PROGRAM = """
import json, resource, sys, time
import constrain
from tests.support.hostile_schemas import FAMILIES
name, size = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
vocabulary = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
constrain.compile({"properties": {"a": {"type": "integer"}}}, vocabulary, cache=False)
language = FAMILIES[name].make(size)
if "pydantic" in name:
    from pydantic import TypeAdapter
    TypeAdapter(language).json_schema()
before = int(open("/proc/self/status").read().split("VmRSS:")[1].split()[0])
begun = time.process_time()
try:
    constrain.compile(language, vocabulary, cache=False, **dict(FAMILIES[name].options))
    outcome = "compiles"
except constrain.ConstrainError as error:
    outcome = f"{type(error).__name__}: {error}"
except MemoryError:
    outcome = "MemoryError"
seconds = time.process_time() - begun
try:
    from constrain.work import steps_taken
    steps = steps_taken()
except ImportError:
    steps = 0
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
print(json.dumps([outcome, seconds, (peak - before) << 10, steps]))
"""


def cost(name: str, size: int | None = None, timeout: float = 60.0) -> Cost:
    """What it takes to compile a language of a family in a process of its own: processor time, and memory at most."""
    command = [sys.executable, "-c", PROGRAM, name, str(FAMILIES[name].size if size is None else size)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Cost(f"more than {timeout:.0f} s", timeout, 0)
    if done.returncode:
        return Cost(f"exit status {done.returncode}: {done.stderr.strip()[-200:]}", 0.0, 0)
    return Cost(*json.loads(done.stdout))
