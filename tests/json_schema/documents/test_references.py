"""What ``$ref`` points to: base URIs, embedded resources, anchors, JSON Pointers, and the differences of the drafts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.errors import ConstrainError, LimitError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from tests.support.json_schema.grammar_interpreter import Interpreter

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

INTEGER = {"type": "integer"}
STRING = {"type": "string"}


def check(schema: Any, accepted: list[Any], rejected: list[Any], **options: Any) -> None:
    grammar = compile_schema(schema, whitespace="compact", property_order="any", **options).grammar
    interpreter = Interpreter(grammar)
    for value in accepted:
        text = json.dumps(value, separators=(",", ":"))
        assert interpreter.accepts(text.encode()), f"should be accepted: {text}"
    for value in rejected:
        text = json.dumps(value, separators=(",", ":"))
        assert not interpreter.accepts(text.encode()), f"should be rejected: {text}"


def refused(schema: Any, error: type[ConstrainError], says: str, pointer: str, **options: Any) -> None:
    with pytest.raises(error, match=says) as caught:
        compile_schema(schema, **options)
    assert type(caught.value) is error
    assert caught.value.pointer == pointer


ONE_INTEGER: dict[str, Any] = {
    "a relative $id": {"$id": "http://e.x/dir/root", "$ref": "item", "$defs": {"i": {"$id": "item", **INTEGER}}},
    "a URN": {"$id": "urn:uuid:1", "$ref": "urn:uuid:2", "$defs": {"i": {"$id": "urn:uuid:2", **INTEGER}}},
    "a fragment in a URN": {"$id": "urn:uuid:1", "$ref": "urn:uuid:1#/$defs/i", "$defs": {"i": INTEGER}},
    "no base at all": {"$ref": "item", "$defs": {"i": {"$id": "item", **INTEGER}}},
    "an $id two levels down": {
        "$id": "http://e.x/",
        "$ref": "dir/item",
        "$defs": {"d": {"$id": "dir/", "$defs": {"i": {"$id": "item", **INTEGER}}}},
    },
    "a base changed on the way": {
        "$id": "http://e.x/root",
        "allOf": [{"$id": "dir/", "allOf": [{"$ref": "item"}]}],
        "$defs": {"right": {"$id": "dir/item", **INTEGER}, "wrong": {"$id": "item", **STRING}},
    },
    "an anchor": {"$ref": "#i", "$defs": {"i": {"$anchor": "i", **INTEGER}}},
    "an anchor in an embedded resource": {
        "$ref": "inner#i",
        "$defs": {"a": {"$anchor": "i", **STRING}, "r": {"$id": "inner", "$defs": {"i": {"$anchor": "i", **INTEGER}}}},
    },
    "an anchor of the same name outside": {
        "$ref": "inner",
        "$defs": {
            "a": {"$anchor": "i", **STRING},
            "r": {"$id": "inner", "$ref": "#i", "$defs": {"i": {"$anchor": "i", **INTEGER}}},
        },
    },
    "a pointer that is relative to an embedded resource": {
        "$ref": "inner",
        "$defs": {"i": STRING, "r": {"$id": "inner", "$ref": "#/$defs/i", "$defs": {"i": INTEGER}}},
    },
    "a pointer through an embedded resource": {
        "$ref": "#/$defs/r/$defs/i",
        "$defs": {"x": STRING, "r": {"$id": "inner", "$defs": {"i": {"$ref": "#/$defs/x"}, "x": INTEGER}}},
    },
    "an embedded resource of an older draft": {
        "$ref": "inner",
        "$defs": {
            "r": {
                "$schema": DRAFT_7,
                "$id": "inner",
                "allOf": [{"$ref": "#/definitions/i", "type": "string"}],
                "definitions": {"i": INTEGER},
            }
        },
    },
    "an embedded resource of a newer draft": {
        "$schema": DRAFT_4,
        "$ref": "#/definitions/r",
        "definitions": {
            "r": {
                "$schema": DRAFT_2020,
                "$id": "http://e.x/r",
                "$ref": "#/$defs/n",
                "multipleOf": 1,
                "$defs": {"n": INTEGER},
            }
        },
    },
    "a pointer with escapes": {"$ref": "#/$defs/a~1b~0c", "$defs": {"a/b~c": INTEGER}},
    "a pointer with percent-encoding": {"$ref": "#/$defs/a%25b%22%C3%A9", "$defs": {'a%b"é': INTEGER}},
    "a pointer with an empty key": {"$ref": "#/$defs//i", "$defs": {"": {"i": INTEGER}}},
    "a pointer into a list": {"$ref": "#/$defs/l/prefixItems/1", "$defs": {"l": {"prefixItems": [STRING, INTEGER]}}},
    "a pointer into an unknown keyword": {"$ref": "#/x-types/0", "x-types": [INTEGER]},
    "a pointer into examples": {"$ref": "#/examples/0", "examples": [INTEGER]},
    "an anchor inside an unknown keyword, from within": {
        "$ref": "#/x-types/r",
        "x-types": {"r": {"$id": "r", "$ref": "#i", "$defs": {"i": {"$anchor": "i", **INTEGER}}}},
    },
    "an $id that is an instance": {
        "$ref": "item",
        "$defs": {
            "e": {"enum": [{"$id": "item", **STRING}]},
            "c": {"const": {"$id": "item", **STRING}},
            "i": {"$id": "item", **INTEGER},
        },
    },
    "an $id in an unknown keyword": {
        "$ref": "item",
        "$defs": {"u": {"x-types": [{"$id": "item", **STRING}]}, "i": {"$id": "item", **INTEGER}},
    },
    "an $anchor in an enum": {
        "$ref": "#i",
        "$defs": {"e": {"enum": [{"$anchor": "i", **STRING}]}, "i": {"$anchor": "i", **INTEGER}},
    },
    "a definition whose name is a keyword": {
        "$ref": "item",
        "$defs": {"enum": {"$id": "item", **INTEGER}, "const": {"$anchor": "c"}},
    },
    "properties named $id and $ref": {
        "properties": {"$id": {"type": "object", "x": INTEGER}, "$ref": {"$anchor": "r", **INTEGER}},
        "$ref": "#r",
    },
    "equal schemas with one $id": {
        "$ref": "item",
        "$defs": {"a": {"$id": "item", **INTEGER}, "b": {"$id": "item", **INTEGER}},
    },
    "siblings of $ref": {"$ref": "#/$defs/n", "multipleOf": 1, "$defs": {"n": {"type": "number"}}},
    "draft 7: no siblings of $ref": {
        "$schema": DRAFT_7,
        "allOf": [{"$ref": "#/definitions/i", "type": "string"}],
        "definitions": {"i": INTEGER},
    },
    "draft 7: an $id beside $ref changes nothing": {
        "$schema": DRAFT_7,
        "$id": "http://e.x/root",
        "allOf": [{"$id": "http://e.x/dir/", "$ref": "item"}],
        "definitions": {"right": {"$id": "item", **INTEGER}, "wrong": {"$id": "dir/item", **STRING}},
    },
    "draft 7: an $id that is a fragment": {
        "$schema": DRAFT_7,
        "$ref": "#i",
        "definitions": {"i": {"$id": "#i", **INTEGER}},
    },
    "draft 6: an $id with a fragment": {
        "$schema": DRAFT_6,
        "allOf": [{"$ref": "http://e.x/r#i"}],
        "definitions": {"i": {"$id": "http://e.x/r#i", **INTEGER}},
    },
    "draft 4: id": {
        "$schema": DRAFT_4,
        "id": "http://e.x/root",
        "allOf": [{"$ref": "item"}],
        "definitions": {"i": {"id": "item", **INTEGER}, "no": {"$id": "item", **STRING}},
    },
    "draft 4: an id that is a fragment": {
        "$schema": DRAFT_4,
        "allOf": [{"$ref": "#i"}],
        "definitions": {"i": {"id": "#i", **INTEGER}},
    },
    "id means nothing to later drafts": {
        "$ref": "#/$defs/a",
        "$defs": {"i": INTEGER, "a": {"id": "a", "$schema": DRAFT_4, "allOf": [{"$ref": "#/$defs/i"}]}},
    },
}


@pytest.mark.parametrize("name", ONE_INTEGER)
def test_the_reference_leads_to_the_schema_of_integers(name: str) -> None:
    check(ONE_INTEGER[name], [1, -20], ["s", 1.5])


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


@pytest.mark.parametrize("reference", MEANT)
def test_an_error_names_the_target_that_is_meant(reference: str) -> None:
    schema = {"$defs": {"Pet": STRING, "a/b": {"properties": {"b": {}}}, "number": 5}}
    with pytest.raises(SchemaError) as caught:
        compile_schema({**schema, "items": {"$ref": reference}})
    assert (f"did you mean {MEANT[reference]!r}?" in caught.value.message) == bool(MEANT[reference])
    assert ("did you mean" in caught.value.message) == bool(MEANT[reference])


ERRORS: dict[str, tuple[Any, str, str]] = {
    "no string": ({"$ref": 5}, "must be a string", "/$ref"),
    "nothing there": ({"$ref": "#/$defs/x"}, "points to nothing", "/$ref"),
    "an index with a leading zero": ({"$ref": "#/allOf/01", "allOf": [True, True]}, "points to nothing", "/$ref"),
    "an index after the end": ({"$ref": "#/allOf/1", "allOf": [True]}, "points to nothing", "/$ref"),
    "a bad escape": ({"$ref": "#/$defs/a~2", "$defs": {"a~2": True}}, "points to nothing", "/$ref"),
    "no schema": ({"$ref": "#/$defs/x", "$defs": {"x": 5}}, "not a schema", "/$ref"),
    "a list": ({"$ref": "#/allOf", "allOf": [True]}, "not a schema", "/$ref"),
    "no such anchor": ({"$ref": "#x"}, "an anchor that no schema has", "/$ref"),
    "an anchor twice": (
        {"$ref": "#x", "$defs": {"a": {"$anchor": "x", **STRING}, "b": {"$anchor": "x", **INTEGER}}},
        "an anchor of several schemas",
        "/$ref",
    ),
    "1 and true are not equal": (
        {"$ref": "#x", "$defs": {"a": {"$anchor": "x", "const": 1}, "b": {"$anchor": "x", "const": True}}},
        "an anchor of several schemas",
        "/$ref",
    ),
    "an $id twice": (
        {"items": {"$ref": "x"}, "$defs": {"a": {"$id": "x", **STRING}, "b": {"$id": "x", **INTEGER}}},
        "several schemas have its URI",
        "/items/$ref",
    ),
    "an $id that is no string": ({"properties": {"a": {"$id": 1}}}, r"\$id must be a string", "/properties/a/$id"),
    "an $id that is no URI": ({"$id": "http://e.x", "items": {"$id": "http://["}}, "is not a URI", "/items/$id"),
    "a $ref that is no URI": ({"$id": "http://e.x", "$ref": "http://["}, "is not a URI", "/$ref"),
    "an $anchor that is no string": ({"$anchor": 1}, r"\$anchor must be a string", "/$anchor"),
    "a $schema that is no string": ({"$schema": 1}, r"\$schema must be a string", "/$schema"),
    "a malformed schema": (
        {"$ref": "#/$defs/x", "$defs": {"x": {"required": 1}}},
        "must be a list",
        "/$defs/x/required",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_names_the_place(name: str) -> None:
    schema, says, pointer = ERRORS[name]
    refused(schema, SchemaError, says, pointer)


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
