"""JSON Schemas as text. The first byte of an input chooses the policies, the rest is the text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import constrain
from constrain.engine.compiling import compile_any
from tests.fuzz.judge import BrokenPromiseError, Meter
from tests.fuzz.mutation import Trees
from tests.fuzz.walking import random_of, vocabulary, walk

DECLARED = (constrain.SchemaError, constrain.PatternError, constrain.GrammarError, constrain.LimitError)
MAX_SIZE = 4096

POLICIES: tuple[dict[str, Any], ...] = (
    {},
    {"close_objects": True},
    {"property_order": "any", "formats": "annotation", "numbers": "any", "whitespace": "any"},
    {"property_order": "any", "precision": "decimal"},
    {"numbers": "any", "whitespace": "compact"},
    {"formats": "strict"},
    {"strict": True, "whitespace": "compact", "close_objects": True},
    {"numbers": "any", "precision": "decimal", "whitespace": "any"},
)


def run(data: bytes, meter: Meter) -> None:
    """Compiles the text and walks."""
    policies = {"close_objects": False, **POLICIES[(data[:1] or b"0")[0] % len(POLICIES)]}
    text = data[1:].decode("utf-8", "surrogateescape")
    with meter.call("compile"):
        made = compile_any(text, vocabulary(), cache=False, **policies)
    found = walk(made, random_of(data), meter)
    if found is None:
        return
    try:
        json.loads(found)
    except ValueError as error:
        raise BrokenPromiseError(f"{found!r} is no JSON: {error}") from error


def seeds() -> Iterable[bytes]:
    """None beside the files."""
    return ()


def mutate(data: bytes, rng: Random, mutate_bytes: Callable[[bytes], bytes]) -> bytes:
    """Other policies, or a changed tree."""
    head = bytes([48 + rng.randrange(len(POLICIES))]) if rng.random() < 0.1 or not data else data[:1]
    return head + _TREES.mutated(data[1:], rng, mutate_bytes)


_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_PATTERNS = (
    *("^a", "b$", "^[ab]{1,3}$", "^.$", "a.*b", "^(?!a)", "(?=.*b)a", "\\d+", "\\p{L}", "^$", "", "(a|b)*a.{9}"),
    "[^a]",
)
_SMALL = (0, 1, 2, 3, 5, 10, -1, 0.5, 1e2, 1.0)
_LARGE = (2**53, 2**53 + 1, 10**20, 1e300, -1e300, 1e-20, 0.1, 0.01, 0.30000000000000004, 4294967296, 10**400)
_REFERENCES = ("#", "#/$defs/d", "#/definitions/d", "#a", "#/properties/a", "#/items", "other", "#/~1", "#/%25",
               "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema", "urn:x",
               "")  # fmt: skip
_LEAVES = (
    True, False, None, 0, 1, "a", "", {}, [], {"type": "string"}, {"type": "integer"}, {"$ref": "#"}, {"const": "a"},
    {"enum": [1, "a", None]}, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, {"not": {"type": "string"}}, "b", 2.5,
    {"$ref": "#/$defs/d"},
)  # fmt: skip
_KEYS: dict[str, Any] = {
    "type": (*_TYPES, ["string", "null"], ["integer", "object"], list(_TYPES)),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), ([...], [..., ...], [..., ..., ...])),
    **dict.fromkeys(
        ("not", "if", "then", "else", "items", "additionalProperties", "propertyNames", "contains", "additionalItems",
         "unevaluatedItems", "unevaluatedProperties", "contentSchema"), (..., True, False, {}),
    ),
    "prefixItems": ([...], [..., ...]),
    "properties": ({"a": ...}, {"a": ..., "b": ...}, {"": ...}, {"é": ..., '"': ...}),
    "patternProperties": ({"^a": ...}, {"b$": ..., "": ...}, {"[": ...}),
    "dependentSchemas": ({"a": ...},),
    "dependentRequired": ({"a": ["b"]}, {"a": ["b", "c"], "b": []}),
    "dependencies": ({"a": ["b"]}, {"a": ...}),
    "required": ([], ["a"], ["a", "b"], ["c"], True),
    "enum": ([1], ["a", "b"], [..., ...], [], [[1], {"a": 1}], [0, 0.0, -0.0, 1e0]),
    "const": (..., 1, "a", [1, 2], {"a": [None]}),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (*_SMALL, *_LARGE, True)),
    "multipleOf": (1, 2, 3, 7, 0.1, 0.01, 0.3, 1e-8, 1.5, 97, 1000003, 1e20, 0),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
        "maxContains"),
        (0, 1, 2, 3, 5, 20, 100, 1000, 10**6, 2**31, 2**64, 1.0, -1),
    ),
    "uniqueItems": (True, False),
    "pattern": _PATTERNS,
    "format": ("date", "time", "date-time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4",
    "ipv6", "uri",
               "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer",
               "relative-json-pointer", "regex", "x"),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), _REFERENCES),
    **dict.fromkeys(("$defs", "definitions"), ({"d": ...}, {"d": ..., "e": ...})),
    "$id": ("http://x/", "other", "urn:x", "#a", ""),
    "id": ("http://x/", "other", "#a"),
    **dict.fromkeys(("$anchor", "$dynamicAnchor"), ("a", "b", "")),
    "$recursiveAnchor": (True,),
    "$schema": ("http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#",
                "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
                "https://json-schema.org/draft/2020-12/schema", "x"),
    "contentEncoding": ("base64", "quoted-printable"),
    "contentMediaType": ("application/json",),
    "nullable": (True,),
    "discriminator": ({"propertyName": "a"},),
    "description": ("x",),
    "default": (1, ...),
}  # fmt: skip
_WRAPS = (
    {"allOf": [...]}, {"anyOf": [..., True]}, {"oneOf": [..., {"type": "null"}]}, {"not": ...}, {"not": {"not": ...}},
    {"items": ...}, {"properties": {"a": ...}}, {"additionalProperties": ...}, {"type": "array", "uniqueItems": True,
    "items": ...},
    {"contains": ..., "minContains": 2}, {"if": ..., "then": False}, {"propertyNames": ...},
    {"patternProperties": {"^a": ...}},
    [...], {"$defs": {"d": ...}, "$ref": "#/$defs/d"}, {"unevaluatedProperties": ...}, {"prefixItems": [...]},
    {"enum": [...]},
)  # fmt: skip
_TREES = Trees(_KEYS, _LEAVES, _WRAPS)
