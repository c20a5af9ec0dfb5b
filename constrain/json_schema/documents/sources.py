"""Sources: schemas with a base URI of their own, the names in them, and references to these.

Everything here is static: it does not depend on the dynamic scope.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from constrain.errors import LimitError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.dialects import MAX_SCHEMA_DEPTH, Declared, escape
from constrain.json_schema.documents.documents import NEWEST, is_perhaps_embedded, split_uri
from constrain.json_schema.documents.dynamic_scope import RECURSIVE
from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.documents.locations import SchemaSource
from constrain.json_schema.documents.subschemas import is_schema_position, subschemas_of_draft, without_keywords
from constrain.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Collection

    from constrain.json_schema.documents.documents import Documents
    from constrain.json_schema.documents.locations import Location, Place

Key = TypeVar("Key")

_COMPARED_LETTERS = 10_000
"""Letters of a wrong name and of all names it is compared with, up to which an error suggests a similar one."""

_DEFINITIONS = ("$defs", "definitions")


class Sources:
    """The sources of one document and of the documents it refers to.

    ``dynamic``: collects dynamic anchors, too.
    """

    def __init__(self, document: object, documents: Documents, *, dynamic: bool) -> None:
        self._documents = documents
        self._dynamic = dynamic
        self._may_be_old = (
            isinstance(document, dict)
            and "definitions" in document
            and document.keys().isdisjoint(("$schema", "$defs"))
        )
        self._named: dict[str, SchemaSource | None] | None = None
        self._remote: dict[tuple[str, Declared | None], SchemaSource | None] = {}
        self._searched: set[Declared] = set()
        self.document = self._root_source(document, "", NEWEST, "")
        if dynamic:
            self._names()

    def find(self, at: Location, reference: str, keyword: str) -> tuple[SchemaSource, str, object]:
        """Returns the source, the place in it and the schema that a reference names, before dynamic scopes."""
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
                advice = _did_you_mean(source, reference) or "correct it, or add the schema there"
                raise SchemaError(
                    f"{keyword} {reference!r:.200} points to nothing; {advice}", pointer=at.pointer(keyword)
                )
            if not isinstance(found[2], (dict, bool)):
                raise SchemaError(
                    f"{keyword} {reference!r:.200} points to a value that is not a schema", pointer=at.pointer(keyword)
                )
            return found
        if source.anchors is None:
            self._names()
        if source.anchors is None:  # inside the value of an unknown keyword
            self.index(source)
        assert source.anchors is not None
        anchor = source.anchors.get(fragment)
        if anchor is None:
            several = "of several schemas" if fragment in source.anchors else "that no schema has"
            advice = _did_you_mean(source, reference) or "a JSON Pointer begins with a slash"
            raise SchemaError(
                f"{keyword} {reference!r:.200} names an anchor {several}; {advice}", pointer=at.pointer(keyword)
            )
        return source, *anchor

    def _walk(self, source: SchemaSource, pointer: str) -> tuple[SchemaSource, str, object] | None:
        """Follows a JSON Pointer from the root of ``source``, into embedded resources on its way."""
        node, token, start = source.schema, "", 0
        steps = pointer[1:].split("/")
        for index, part in enumerate(steps):
            token += "/" + part
            step = part
            if "~" in part:
                if re.search("~(?![01])", part):
                    return None
                step = steps[index] = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and step in node:
                node = node[step]
            elif isinstance(node, list) and (number := _array_index(step)) is not None and number < len(node):
                node = node[number]
            else:
                return None
            if isinstance(node, dict) and ("$id" in node or "id" in node):
                dialect = source.declared.dialect
                # the target of a reference is meant as a schema, wherever it is
                if index == len(steps) - 1 or is_schema_position(source.schema, steps[start : index + 1], dialect):
                    inner = self.embedded(source, node, source.pointer, token, source.depth + index + 1 - start)
                    if inner is not None:
                        source, node, token, start = inner, inner.schema, "", index + 1
        return source, token, node

    # Sources.

    def _root_source(self, document: object, base: str, inherited: Declared, pointer: str) -> SchemaSource:
        declared = inherited
        if isinstance(document, dict):
            declared = self._documents.declared(document, inherited, pointer)
            identifier = document.get(declared.dialect.id_keyword)
            if isinstance(identifier, str):
                base = split_uri(base, identifier, pointer + escape(declared.dialect.id_keyword))[0]
        return _source(document, base, declared, pointer, 0)

    def embedded(
        self, outer: SchemaSource, schema: dict[str, object], prefix: str, token: str, depth: int
    ) -> SchemaSource | None:
        """Returns the source that ``schema`` (at ``prefix + token``) starts; ``None`` if its ``$id`` starts none."""
        source = outer.embedded.get(id(schema))
        if source is not None:
            return source
        declared = outer.declared
        keyword = declared.dialect.id_keyword
        identifier = schema.get(keyword)
        if identifier is None and "$schema" in schema:
            keyword = "$id"  # an $id of a newer draft within draft 4; "id" within a newer draft has another meaning
            identifier = schema.get(keyword)
        if not isinstance(identifier, str) or identifier.startswith("#"):
            return None
        if "$schema" in schema:
            declared = self._documents.declared(schema, declared, prefix + token)
        pointer = prefix + token
        if "$ref" in schema:
            if self._may_be_old and "$schema" not in schema:
                raise UnsupportedSchemaError(
                    f"{keyword} beside $ref starts a resource from 2019-09 on, and is ignored before: say with $schema "
                    "which draft is meant",
                    pointer=pointer,
                )
            if declared.dialect.ref_ignores_siblings:
                return None
        base = split_uri(outer.base, identifier, pointer + escape(keyword))[0]
        source = outer.embedded[id(schema)] = _source(schema, base, declared, pointer, depth)
        return source

    def _named_source(self, at: Location, uri: str, reference: str, keyword: str) -> SchemaSource:
        """Returns the source with the base URI ``uri``: in this document, in one already loaded, or in a new one."""
        named = self._names()
        declared = at.resource.source.declared
        if uri in named:
            source = named[uri]
        else:
            if (uri, None) not in self._remote and (uri, declared) not in self._remote:
                self._retrieve(at, uri, reference, keyword)
            source = self._remote[(uri, None) if (uri, None) in self._remote else (uri, declared)]
        if source is None:
            raise SchemaError(
                f"{keyword} {reference!r:.200} names a resource, but several schemas have its URI",
                pointer=at.pointer(keyword),
            )
        return source

    def _retrieve(self, at: Location, uri: str, reference: str, keyword: str) -> None:
        """Loads the document at ``uri``; without ``$schema``, it inherits the dialect of ``at``."""
        document = self._documents.find(uri, at.pointer(keyword))
        declared = at.resource.source.declared
        if document is None or is_perhaps_embedded(document):
            self._search(declared)
            if (uri, None) in self._remote or (uri, declared) in self._remote:
                return
        if document is None:
            advice = _did_you_mean(at.resource.source, reference)
            raise UnsupportedSchemaError(
                f"{keyword} {reference!r:.200} is not in this document and not in the registry; "
                + (advice or "add its document to the registry, under its URI"),
                pointer=at.pointer(keyword),
            )
        if not isinstance(document, (dict, bool)):
            raise SchemaError(
                f"the document {uri!r:.200} is not a schema; in the registry, it must be an object, true or false",
                pointer=at.pointer(keyword),
            )
        source = self._root_source(document, uri, declared, uri + "#")
        self._enter_remote(uri, document, declared, self.index(source))

    def _search(self, declared: Declared) -> None:
        """Enters all resources that are embedded in documents of the registry.

        A ``referencing.Registry`` lists them as documents, but their meaning depends on the enclosing document: the
        base of a relative ``$id``, the dialect.
        """
        if declared in self._searched:
            return
        self._searched.add(declared)
        found: list[tuple[str, object, list[SchemaSource]]] = []
        for uri, document in self._documents.registered():
            # an unusable document is reported at the reference that names it
            with suppress(SchemaError):
                source = self._root_source(document, uri, declared, uri + "#")
                found.append((uri, document, self.index(source)))
        inside = {identity for _, _, sources in found for source in sources for identity in source.embedded}
        for uri, document, sources in found:
            if id(document) not in inside:
                self._enter_remote(uri, document, declared, sources)

    def _enter_remote(self, uri: str, document: object, declared: Declared, sources: list[SchemaSource]) -> None:
        key = None if isinstance(document, dict) and "$schema" in document else declared
        if (uri, key) not in self._remote:
            self._remote[uri, key] = sources[0]
            for source in sources:
                _enter_name(self._remote, (source.base, key), source)

    # Names.

    def _names(self) -> dict[str, SchemaSource | None]:
        """Returns the sources of the document by base URI; built for the first reference that needs it."""
        if self._named is None:
            self._named = {}
            for source in self.index(self.document):
                _enter_name(self._named, source.base, source)
        return self._named

    def index(self, start: SchemaSource) -> list[SchemaSource]:
        """Enters the anchors of ``start`` and of everything embedded in it; returns all those sources."""
        found = [start]
        stack: list[tuple[SchemaSource, str, dict[str, object], int]] = []
        start.anchors = {}
        if isinstance(start.schema, dict):
            stack.append((start, "", start.schema, start.depth))
        while stack:
            source, token, schema, depth = stack.pop()
            if depth > MAX_SCHEMA_DEPTH:
                raise LimitError(f"the schema is nested deeper than MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}")
            if token and ("$id" in schema or "id" in schema):
                inner = self.embedded(source, schema, source.pointer, token, depth)
                if inner is not None:
                    assert isinstance(inner.schema, dict)
                    source, token, schema = inner, "", inner.schema
                    inner.anchors = {}
                    found.append(inner)
            self._enter_anchors(source, token, schema)
            for steps, inside in subschemas_of_draft(schema, source.declared.dialect):
                stack.append((source, token + "".join(map(escape, steps)), inside, depth + 1))
        return found

    def _enter_anchors(self, source: SchemaSource, token: str, schema: dict[str, object]) -> None:
        """Enters the names of one schema, which is at ``token`` in ``source``."""
        dialect = source.declared.dialect
        place = token, schema
        known = KEYWORDS.handlers[dialect]
        names = [schema.get(keyword) for keyword in ("$anchor", "$dynamicAnchor") if keyword in known]
        identifier = schema.get(dialect.id_keyword)
        # drafts 4 to 7 name a place by a fragment in the $id, and so do many schemas that declare no draft
        if isinstance(identifier, str) and not (dialect.ref_ignores_siblings and "$ref" in schema):
            names.append(unquote(identifier.partition("#")[2]))
        assert source.anchors is not None
        for name in names:
            if isinstance(name, str) and name and not name.startswith("/"):
                _enter_anchor(source.anchors, name, place)
        if self._dynamic:
            dynamic = schema.get("$dynamicAnchor") if "$dynamicAnchor" in known else None
            if isinstance(dynamic, str) and dynamic:
                _enter_anchor(source.dynamic, dynamic, place)
            if not token and "$recursiveAnchor" in known and schema.get("$recursiveAnchor") is True:
                source.dynamic[RECURSIVE] = place


def _did_you_mean(source: SchemaSource, reference: str) -> str:
    """Returns a question with a similar reference into the schema of ``source``; empty if none has a target.

    Similar are references without ``#``, with other letters, and to the same name among other definitions.
    """
    steps = [step.replace("~1", "/").replace("~0", "~") for step in unquote(reference).lstrip("./#").split("/")]
    for path in (steps, *([keyword, steps[-1]] for keyword in _DEFINITIONS)):
        node, pointer = source.schema, "#"
        for step in path:
            name = _similar(step, node) if isinstance(node, dict) else None
            if name is None:
                break
            assert isinstance(node, dict)
            node, pointer = node[name], pointer + escape(name)
        else:
            if isinstance(node, (dict, bool)):
                return f"did you mean {pointer!r:.200}?"
    return ""


def _similar(step: str, names: Collection[str]) -> str | None:
    if step in names:
        return step
    if step in _DEFINITIONS and (other := next((each for each in _DEFINITIONS if each in names), None)):
        return other
    return closest(step, names, 0.8) if sum(map(len, names), len(step)) <= _COMPARED_LETTERS else None


def _enter_name(table: dict[Key, SchemaSource | None], name: Key, source: SchemaSource) -> None:
    """Enters a source under its URI; ``None`` marks a URI of different schemas."""
    other = table.setdefault(name, source)
    if other is not None and other is not source and not _equal(other.schema, source.schema):
        table[name] = None


def _enter_anchor(table: dict[str, Place | None], name: str, place: Place) -> None:
    """Enters a place under the name of an anchor; ``None`` marks a name of different schemas."""
    other = table.setdefault(name, place)
    if other is not None and other[1] is not place[1] and not _equal(other[1], place[1]):
        table[name] = None


def _equal(a: object, b: object) -> bool:
    """Returns whether two schemas are written alike; unlike in Python, 1 differs from true."""
    try:
        return a == b and repr(a) == repr(b)
    except RecursionError:  # nested too deeply to be usable
        return False


def _source(schema: object, base: str, declared: Declared, pointer: str, depth: int) -> SchemaSource:
    """Returns a source without the keywords that its dialect leaves out."""
    if declared.left_out and isinstance(schema, dict):
        schema = without_keywords(schema, declared)
    return SchemaSource(schema, base, declared, pointer, depth)


def _array_index(step: str) -> int | None:
    """Returns a step of a JSON Pointer as an array index (RFC 6901 section 4): digits without a leading zero."""
    if step.isascii() and step.isdigit() and (step == "0" or step[0] != "0"):
        return int(step)
    return None
