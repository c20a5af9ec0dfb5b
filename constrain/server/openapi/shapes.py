"""JSON Schemas of bodies: the ``openai`` package's types, reduced to the members that this server reads and writes.

The types cover all of OpenAI's API. Of their unions, only the alternatives named here are kept; members that only
removed alternatives could fill disappear, too. Titles and descriptions are left out: they describe OpenAI's server.
Bodies of other APIs are written as schemas (``WrittenShape``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.json_schema import JsonSchemaMode

    from constrain.server.requests.declared import Body

Schema = dict[str, Any]

_TYPED = frozenset(("type", "anyOf", "enum", "$ref"))
_ALTERNATIVES = ("anyOf", "oneOf")
_KEPT_KEYWORDS = ("type", "enum", "const", "format", "pattern", "minimum", "maximum", "minLength", "maxLength")


@dataclass(frozen=True, slots=True)
class Shape:
    """The description of a body.

    Attributes:
        name: name of its schema among the components; schemas of its parts are named ``name.part``.
        type: type of the ``openai`` package.
        direction: request or response; in requests, optional members may be null.
        parts: names of types that may occur inside the body, with white space between them.
        members: described members of the body, each with keywords that the type lacks; ``None`` for all members.
        own: members that the types lack or define differently, by name of the part; ``""`` for the body.
        required: names of members that are required although the types do not say so, by name of the part.
        open: names of members that are lists and may have objects of other types than those given here.
        fields: declaration of a request's body. Its fields are described as they are read; those without a type of
            their own have that of the package, with the keywords that the declaration adds.
    """

    name: str
    type: Any
    direction: Literal["request", "response"]
    parts: str = ""
    members: Mapping[str, Schema] | None = None
    own: Mapping[str, Mapping[str, Schema]] = field(default_factory=dict)
    required: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    open: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields: type[Body] | None = None


@dataclass(frozen=True, slots=True)
class WrittenShape:
    """The description of a body for which no installed package has a type.

    Attributes:
        name: name of its schema among the components.
        schema: schema of the body.
        parts: schemas of its parts, by name.
    """

    name: str
    schema: Schema
    parts: Mapping[str, Schema] = field(default_factory=dict)


AnyShape = Shape | WrittenShape


def component_schemas(shape: AnyShape) -> dict[str, Schema]:
    """Returns the schemas of a request or response body and of its own parts, by name in OpenAPI's components.

    Parts that several bodies share are left out.
    """
    if isinstance(shape, WrittenShape):
        return {shape.name: shape.schema, **shape.parts}
    mode: JsonSchemaMode = "validation" if shape.direction == "request" else "serialization"
    document = TypeAdapter(shape.type).json_schema(mode=mode, ref_template="{model}")
    definitions = document.pop("$defs", {})
    if shape.fields is not None:
        shape = _with_fields(shape, shape.fields, document["properties"])
    if shape.members is not None:
        document["properties"] = {key: one for key, one in document["properties"].items() if key in shape.members}
    found = {shape.name: _body(shape, document)}
    waiting = list(_references(found[shape.name]))
    while waiting:
        name = waiting.pop()
        if name in found or not name.startswith(f"{shape.name}."):  # components shared by several bodies
            continue
        part = name.removeprefix(f"{shape.name}.")
        schema = _reduce(shape, definitions[part])
        assert schema is not None, f"{part} is made of parts that are not named"
        found[name] = _add_own_members(shape, schema, _short_name(part))
        waiting += _references(schema)
    return found


def _with_fields(shape: Shape, fields: type[Body], theirs: Schema) -> Shape:
    """Returns the shape of a body with its declared fields. ``theirs``: members of the package's type."""
    described = fields.describe()
    members = described["properties"]
    untyped = {name: each for name, each in members.items() if name in theirs and not each.keys() & _TYPED}
    own = {**{name: each for name, each in members.items() if name not in untyped}, **shape.own.get("", {})}
    return replace(
        shape, members=untyped, own={**shape.own, "": own}, required={**shape.required, "": (*described["required"],)}
    )


def reference(name: str) -> Schema:
    """Returns a reference to a schema among the components."""
    return {"$ref": f"#/components/schemas/{name}"}


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
OBJECT: Schema = {"type": "object"}


def array_of(items: Schema, **more: Any) -> Schema:
    """Returns the schema of an array. ``more``: further keywords."""
    return {"type": "array", "items": items, **more}


def object_schema(optional: Mapping[str, Schema] | None = None, /, **members: Schema) -> Schema:
    """Returns the schema of an object that has all these members, and may have the optional ones."""
    return {**OBJECT, "properties": {**members, **(optional or {})}, "required": [*members]}


def or_null(schema: Schema) -> Schema:
    """Returns a schema that null matches, too."""
    null: Schema = {"type": "null"}
    if "anyOf" in schema:
        return schema if null in schema["anyOf"] else {**schema, "anyOf": [*schema["anyOf"], null]}
    return {"anyOf": [schema, null]}


def of_other_types(*kinds: str) -> Schema:
    """Returns the schema of an object whose ``type`` is none of these."""
    return object_schema(type={**TEXT, "not": {"enum": [*kinds]}})


def _body(shape: Shape, document: Schema) -> Schema:
    schema = _reduce(shape, document)
    assert schema is not None
    for name, keywords in (shape.members or {}).items():
        schema["properties"][name].update(keywords)
    for name, kinds in shape.open.items():
        given = schema["properties"][name]
        for each in given.get("anyOf", [given]):
            if "items" in each:
                each["items"] = {"anyOf": [each["items"], of_other_types(*kinds)]}
    return _add_own_members(shape, schema, "")


def _add_own_members(shape: Shape, schema: Schema, part: str) -> Schema:
    if part in shape.own:
        schema["properties"].update(shape.own[part])
    if part in shape.required:
        schema["required"] = [*dict.fromkeys((*schema.get("required", ()), *shape.required[part]))]
    return schema


def _reduce(shape: Shape, schema: Schema) -> Schema | None:
    """Returns a schema without the types that are not named; ``None`` if nothing is left."""
    if "$ref" in schema:
        name = schema["$ref"]
        return reference(f"{shape.name}.{name}") if _short_name(name) in _names(shape.parts) else None
    left: Schema = {key: schema[key] for key in _KEPT_KEYWORDS if key in schema}
    for key in _ALTERNATIVES:
        if key in schema:
            left[key] = [one for one in (_reduce(shape, each) for each in schema[key]) if one is not None]
            if not left[key]:
                return None
    for key, empty in (("items", "maxItems"), ("additionalProperties", "maxProperties")):
        given = schema.get(key)
        if isinstance(given, dict):
            inner = _reduce(shape, given)
            left |= {empty: 0} if inner is None else {key: inner}
    if "properties" in schema:
        required = schema.get("required", [])
        members = {name: _reduce(shape, each) for name, each in schema["properties"].items()}
        if any(members.get(name, {}) is None for name in required):
            return None
        left["required"] = [name for name in required if name in members]
        left["properties"] = {
            name: each if name in required or shape.direction == "response" else or_null(each)
            for name, each in members.items()
            if each is not None
        }
    return left


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(name := value.get("$ref"), str):
            yield name.rpartition("/")[2]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


@cache
def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _short_name(name: str) -> str:
    """Returns a type's name without the module that pydantic puts in front of ambiguous names."""
    return name.rpartition("__")[2]
