"""Where subschemas are: locations, resources (``$id``), anchors and the resolution of references.

A location is one subschema at one place. Locations are interned per resource by the identity of the subschema, so
reaching a subschema through its parent or through a ``$ref`` gives the same location, and recursion closes. A resource
is a source (a schema with a base URI) as seen from one dynamic scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from constrain._errors import LimitError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.dialects import (
    ANCHOR_KEYWORDS,
    MAX_SCHEMA_DEPTH,
    RECURSIVE_ANCHOR,
    Declared,
    Dialect,
    is_schema_position,
    subschemas,
    without_keywords,
)
from constrain.json_schema.documents import NEWEST, split_uri
from constrain.json_schema.dynamic_scope import RECURSIVE, DynamicScopeNeeded, Scope, Scopes, Source

if TYPE_CHECKING:
    from constrain.json_schema.documents import Documents
    from constrain.json_schema.dynamic_scope import Place
    from constrain.json_schema.goal import Goal
    from constrain.json_schema.shapes import Shapes

Key = TypeVar("Key")


class Resource:
    """A source as seen from a dynamic scope, which includes the source itself; holds the locations inside it."""

    __slots__ = ("base", "dialect", "locations", "root", "scope", "source", "targets")

    def __init__(self, source: Source, scope: Scope) -> None:
        self.source = source
        self.scope = scope
        self.base = source.base
        self.dialect: Dialect = source.declared.dialect
        self.locations: dict[int, Location] = {}
        self.targets: dict[str | tuple[str, str], Location] = {}
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
    """All locations of one document, and what its references point to.

    ``dynamic``: whether dynamic scopes are kept; without, the first reference that needs them raises
    ``DynamicScopeNeeded``.
    """

    def __init__(self, document: object, documents: Documents, *, dynamic: bool = False) -> None:
        self._documents = documents
        self._dynamic = dynamic
        self._scopes = Scopes()
        self._named: dict[str, Source | None] | None = None
        self._remote: dict[tuple[str, Declared | None], Source | None] = {}
        self._count = 0
        self._source = self._root_source(document, "", NEWEST, "")
        if dynamic:
            self._names()
        self.root = self._enter(self._scopes.empty, self._source).root

    def notes(self) -> tuple[str, ...]:
        """What a reader should know about the dialects that were met."""
        return tuple(self._documents.notes)

    # Locations.

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
        if isinstance(schema, dict) and ("$id" in schema or "id" in schema):
            source = self._embedded(resource.source, schema, parent.pointer(), token, parent.depth + 1)
            if source is not None:
                location = resource.locations[id(schema)] = self._enter(resource.scope, source).root
                return location
        return self._new(schema, parent, token, resource)

    def inside(self, parent: Location, schema: dict[str, object]) -> Location:
        """A location for a schema that stands for a part of a keyword's value; its pointer is that of ``parent``."""
        return self._new(schema, parent, "", parent.resource)

    def _new(self, schema: object, parent: Location | None, token: str, resource: Resource) -> Location:
        self._count += 1
        location = Location(schema, parent, token, resource, self._count)
        if location.depth > MAX_SCHEMA_DEPTH:
            raise LimitError(f"the schema is nested deeper than MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}")
        resource.locations[id(schema)] = location
        return location

    def _enter(self, scope: Scope, source: Source) -> Resource:
        """``source`` as it is seen when an evaluation comes to it from ``scope``."""
        if self._dynamic:
            if source.anchors is None:
                self._index(source)
            scope = self._scopes.enter(scope, source)
        resource = source.resources.get(scope)
        if resource is None:
            resource = source.resources[scope] = Resource(source, scope)
            resource.root = self._new(source.schema, None, source.pointer, resource)
            resource.root.depth = source.depth
        return resource

    # What references point to.

    def resolve(self, at: Location, reference: object) -> Location:
        """What ``$ref`` in ``at`` points to."""
        if not isinstance(reference, str):
            raise SchemaError(f"$ref must be a string, not {reference!r:.80}", pointer=at.pointer("$ref"))
        targets = at.resource.targets
        location = targets.get(reference)
        if location is None:
            location = targets[reference] = self._location(at, *self._find(at, reference, "$ref"))
        return location

    def resolve_dynamic(self, at: Location, reference: object) -> Location:
        """What ``$dynamicRef`` in ``at`` points to (2020-12, section 8.2.3.2)."""
        if not isinstance(reference, str):
            raise SchemaError(f"$dynamicRef must be a string, not {reference!r:.80}", pointer=at.pointer("$dynamicRef"))
        key = "$dynamicRef", reference
        location = at.resource.targets.get(key)
        if location is None:
            source, token, schema = self._find(at, reference, "$dynamicRef")
            name = unquote(reference.partition("#")[2])
            if (
                isinstance(schema, dict)
                and not name.startswith("/")  # a JSON Pointer, which may lead to a schema with an anchor, too
                and schema.get("$dynamicAnchor") == name
                and "$dynamicAnchor" in ANCHOR_KEYWORDS[source.declared.dialect]
            ):
                source, token, schema = self._outermost(at, source, name)
            location = at.resource.targets[key] = self._location(at, source, token, schema)
        return location

    def resolve_recursive(self, at: Location, reference: object) -> Location:
        """What ``$recursiveRef`` in ``at`` points to (2019-09, section 8.2.4.2.1)."""
        if reference != "#":
            raise SchemaError(f'$recursiveRef must be "#", not {reference!r:.80}', pointer=at.pointer("$recursiveRef"))
        source = at.resource.source
        schema = source.schema
        if isinstance(schema, dict) and schema.get("$recursiveAnchor") is True:
            source = self._outermost(at, source, RECURSIVE)[0]
        return self._enter(at.resource.scope, source).root

    def _outermost(self, at: Location, source: Source, name: str) -> tuple[Source, str, object]:
        """The outermost place in the dynamic scope that declares ``name``, as ``source`` does."""
        if not self._dynamic:
            raise DynamicScopeNeeded
        outermost = at.resource.scope.outermost.get(name, source)
        place = outermost.dynamic[name]
        if place is None:
            raise SchemaError(
                f"several schemas of one resource have the $dynamicAnchor {name!r:.80}", pointer=at.pointer()
            )
        return outermost, *place

    def _location(self, at: Location, source: Source, token: str, schema: object) -> Location:
        resource = self._enter(at.resource.scope, source)
        if not token:
            return resource.root
        location = resource.locations.get(id(schema))
        return self._new(schema, resource.root, token, resource) if location is None else location

    def _find(self, at: Location, reference: str, keyword: str) -> tuple[Source, str, object]:
        """The source, the place in it and the schema that a reference names by itself."""
        resource = at.resource
        if reference.startswith("#"):
            source, fragment = resource.source, reference[1:]
        else:
            uri, fragment = split_uri(resource.base, reference, at.pointer(keyword))
            source = resource.source if uri == resource.base else self._named_source(at, uri, reference, keyword)
        if not fragment:
            return source, "", source.schema
        fragment = unquote(fragment)
        if fragment.startswith("/"):
            found = self._walk(source, fragment)
            if found is None:
                raise SchemaError(f"{keyword} {reference!r:.200} points to nothing", pointer=at.pointer(keyword))
            if not isinstance(found[2], (dict, bool)):
                raise SchemaError(
                    f"{keyword} {reference!r:.200} points to something that is no schema", pointer=at.pointer(keyword)
                )
            return found
        if source.anchors is None:
            self._names()
        if source.anchors is None:  # inside the value of an unknown keyword
            self._index(source)
        assert source.anchors is not None
        anchor = source.anchors.get(fragment)
        if anchor is None:
            several = "that several schemas have" if fragment in source.anchors else "that no schema has"
            raise SchemaError(
                f"{keyword} {reference!r:.200} names an anchor {several} (a JSON Pointer begins with a slash)",
                pointer=at.pointer(keyword),
            )
        return source, *anchor

    def _walk(self, source: Source, pointer: str) -> tuple[Source, str, object] | None:
        """Follows a JSON Pointer from the root of ``source``, into embedded resources where it meets them."""
        node, token, start = source.schema, "", 0
        parts = pointer[1:].split("/")
        steps: list[str] = []
        for index, part in enumerate(parts):
            step = part.replace("~1", "/").replace("~0", "~") if "~" in part else part
            steps.append(step)
            token += "/" + part
            if isinstance(node, dict) and step in node:
                node = node[step]
            elif isinstance(node, list) and (number := _array_index(step)) is not None and number < len(node):
                node = node[number]
            else:
                return None
            if isinstance(node, dict) and ("$id" in node or "id" in node):
                dialect = source.declared.dialect
                # what a reference points to is meant as a schema, wherever it is
                if index == len(parts) - 1 or is_schema_position(source.schema, steps[start:], dialect):
                    inner = self._embedded(source, node, source.pointer, token, source.depth + index + 1 - start)
                    if inner is not None:
                        source, node, token, start = inner, inner.schema, "", index + 1
        return source, token, node

    # Sources.

    def _root_source(self, document: object, base: str, inherited: Declared, pointer: str) -> Source:
        declared = inherited
        if isinstance(document, dict):
            declared = self._documents.declared(document, inherited, pointer)
            identifier = document.get(declared.dialect.id_keyword)
            if isinstance(identifier, str):
                base = split_uri(base, identifier, pointer + escape(declared.dialect.id_keyword))[0]
        return _source(document, base, declared, pointer, 0)

    def _embedded(self, outer: Source, schema: dict[str, object], prefix: str, token: str, depth: int) -> Source | None:
        """The source that ``schema`` (at ``prefix + token``) starts, if its ``$id`` is one and not just an anchor."""
        source = outer.embedded.get(id(schema))
        if source is not None:
            return source
        declared = outer.declared
        if "$schema" in schema:
            declared = self._documents.declared(schema, declared, prefix + token)
        identifier = schema.get(declared.dialect.id_keyword)
        if not isinstance(identifier, str) or identifier.startswith("#"):
            return None
        if declared.dialect.ref_ignores_siblings and "$ref" in schema:
            return None
        pointer = prefix + token
        base = split_uri(outer.base, identifier, pointer + escape(declared.dialect.id_keyword))[0]
        source = outer.embedded[id(schema)] = _source(schema, base, declared, pointer, depth)
        return source

    def _named_source(self, at: Location, uri: str, reference: str, keyword: str) -> Source:
        """The source with the base URI ``uri``: in this document, in one already met, or in a new one."""
        named = self._names()
        declared = at.resource.source.declared
        if uri in named:
            source = named[uri]
        elif (uri, None) in self._remote:
            source = self._remote[uri, None]
        elif (uri, declared) in self._remote:
            source = self._remote[uri, declared]
        else:
            source = self._retrieve(at, uri, reference, keyword)
        if source is None:
            raise SchemaError(
                f"{keyword} {reference!r:.200} names a resource, but several schemas have its URI",
                pointer=at.pointer(keyword),
            )
        return source

    def _retrieve(self, at: Location, uri: str, reference: str, keyword: str) -> Source:
        """A source in a document that was not met yet; one without ``$schema`` is in the dialect that refers to it."""
        document = self._documents.find(uri, at.pointer(keyword))
        if document is None:
            raise UnsupportedSchemaError(
                f"{keyword} {reference!r:.200} is not in this document and not in the registry",
                pointer=at.pointer(keyword),
            )
        if not isinstance(document, (dict, bool)):
            raise SchemaError(f"the document {uri!r:.200} is no schema", pointer=at.pointer(keyword))
        declared = at.resource.source.declared
        key = None if isinstance(document, dict) and "$schema" in document else declared
        source = self._remote[uri, key] = self._root_source(document, uri, declared, uri + "#")
        for inner in self._index(source):
            _enter_name(self._remote, (inner.base, key), inner)
        return source

    # Names.

    def _names(self) -> dict[str, Source | None]:
        """The sources of the document by base URI; made when the first reference needs it."""
        if self._named is None:
            self._named = {}
            for source in self._index(self._source):
                _enter_name(self._named, source.base, source)
        return self._named

    def _index(self, start: Source) -> list[Source]:
        """Enters the anchors of ``start`` and of everything embedded in it; returns all those sources."""
        found: list[Source] = []
        stack: list[tuple[Source, str, dict[str, object], int]] = []
        start.anchors = {}
        found.append(start)
        if isinstance(start.schema, dict):
            stack.append((start, "", start.schema, start.depth))
        while stack:
            source, token, schema, depth = stack.pop()
            if depth > MAX_SCHEMA_DEPTH:
                raise LimitError(f"the schema is nested deeper than MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}")
            if token and ("$id" in schema or "id" in schema):
                inner = self._embedded(source, schema, source.pointer, token, depth)
                if inner is not None:
                    assert isinstance(inner.schema, dict)
                    source, token, schema = inner, "", inner.schema
                    inner.anchors = {}
                    found.append(inner)
            self._enter_anchors(source, token, schema)
            for steps, inside in subschemas(schema, source.declared.dialect):
                stack.append((source, token + "".join(map(escape, steps)), inside, depth + 1))
        return found

    def _enter_anchors(self, source: Source, token: str, schema: dict[str, object]) -> None:
        """Enters the names of one schema, which is at ``token`` in ``source``."""
        dialect = source.declared.dialect
        place = token, schema
        names = [schema.get(keyword) for keyword in ANCHOR_KEYWORDS[dialect]]
        identifier = schema.get(dialect.id_keyword)
        # drafts 4 to 7 name a place by a fragment in the $id, and so do many schemas that declare no draft
        if isinstance(identifier, str) and not (dialect.ref_ignores_siblings and "$ref" in schema):
            names.append(unquote(identifier.partition("#")[2]))
        assert source.anchors is not None
        for name in names:
            if isinstance(name, str) and name and not name.startswith("/"):
                _enter_anchor(source.anchors, name, place)
        if self._dynamic:
            dynamic = schema.get("$dynamicAnchor") if "$dynamicAnchor" in ANCHOR_KEYWORDS[dialect] else None
            if isinstance(dynamic, str) and dynamic:
                _enter_anchor(source.dynamic, dynamic, place)
            if not token and dialect in RECURSIVE_ANCHOR and schema.get("$recursiveAnchor") is True:
                source.dynamic[RECURSIVE] = place


def _enter_name(table: dict[Key, Source | None], name: Key, source: Source) -> None:
    """Enters a source under its URI; ``None`` takes the place of schemas that differ."""
    other = table.setdefault(name, source)
    if other is not None and other is not source and other.schema != source.schema:
        table[name] = None


def _enter_anchor(table: dict[str, Place | None], name: str, place: Place) -> None:
    """Enters a place under the name of an anchor; ``None`` takes the place of schemas that differ."""
    other = table.setdefault(name, place)
    if other is not None and other[1] is not place[1] and other[1] != place[1]:
        table[name] = None


def _source(schema: object, base: str, declared: Declared, pointer: str, depth: int) -> Source:
    """A source without the keywords that its dialect leaves out."""
    if declared.left_out and isinstance(schema, dict):
        schema = without_keywords(schema, declared)
    return Source(schema, base, declared, pointer, depth)


def _array_index(step: str) -> int | None:
    """A step of a JSON Pointer as an array index (RFC 6901 section 4): digits without a leading zero."""
    if step.isascii() and step.isdigit() and (step == "0" or step[0] != "0"):
        return int(step)
    return None
