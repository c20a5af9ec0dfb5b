"""Locations of subschemas, resources (``$id``), and targets of references (``$ref``).

A location is one subschema at one place. Locations are interned per resource by the identity of the subschema: its
parent and a ``$ref`` lead to the same location, and recursion closes. A resource is a source (a schema with a base URI)
in one dynamic scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from constrain.errors import LimitError, SchemaError
from constrain.json_schema.documents.dialects import MAX_SCHEMA_DEPTH
from constrain.json_schema.documents.dynamic_scope import RECURSIVE, DynamicScopeNeeded, Scopes
from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.documents.locations import NO_SCOPE, Location, Resource, SchemaSource, Scope
from constrain.json_schema.documents.sources import Sources

if TYPE_CHECKING:
    from constrain.json_schema.documents.documents import Documents


class References:
    """All locations of one document, and the targets of its references.

    ``dynamic``: keeps dynamic scopes; without them, the first reference that needs them raises ``DynamicScopeNeeded``.
    """

    def __init__(self, document: object, documents: Documents, *, dynamic: bool = False) -> None:
        self._documents = documents
        self._sources = Sources(document, documents, dynamic=dynamic)
        self._scopes = Scopes() if dynamic else None
        self._count = 0
        self.root = self._enter(NO_SCOPE, self._sources.document).root

    def notes(self) -> tuple[str, ...]:
        """Returns the warnings about the dialects in use."""
        return tuple(self._documents.notes)

    # Locations.

    def child(self, parent: Location, token: str, schema: object) -> Location:
        """Returns the location of ``schema``, found in ``parent`` at ``token`` (``/keyword`` or ``/keyword/key``)."""
        resource = parent.resource
        location = resource.locations.get(id(schema))
        if location is not None:
            return location
        if schema.__class__ is not dict and not isinstance(schema, (dict, bool)):
            raise SchemaError(
                f"a schema is an object or a boolean, not {schema!r:.80}", pointer=parent.pointer() + token
            )
        if isinstance(schema, dict) and ("$id" in schema or "id" in schema):
            source = self._sources.embedded(resource.source, schema, parent.pointer(), token, parent.depth + 1)
            if source is not None:
                location = resource.locations[id(schema)] = self._enter(resource.scope, source).root
                return location
        return self._new(schema, parent, token, resource)

    def inside(self, parent: Location, schema: dict[str, object]) -> Location:
        """Returns a location for a schema made of a part of a keyword's value; it has the pointer of ``parent``."""
        return self._new(schema, parent, "", parent.resource)

    def _new(self, schema: object, parent: Location | None, token: str, resource: Resource) -> Location:
        self._count += 1
        location = Location(schema, parent, token, resource, self._count)
        if location.depth > MAX_SCHEMA_DEPTH:
            raise LimitError(f"the schema is nested deeper than MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}")
        resource.locations[id(schema)] = location
        return location

    def _enter(self, scope: Scope, source: SchemaSource) -> Resource:
        """Returns the resource of ``source`` for an evaluation that comes from ``scope``."""
        if self._scopes is not None:
            if source.anchors is None:
                self._sources.index(source)
            scope = self._scopes.enter(scope, source)
        resource = source.resources.get(scope)
        if resource is None:
            resource = source.resources[scope] = Resource(source, scope)
            resource.root = self._new(source.schema, None, source.pointer, resource)
            resource.root.depth = source.depth
        return resource

    # Targets of references.

    def resolve(self, at: Location, reference: object) -> Location:
        """Returns the target of ``$ref`` in ``at``."""
        if not isinstance(reference, str):
            raise SchemaError(f"$ref must be a string, not {reference!r:.80}", pointer=at.pointer("$ref"))
        targets = at.resource.targets
        location = targets.get(reference)
        if location is None:
            location = targets[reference] = self._location(at, *self._sources.find(at, reference, "$ref"))
        return location

    def resolve_dynamic(self, at: Location, reference: object) -> Location:
        """Returns the target of ``$dynamicRef`` in ``at`` (2020-12, section 8.2.3.2)."""
        if not isinstance(reference, str):
            raise SchemaError(f"$dynamicRef must be a string, not {reference!r:.80}", pointer=at.pointer("$dynamicRef"))
        key = "$dynamicRef", reference
        location = at.resource.targets.get(key)
        if location is None:
            source, token, schema = self._sources.find(at, reference, "$dynamicRef")
            name = unquote(reference.partition("#")[2])
            if (
                isinstance(schema, dict)
                and not name.startswith("/")  # a JSON Pointer, which may lead to a schema with an anchor, too
                and schema.get("$dynamicAnchor") == name
                and "$dynamicAnchor" in KEYWORDS.handlers[source.declared.dialect]
            ):
                source, token, schema = self._outermost(at, source, name)
            location = at.resource.targets[key] = self._location(at, source, token, schema)
        return location

    def resolve_recursive(self, at: Location, reference: object) -> Location:
        """Returns the target of ``$recursiveRef`` in ``at`` (2019-09, section 8.2.4.2.1)."""
        if reference != "#":
            raise SchemaError(f'$recursiveRef must be "#", not {reference!r:.80}', pointer=at.pointer("$recursiveRef"))
        source = at.resource.source
        schema = source.schema
        if isinstance(schema, dict) and schema.get("$recursiveAnchor") is True:
            source = self._outermost(at, source, RECURSIVE)[0]
        return self._enter(at.resource.scope, source).root

    def _outermost(self, at: Location, source: SchemaSource, name: str) -> tuple[SchemaSource, str, object]:
        """Returns the outermost place in the dynamic scope that declares ``name``, as ``source`` does."""
        if self._scopes is None:
            raise DynamicScopeNeeded
        outermost = at.resource.scope.outermost.get(name, source)
        place = outermost.dynamic[name]
        if place is None:
            raise SchemaError(
                f"several schemas of one resource have the $dynamicAnchor {name!r:.80}", pointer=at.pointer()
            )
        return outermost, *place

    def _location(self, at: Location, source: SchemaSource, token: str, schema: object) -> Location:
        resource = self._enter(at.resource.scope, source)
        if not token:
            return resource.root
        location = resource.locations.get(id(schema))
        return self._new(schema, resource.root, token, resource) if location is None else location
