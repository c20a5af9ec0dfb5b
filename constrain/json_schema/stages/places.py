"""The part of a schema that depends on other fields, as a tree: references on the way to it are written out."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.dialects import DIALECTS, DRAFT_4, DRAFT_2019, DRAFT_2020, escape
from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.documents.subschemas import subschemas
from constrain.json_schema.stages.pointers import ITEM, reference, without_data
from constrain.language.stages import UNIQUE_BY
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.stages.pointers import Path, Step

PLACE_STEPS = 100
"""Compilation steps for one place of the tree; references that are written out can multiply."""

Key = tuple[str, "str | int"]
"""A keyword that holds a schema, and the key or index there; -1 for a keyword that holds a single schema."""

_IN_PLACE = ("allOf", "anyOf", "$ref")
_BESIDE = frozenset(
    (
        *(
            "type",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "prefixItems",
            "additionalItems",
            "minItems",
        ),
        *("maxItems", "allOf", "anyOf", "$ref", "$defs", "definitions", "$schema", "$id", "id", UNIQUE_BY),
    )
)
"""Keywords that may stand in a schema around fields that depend on each other, besides annotations."""


class Place:
    """One schema at one place of the tree.

    ``schema``: its keywords, of which ``parts`` replace subschemas. ``path``: from the whole answer to its value.
    ``one_of``: whether its ``anyOf`` is a ``oneOf`` whose schemas exclude each other. ``before``: pairs of keys of
    ``properties`` of which the first must be written first. ``extra``: further schemas for its value. ``unique``: the
    rule that its value differs in all items of an array. ``number``: its position in the order of the text.
    """

    def __init__(self, tree: Tree, schema: dict[str, Any], pointer: str, path: Path, parent: Place | None) -> None:
        spend(PLACE_STEPS, "point at fields from fewer places")
        self.tree = tree
        self.pointer = pointer
        self.path = path
        self.parent = parent
        self.key: Key = ("", -1)
        self.parts: dict[Key, Place] = {}
        self.bounds: list[Any] = []  # ``Bound`` is defined in a higher module
        self.extra: list[dict[str, Any]] = []
        self.unique: Any = None  # ``Unique``, likewise
        self.before: dict[tuple[str, str], str] = {}
        self.number = 0
        self.schema = schema
        self.one_of = "oneOf" in schema and "anyOf" not in schema and tree.are_disjoint(schema["oneOf"])
        if self.one_of:  # the same as anyOf
            self.schema = schema = {("anyOf" if key == "oneOf" else key): schema[key] for key in schema}
        if "$ref" in schema and tree.legacy:  # all keywords beside it are ignored
            self.schema = {key: schema[key] for key in ("$schema", "$id", "$ref") if key in schema}
        for keyword in ("$defs", "definitions"):  # references to those with $data are written out
            if isinstance(schema.get(keyword), dict):
                self.schema = {**self.schema, keyword: without_data(schema[keyword])}

    @property
    def is_in_place(self) -> bool:
        """Returns whether the schema applies to the same value as its parent."""
        return self.parent is not None and self.key[0] in _IN_PLACE

    def open(self, key: Key) -> Place:
        """Returns the place of a subschema, which becomes a part of the tree."""
        known = self.parts.get(key)
        if known is not None:
            return known
        keyword, name = key
        if keyword == "$ref":
            pointer, schema, path = self.tree.target(self, self.schema["$ref"])
        else:
            inner = self.schema[keyword]
            shown = "oneOf" if self.one_of and keyword == "anyOf" else keyword
            pointer = f"{self.pointer}/{shown}" + ("" if name == -1 else escape(str(name)))
            schema = inner if name == -1 else inner[name]
            step: tuple[Step, ...] = ()
            if keyword == "properties" or (keyword in ("prefixItems", "items") and name != -1):
                step = (name,)
            elif keyword in ("items", "additionalItems"):
                step = (ITEM,)
            path = self.path + step
        if not isinstance(schema, dict):
            raise SchemaError(f"a schema is expected here, not {schema!r:.80}", pointer=pointer)
        place = Place(self.tree, schema, pointer, path, self)
        place.key = key
        self.parts[key] = place
        return place

    def walk(self) -> Iterator[Place]:
        """Yields this place and all below, in the order of the text."""
        yield self
        for key in sorted(self.parts, key=self._position):
            yield from self.parts[key].walk()

    def _position(self, key: Key) -> tuple[int, int]:
        keyword, name = key
        if keyword == "properties":
            return 1, [*self.schema["properties"]].index(name)
        return 0 if keyword in _IN_PLACE else 2, name if isinstance(name, int) and name >= 0 else 1 << 30

    def together(self) -> Iterator[Place]:
        """Yields this place and the schemas inside that apply to the same value in any case; opens references."""
        yield self
        if "$ref" in self.schema:
            yield from self.open(("$ref", -1)).together()
        for index, schema in enumerate(_list(self.schema.get("allOf"))):
            if isinstance(schema, dict):
                yield from self.open(("allOf", index)).together()

    def around(self) -> list[Place]:
        """Returns this place and those around it that apply to the same value, the outermost last."""
        found = [self]
        while found[-1].is_in_place:
            assert found[-1].parent is not None
            found.append(found[-1].parent)
        return found

    def tail(self) -> Key | None:
        """Returns the key of the schema of all items after ``prefix``, if there is one."""
        items = self.schema.get("items")
        if self.tree.list_items and isinstance(items, list):
            return ("additionalItems", -1) if isinstance(self.schema.get("additionalItems"), dict) else None
        return ("items", -1) if isinstance(items, dict) else None

    def prefix(self) -> tuple[str, list[Any]]:
        """Returns the keyword of the schemas of the first items, and these."""
        keyword = "items" if self.tree.list_items else "prefixItems"
        return keyword, _list(self.schema.get(keyword))

    def uniques(self) -> list[Any]:
        """Returns the rules that the items of the array differ in a member (``x-unique-by``)."""
        tail = self.tail()
        inside = self.parts[tail].walk() if tail in self.parts else ()
        return [each.unique for each in inside if each.unique and each.unique.array is self]

    def check_beside(self) -> None:
        """Raises UnsupportedSchemaError for keywords that cannot stand around fields that depend on each other."""
        bounds = {bound.keyword for bound in self.bounds}
        for keyword in self.schema:
            if keyword in _BESIDE or keyword in KEYWORDS.annotations or keyword in bounds:
                continue
            if keyword in KEYWORDS.handlers[DRAFT_2020] or keyword in KEYWORDS.holding["schema"]:
                raise UnsupportedSchemaError(
                    f"{keyword} cannot stand in a schema around fields that depend on each other; state it inside one "
                    "of the fields, or leave it out",
                    pointer=f"{self.pointer}/{keyword}",
                )


class Tree:
    """The tree of one document. ``sources``: numbers of the fields that are pointed at, by path."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        uri = document.get("$schema")
        dialect = DIALECTS.get(uri.rstrip("#")) if isinstance(uri, str) else DRAFT_2020
        if dialect is DRAFT_4 or dialect is None:
            message = (
                "fields that depend on each other need draft 6 or later; name one, such as "
                "https://json-schema.org/draft/2020-12/schema"
            )
            raise UnsupportedSchemaError(message, pointer="/$schema")
        self.legacy = dialect.ref_ignores_siblings
        self.list_items = self.legacy or dialect is DRAFT_2019
        self.sources: dict[Path, int] = {}
        self._below: dict[Path, frozenset[int]] = {}
        self._interesting: set[int] = set()
        self._find_interesting()
        self.root = Place(self, document, "", (), None)
        self._grow()

    def numbers_below(self, place: Place) -> frozenset[int]:
        """Returns the numbers of the sources in a place."""
        path = place.path
        if path not in self._below:
            self._below[path] = frozenset(
                number for source, number in self.sources.items() if source[: len(path)] == path
            )
        return self._below[path]

    def target(self, place: Place, reference: object) -> tuple[str, Any, Path]:
        """Returns pointer, schema and path of the target of ``$ref`` in a place."""
        pointer, schema = self._resolve(reference)
        if pointer is None:
            raise UnsupportedSchemaError(
                "a reference on the way to a field that $data points at must be a JSON Pointer within the schema, such "
                "as #/$defs/name",
                pointer=place.pointer + "/$ref",
            )
        above: Place | None = place
        while above is not None:
            if above.pointer == pointer:
                raise UnsupportedSchemaError(
                    "fields that depend on each other by $data cannot lie in a schema that contains itself; state "
                    "their bounds outside of it",
                    pointer=place.pointer + "/$ref",
                )
            above = above.parent
        return pointer, schema, place.path

    def _resolve(self, reference: object) -> tuple[str | None, Any]:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None, None
        schema: Any = self.document
        pointer = unquote(reference[1:])
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                schema = schema[int(name)] if isinstance(schema, list) else schema[name]
            except (LookupError, TypeError, ValueError):
                return None, None
        return pointer, schema

    def are_disjoint(self, schemas: object) -> bool:
        """Returns whether no two of some schemas share a value, by types or by constants of a required member."""
        resolved: list[dict[str, Any]] = []
        for schema in _list(schemas):
            found = schema
            if isinstance(schema, dict) and "$ref" in schema and schema.keys() <= {"$ref", *KEYWORDS.annotations}:
                found = self._resolve(schema["$ref"])[1]
            if not isinstance(found, dict):
                return False
            resolved.append(found)
        return all(_exclude(one, other) for one, other in combinations(resolved, 2))

    def _find_interesting(self) -> None:
        """Finds the schemas that contain ``$data``, also by references."""
        users: dict[int, list[int]] = {}
        found: list[int] = []
        waiting: list[tuple[str, Any]] = [("", self.document)]
        seen: set[int] = set()
        while waiting:
            pointer, schema = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            inner = [(pointer + sub.token, sub.schema) for sub in subschemas(schema)]
            for keyword, value in schema.items():
                if keyword not in KEYWORDS.annotations and reference(keyword, value) is not None:
                    found.append(id(schema))
                elif (keyword == "$id" and pointer) or keyword in ("$dynamicRef", "$recursiveRef"):
                    message = f"{keyword} cannot stand in a schema with $data; refer to schemas by JSON Pointers"
                    raise UnsupportedSchemaError(message, pointer=f"{pointer}/{keyword}")
                elif keyword == "$ref":
                    target, found_there = self._resolve(value)
                    if target is not None:
                        inner.append((target, found_there))
                    elif isinstance(value, str) and value.startswith("#"):
                        message = (
                            f"{value!r:.80} names no schema by a JSON Pointer, which references beside $data must do"
                        )
                        raise UnsupportedSchemaError(message, pointer=f"{pointer}/$ref")
            for _, sub in inner:
                users.setdefault(id(sub), []).append(id(schema))
            waiting += inner
        while found:
            one = found.pop()
            if one not in self._interesting:
                self._interesting.add(one)
                found += users.get(one, ())

    def _grow(self) -> None:
        """Opens all places on the way to ``$data``."""
        waiting = [self.root]
        while waiting:
            place = waiting.pop()
            schema = place.schema
            if "$ref" in schema and id(self._resolve(schema["$ref"])[1]) in self._interesting:
                waiting.append(place.open(("$ref", -1)))
            for sub in subschemas(schema):
                if id(sub.schema) not in self._interesting or sub.keyword in ("$defs", "definitions"):
                    continue
                key = self._key(place, sub.keyword, sub.name)
                if key is None:
                    raise UnsupportedSchemaError(
                        f"$data, x-unique-by and x-refers cannot lie inside {sub.keyword}; move them to a schema that "
                        "is reached by properties, items, $ref, allOf, anyOf, or a oneOf whose schemas differ in type "
                        "or a required constant",
                        pointer=place.pointer + sub.token,
                    )
                waiting.append(place.open(key))

    @staticmethod
    def _key(place: Place, keyword: str, name: str) -> Key | None:
        if keyword == "properties":
            return keyword, name
        if keyword in ("allOf", "anyOf"):
            return keyword, int(name)
        if name and keyword == place.prefix()[0]:
            return keyword, int(name)
        return (keyword, -1) if (keyword, -1) == place.tail() else None


def _exclude(one: dict[str, Any], other: dict[str, Any]) -> bool:
    kinds = one.get("type"), other.get("type")
    if all(isinstance(kind, str) for kind in kinds) and kinds[0] != kinds[1] and set(kinds) != {"integer", "number"}:
        return True
    for key in _list(one.get("required")) if "object" in kinds else ():
        values = _constants(one, key), _constants(other, key)
        if key in _list(other.get("required")) and all(values) and values[0].isdisjoint(values[1]):
            return True
    return False


def _constants(schema: dict[str, Any], key: str) -> set[str]:
    """Returns the strings that a member must be one of; empty if it may be others."""
    member = schema.get("properties", {}).get(key)
    values = [member["const"]] if isinstance(member, dict) and "const" in member else []
    if isinstance(member, dict) and not values:
        values = _list(member.get("enum"))
    return set(values) if all(isinstance(value, str) for value in values) else set()


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
