"""``uniqueItems``: every byte and token that may come next, compared with an enumeration of all arrays there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import product
from random import Random
from typing import Any, NamedTuple

import jsonschema
import numpy as np
import pytest

import constrain
from constrain.json_schema.compiler import compile_schema
from tests.support import byte_vocabulary, each_row, for_each

END = 256
"""End of generation, after a token for every byte."""


def vocabulary_with(tokens: Sequence[bytes]) -> constrain.Vocabulary:
    return constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"", *tokens], eos=[END])


BYTES = vocabulary_with([])


def enum(*values: object) -> dict[str, object]:
    return {"enum": list(values)}


def spelled(value: object) -> list[str]:
    """The texts of a value without numbers, with keys in the order of the dict."""
    if isinstance(value, list):
        return ["[" + ",".join(parts) + "]" for parts in product(*map(spelled, value))]
    if isinstance(value, dict):
        members = product(*map(spelled, value.values()))
        return ["{" + ",".join(f'"{key}":{text}' for key, text in zip(value, m, strict=True)) + "}" for m in members]
    return [json.dumps(value)]


def identity(value: object) -> str:
    """Equal for equal values without numbers."""
    return json.dumps(value, sort_keys=True)


def different(values: Iterable[object]) -> list[object]:
    return list({identity(value): value for value in values}.values())


def arrays(prefix: Sequence[Sequence[object]], rest: Sequence[object], least: int, most: int) -> list[list[object]]:
    """All arrays of (different) items: item *i* is one of ``prefix[i]``, those after it of ``rest``."""
    found: list[list[object]] = []
    begun: list[list[object]] = [[]]
    for array in begun:
        if len(array) >= least:
            found.append(array)
        if len(array) < most:
            used = set(map(identity, array))
            values = prefix[len(array)] if len(array) < len(prefix) else rest
            begun += ([*array, value] for value in values if identity(value) not in used)
    return found


class Case(NamedTuple):
    schema: dict[str, object]
    arrays: Iterable[object]
    property_order: str = "schema"


def unique(items: dict[str, object] | bool, **keywords: object) -> dict[str, object]:
    return {"type": "array", "items": items, "uniqueItems": True, **keywords}


def closed(**properties: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


BOTH = [True, False]
BOOLEAN: dict[str, object] = {"type": "boolean"}
SHORT_LISTS = {"type": "array", "items": BOOLEAN, "maxItems": 1}
CONSTANTS = [["1", "2"], ["1", "3"], {"a": ["1"]}, {"a": ["2"], "b": None}, "s"]
PAIRS = [{"a": one, "b": two} for one in BOTH for two in BOTH]
TREES = [{}, {"a": "k"}, {"b": "l"}, {"a": "k", "b": "l"}]


def in_any_order(found: list[list[object]]) -> list[object]:
    """The same arrays, each object with two keys also the other way round."""
    turned: list[object] = []
    for array in found:
        ways = [[item, dict(reversed(item.items()))] if len(item) == 2 else [item] for item in array]
        turned += map(list, product(*ways))
    return turned


CASES = {
    "booleans": Case(unique(BOOLEAN), arrays([], BOTH, 0, 9)),
    "all booleans": Case(unique(BOOLEAN, minItems=2), arrays([], BOTH, 2, 2)),
    "constants with common beginnings": Case(
        unique(enum("ab", "ac", "b", None)), arrays([], ["ab", "ac", "b", None], 0, 4)
    ),
    "integers": Case(unique({"type": "integer", "minimum": 9, "maximum": 12}), arrays([], [9, 10, 11, 12], 0, 4)),
    "a value is left to the next position": Case(
        unique(False, prefixItems=[enum("1", "2", "3"), enum("1")], minItems=2),
        arrays([["1", "2", "3"], ["1"]], [], 2, 2),
    ),
    "two values are left to two positions": Case(
        unique(False, prefixItems=[enum("1", "2", "3"), enum("1", "2"), enum("1", "2")], minItems=3),
        arrays([["1", "2", "3"], ["1", "2"], ["1", "2"]], [], 3, 3),
    ),
    "the last position may be out of reach": Case(
        unique(False, prefixItems=[enum("1", "2", "3"), enum("1")]), arrays([["1", "2", "3"], ["1"]], [], 0, 2)
    ),
    "prefix and rest compete": Case(
        unique(enum("a", "b", "z"), prefixItems=[enum("a", "b", "c"), enum("a", "x")]),
        arrays([["a", "b", "c"], ["a", "x"]], ["a", "b", "z"], 0, 5),
    ),
    "arrays": Case(unique(SHORT_LISTS), arrays([], [[], [True], [False]], 0, 3)),
    "all arrays": Case(unique(SHORT_LISTS, minItems=3), arrays([], [[], [True], [False]], 3, 3)),
    "objects with an optional key": Case(
        unique(
            {
                "type": "object",
                "properties": {"a": enum("x", "y"), "b": BOOLEAN},
                "required": ["a"],
                "additionalProperties": False,
            },
            maxItems=3,
        ),
        arrays([], [{"a": a, **b} for a in "xy" for b in ({}, {"b": True}, {"b": False})], 0, 3),
    ),
    "constants with structure": Case(unique(enum(*CONSTANTS), maxItems=4), arrays([], CONSTANTS, 0, 4)),
    "different in different": Case(
        unique(unique(enum("p", "q", "r"), maxItems=2), maxItems=2), arrays([], arrays([], ["p", "q", "r"], 0, 2), 0, 2)
    ),
    "few different in different": Case(
        unique(unique({"type": "array", "items": enum("p"), "maxItems": 1})),
        arrays([], arrays([], [[], ["p"]], 0, 2), 0, 5),
    ),
    "different objects in different arrays": Case(
        unique(unique(closed(k=enum("1", "2"))), maxItems=3),
        arrays([], arrays([], [{"k": "1"}, {"k": "2"}], 0, 2), 0, 3),
    ),
    "objects in any order": Case(
        unique(closed(a=BOOLEAN, b=BOOLEAN), maxItems=2), in_any_order(arrays([], PAIRS, 0, 2)), "any"
    ),
    "few objects in any order": Case(
        unique({**closed(a=enum("k"), b=enum("l")), "required": []}), in_any_order(arrays([], TREES, 0, 4)), "any"
    ),
}


class Texts:
    """All texts as a tree, and random pieces of them as tokens."""

    def __init__(self, texts: set[bytes]) -> None:
        self.root: dict[int, dict] = {}
        for text in texts:
            node = self.root
            for byte in text:
                node = node.setdefault(byte, {})
            node[END] = {}
        rng, ordered = Random(1), sorted(texts)
        pieces = set()
        for _ in range(300 if ordered else 0):
            text = rng.choice(ordered)
            start = rng.randrange(len(text))
            pieces.add(text[start : start + rng.randint(2, 12)])
        self.tokens = sorted(piece for piece in pieces if len(piece) > 1)

    def following(self, node: dict[int, dict]) -> set[int]:
        found = set(node)
        for index, token in enumerate(self.tokens, END + 1):
            at: dict[int, dict] | None = node
            for byte in token:
                at = at.get(byte) if at else None
            if at is not None:
                found.add(index)
        return found


def check_masks(case: Case) -> None:
    """Compares the mask after every beginning of a text of the case with what the texts go on with."""
    expected = {text.encode() for array in case.arrays for text in spelled(array)}
    texts = Texts(expected)
    constraint = constrain.compile(
        case.schema, vocabulary_with(texts.tokens), whitespace="compact", property_order=case.property_order
    )
    matcher, row = constraint.matcher(), constraint.allocate_bitmask()[0]

    def visit(node: dict[int, dict], prefix: bytes) -> None:
        matcher.fill_bitmask(row)
        allowed = set(np.unpackbits(row.view(np.uint8), bitorder="little").nonzero()[0].tolist())
        assert allowed == texts.following(node), prefix
        assert prefix + bytes(matcher.shortest_completion()) in expected, prefix
        for byte, below in node.items():
            if byte != END:
                assert matcher.accept(byte)
                visit(below, prefix + bytes([byte]))
                matcher.rollback(1)

    visit(texts.root, b"")


@pytest.mark.slow(but=("the last position may be out of reach", "all booleans", "a value is left to the next position"))
@pytest.mark.parametrize("name", CASES)
def test_masks_equal_the_enumeration(name: str) -> None:
    check_masks(CASES[name])


UNIVERSE = (
    *("1", "1.0", "true", '"a"', "null", "[1]", '{"a":1}', '{"a":1,"b":2}', '{"b":2,"a":1.0}', "[[1],[2]]", "0", "0.0"),
)


def test_any_items_are_compared_by_value() -> None:
    constraint = constrain.compile({"type": "array", "uniqueItems": True}, BYTES, property_order="any")
    validator = jsonschema.Draft202012Validator({"uniqueItems": True})
    rng = Random(7)
    items = [*product(UNIVERSE, repeat=2), *(rng.choices(UNIVERSE, k=rng.choice((3, 4))) for _ in range(1500))]
    for array in items:
        text = f"[{','.join(array)}]"
        assert constraint.accepts(text) == validator.is_valid(json.loads(text)), text


@for_each(
    "text, accepted",
    ("[1, 1e0]", False),
    ("[10, 0.1E+2]", False),
    ("[100e-1, 10.0]", False),
    ("[0, -0.00e-7]", False),
    ("[1e300, 10e299]", False),
    ("[-1.5e1, -15.0]", False),
    ("[1.5e1, -15.0]", True),
    ("[1e2, 1e3]", True),
)
def test_numbers_with_exponents(text: str, *, accepted: bool) -> None:
    constraint = constrain.compile(unique({"type": "number"}), BYTES, numbers="any")
    assert constraint.accepts(text) == accepted


RECURSIVE = {
    "$defs": {"tree": {"anyOf": [BOOLEAN, unique({"$ref": "#/$defs/tree"}, maxItems=2)]}},
    **unique({"$ref": "#/$defs/tree"}, minItems=4, maxItems=8),
}
WALKED = {
    "anything": {"type": "array", "uniqueItems": True},
    "few letters": unique({"type": "string", "pattern": "^[ab]{1,3}$"}),
    "numbers": unique({"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 3}),
    "objects": unique(
        {"type": "object", "properties": {"a": enum(1, 2), "b": enum("x", "y")}, "additionalProperties": BOOLEAN}
    ),
    "records": unique(closed(id={"type": "integer", "minimum": 1, "maximum": 3}, tag={"type": ["string", "null"]})),
    "recursive": RECURSIVE,
    "not null": unique({"not": {"type": ["null", "object", "array"]}}, minItems=2),
    "contains": unique(BOOLEAN, contains={"const": True}),
    "overlapping": unique({"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]}),
}


@for_each("order", ["schema", "any"])
@for_each("name", WALKED)
def test_random_walks_always_end_in_valid_arrays(name: str, order: str) -> None:
    schema = WALKED[name]
    constraint = constrain.compile(schema, BYTES, property_order=order)
    validator = jsonschema.Draft202012Validator(schema)
    row = constraint.allocate_bitmask()[0]
    lengths = set()
    for seed in range(12):
        rng, matcher, text = Random(seed), constraint.matcher(), b""
        for _ in range(rng.choice((30, 120))):
            matcher.fill_bitmask(row)
            allowed = np.unpackbits(row.view(np.uint8), bitorder="little").nonzero()[0].tolist()
            assert allowed, text
            # text stays small, so that values repeat
            likely = [token for token in allowed if chr(token % 256) in '[]{},:"ab012truefalsn.'] or allowed
            token = rng.choice(likely)
            assert matcher.accept(token), text
            if token == END:
                break
            text += bytes([token])
        if not matcher.is_finished:
            text += bytes(matcher.shortest_completion())
        value = json.loads(text)
        assert validator.is_valid(value), text
        lengths.add(len(value))
    assert len(lengths) > 1


@for_each(
    "schema",
    unique(BOOLEAN, minItems=3),
    unique(enum(1, 1.0, True), minItems=3),
    unique(SHORT_LISTS, minItems=4),
    unique(False, prefixItems=[enum(1, 2), enum(1, 2), enum(1, 2)], minItems=3),
    closed(a=unique(enum("x"), minItems=2)),
)
def test_too_few_values_are_a_contradiction(schema: dict[str, object]) -> None:
    with pytest.raises(constrain.UnsatisfiableSchemaError):
        constrain.compile(schema, BYTES)


def test_closed_objects_have_fewer_values() -> None:
    compiled = compile_schema(
        unique({"type": "object", "properties": {"a": enum(1, 2)}}), close_objects=True, whitespace="compact"
    )
    constraint = constrain.compile(compiled.grammar, BYTES)
    assert constraint.accepts('[{},{"a":1},{"a":2}]')
    matcher = constraint.matcher()
    assert matcher.accept_many(list(b'[{},{"a":1},{"a":2},')) == len('[{},{"a":1},{"a":2}')


def test_the_contradiction_is_named() -> None:
    with pytest.raises(constrain.UnsatisfiableSchemaError, match="3 different items, but only 2") as raised:
        constrain.compile(
            {"properties": {"a": unique(BOOLEAN, minItems=3)}, "required": ["a"], "type": "object"}, BYTES
        )
    assert raised.value.pointer == "/properties/a"


@pytest.mark.slow
def test_a_thousand_different_items() -> None:
    constraint = constrain.compile(unique(closed(id={"type": "integer"}, name={"type": "string"})), BYTES)
    items = [{"id": number % 7, "name": f"n{number}"} for number in range(1000)]
    assert constraint.accepts(json.dumps(items))
    assert not constraint.accepts(json.dumps([*items, {"name": "n500", "id": 500 % 7}]))
    assert not constraint.accepts(json.dumps([*items, items[500]]))


def test_supplies_that_are_only_known_to_be_large_are_bounded() -> None:
    constraint = constrain.compile(unique({"type": "string", "pattern": "^[a-z]{4}$"}), BYTES)
    assert any("at most 10000 items" in warning for warning in constraint.warnings)


@pytest.mark.slow
@each_row(
    "item",
    {"type": "integer", "not": {"multipleOf": 1000}},
    {"multipleOf": 12, "not": {"multipleOf": 1000}},
    {"type": "array", "items": {"properties": {"a": {"not": {"multipleOf": 0.999}}}}},
    {"oneOf": [{"multipleOf": 12}, {"multipleOf": 1000}]},
)
def test_items_that_cannot_be_compared_are_refused_before_anything_is_written(item: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True, "items": item}}}
    with pytest.raises(constrain.LimitError, match="MAX_COMPARED_PERIOD = 500") as caught:
        constrain.compile(schema, byte_vocabulary(), cache=False)
    assert (caught.value.pointer or "").startswith("/properties/a/items")
    beside = {**schema, "properties": {"a": {"uniqueItems": True, "items": {"type": "string"}}, "b": item}}
    assert constrain.compile(beside, byte_vocabulary(), cache=False).accepts('{"a": ["x"]}')


@pytest.mark.slow
def test_items_that_are_no_multiples_of_less_are_compared() -> None:
    for item in ({"type": "integer", "not": {"multipleOf": 499}}, {"multipleOf": 12, "not": {"multipleOf": 100}}):
        schema = {"type": "array", "uniqueItems": True, "items": item}
        constraint = constrain.compile(schema, byte_vocabulary(), cache=False, numbers="any")
        assert constraint.accepts("[12, 24]")
        for text in ("[12, 24, 24.0]", "[9007199254740996, 9007199254740997]", "[12, 12.0]"):
            assert not constraint.accepts(text), text


def test_items_are_refused_under_contains_too() -> None:
    schema = {"type": "array", "uniqueItems": True, "maxItems": 2, "contains": {"not": {"multipleOf": 1000}}}
    with pytest.raises(constrain.LimitError, match="MAX_COMPARED_PERIOD"):
        constrain.compile(schema, byte_vocabulary(), cache=False)


_ONE_OBJECT: list[dict[str, Any]] = [
    {"maxProperties": 0, "properties": {"a": True, "b": True}},
    {"maxProperties": 0, "properties": {"a": True}, "dependentRequired": {"a": ["b"]}},
    {"maxProperties": 0, "dependentSchemas": {"a": {"type": "array"}}},
    {"maxProperties": 1, "properties": {"a": {"const": 1}, "b": True}, "required": ["a"]},
    {"maxProperties": 1, "properties": {"a": {"const": 1}}, "required": ["a"], "dependentRequired": {"b": ["c"]}},
]


@for_each("order", ["schema", "any"])
@for_each("item", _ONE_OBJECT)
def test_keys_that_no_object_has_room_for_make_no_different_items(item: dict[str, Any], order: str) -> None:
    schema = {"type": "array", "items": {"type": "object", **item}, "uniqueItems": True}
    matcher = constrain.compile(schema, BYTES, cache=False, property_order=order).matcher()
    for byte in b'[{"a":1}' if "required" in item else b"[{}":
        assert matcher.accept(byte)
    assert not matcher.accept(ord(","))
    assert matcher.shortest_completion() == b"]"
