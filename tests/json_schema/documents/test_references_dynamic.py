"""``$dynamicRef`` and ``$recursiveRef``: the way on which an evaluation came decides what they point to."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.errors import LimitError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from tests.json_schema.documents.test_references import DRAFT_2019, INTEGER, STRING, check, refused

ITEMS: dict[str, Any] = {"$dynamicAnchor": "item"}
LIST: dict[str, Any] = {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"}, "$defs": {"i": ITEMS}}


def test_the_outermost_anchor_in_the_dynamic_scope_counts() -> None:
    schema = {"$id": "http://e.x/strings", "$ref": "list", "$defs": {"l": LIST, "s": {**ITEMS, **STRING}}}
    check(schema, [[], ["a"]], [[1], ["a", 1], "a"])


def test_the_outermost_anchor_counts_where_a_resource_inside_has_others_too() -> None:
    pair = {
        "$id": "pair",
        "prefixItems": [{"$dynamicRef": "#item"}, {"$dynamicRef": "#other"}],
        "$defs": {"i": {**ITEMS, **INTEGER}, "o": {"$dynamicAnchor": "other", **INTEGER}},
    }
    schema = {"$id": "http://e.x/r", "type": "array", "$ref": "pair", "$defs": {"p": pair, "s": {**ITEMS, **STRING}}}
    check(schema, [["a", 1]], [[1, 1], ["a", "a"]])


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
    schema = {"$id": "http://e.x/root", "properties": {"list": {**LIST}}, "$defs": {"s": {**ITEMS, **STRING}}}
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
