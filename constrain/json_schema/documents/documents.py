"""Further documents: from the caller's registry, or the metaschemas of the drafts.

This package never fetches a document; a registry may, by its caller's decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.dialects import DIALECTS, DRAFT_2020, Declared
from constrain.json_schema.documents.vocabularies import declared_vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

NEWEST = Declared(DRAFT_2020)
"""The dialect of schemas without ``$schema``."""

_DECLARED = {uri: Declared(dialect) for uri, dialect in DIALECTS.items()}
_METASCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")


class Documents:
    """Finds documents and dialects, each once; ``notes`` are warnings about dialects."""

    def __init__(self, registry: object = None) -> None:
        if registry is not None and not isinstance(registry, Mapping):
            raise TypeError(f"registry must be a mapping from URIs to schemas, not {registry!r:.80}")
        self.registry: Mapping[str, object] | None = registry
        self._found: dict[str, object] = {}
        self._custom: dict[str, Declared] = {}
        self.notes: dict[str, None] = {}

    def find(self, uri: str, pointer: str) -> object:
        """Returns the document at ``uri`` (without fragment); ``None`` if there is none."""
        if uri not in self._found:
            try:
                self._found[uri] = _look_up(self.registry, uri)
            except Exception as error:
                raise UnsupportedSchemaError(
                    f"the registry could not retrieve {uri!r:.200} ({type(error).__name__}: {error!s:.200})",
                    pointer=pointer,
                ) from error
        return self._found[uri]

    def registered(self) -> Iterator[tuple[str, object]]:
        """Yields the documents that the registry lists."""
        if self.registry is not None:
            for uri in self.registry:
                yield uri.removesuffix("#"), _contents(self.registry[uri])

    def declared(self, schema: dict[str, object], inherited: Declared, pointer: str) -> Declared:
        """Returns the dialect of a resource's root schema at ``pointer``; without ``$schema``, the inherited one."""
        uri = schema.get("$schema")
        if uri is None and "$schema" not in schema:
            return inherited
        if not isinstance(uri, str):
            raise SchemaError(f"$schema must be a string, not {uri!r:.80}", pointer=pointer + "/$schema")
        known = _DECLARED.get(uri.rstrip("#")) or self._custom.get(uri)
        if known is None:
            known = self._custom[uri] = self._by_metaschema(uri, pointer + "/$schema")
        return known

    def _by_metaschema(self, uri: str, pointer: str) -> Declared:
        """Returns the dialect that a metaschema declares by ``$vocabulary``, or else by its own ``$schema``."""
        seen: set[str] = set()
        current: object = uri
        while isinstance(current, str) and current not in seen:
            known = _DECLARED.get(current.rstrip("#"))
            if known is not None:
                return known
            if "json-schema.org/draft-0" in current:
                raise UnsupportedSchemaError(f"the dialect {current} is not supported", pointer=pointer)
            seen.add(current)
            metaschema = self.find(split_uri("", current, pointer)[0], pointer)
            if not isinstance(metaschema, dict):
                break
            if "$vocabulary" in metaschema:
                declared = declared_vocabulary(metaschema["$vocabulary"], current, pointer)
                if declared.left_out:
                    ignored = ", ".join(sorted(declared.left_out))
                    self.notes[
                        f"the metaschema {current!r:.200} leaves out vocabularies; ignored keywords: {ignored}"
                    ] = None
                return declared
            current = metaschema.get("$schema")
        self.notes[f"the dialect {uri!r:.200} is not known; the schema is read as draft 2020-12"] = None
        return NEWEST


def split_uri(base: str, reference: str, pointer: str) -> tuple[str, str]:
    """Returns ``reference`` resolved against ``base`` (RFC 3986 section 5): URI without fragment, and fragment."""
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError as error:
        raise SchemaError(f"{reference!r:.200} is not a URI reference ({error})", pointer=pointer) from error
    return uri, fragment


def _look_up(registry: Mapping[str, object] | None, uri: str) -> object:
    found: object = None
    if registry is not None and hasattr(registry, "get_or_retrieve"):
        from referencing.exceptions import NoSuchResource  # of the package that the caller's registry comes from

        try:
            found = registry.get_or_retrieve(uri).value
        except NoSuchResource:
            found = None
    elif registry is not None:
        found = next((registry[name] for name in (uri, uri + "#") if name in registry), None)
    if found is None and uri.startswith(_METASCHEMAS):
        from jsonschema_specifications import REGISTRY

        found = REGISTRY.get(uri)
    return _contents(found)


def _contents(found: object) -> object:
    """Returns the schema itself, also from a ``referencing.Resource``."""
    return getattr(found, "contents", found)


def is_perhaps_embedded(document: object) -> bool:
    """Returns whether a registered document may be part of another one that determines its meaning."""
    if not isinstance(document, dict):
        return False
    identifier = document.get("$id", document.get("id"))
    return isinstance(identifier, str) and ("$schema" not in document or ":" not in identifier)
