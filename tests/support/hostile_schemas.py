"""Schemas, patterns and grammars that are legal and made to take long, of any size; what compiling one takes.

Each of ``FAMILIES`` makes one of a given size. ``benchmarks/hostile.py`` writes a table of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import pydantic

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


def _ref(number: int, name: str = "d") -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}{number}"}


def _defined(count: int, make: Callable[[int], Any], **beside: Any) -> Language:
    """A schema with so many definitions."""
    return {"$defs": _named("d", count, make), **beside}


def _used(make: Callable[[int], Any], ref: str = "#/$defs/d{}", **beside: Any) -> Callable[[int], Language]:
    """Definitions, each of which is the schema of a property."""
    return lambda n: _defined(n, make, **beside, properties=_named("p", n, lambda i: {"$ref": ref.format(i)}))


def _chain(size: int, wrap: Callable[[Any], Any], last: Any) -> dict[str, Any]:
    """Definitions, each with a reference to the next."""
    return {**_named("d", size, lambda i: wrap(_ref(i + 1))), f"d{size}": last}


def _mutual_definitions(size: int) -> Language:
    def definition(i: int) -> Any:
        others = [{"items": _ref((i * 7 + j) % size)} for j in range(1, 5)]
        return {"anyOf": [*others, {"type": "object", "maxProperties": i}]}

    return _defined(size, definition, items=_ref(0))


def _object_definitions(size: int) -> Language:
    def definition(i: int) -> Any:
        return {"type": "object", "properties": _named("p", 5, lambda j: _ref((i * 7 + j) % size))}

    return _defined(size, definition, **_ref(0))


def _dynamic(size: int) -> Language:
    def resource(i: int) -> Any:
        inside = {"x": {"$ref": f"r{(i + 1) % size}"}, "y": {"$dynamicRef": "#n"}}
        return {"$id": f"r{i}", "$dynamicAnchor": "n", "properties": inside}

    return {"$id": "http://example.com/", **_defined(size, resource), "$ref": "r0"}


def _conditions(size: int) -> Language:
    return _nested(size, {"type": "null"}, lambda inner, i: {"if": {"const": i}, "then": {"const": i}, "else": inner})


def _keys_named_and_declared(size: int) -> Language:
    names = _each(size, "key{}".format)
    return {"propertyNames": {"enum": names}, "properties": {name: {"maxLength": 9} for name in names}}


def _dependent_lists(size: int) -> Language:
    names = _each(size, "a{}".format)
    return {"properties": dict.fromkeys(names, True), "dependentRequired": dict.fromkeys(names, names)}


def _tagged(i: int) -> Any:
    members = {"kind": {"const": f"k{i}"}, "value": {"type": "integer"}}
    return {"type": "object", "properties": members, "required": ["kind"]}


def _list(keyword: str, make: Callable[[int], Any], **beside: Any) -> Callable[[int], Language]:
    """So many schemas or values below a keyword."""
    return lambda size: {keyword: _each(size, make), **beside}


def _properties(make: Callable[[int], Any], **beside: Any) -> Callable[[int], Language]:
    return lambda size: {"properties": _named("p", size, make), **beside}


def _negated(make: Callable[[int], Any], **beside: Any) -> Callable[[int], Language]:
    return _list("allOf", lambda i: {"not": make(i)}, **beside)


def _not(make: Callable[[int], Any], keyword: str = "enum", **beside: Any) -> Callable[[int], Language]:
    return lambda size: {"not": {keyword: _each(size, make)}, **beside}


def _deep(inner: Any, wrap: Callable[[Any, int], Any]) -> Callable[[int], Language]:
    return lambda size: _nested(size, inner, wrap)


def _pydantic_union(size: int) -> Language:
    kinds: list[Any] = _each(size, lambda i: pydantic.create_model(f"Kind{i}", name=(str, ...), number=(int, i)))
    return reduce(lambda union, kind: union | kind, kinds)


def _pydantic_fields(size: int) -> Language:
    fields: dict[str, Any] = _named("field", size, lambda i: (int, pydantic.Field(ge=i, lt=i + 7)))
    return pydantic.create_model("Wide", **fields)


def _pydantic_nested(size: int) -> Language:
    def level(inner: Any, number: int) -> Any:
        return pydantic.create_model(f"Level{number}", child=(inner, ...), other=(inner | None, None))

    return _nested(size, int, level)


def _lark(start: str, make: Callable[[int, int], str], last: str = "") -> Callable[[int], Language]:
    """A grammar with a line for each number; ``last``: the line behind them, with the size in it."""

    def language(size: int) -> Language:
        lines = [start, *(make(i, size) for i in range(size)), *([last.format(size)] if last else [])]
        return constrain.Lark("\n".join(lines))

    return language


def _lark_of_alternatives(form: str, make: Callable[[int], str], line: Callable[[int], str] | None = None) -> Any:
    def language(size: int) -> Language:
        return constrain.Lark(
            "\n".join([form.format(" | ".join(_each(size, make))), *(_each(size, line) if line else [])])
        )

    return language


def _regex(make: Callable[[int], str], dialect: str = "rust") -> Callable[[int], Language]:
    return lambda size: constrain.Regex(make(size), dialect=dialect)


def _pattern(make: Callable[[int], str]) -> Callable[[int], Language]:
    return lambda size: {"type": "string", "pattern": make(size)}


def _periods(size: int) -> Language:
    periods = (11, 13, 17, 19, 23, 29, 31, 37)
    return {"allOf": [{"type": "string", "pattern": f"^(.{{{period}}}a?){{{size},}}$"} for period in periods]}


_FORMATS = ("email", "uri", "date-time", "ipv6", "hostname", "idn-email", "iri", "time")
_ANY_NUMBERS, _ANY_ORDER = (("numbers", "any"),), (("property_order", "any"),)
_P = "p{}".format


_OF_SIZE: dict[int, dict[str, Callable[[int], Language]]] = {
    45_000: {
        "enum of objects": _list("enum", lambda i: {"a": i}),
        "enum of arrays": _list("enum", lambda i: [i, str(i), None]),
    },
    20_000: {
        "enum of different objects": _list("enum", lambda i: {f"a{i}": i, "b": [i]}),
        "enum of fractions, any spelling": _list("enum", lambda i: i + 0.1),
        "const of a wide object": lambda n: {"const": _named("k", n, lambda i: i)},
        "references one after the other": lambda n: {
            "$defs": _chain(n, lambda ref: {"properties": {"x": ref}}, {}),
            **_ref(0),
        },
        "references to references": lambda n: {"$defs": _chain(n, dict, {"type": "null"}), "items": _ref(0)},
        "definitions": _used(lambda i: {"type": "object", "properties": {"v": {"const": i}}}),
        "anchors": _used(lambda i: {"$anchor": f"a{i}", "const": i}, "#a{}"),
        "properties of bounded integers": _properties(lambda i: {"type": "integer", "minimum": i, "maximum": 3 * i}),
        "required and undeclared": _list("required", _P, type="object"),
        "prefix items, at least": lambda n: _list(
            "prefixItems", lambda i: {"enum": [i, str(i)]}, minItems=n, items=False
        )(n),
        "not of anyOf const": _not(lambda i: {"const": i}, "anyOf"),
        "not of enum of strings": _not(str, type="string"),
        "not of enum of integers": _not(int, type="integer"),
        "allOf of minimums": _list("allOf", lambda i: {"minimum": i}),
        "allOf of multiples": _list("allOf", lambda i: {"multipleOf": i % 90 + 1}),
        "allOf of lengths": _list("allOf", lambda i: {"minLength": i}),
        "oneOf of consts": _list("oneOf", lambda i: {"const": f"value {i}"}),
        "property names": lambda n: {"type": "object", "propertyNames": {"enum": _each(n, "key{}".format)}},
        "property names that are excluded": lambda n: {
            "type": "object",
            "propertyNames": {"not": {"enum": _each(n, "key{}".format)}},
        },
        "pattern: classes": _pattern(lambda n: "^" + "[a-zA-Z\u00e4-\u00ff]" * n + "$"),
        "regex: alternatives": _regex(lambda n: "|".join(f"w{i}[0-9]*" for i in range(n))),
    },
    200_000: {
        "enum of strings": _list("enum", "value {}".format),
        "enum of integers": _list("enum", int),
        "pattern: long": _pattern(lambda n: "^" + "ab" * n + "$"),
    },
    1_000: {
        "enum of long strings": _list("enum", lambda i: f"{i} " + "long text " * 500),
        "enum of strings of quotes": _list("enum", lambda i: f"{i} " + '"\n\\' * 500),
        "definitions that name each other": _mutual_definitions,
        "allOf of not const objects": _negated(lambda i: {"const": {"a": i}}),
        "allOf of not const arrays": _negated(lambda i: {"const": [i]}),
        "allOf of not properties": _negated(lambda i: {"properties": {f"a{i}": {"const": i}}}),
        "allOf of not patterns": _negated(lambda i: {"pattern": f"^a{i}"}, type="string"),
        "allOf of not multiples": _negated(lambda i: {"multipleOf": i + 2}, type="integer"),
        "allOf of not ranges": _negated(lambda i: {"minimum": 3 * i, "maximum": 3 * i + 1}, type="integer"),
        "allOf of not lengths": _negated(lambda i: {"minLength": 3 * i, "maxLength": 3 * i + 1}, type="string"),
        "allOf of not items": _negated(lambda i: {"items": {"const": i}}),
        "unevaluated keys of allOf": _list("allOf", _branch, unevaluatedProperties=False),
        "conditions on a string": _list(
            "allOf", lambda i: {"if": {"const": f"k{i}"}, "then": {"maxLength": i + 1}}, type="string"
        ),
        "many unique arrays of objects": _properties(
            lambda i: {
                "type": "array",
                "items": {"properties": {"a": {"enum": [i, i + 1]}, "b": {"type": "boolean"}}},
                "uniqueItems": True,
            }
        ),
        "pattern: stars": _pattern(lambda n: "^" + "".join(f"([a-z]*{i})*" for i in range(n)) + "$"),
        "lark: nullable rules": _lark("start: r0", lambda i, _: f"r{i}: r{i + 1}? r{i + 1}?", 'r{}: "end"'),
        "lark: chain of terminals": _lark("start: T0", lambda i, _: f'T{i}: "a" T{i + 1} | "b" T{i + 1}', 'T{}: "c"'),
        "lark: optional parts": lambda n: constrain.Lark(
            "start: " + " ".join(f'("a{i},"|"b{i},")?' for i in range(n)) + ' "."'
        ),
        "lark: embedded schemas": _lark_of_alternatives(
            'start: ({}) ";"', "r{}".format, lambda i: f'r{i}: %json {{"enum": [{i}, "v{i}"]}}'
        ),
        "pydantic: fields": _pydantic_fields,
    },
    50_000: {
        "enum of fractions": _list("enum", lambda i: i + 0.1),
        "anyOf of consts": _list("anyOf", lambda i: {"const": f"value {i}"}),
    },
    5_000: {
        "enum of huge integers": _list("enum", lambda i: 10**300 + i),
        "many enums": _properties(lambda i: {"enum": _each(20, lambda j: f"{i} {j}")}),
        "references into a chain of references": lambda n: {
            "$defs": _chain(n, dict, {"type": "null"}),
            **_properties(_ref)(n),
        },
        "resources": _used(
            lambda i: {"$id": f"http://example.com/{i}", "const": i},
            "http://example.com/{}",
            **{"$id": "http://example.com/"},
        ),
        "properties of bounded numbers": _properties(lambda i: {"type": "number", "minimum": i / 7, "maximum": 3 * i}),
        "properties of multiples": _properties(lambda i: {"type": "integer", "multipleOf": i + 1}),
        "required properties in any order": lambda n: {
            **_properties(lambda _: {"type": "integer"})(n),
            "required": _each(n, _P),
        },
        "properties and a minimum": lambda n: _properties(
            lambda i: {"const": i}, additionalProperties=False, minProperties=n // 2
        )(n),
        "draft-4 bounds": _properties(
            lambda i: {"minimum": i, "exclusiveMinimum": True, "maximum": i * 9 + 5, "exclusiveMaximum": True},
            **{"$schema": "http://json-schema.org/draft-04/schema#"},
        ),
        "allOf of not const": _negated(lambda i: {"const": i}),
        "allOf of not const strings": _negated(lambda i: {"const": f"value {i}"}),
        "not of enum of objects": _not(lambda i: {"a": i}),
        "not of enum of fractions": _not(lambda i: i / 7, type="number"),
        "allOf of closed objects": _list(
            "allOf", lambda i: {"properties": {"a": {"maximum": i}}, "additionalProperties": False}
        ),
        "allOf of the same key": _list("allOf", lambda i: {"properties": {"a": {"minLength": i}}}),
        "allOf of items": _list("allOf", lambda i: {"items": {"minimum": i}}),
        "key patterns and properties": lambda n: {
            "properties": _named("a", n, lambda i: {"type": "integer", "maximum": i}),
            "patternProperties": _named("^a", 150, lambda i: {"minimum": i}),
        },
        "contains, counted": lambda n: {"contains": {"const": 1}, "minContains": n, "maxContains": 2 * n},
        "pattern: open alternatives": _pattern(lambda n: "|".join(f"w{i}x" for i in range(n))),
        "pattern: classes of letters": _pattern(lambda n: "^" + r"\p{L}" * n + "$"),
        "regex: case": _regex(lambda n: "(?i)" + "straße" * n),
        "lark: words": _lark_of_alternatives("start: ({})+", '"word{} "'.format),
    },
    40_000: {
        "const of a long array": lambda n: {"const": _each(n, lambda i: i)},
        "properties": _properties(lambda i: {"maxLength": i + 1}, type="object"),
        "properties of strings": _properties(lambda i: {"type": "string", "maxLength": i + 1}, type="object"),
        "required properties": lambda n: {**_properties(lambda _: {"type": "integer"})(n), "required": _each(n, _P)},
        "prefix items": _list("prefixItems", lambda i: {"const": i}),
    },
    400: {
        "const of nested arrays": lambda n: {"const": _nested(n, 1, lambda inner, i: [inner, i])},
        "arrays in arrays": _deep({"type": "null"}, lambda inner, _: {"items": inner, "type": "array"}),
        "objects in objects": _deep({}, lambda inner, i: {"properties": {"a": inner, "b": {"const": i}}}),
    },
    8_000: {"definitions of objects of each other": _object_definitions},
    300: {
        "dynamic references": _dynamic,
        "long property names": lambda n: {"properties": _named("long name " * 1000, n, lambda _: {"type": "null"})},
        "oneOf of objects": _list("oneOf", _branch),
        "oneOf of patterns": _list("oneOf", lambda i: {"type": "string", "pattern": f"a{i}"}),
        "oneOf of prefixes": _list("oneOf", lambda i: {"type": "string", "pattern": f"^a{i}x"}),
        "pydantic: a union": _pydantic_union,
    },
    2_000: {
        "properties of bounded numbers, any spelling": _properties(
            lambda i: {"type": "number", "minimum": i / 7, "maximum": 3 * i}
        ),
        "properties of fractions of multiples": _properties(lambda i: {"type": "number", "multipleOf": (i + 1) / 100}),
        "properties with lookahead": _properties(lambda i: {"pattern": f"^(?=.*a{i})(?!.*b{i}).*$", "type": "string"}),
        "properties with formats": _properties(
            lambda i: {"type": "string", "format": _FORMATS[i % 8], "maxLength": i + 100}
        ),
        "dependentRequired": lambda n: {"dependentRequired": _named("a", n, lambda i: [f"a{i * 7 % n}"])},
    },
    10_000: {
        "properties with patterns": _properties(lambda i: {"type": "string", "pattern": f"^[a-z]{{{i}}}x*$"}),
        "properties with open patterns": _properties(lambda i: {"type": "string", "pattern": f"a{i}.*b{i}"}),
        "properties in any order": _properties(lambda _: {"type": "integer"}),
        "property names and properties": _keys_named_and_declared,
        "regex: parts": _regex(lambda n: "".join(f"(a{i}|b{i}*)" for i in range(n))),
        "pydantic: a literal": lambda n: Literal.__getitem__(tuple(f"value {i}" for i in range(n))),
    },
    10**9: {"count of items": lambda n: {"items": {"enum": [1, 2]}, "minItems": n, "maxItems": 2 * n}},
    13: {"allOf in allOf": _deep({"minimum": 1}, lambda inner, _: {"allOf": [inner, inner]})},
    50: {
        "anyOf in anyOf": _deep({"minimum": 1}, lambda inner, i: {"anyOf": [inner, {"const": i}]}),
        "pattern: counts": _pattern(lambda n: f"^((a{{1,50}}b){{1,50}}c){{1,{n}}}$"),
    },
    25: {"not in not": _deep({"pattern": "a.*b"}, lambda inner, i: {"not": {"allOf": [inner, {"minLength": i}]}})},
    20: {
        "not of objects in not": _deep(
            {"required": ["a"]},
            lambda inner, i: {"not": {"allOf": [{"properties": {f"p{i}": inner}}, {"required": [f"q{i}"]}]}},
        ),
        "pattern: counts in counts": _pattern(lambda n: _nested(n, "a", lambda inner, _: f"({inner}){{1,3}}")),
    },
    3_000: {
        "allOf of not enum": _negated(lambda i: {"enum": [i, str(i), i + 0.5]}, type=["string", "number"]),
        "allOf of not required": _negated(lambda i: {"required": [f"a{i}"]}),
        "allOf of objects": _list("allOf", _branch),
        "allOf of references": lambda n: _defined(n, _branch, allOf=_each(n, _ref)),
        "oneOf of enums of objects": _list(
            "oneOf", lambda i: {"enum": [[j, {"a": [i % 50]}] for j in range(i, i + 40)]}
        ),
        "unique prefix items": _list("prefixItems", lambda i: {"enum": [i, i + 1]}, uniqueItems=True),
        "many unique arrays": _properties(lambda i: {"items": {"enum": [i, i + 1, str(i)]}, "uniqueItems": True}),
        "pattern: optional parts": _pattern(lambda n: "^" + "".join(f"{chr(97 + i % 26)}?" for i in range(n)) + "$"),
        "lark: rules": _lark("start: r0", lambda i, _: f'r{i}: "a{i}," r{i + 1} | "b{i},"', 'r{}: "end"'),
    },
    500: {
        "allOf of not open patterns": _negated(lambda i: {"pattern": f"a{i}b"}, type="string"),
        "allOf of not ranges of numbers": _negated(lambda i: {"minimum": 3 * i, "maximum": 3 * i + 1}),
        "allOf of patterns": _list("allOf", lambda i: {"pattern": f"a{i}"}),
        "allOf of prefix items": _list("allOf", lambda i: {"prefixItems": [True] * i + [{"const": 1}]}),
        "allOf of enums": _list("allOf", lambda _: {"enum": _each(1000, str)}),
        "products of numbers": _list("allOf", lambda i: {"anyOf": [{"maximum": i}, {"minimum": i + 1}]}, type="number"),
        "dependentRequired, lists": _dependent_lists,
        "dependentSchemas": lambda n: {"dependentSchemas": _named("a", n, lambda i: {"required": [f"a{i * 7 % n}"]})},
        "arguments in conditions": _list("anyOf", lambda i: {"not": _branch(i)}, type="object"),
        "lark: ambiguous rules": _lark("start: r0", lambda i, n: f'r{i}: r{(i + 1) % n} r{(i * 7 + 1) % n} | "a{i},"'),
        "lark: left recursion": _lark(
            "start: r0", lambda i, _: f'r{i}: r{i} "+{i}," r{i + 1} | r{i + 1}', 'r{}: "x" | "(" r0 ")"'
        ),
    },
    200: {
        "allOf of anchored patterns": _list("allOf", lambda i: {"pattern": f"^.{{{i}}}a"}),
        "conditions on a key": _list(
            "allOf",
            lambda i: {"if": {"properties": {"k": {"const": i}}}, "then": {"required": [f"a{i}"]}},
            type="object",
        ),
        "pattern: negative lookahead": _pattern(lambda n: "^" + "".join(f"(?!.*a{i}b)" for i in range(n)) + ".*$"),
    },
    190: {
        "allOf of key patterns": _list("allOf", lambda i: {"patternProperties": {f"^a{i}": {"minLength": i}}}),
        "key patterns": lambda n: {"patternProperties": _named("^a", n, lambda i: {"minimum": i})},
        "key patterns that overlap": lambda n: {
            "patternProperties": {f"{chr(97 + i % 26)}.*{chr(97 + i * 7 % 26)}.*{i}": {"minimum": i} for i in range(n)}
        },
    },
    100: {
        "allOf of contains": _list("allOf", lambda i: {"contains": {"const": i}}),
        "oneOf of multiples": _list("oneOf", lambda i: {"type": "integer", "multipleOf": i + 2}),
        "pattern: lookahead": _pattern(lambda n: "^" + "".join(f"(?=.*a{i})" for i in range(n)) + ".*$"),
        "regex: words": _regex(lambda n: "|".join(rf"(\w+\s)*\bw{i}\b" for i in range(n)), "python"),
        "pydantic: nested": _pydantic_nested,
    },
    900: {
        "anyOf of objects": _list("anyOf", _branch),
        "anyOf of arrays": _list("anyOf", lambda i: {"type": "array", "items": {"const": i}}),
        "anyOf of patterns": _list("anyOf", lambda i: {"type": "string", "pattern": f"a{i}.*b"}),
        "anyOf of ranges": _list("anyOf", lambda i: {"type": "integer", "minimum": 3 * i, "maximum": 3 * i + 1}),
        "oneOf of tagged objects": _list("oneOf", _tagged),
        "oneOf of ranges": _list("oneOf", lambda i: {"type": "integer", "minimum": 3 * i, "maximum": 3 * i + 1}),
        "pattern: groups": _pattern(lambda n: "^" + "(" * n + "a" + ")" * n + "$"),
    },
    60: {"products of objects": _list("allOf", lambda i: {"anyOf": [_branch(2 * i), _branch(2 * i + 1)]})},
    30: {
        "products of strings": _list(
            "allOf",
            lambda i: {"anyOf": [{"minLength": i}, {"pattern": f"^a{{{i}}}"}, {"const": f"c{i}"}]},
            type="string",
        )
    },
    290: {
        "unevaluated keys of anyOf": _list("anyOf", _branch, unevaluatedProperties=False),
        "unevaluated items of anyOf": _list(
            "anyOf", lambda i: {"prefixItems": _each(i % 50 + 1, lambda j: {"const": i * j})}, unevaluatedItems=False
        ),
    },
    55: {"conditions in conditions": _conditions},
    9_000: {
        "unique items of a range": lambda n: {
            "items": {"type": "integer", "minimum": 0, "maximum": n},
            "uniqueItems": True,
            "minItems": 290,
        },
        "unique items of objects": lambda n: {
            "items": {"enum": _each(n, lambda i: {"k": i, f"v{i}": i})},
            "uniqueItems": True,
        },
    },
    9: {"periods": _periods},
    30_000: {"pattern: alternatives": _pattern(lambda n: "^(" + "|".join(f"w{i}" for i in range(n)) + ")$")},
    14: {"pattern: any and length": lambda n: {"pattern": f"a.{{{n}}}b", "maxLength": 500, "type": "string"}},
    4_500: {"lark: terminals": _lark_of_alternatives("start: ({})+", "T{}".format, lambda i: f"T{i}: /x{i}[0-9]*y/")},
}
_OPTIONS = {
    "enum of fractions, any spelling": _ANY_NUMBERS,
    "properties of bounded numbers, any spelling": _ANY_NUMBERS,
    "required properties in any order": _ANY_ORDER,
    "properties in any order": _ANY_ORDER,
}
FAMILIES = {
    name: Family(make, size, _OPTIONS.get(name, ())) for size, rows in _OF_SIZE.items() for name, make in rows.items()
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
