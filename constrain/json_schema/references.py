"""Where subschemas are: locations, resources (``$id``), anchors and the resolution of ``$ref``.

A location is one subschema at one place. Locations are interned per resource by the identity of the subschema, so
reaching a subschema through its parent or through a ``$ref`` gives the same location, and recursion closes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from constrain._errors import LimitError, SchemaError, UnsupportedSchemaError

if TYPE_CHECKING:
    from constrain.json_schema.goal import Goal
    from constrain.json_schema.shapes import Shapes

MAX_SCHEMA_DEPTH = 500
"""Levels of subschemas within subschemas: hand-written schemas stay below 50, and pointers grow with it."""

NOT_SCHEMAS = frozenset(("enum", "const", "default", "examples"))
"""Keywords whose values are instances: an ``$id`` in there names nothing."""


class Dialect(NamedTuple):
    """What differs between the drafts apart from the set of keywords."""

    name: str
    id_keyword: str
    ref_ignores_siblings: bool


DRAFT_4 = Dialect("draft 4", "id", ref_ignores_siblings=True)
DRAFT_6 = Dialect("draft 6", "$id", ref_ignores_siblings=True)
DRAFT_7 = Dialect("draft 7", "$id", ref_ignores_siblings=True)
DRAFT_2019 = Dialect("draft 2019-09", "$id", ref_ignores_siblings=False)
DRAFT_2020 = Dialect("draft 2020-12", "$id", ref_ignores_siblings=False)

DIALECTS = {
    "http://json-schema.org/draft-04/schema": DRAFT_4,
    "http://json-schema.org/draft-06/schema": DRAFT_6,
    "http://json-schema.org/draft-07/schema": DRAFT_7,
    "https://json-schema.org/draft/2019-09/schema": DRAFT_2019,
    "https://json-schema.org/draft/2020-12/schema": DRAFT_2020,
    "http://json-schema.org/schema": DRAFT_2020,
    "https://json-schema.org/schema": DRAFT_2020,
}


class Resource:
    """A schema with a base URI of its own: the whole document, or a subschema with an ``$id``."""

    __slots__ = ("anchors", "base", "dialect", "locations", "root", "targets")

    def __init__(self, base: str, dialect: Dialect) -> None:
        self.base = base
        self.dialect = dialect
        self.locations: dict[int, Location] = {}
        self.targets: dict[str, Location] = {}
        self.anchors: dict[str, Location] | None = None
        self.root: Location


class Location:
    """One subschema at one place; ``shapes`` and ``goal`` are filled in when first asked for."""

    __slots__ = ("depth", "expanding", "goal", "order", "parent", "resource", "schema", "shapes", "token")

    def __init__(self, schema: object, parent: Location | None, token: str, resource: Resource, order: int) -> None:
        self.schema = schema
        self.parent = parent
        self.token = token
        self.resource = resource
        self.order = order
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.expanding = False
        self.shapes: Shapes | None = None
        self.goal: Goal | None = None

    def pointer(self, *tokens: str | int) -> str:
        """The JSON Pointer of this location, or of something inside it; built on demand, O(depth)."""
        parts = []
        location: Location | None = self
        while location is not None:
            parts.append(location.token)
            location = location.parent
        parts.reverse()
        parts += [escape(str(token)) for token in tokens]
        return "".join(parts)


def escape(token: str) -> str:
    """``/token`` as a JSON Pointer writes it (RFC 6901 section 3)."""
    if "~" in token or "/" in token:
        token = token.replace("~", "~0").replace("/", "~1")
    return "/" + token


class References:
    """All locations of one document, and what its references point to."""

    def __init__(self, document: object, registry: object = None) -> None:
        self._registry = registry
        self._resources: dict[str, Resource] | None = None
        self._remote: dict[str, Location] = {}
        self._count = 0
        self.unknown_dialects: list[str] = []
        self.root = self._new_root(document, "", DRAFT_2020, "")

    def _new_root(self, document: object, base: str, dialect: Dialect, token: str) -> Location:
        if isinstance(document, dict):
            dialect = self._declared_dialect(document, dialect)
            identifier = document.get(dialect.id_keyword)
            if isinstance(identifier, str):
                base = urldefrag(urljoin(base, identifier))[0]
        resource = Resource(base, dialect)
        resource.root = self._new(document, None, token, resource)
        return resource.root

    def _declared_dialect(self, schema: dict[str, object], inherited: Dialect) -> Dialect:
        declared = schema.get("$schema")
        if not isinstance(declared, str):
            return inherited
        dialect = DIALECTS.get(declared.rstrip("#"))
        if dialect is not None:
            return dialect
        if "json-schema.org/draft-0" in declared:
            raise UnsupportedSchemaError(f"the dialect {declared} is not supported", pointer="/$schema")
        self.unknown_dialects.append(declared)
        return inherited

    def _new(self, schema: object, parent: Location | None, token: str, resource: Resource) -> Location:
        self._count += 1
        location = Location(schema, parent, token, resource, self._count)
        if location.depth > MAX_SCHEMA_DEPTH:
            raise LimitError(f"the schema is nested deeper than MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}")
        resource.locations[id(schema)] = location
        return location

    def child(self, parent: Location, token: str, schema: object) -> Location:
        """The location of ``schema``, which is found in ``parent`` at ``token`` (``/keyword`` or ``/keyword/key``)."""
        resource = parent.resource
        location = resource.locations.get(id(schema))
        if location is not None:
            return location
        if schema.__class__ is not dict and not isinstance(schema, (dict, bool)):
            raise SchemaError(
                f"a schema is an object or a boolean, not {schema!r:.80}", pointer=parent.pointer() + token
            )
        if isinstance(schema, dict) and resource.dialect.id_keyword in schema:
            inner = self._embedded(parent, token, schema)
            if inner is not None:
                return inner
        return self._new(schema, parent, token, resource)

    def inside(self, parent: Location, schema: dict[str, object]) -> Location:
        """A location for a schema that stands for a part of a keyword's value; its pointer is that of ``parent``."""
        return self._new(schema, parent, "", parent.resource)

    def _embedded(self, parent: Location, token: str, schema: dict[str, object]) -> Location | None:
        """The root of the resource that ``schema`` starts, if its ``$id`` is one and not just an anchor."""
        outer = parent.resource
        identifier = schema[outer.dialect.id_keyword]
        if not isinstance(identifier, str) or identifier.startswith("#"):
            return None
        if outer.dialect.ref_ignores_siblings and "$ref" in schema:
            return None
        resource = Resource(
            urldefrag(urljoin(outer.base, identifier))[0], self._declared_dialect(schema, outer.dialect)
        )
        resource.root = self._new(schema, parent, token, resource)
        outer.locations[id(schema)] = resource.root
        return resource.root

    def resolve(self, at: Location, reference: object) -> Location:
        """What ``$ref`` in ``at`` points to."""
        if not isinstance(reference, str):
            raise SchemaError(f"$ref must be a string, not {reference!r:.80}", pointer=at.pointer("$ref"))
        targets = at.resource.targets
        location = targets.get(reference)
        if location is None:
            location = targets[reference] = self._find(at, reference)
        return location

    def _find(self, at: Location, reference: str) -> Location:
        if reference.startswith("#"):
            resource, fragment = at.resource, reference[1:]
        else:
            uri, fragment = urldefrag(urljoin(at.resource.base, reference))
            resource = at.resource if uri == at.resource.base else self._resource(at, uri, reference)
        fragment = unquote(fragment)
        if not fragment:
            return resource.root
        if fragment.startswith("/"):
            return self._walk(at, resource, fragment, reference)
        self._index()
        anchor = (resource.anchors or {}).get(fragment)
        if anchor is None:
            raise SchemaError(f"$ref {reference!r} points to nothing", pointer=at.pointer("$ref"))
        return anchor

    def _walk(self, at: Location, resource: Resource, fragment: str, reference: str) -> Location:
        """Follows a JSON Pointer from the root of ``resource``, into embedded resources where it meets them."""
        parent, token = resource.root, ""
        node = parent.schema
        for part in fragment[1:].split("/"):
            step = part.replace("~1", "/").replace("~0", "~")
            token += "/" + part
            if isinstance(node, dict) and step in node:
                node = node[step]
            elif isinstance(node, list) and step.isdecimal() and int(step) < len(node):
                node = node[int(step)]
            else:
                raise SchemaError(f"$ref {reference!r} points to nothing", pointer=at.pointer("$ref"))
            if isinstance(node, dict) and parent.resource.dialect.id_keyword in node:
                embedded = parent.resource.locations.get(id(node)) or self._embedded(parent, token, node)
                if embedded is not None and embedded.resource is not parent.resource:
                    parent, token = embedded, ""
        if node is parent.schema and not token:
            return parent
        if isinstance(node, bool):
            return self._new(node, parent, token, parent.resource)
        if not isinstance(node, dict):
            raise SchemaError(f"$ref {reference!r} points to something that is no schema", pointer=at.pointer("$ref"))
        return self.child(parent, token, node)

    def _resource(self, at: Location, uri: str, reference: str) -> Resource:
        resource = self._index().get(uri)
        if resource is not None:
            return resource
        location = self._remote.get(uri)
        if location is None:
            location = self._remote[uri] = self._new_root(
                self._retrieve(at, uri, reference), uri, DRAFT_2020, uri + "#"
            )
        return location.resource

    def _retrieve(self, at: Location, uri: str, reference: str) -> object:
        if isinstance(self._registry, Mapping):
            try:
                found = self._registry[uri]
            except LookupError:
                found = None
            if found is not None:
                return getattr(found, "contents", found)
        raise UnsupportedSchemaError(
            f"$ref {reference!r} is not in this document and not in the registry", pointer=at.pointer("$ref")
        )

    def _index(self) -> dict[str, Resource]:
        """Base URIs and anchors of everything in the document; made when the first reference needs it."""
        if self._resources is not None:
            return self._resources
        self._resources = {}
        root = self.root
        root.resource.anchors = {}
        self._resources[root.resource.base] = root.resource
        stack: list[tuple[Location, str, object]] = [(root, "", root.schema)]
        while stack:
            parent, token, node = stack.pop()
            if isinstance(node, dict):
                parent, token = self._name(parent, token, node)
            stack.extend((parent, token + step, inner) for step, inner in subschemas(node))
        return self._resources

    def _name(self, parent: Location, token: str, node: dict[str, object]) -> tuple[Location, str]:
        """Enters the names of ``node`` into the index; returns the location that what is inside it is relative to."""
        assert self._resources is not None
        identifier = node.get(parent.resource.dialect.id_keyword)
        if token and isinstance(identifier, str):
            embedded = parent.resource.locations.get(id(node)) or self._embedded(parent, token, node)
            if embedded is not None and embedded.resource is not parent.resource:
                parent, token = embedded, ""
                embedded.resource.anchors = {}
                self._resources[embedded.resource.base] = embedded.resource
        anchors = parent.resource.anchors
        assert anchors is not None
        names = [node.get("$anchor"), node.get("$dynamicAnchor")]
        if isinstance(identifier, str) and identifier.startswith("#"):
            names.append(identifier[1:])
        for name in names:
            if isinstance(name, str):
                anchors[name] = self.child(parent, token, node) if token else parent
        return parent, token


def subschemas(node: object) -> Iterator[tuple[str, object]]:
    """What may hold subschemas inside ``node``, with its step in a JSON Pointer."""
    if isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, (dict, list)) and key not in NOT_SCHEMAS:
                yield escape(key), value
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if isinstance(value, (dict, list)):
                yield f"/{index}", value
