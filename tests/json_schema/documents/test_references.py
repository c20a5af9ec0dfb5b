"""What ``$ref`` points to: base URIs, embedded resources, anchors, JSON Pointers, and the differences of the drafts."""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain.errors import ConstrainError, LimitError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from tests.support import byte_vocabulary, for_each

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

INTEGER = {"type": "integer"}
STRING = {"type": "string"}


def check(schema: Any, accepted: list[Any], rejected: list[Any], **options: Any) -> None:
    grammar = compile_schema(schema, whitespace="compact", property_order="any", **options).grammar
    constraint = constrain.compile(grammar, byte_vocabulary())
    for value in accepted:
        text = json.dumps(value, separators=(",", ":"))
        assert constraint.accepts(text.encode()), f"should be accepted: {text}"
    for value in rejected:
        text = json.dumps(value, separators=(",", ":"))
        assert not constraint.accepts(text.encode()), f"should be rejected: {text}"


def refused(schema: Any, error: type[ConstrainError], says: str, pointer: str, **options: Any) -> None:
    with pytest.raises(error, match=says) as caught:
        compile_schema(schema, **options)
    assert type(caught.value) is error
    assert caught.value.pointer == pointer


def test_an_empty_reference_is_the_root_of_the_resource() -> None:
    lists = {"$id": "lists", "type": "array", "items": {"$ref": ""}}
    check({"type": "object", "properties": {"a": lists}}, [{"a": []}, {"a": [[], [[]]]}], [{"a": [{}]}, {"a": 1}])


def test_a_reference_to_what_is_around_an_embedded_resource() -> None:
    schema = {
        "$id": "http://e.x/tree",
        "type": "object",
        "properties": {"children": {"$ref": "list"}},
        "additionalProperties": False,
        "$defs": {"list": {"$id": "list", "type": "array", "items": {"$ref": "tree"}}},
    }
    check(schema, [{}, {"children": [{}, {"children": []}]}], [{"x": 1}, {"children": [1]}, {"children": [{"x": 1}]}])


def test_the_pointer_of_an_embedded_resource_is_that_in_the_document() -> None:
    schema = {"$ref": "r#/$defs/x", "$defs": {"r": {"$id": "r", "$defs": {"x": {"items": {"type": 1}}}}}}
    refused(schema, SchemaError, "not a type", "/$defs/r/$defs/x/items/type")


MEANT = {
    "/$defs/Pet": "#/$defs/Pet",
    "$defs/Pet": "#/$defs/Pet",
    "./$defs/Pet": "#/$defs/Pet",
    "#$defs/Pet": "#/$defs/Pet",
    "#/$defs/pet": "#/$defs/Pet",
    "#/$defs/Pets": "#/$defs/Pet",
    "#/definitions/Pet": "#/$defs/Pet",
    "#/components/schemas/Pet": "#/$defs/Pet",
    "Pet": "#/$defs/Pet",
    "#Pet": "#/$defs/Pet",
    "#/$defs/a~1b/proprties/b": "#/$defs/a~1b/properties/b",
    "#/$defs/a/b": "",
    "#/$defs/Cat": "",
    "#/$defs/number": "",
    "http://e.x/schema": "",
    "#/": "",
}


@for_each("reference", MEANT)
def test_an_error_names_the_target_that_is_meant(reference: str) -> None:
    schema = {"$defs": {"Pet": STRING, "a/b": {"properties": {"b": {}}}, "number": 5}}
    with pytest.raises(SchemaError) as caught:
        compile_schema({**schema, "items": {"$ref": reference}})
    assert (f"did you mean {MEANT[reference]!r}?" in caught.value.message) == bool(MEANT[reference])
    assert ("did you mean" in caught.value.message) == bool(MEANT[reference])


def test_a_reference_that_leaves_the_document_is_refused() -> None:
    refused({"items": {"$ref": "http://e.x/a"}}, UnsupportedSchemaError, "not in the registry", "/items/$ref")


def test_an_id_of_draft_4_that_is_no_string_is_reported() -> None:
    compiled = compile_schema({"$schema": DRAFT_4, "items": {"id": {"type": "integer"}}})
    assert compiled.warnings == ("the id at /items/id is not a string and is ignored",)


def test_an_anchor_is_looked_for_within_a_limit() -> None:
    inner: dict[str, Any] = {"$anchor": "x"}
    for _ in range(10_000):
        inner = {"items": inner}
    with pytest.raises(LimitError, match="MAX_SCHEMA_DEPTH"):
        compile_schema({"$ref": "#x", "$defs": {"x": inner}})
