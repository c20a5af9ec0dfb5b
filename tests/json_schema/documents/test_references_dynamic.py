"""``$dynamicRef`` and ``$recursiveRef``: the way on which an evaluation came decides what they point to."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator
from referencing import Registry

import constrain
from constrain.errors import LimitError, SchemaError, UnsatisfiableSchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from tests.json_schema.documents.test_references import DRAFT_7, DRAFT_2019, DRAFT_2020, INTEGER, STRING, check, refused

ITEMS: dict[str, Any] = {"$dynamicAnchor": "item"}
LIST: dict[str, Any] = {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"}, "$defs": {"i": ITEMS}}


def test_the_outermost_anchor_in_the_dynamic_scope_counts() -> None:
    schema = {"$id": "http://e.x/strings", "$ref": "list", "$defs": {"l": LIST, "s": {**ITEMS, **STRING}}}
    check(schema, [[], ["a"]], [[1], ["a", 1], "a"])


def test_one_schema_means_different_things_on_different_ways() -> None:
    strings = {"$id": "strings", "$ref": "list", "$defs": {"s": {**ITEMS, **STRING}}}
    integers = {"$id": "integers", "$ref": "list", "$defs": {"s": {**ITEMS, **INTEGER}}}
    schema = {
        "$id": "http://e.x/root",
        "properties": {"s": {"$ref": "strings"}, "i": {"$ref": "integers"}, "any": {"$ref": "list"}},
        "$defs": {"l": LIST, "s": strings, "i": integers},
    }
    check(
        schema,
        [{"s": ["a"], "i": [1], "any": ["a", 1]}, {"any": [None]}],
        [{"s": [1]}, {"i": ["a"]}, {"s": ["a"], "i": ["a"]}],
    )


def test_an_anchor_of_the_lexical_surroundings_counts() -> None:
    schema = {
        "$id": "http://e.x/root",
        "properties": {"list": {**LIST}},
        "$defs": {"s": {**ITEMS, **STRING}},
    }
    check(schema, [{"list": ["a"]}], [{"list": [1]}])


def test_a_plain_anchor_of_the_name_does_not_count() -> None:
    schema = {"$id": "http://e.x/r", "$ref": "list", "$defs": {"l": LIST, "s": {"$anchor": "item", **STRING}}}
    check(schema, [["a"], [1]], ["a"])


def test_without_a_dynamic_anchor_at_first_it_is_a_plain_reference() -> None:
    inner = {"$id": "list", "items": {"$dynamicRef": "#item"}, "$defs": {"i": {"$anchor": "item", **INTEGER}}}
    schema = {"$id": "http://e.x/r", "$ref": "list", "$defs": {"l": inner, "s": {**ITEMS, **STRING}}}
    check(schema, [[1]], [["a"]])


def test_a_json_pointer_is_a_plain_reference() -> None:
    inner = {"$id": "list", "items": {"$dynamicRef": "#/$defs/i"}, "$defs": {"i": {**ITEMS, **INTEGER}}}
    schema = {"$id": "http://e.x/r", "$ref": "list", "$defs": {"l": inner, "s": {**ITEMS, **STRING}}}
    check(schema, [[1]], [["a"]])


def test_a_plain_reference_to_a_dynamic_anchor_stays_in_its_resource() -> None:
    inner = {"$id": "list", "items": {"$ref": "#item"}, "$defs": {"i": {**ITEMS, **INTEGER}}}
    schema = {
        "$id": "http://e.x/r",
        "properties": {"a": {"$ref": "list"}, "b": {"$dynamicRef": "list#item"}},
        "$defs": {"l": inner, "s": {**ITEMS, **STRING}},
    }
    check(schema, [{"a": [1], "b": "a"}], [{"a": ["a"]}, {"b": 1}])


def test_a_resource_that_was_left_does_not_count() -> None:
    schema = {
        "$id": "http://e.x/r",
        "allOf": [{"$id": "first", "$defs": {"s": {**ITEMS, **STRING}}}, {"$ref": "list"}],
        "$defs": {"l": {**LIST, "$defs": {"i": {**ITEMS, **INTEGER}}}},
    }
    check(schema, [[1]], [["a"]])


def test_a_pointer_through_a_resource_does_not_enter_it() -> None:
    inner = {"$id": "inner", "items": {"$dynamicRef": "#item"}, "$defs": {"i": {**ITEMS, **INTEGER}}}
    outer = {"$id": "outer", "$defs": {"inner": inner, "s": {**ITEMS, **STRING}}}
    schema = {
        "$id": "http://e.x/r",
        "properties": {"a": {"$ref": "outer#/$defs/inner"}, "b": {"$ref": "outer#/$defs/s"}},
        "$defs": {"outer": outer},
    }
    check(schema, [{"a": [1], "b": "a"}], [{"a": ["a"]}, {"b": 1}])


def test_a_tree_is_extended_all_the_way_down() -> None:
    tree = {
        "$id": "tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
    }
    schema = {"$id": "http://e.x/r", "$dynamicAnchor": "node", "$ref": "tree", "required": ["n"], "$defs": {"t": tree}}
    check(schema, [{"n": 1}, {"n": 1, "children": [{"n": 2}]}], [{}, {"n": 1, "children": [{}]}])


def test_two_anchors_of_one_name_in_a_resource_are_refused() -> None:
    schema = {
        "$id": "http://e.x/r",
        "$ref": "list",
        "$defs": {"l": LIST, "s": {**ITEMS, **STRING}, "i": {**ITEMS, **INTEGER}},
    }
    refused(schema, SchemaError, "several schemas of one resource", "/$defs/l/items")


def test_a_dynamic_cycle_in_place_is_refused() -> None:
    with pytest.raises(UnsupportedSchemaError, match="cycle"):
        compile_schema({"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]})


def test_ways_through_many_resources_meet_a_limit() -> None:
    def step(index: int) -> dict[str, Any]:
        following = {"$ref": f"r{index + 1}"}
        chosen = {"$id": f"c{index}", **following, "$defs": {"a": {"$dynamicAnchor": f"a{index}"}}}
        return {"$id": f"r{index}", "properties": {"l": following, "r": chosen}}

    last = {"$id": "r20", "items": {"$dynamicRef": "#a"}, "$defs": {"a": {"$dynamicAnchor": "a"}}}
    resources = {f"r{index}": step(index) for index in range(20)} | {"r20": last}
    with pytest.raises(LimitError, match="MAX_DYNAMIC_SCOPES"):
        compile_schema({"$id": "http://e.x/", "$ref": "r0", "$defs": resources})


def recursive(outer: bool, inner: bool) -> dict[str, Any]:
    return {
        "$schema": DRAFT_2019,
        "$id": "http://e.x/root",
        "$recursiveAnchor": outer,
        "anyOf": [INTEGER, {"$ref": "node"}],
        "$defs": {
            "node": {
                "$id": "node",
                "$recursiveAnchor": inner,
                "type": ["string", "array"],
                "items": {"$recursiveRef": "#"},
            }
        },
    }


def test_recursive_references_lead_to_the_outermost_recursive_anchor() -> None:
    check(recursive(outer=True, inner=True), [1, "a", ["a"], [1], [[1]]], [None, [None]])


@pytest.mark.parametrize(("outer", "inner"), [(False, True), (True, False), (False, False)])
def test_recursive_references_stay_where_one_side_has_no_anchor(outer: bool, inner: bool) -> None:
    check(recursive(outer, inner), [1, "a", ["a"], [["a"]]], [[1], [[1]]])


def test_a_recursive_reference_is_only_the_empty_fragment() -> None:
    refused({"$schema": DRAFT_2019, "$recursiveRef": "#/a"}, SchemaError, 'must be "#"', "/$recursiveRef")


def test_recursive_references_are_unknown_to_2020() -> None:
    compiled = compile_schema({"items": {"$recursiveRef": "#"}})
    assert any("'$recursiveRef' is not one of draft 2020-12" in warning for warning in compiled.warnings)


SCALARS = [{"type": kind} for kind in ("string", "integer", "null", "array", ["object", "integer"])]
URIS = ["root", "r1", "r2", "r3"]


class RandomResources:
    """Four resources with properties, anchors and references among each other.

    References by ``$ref`` to dynamic anchors, and resources within keywords other than definitions, are left out: the
    independent validator treats the first as dynamic and does not count the second among the dynamic scope.
    """

    def __init__(self, seed: int, dialect: str) -> None:
        self.random = random.Random(seed)
        self.dialect = dialect
        self.definitions = "definitions" if dialect == DRAFT_7 else "$defs"

    def document(self) -> dict[str, Any]:
        root = self.resource("http://e.x/root")
        inner = self.resource("r2")
        inner[self.definitions]["r3"] = self.resource("r3")
        root[self.definitions] |= {"r1": self.resource("r1"), "r2": inner}
        return {"$schema": self.dialect, **root}

    def reference(self) -> dict[str, Any]:
        uri = self.random.choice(URIS)
        plain = {"$ref": self.random.choice([uri, f"#/{self.definitions}/x", f"{uri}#/{self.definitions}/x"])}
        if self.dialect == DRAFT_7:
            return self.random.choice([plain, {"$ref": f"{uri}#a"}])
        if self.dialect == DRAFT_2019:
            return self.random.choice([plain, {"$ref": f"{uri}#a"}, {"$recursiveRef": "#"}])
        return self.random.choice([plain, {"$dynamicRef": "#a"}, {"$dynamicRef": f"{uri}#a"}])

    def body(self, depth: int = 0) -> dict[str, Any]:
        schema = dict(self.random.choice([{}, {}, {}, *SCALARS]))
        for key in self.random.sample(["p", "q"], self.random.randint(0, 2)):
            inner = self.body(depth + 1) if depth < 2 and self.random.random() < 0.3 else self.reference()
            schema.setdefault("properties", {})[key] = inner
        if self.random.random() < 0.3:
            schema["items"] = self.reference()
        if self.random.random() < 0.3:
            schema["allOf"] = [self.reference()]
        return schema

    def resource(self, uri: str) -> dict[str, Any]:
        schema: dict[str, Any] = {"$id": uri, **self.body()}
        scalar = self.random.choice(SCALARS)
        dynamic = self.random.random() < 0.6
        if self.dialect == DRAFT_7:
            anchor: dict[str, Any] = {"$id": "#a", **scalar}
        elif self.dialect == DRAFT_2019:
            anchor = {"$anchor": "a", **scalar}
            schema["$recursiveAnchor"] = dynamic
        else:
            anchor = {"$dynamicAnchor" if dynamic else "$anchor": "a", **scalar}
        schema[self.definitions] = {"x": self.random.choice(SCALARS), "a": anchor}
        return schema

    def value(self, depth: int = 0) -> Any:
        if depth == 3 or self.random.random() < 0.4:
            return self.random.choice(["s", 1, None])
        if self.random.random() < 0.3:
            return [self.value(depth + 1)]
        return {key: self.value(depth + 1) for key in self.random.sample(["p", "q"], self.random.randint(0, 2))}


BYTES = constrain.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=[256], special=[256])


@pytest.mark.parametrize(
    ("dialect", "validator"),
    [(DRAFT_7, Draft7Validator), (DRAFT_2019, Draft201909Validator), (DRAFT_2020, Draft202012Validator)],
)
def test_random_resources_mean_what_an_independent_validator_says(dialect: str, validator: Any) -> None:
    compiled = 0
    for seed in range(60):
        resources = RandomResources(seed, dialect)
        schema = resources.document()
        try:
            constraint = constrain.compile(schema, BYTES, whitespace="any", property_order="any")
        except UnsatisfiableSchemaError:
            continue
        except UnsupportedSchemaError as error:
            if "cycle without meaning" not in error.message:
                raise
            continue
        compiled += 1
        for _ in range(30):
            value = resources.value()
            valid = validator(schema, registry=Registry()).is_valid(value)
            assert constraint.accepts(json.dumps(value)) == valid, f"seed {seed}: {schema} {value}"
    assert compiled > 25
