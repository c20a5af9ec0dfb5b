"""References to other documents: the registry, the metaschemas of the drafts, custom metaschemas and vocabularies."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource
from referencing.jsonschema import DRAFT7, DRAFT202012

from constrain.errors import LimitError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.documents.dialects import DIALECTS
from constrain.json_schema.documents.documents import Documents
from constrain.json_schema.documents.references import References
from tests.json_schema.documents.test_references import (
    DRAFT_4,
    DRAFT_7,
    DRAFT_2019,
    DRAFT_2020,
    INTEGER,
    STRING,
    check,
    refused,
)
from tests.support import for_each

CORE = "https://json-schema.org/draft/2020-12/vocab/core"
APPLICATOR = "https://json-schema.org/draft/2020-12/vocab/applicator"
VALIDATION = "https://json-schema.org/draft/2020-12/vocab/validation"
CORE_2019 = "https://json-schema.org/draft/2019-09/vocab/core"


def registry(documents: dict[str, Any]) -> Registry[Any]:
    resources = ((uri, Resource(contents, DRAFT202012)) for uri, contents in documents.items())
    return Registry().with_resources(resources)


def check_both(schema: Any, documents: dict[str, Any], accepted: list[Any], rejected: list[Any]) -> None:
    check(schema, accepted, rejected, registry=documents)
    check(schema, accepted, rejected, registry=registry(documents))
    check(schema, accepted, rejected, registry=registry(documents).crawl())


def test_names_inside_other_documents() -> None:
    document = {
        "$defs": {
            "s": {"$anchor": "s", **STRING},
            "i": {"$id": "http://e.x/embedded", "$ref": "#n", "$defs": {"n": {"$anchor": "n", **INTEGER}}},
        }
    }
    schema = {
        "properties": {
            "s": {"$ref": "http://e.x/other#s"},
            "i": {"$ref": "http://e.x/embedded"},
            "p": {"$ref": "http://e.x/other#/$defs/s"},
        }
    }
    check_both(schema, {"http://e.x/other": document}, [{"s": "a", "i": 1, "p": "a"}], [{"s": 1}, {"i": "a"}, {"p": 1}])


def test_a_relative_id_in_another_document_is_relative_to_its_surroundings() -> None:
    leaf = {"$id": "dir/leaf", "$ref": "item"}
    documents = {
        "http://e.x/a": {"$id": "http://e.x/a", "$defs": {"leaf": leaf}},
        "http://e.x/dir/item": INTEGER,
        "http://e.x/dir/dir/item": STRING,
    }
    check_both({"$ref": "http://e.x/dir/leaf"}, documents, [1], ["a"])


def test_an_embedded_resource_of_another_document_has_its_dialect() -> None:
    leaf = {
        "$id": "http://e.x/leaf",
        "allOf": [{"$ref": "#/definitions/i", "maximum": 3}],
        "definitions": {"i": INTEGER},
    }
    documents = {"http://e.x/a": {"$schema": DRAFT_7, "definitions": {"leaf": leaf}}}
    check_both({"$ref": "http://e.x/leaf"}, documents, [1, 9], ["a"])


def test_a_document_without_schema_keyword_is_read_in_the_dialect_that_refers_to_it() -> None:
    document = {"allOf": [{"$ref": "#/definitions/i", "maximum": 3}], "definitions": {"i": INTEGER}}
    documents = {"http://e.x/a": document}
    check_both({"$schema": DRAFT_7, "$ref": "http://e.x/a"}, documents, [1, 9], ["a"])
    check_both({"$schema": DRAFT_2020, "$ref": "http://e.x/a"}, documents, [1], ["a", 9])
    mixed = {
        "properties": {
            "new": {"$ref": "http://e.x/a"},
            "old": {"$schema": DRAFT_7, "$id": "http://e.x/b", "allOf": [{"$ref": "http://e.x/a"}]},
        }
    }
    check_both(mixed, documents, [{"new": 1, "old": 9}], [{"new": 9}, {"old": "a"}])


def test_a_document_with_another_id_than_its_address() -> None:
    document = {"$id": "http://e.x/dir/real", "$ref": "item", "$defs": {"i": {"$id": "item", **INTEGER}}}
    check_both({"$ref": "http://e.x/address"}, {"http://e.x/address": document}, [1], ["a"])


def test_the_own_document_comes_first() -> None:
    schema = {"$ref": "http://e.x/a", "$defs": {"a": {"$id": "http://e.x/a", **INTEGER}}}
    check_both(schema, {"http://e.x/a": STRING}, [1], ["a"])


def test_dynamic_scopes_lead_through_documents() -> None:
    documents = {
        "http://e.x/list": {
            "type": "array",
            "items": {"$dynamicRef": "#item"},
            "$defs": {"i": {"$dynamicAnchor": "item"}},
        }
    }
    schema = {"$ref": "http://e.x/list", "$defs": {"s": {"$dynamicAnchor": "item", **STRING}}}
    check_both(schema, documents, [["a"], []], [[1]])
    check_both({"$ref": "http://e.x/list"}, documents, [["a"], [1]], [1])


def test_documents_that_refer_to_each_other() -> None:
    documents = {
        "http://e.x/a": {"type": "array", "items": {"$ref": "b"}},
        "http://e.x/b": {"type": "object", "additionalProperties": {"$ref": "a"}},
    }
    check_both({"$ref": "http://e.x/a"}, documents, [[], [{}], [{"x": [{}]}]], [[[]], [{"x": {}}]])


def test_boolean_documents() -> None:
    schema = {"properties": {"a": {"$ref": "http://e.x/no"}, "b": {"$ref": "http://e.x/yes"}}}
    check_both(schema, {"http://e.x/no": False, "http://e.x/yes": True}, [{"b": 1}], [{"a": 1}])


def test_a_registry_may_retrieve() -> None:
    asked = []

    def retrieve(uri: str) -> Resource[Any]:
        asked.append(uri)
        if uri == "http://e.x/a":
            return Resource({"items": {"$dynamicRef": "#x"}, "$dynamicAnchor": "x", "type": "array"}, DRAFT202012)
        raise NoSuchResource(ref=uri)

    check({"$ref": "http://e.x/a"}, [[], [[]]], [1, [1]], registry=Registry(retrieve=retrieve))
    assert asked == ["http://e.x/a"]
    refused(
        {"items": {"$ref": "http://e.x/b"}},
        UnsupportedSchemaError,
        "not in the registry",
        "/items/$ref",
        registry=Registry(retrieve=retrieve),
    )


def test_a_registry_that_fails_is_an_error_with_its_reason() -> None:
    def retrieve(uri: str) -> Resource[Any]:
        raise OSError(f"no way to {uri}")

    refused(
        {"items": {"$ref": "http://e.x/a"}},
        UnsupportedSchemaError,
        "could not retrieve 'http://e.x/a' .*",
        "/items/$ref",
        registry=Registry(retrieve=retrieve),
    )


def test_a_document_that_is_no_schema() -> None:
    refused({"$ref": "http://e.x/a"}, SchemaError, "is not a schema", "/$ref", registry={"http://e.x/a": [1]})


def test_an_error_inside_another_document_names_it() -> None:
    documents = {"http://e.x/a": {"items": {"type": "strin"}}}
    refused({"$ref": "http://e.x/a"}, SchemaError, "not a type", "http://e.x/a#/items/type", registry=documents)


def test_a_registry_is_a_mapping() -> None:
    with pytest.raises(TypeError, match="registry must be a mapping"):
        compile_schema(True, registry=[])


@for_each("uri", [uri for uri in DIALECTS if "/schema" in uri and "org/schema" not in uri])
def test_every_reference_within_the_metaschemas_resolves(uri: str) -> None:
    references = References({"$ref": uri}, Documents(), dynamic=True)
    found = {references.resolve(references.root, uri + "#")}
    pending = list(found)
    while pending:
        at = pending.pop()
        schema = at.schema
        if not isinstance(schema, dict):
            continue
        targets = []
        if "$ref" in schema:
            targets.append(references.resolve(at, schema["$ref"]))
        if "$dynamicRef" in schema:
            targets.append(references.resolve_dynamic(at, schema["$dynamicRef"]))
            assert targets[-1].pointer() == uri + "#"
        if "$recursiveRef" in schema:
            targets.append(references.resolve_recursive(at, schema["$recursiveRef"]))
            assert targets[-1].pointer() == uri + "#"
        for keyword in ("properties", "definitions", "$defs"):
            for name, inner in schema.get(keyword, {}).items():
                targets.append(references.child(at, f"/{keyword}/{name}", inner))
        targets += (references.child(at, f"/allOf/{index}", s) for index, s in enumerate(schema.get("allOf", ())))
        pending += (target for target in targets if target not in found)
        found.update(targets)
    assert len(found) > 30


def test_a_part_of_a_metaschema() -> None:
    schema = {"$ref": "http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger"}
    check(schema, [0, 5], [-1, "a"])
    schema = {"$ref": "https://json-schema.org/draft/2020-12/meta/validation#/$defs/simpleTypes"}
    check(schema, ["array"], ["lists", 1])


@pytest.mark.slow
def test_metaschemas_are_loaded_only_where_they_are_asked_for() -> None:
    program = (
        "import sys, constrain.json_schema.compiler as j; j.compile_schema({'$ref': '#/$defs/a', '$defs': {'a': {}}}); "
        "sys.exit('referencing' in sys.modules or 'jsonschema_specifications' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def metaschema(vocabulary: dict[str, Any], dialect: str = DRAFT_2020) -> dict[str, Any]:
    return {"http://e.x/meta": {"$schema": dialect, "$vocabulary": vocabulary}}


def test_keywords_of_a_vocabulary_that_is_left_out_assert_nothing() -> None:
    documents = metaschema({CORE: True, APPLICATOR: True})
    schema = {
        "$schema": "http://e.x/meta",
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": False,
            "c": {"$ref": "#/$defs/c"},
            "d": {"$id": "d", "minimum": 9},
        },
        "required": ["a"],
        "$defs": {"c": {"items": {"const": 1}, "format": "date"}},
    }
    check_both(schema, documents, [{}, 1, {"a": "s", "c": [2], "d": 1}, {"c": "s"}], [{"b": 1}])
    warnings = compile_schema(schema, registry=documents).warnings
    assert len(warnings) == 1
    assert "'http://e.x/meta'" in warnings[0]
    assert "const" in warnings[0]


def test_resources_inside_may_declare_more_or_less() -> None:
    documents = metaschema({CORE: True, APPLICATOR: True})
    schema = {
        "$schema": "http://e.x/meta",
        "properties": {
            "full": {"$id": "full", "$schema": DRAFT_2020, **INTEGER},
            "same": {"$id": "same", "$schema": "http://e.x/meta", **INTEGER},
        },
    }
    check_both(schema, documents, [{"full": 1, "same": "a"}], [{"full": "a"}])
    schema = {"items": {"$id": "http://e.x/less", "$schema": "http://e.x/meta", "items": INTEGER}, "type": "array"}
    check_both(schema, documents, [["a"], [["a"]]], ["a"])


def test_an_optional_unknown_vocabulary_is_ignored() -> None:
    documents = metaschema({CORE: True, VALIDATION: True, "http://e.x/vocabulary": False})
    check_both({"$schema": "http://e.x/meta", **INTEGER}, documents, [1], ["a"])


def test_vocabularies_of_2019() -> None:
    documents = metaschema(
        {CORE_2019: True, "https://json-schema.org/draft/2019-09/vocab/applicator": True}, DRAFT_2019
    )
    schema = {"$schema": "http://e.x/meta", "prefixItems": [False], "items": [False, {"type": "null"}], "minItems": 2}
    check_both(schema, documents, [[], 1], [[1]])


VOCABULARY_ERRORS: dict[str, tuple[Any, type[SchemaError], str]] = {
    "a required unknown one": ({CORE: True, "http://e.x/v": True}, UnsupportedSchemaError, "requires the vocabulary"),
    "no core": ({VALIDATION: True}, UnsupportedSchemaError, "lacks the core"),
    "of another draft": (
        {CORE: True, "https://json-schema.org/draft/2019-09/vocab/validation": True},
        UnsupportedSchemaError,
        "requires the vocabulary",
    ),
    "no object": ([CORE], SchemaError, "must map URIs to booleans"),
    "no booleans": ({CORE: 1}, SchemaError, "must map URIs to booleans"),
}


@for_each("name", VOCABULARY_ERRORS)
def test_a_vocabulary_that_is_not_understood(name: str) -> None:
    vocabulary, error, says = VOCABULARY_ERRORS[name]
    refused({"$schema": "http://e.x/meta"}, error, says, "/$schema", registry=metaschema(vocabulary))
    inner = {"items": {"$id": "http://e.x/i", "$schema": "http://e.x/meta"}}
    refused(inner, error, says, "/items/$schema", registry=metaschema(vocabulary))


def test_a_metaschema_without_vocabularies_is_what_its_own_schema_keyword_says() -> None:
    documents = {"http://e.x/meta": {"$schema": "http://e.x/older"}, "http://e.x/older": {"$schema": DRAFT_4}}
    check_both({"$schema": "http://e.x/meta", "minimum": 1, "exclusiveMinimum": True}, documents, [2], [1])


def test_an_unknown_dialect_is_read_as_the_newest() -> None:
    for documents in ({}, {"http://e.x/meta": {"$schema": "http://e.x/meta"}}):
        compiled = compile_schema({"$schema": "http://e.x/meta", "prefixItems": [True]}, registry=documents)
        assert compiled.warnings == ("the dialect 'http://e.x/meta' is not known; the schema is read as draft 2020-12",)


def test_an_unsupported_draft_is_refused() -> None:
    schema = {"$schema": "http://json-schema.org/draft-03/schema#"}
    refused(schema, UnsupportedSchemaError, "is not supported", "/$schema")
    schema = {"$ref": "http://json-schema.org/draft-03/schema#"}
    refused(schema, UnsupportedSchemaError, "is not supported", "http://json-schema.org/draft-03/schema#/$schema")


def test_a_document_that_cannot_be_used_does_not_disturb_others() -> None:
    documents = {
        "http://e.x/old": {"$schema": "http://json-schema.org/draft-03/schema#", "definitions": {"a": {"$id": "b"}}},
        "http://e.x/a": {"$defs": {"i": {"$id": "http://e.x/i", **INTEGER}}},
    }
    resources = [(uri, Resource(contents, DRAFT7)) for uri, contents in documents.items()]
    for given in (documents, Registry().with_resources(resources)):
        check({"$ref": "http://e.x/i"}, [1], ["a"], registry=given)


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
    with pytest.raises(LimitError, match="MAX_COMPILE_WORK"):
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
