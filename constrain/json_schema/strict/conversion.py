"""Conversion of a schema to OpenAI's strict subset, or an error if the meaning would change."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from constrain.errors import SchemaError, limits_at
from constrain.json_schema.documents.dialects import DIALECTS, escape
from constrain.json_schema.keywords.joining import types_of
from constrain.json_schema.keywords.table import KEYWORDS
from constrain.json_schema.strict.merging import merged
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.strict.merging import Schema

    Place = dict[str, object] | list[object]

SUBSCHEMA_STEPS = 40
"""Compilation steps for one converted subschema; inlining references could multiply them endlessly."""

SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions")
SCHEMA_LISTS = ("anyOf", "allOf", "prefixItems")
SINGLE_SCHEMAS = ("items", "additionalItems", "unevaluatedItems")
"""Keywords with one schema for a value or a part of it. Schemas of other keywords (``not``, ``if``, ...) stay
unchanged."""

_PRESENCE = {"required", "type"}

INSTANCES = ("enum", "const", "default", "examples")
"""Keywords whose values contain no schemas."""


class Conversion:
    """One conversion. ``document`` is never changed: every converted schema object is a new one."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self._pointers = {id(node): pointer for pointer, node in _schemas_within(document)}
        dialect = DIALECTS.get(str(document.get("$schema", "")).rstrip("#"))
        self._ref_ignores_siblings = dialect is not None and dialect.ref_ignores_siblings

    def result(self) -> Schema:
        """Returns the converted document. Its parts may be shared with each other and with the document."""
        top: dict[str, object] = {}
        # For each schema to convert: the schema, its pointer, its target, and the references inlined around it.
        work: list[tuple[Schema, str, Place, str | int, frozenset[str]]] = []
        work.append((self._document, "", top, "", frozenset()))
        while work:
            node, pointer, place, key, inlined = work.pop()
            with limits_at(pointer):
                spend(SUBSCHEMA_STEPS, "inline fewer references: leave out the keywords next to $ref")
            converted, inlined = self._converted(node, pointer, inlined)
            place[key] = converted  # type: ignore[index]
            work += [(*child, inlined) for child in self._children(converted, pointer)]
        root = top[""]
        assert isinstance(root, dict)
        self._check_references(root)
        return root

    def _children(self, node: Schema, pointer: str) -> Iterator[tuple[Schema, str, Place, str | int]]:
        """Yields the schemas in ``node`` to convert, and their targets; the containers become new ones."""
        for keyword in SCHEMA_MAPS:
            if keyword in node:
                schemas = node[keyword]
                if not isinstance(schemas, dict):
                    raise _malformed(keyword, "an object of schemas", schemas, pointer)
                place = node[keyword] = dict(schemas)
                for key, schema in schemas.items():
                    at = self._pointers.get(id(schema), pointer + escape(keyword) + escape(key))
                    if _is_schema_object(schema, at):
                        yield schema, at, place, key
        for keyword in SCHEMA_LISTS:
            if keyword in node:
                schemas = node[keyword]
                if not isinstance(schemas, list):
                    raise _malformed(keyword, "a list of schemas", schemas, pointer)
                yield from self._listed(node, keyword, schemas, pointer)
        for keyword in SINGLE_SCHEMAS:
            schema = node.get(keyword, True)
            if isinstance(schema, list):  # items of drafts before 2020-12
                yield from self._listed(node, keyword, schema, pointer)
                continue
            at = self._pointers.get(id(schema), pointer + escape(keyword))
            if _is_schema_object(schema, at):
                assert isinstance(schema, dict)
                yield schema, at, node, keyword

    def _listed(
        self, node: Schema, keyword: str, schemas: list[object], pointer: str
    ) -> Iterator[tuple[Schema, str, Place, int]]:
        place = node[keyword] = list(schemas)
        for index, schema in enumerate(schemas):
            at = self._pointers.get(id(schema), f"{pointer}/{keyword}/{index}")
            if _is_schema_object(schema, at):
                assert isinstance(schema, dict)
                yield schema, at, place, index

    # One schema object.

    def _converted(self, node: Schema, pointer: str, inlined: frozenset[str]) -> tuple[Schema, frozenset[str]]:
        """Returns ``node`` with unconverted children, and the references inlined around these."""
        identifier = node.get("$id")
        if pointer and isinstance(identifier, str) and not identifier.startswith("#"):
            raise SchemaError(
                "a schema with an $id of its own cannot be converted; remove the $id", pointer=pointer + "/$id"
            )
        result = self._effective(node)
        left: list[tuple[object, str]] = []
        while True:
            if "allOf" in result:
                result, inlined = self._without_all_of(result, pointer, inlined, left)
            elif "$ref" in result and (len(result) > 1 or left):
                result, inlined = self._without_reference(result, pointer, inlined)
            else:
                break
        if left:
            for entry, at in left:
                if self._declared(entry) is not None:
                    raise SchemaError(
                        "strict mode has no allOf, and this entry cannot be merged into the object schema around it; "
                        "write its properties there",
                        pointer=at,
                    )
            result["allOf"] = [entry for entry, _ in left]
        if "oneOf" in result:
            _one_of_to_any_of(result, pointer)
        self._close(result, pointer)
        return result, inlined

    def _effective(self, node: Schema) -> Schema:
        """Returns a copy without meaningless keywords: a null default, and before 2019-09 keywords next to ``$ref``."""
        ignoring = self._ref_ignores_siblings and "$ref" in node
        return {
            keyword: value
            for keyword, value in node.items()
            if not (keyword == "default" and value is None)
            and not (ignoring and keyword != "$ref" and keyword not in KEYWORDS.annotations)
        }

    def _without_reference(self, node: Schema, pointer: str, inlined: frozenset[str]) -> tuple[Schema, frozenset[str]]:
        """Returns a schema with keywords next to ``$ref``, merged with the reference's target."""
        siblings = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
        reference, target = self._resolved(node["$ref"], pointer)
        if isinstance(target, dict) and reference not in inlined:
            both = merged(siblings, self._effective(target))
            if both is not None:
                return both, inlined | {reference}
        # An anyOf of one reference may have siblings: for recursion, and for keywords that do not merge.
        if "anyOf" in siblings or "oneOf" in siblings:
            raise SchemaError(
                "strict mode needs $ref alone, and the keywords next to this $ref cannot be merged with the schema "
                "that it names; write them into that schema",
                pointer=pointer,
            )
        return {"anyOf": [{"$ref": reference}], **siblings}, inlined

    def _without_all_of(
        self, node: Schema, pointer: str, inlined: frozenset[str], left: list[tuple[object, str]]
    ) -> tuple[Schema, frozenset[str]]:
        """Returns a schema with the entries of ``allOf`` merged into it; adds others, with pointers, to ``left``."""
        entries = node["allOf"]
        if not isinstance(entries, list):
            raise _malformed("allOf", "a list of schemas", entries, pointer)
        result = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
        alone = len(entries) == 1 and "$ref" not in result
        pending = [(entry, f"{pointer}/allOf/{index}") for index, entry in enumerate(entries)][::-1]
        while pending:
            entry, at = pending.pop()
            if not _is_schema_object(entry, at):
                left += [] if entry is True else [(entry, at)]
                continue
            assert isinstance(entry, dict)
            candidate = self._effective(entry)
            if "$ref" in candidate and not alone:
                if candidate["$ref"] in inlined:
                    left.append((entry, at))
                else:
                    candidate, inlined = self._without_reference(candidate, at, inlined)
                    pending.append((candidate, at))
                continue
            inner = candidate.pop("allOf", [])
            if not isinstance(inner, list):
                raise _malformed("allOf", "a list of schemas", inner, at)
            pending += [(part, f"{at}/allOf/{index}") for index, part in enumerate(inner)][::-1]
            alone = alone and not inner
            both = merged(result, candidate)
            if both is None:
                left.append((candidate, at))
            else:
                result = both
        return result, inlined

    def _close(self, node: Schema, pointer: str) -> None:
        """Closes an object schema and requires all its properties; other schemas stay unchanged."""
        if "properties" in node and "type" not in node:
            node["type"] = "object"
        if not _is_object_schema(node):
            return
        properties = node.get("properties", {})
        if not isinstance(properties, dict):
            raise _malformed("properties", "an object of schemas", properties, pointer)
        if node.get("additionalProperties", False) is not False:
            raise SchemaError(
                "additionalProperties must be false in strict mode, and an object of arbitrary keys cannot be closed; "
                "declare its keys in properties",
                pointer=pointer + "/additionalProperties",
            )
        if node.get("unevaluatedProperties", False) is not False:
            raise SchemaError(
                "unevaluatedProperties must be false in strict mode, and an object of arbitrary keys cannot be closed; "
                "declare its keys in properties",
                pointer=pointer + "/unevaluatedProperties",
            )
        required = node.get("required", [])
        if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
            raise _malformed("required", "a list of strings", required, pointer)
        if not properties and "additionalProperties" not in node and self._leave_to_branches(node, required):
            return
        undeclared = [key for key in required if key not in properties]
        if undeclared and "patternProperties" not in node:
            raise SchemaError(
                f"required names {undeclared[0]!r:.80}, which properties does not declare, and strict mode forbids "
                "undeclared ones; declare it in properties, or remove it from required",
                pointer=pointer + "/required",
            )
        self._check_branches(node, frozenset(properties), pointer)
        node.pop("unevaluatedProperties", None)
        node["properties"] = properties
        node["required"] = [*properties, *dict.fromkeys(undeclared)]
        node["additionalProperties"] = False

    def _leave_to_branches(self, node: Schema, required: list[str]) -> bool:
        """Returns whether only ``anyOf`` declares properties of the object: then each branch is closed instead."""
        branches = node.get("anyOf")
        if node["type"] != "object" or not isinstance(branches, list) or not branches:
            return False
        for branch in branches:
            declared = self._declared(branch)
            if declared is None or not declared.issuperset(required):
                return False
        for keyword in ("type", "properties", "unevaluatedProperties"):
            node.pop(keyword, None)
        return True

    def _check_branches(self, node: Schema, keys: frozenset[str], pointer: str) -> None:
        """Raises SchemaError if schemas for one object declare different properties: closing would forbid these."""
        for keyword in ("anyOf", "allOf"):
            branches = node.get(keyword)
            for index, branch in enumerate(branches if isinstance(branches, list) else ()):
                declared = self._declared(branch)
                if declared is not None and declared != keys:
                    raise SchemaError(
                        "the object and this branch declare different properties, so that neither can be closed; "
                        "put all properties into each branch",
                        pointer=f"{pointer}/{keyword}/{index}",
                    )
        conditional: dict[str, object] = {f"/{keyword}": node.get(keyword) for keyword in ("then", "else")}
        for keyword in ("dependentSchemas", "dependencies"):
            dependent = node.get(keyword)
            if isinstance(dependent, dict):
                conditional |= {f"/{keyword}{escape(key)}": schema for key, schema in dependent.items()}
        for step, schema in conditional.items():
            undeclared = sorted((self._declared(schema) or frozenset()) - keys)
            if undeclared:
                named = ", ".join(map(repr, undeclared))
                raise SchemaError(
                    f"this schema declares {named:.200}, which the object's own properties do not declare, and strict "
                    "mode forbids undeclared ones; declare them in the object's properties, too",
                    pointer=pointer + step,
                )

    def _declared(self, schema: object) -> frozenset[str] | None:
        """Returns the properties that an object schema declares, itself or by reference; ``None`` for other schemas."""
        seen: set[int] = set()
        while isinstance(schema, dict) and id(schema) not in seen:
            seen.add(id(schema))
            if _is_object_schema(schema) or "properties" in schema:
                return frozenset(_dict(schema.get("properties", {})))
            entries = schema.get("allOf")
            if "$ref" in schema:
                schema = find(self._document, schema["$ref"])
            elif isinstance(entries, list) and len(entries) == 1:
                schema = entries[0]
            else:
                return None
        return None

    # References.

    def _resolved(self, reference: object, pointer: str) -> tuple[str, object]:
        if not isinstance(reference, str):
            raise _malformed("$ref", "a string", reference, pointer)
        target = find(self._document, reference)
        if not isinstance(target, (dict, bool)):
            raise SchemaError(
                f"$ref {reference!r:.200} points to no schema of this document; strict mode has only references within "
                "the document: put the schema into $defs and write #/$defs/NAME",
                pointer=pointer + "/$ref",
            )
        return reference, target

    def _check_references(self, root: Schema) -> None:
        """Raises SchemaError for references whose targets are gone."""
        for _, node in _schemas_within(root):
            reference = node.get("$ref")
            if (
                isinstance(reference, str)
                and find(self._document, reference) is not None
                and find(root, reference) is None
            ):
                places = (path for path, each in _schemas_within(self._document) if each.get("$ref") == reference)
                raise SchemaError(
                    f"$ref {reference!r:.200} points into a part that strict mode has to rewrite; move the schema "
                    "there into $defs and write #/$defs/NAME",
                    pointer=f"{next(places)}/$ref",
                )


def find(document: object, reference: object) -> object:
    """Returns the target of ``#`` or ``#/...`` in ``document``; ``None`` if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    node = document
    if reference != "#":
        first, *steps = unquote(reference[1:]).split("/")
        if first:
            return None
        for escaped in steps:
            step = escaped.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict):
                node = node.get(step)
            elif isinstance(node, list) and step.isdecimal() and len(step) < 10 and int(step) < len(node):
                node = node[int(step)]
            else:
                return None
    return node


def _schemas_within(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Yields all possible schema objects in ``document``, with their pointers."""
    # For each value: its pointer, and whether its keys are names, not keywords.
    stack: list[tuple[str, object, bool]] = [("", document, False)]
    while stack:
        pointer, node, names = stack.pop()
        if isinstance(node, dict):
            if not names:
                yield pointer, node
            for key, value in node.items():
                if names or key not in INSTANCES:
                    stack.append((pointer + escape(key), value, not names and key in SCHEMA_MAPS))
        elif isinstance(node, list):
            stack.extend((f"{pointer}/{index}", value, False) for index, value in enumerate(node))


def _one_of_to_any_of(node: Schema, pointer: str) -> None:
    if "anyOf" in node:
        raise SchemaError(
            "oneOf next to anyOf has no equivalent in strict mode; write one anyOf", pointer=pointer + "/oneOf"
        )
    branches = node["oneOf"]
    if isinstance(branches, list) and "properties" in node and sum(map(_is_about_presence, branches)) > 1:
        raise SchemaError(
            "the branches of oneOf differ in their required properties, but strict mode requires all properties; "
            "write each branch as an object with its own properties",
            pointer=pointer + "/oneOf",
        )
    renamed = {"anyOf" if keyword == "oneOf" else keyword: value for keyword, value in node.items()}
    node.clear()
    node.update(renamed)


def _is_about_presence(schema: object) -> bool:
    return isinstance(schema, dict) and "required" in schema and schema.keys() - KEYWORDS.annotations <= _PRESENCE


def _is_schema_object(schema: object, pointer: str) -> bool:
    """Returns whether a schema is an object, not a boolean. Raises SchemaError for other values."""
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a schema is an object or a boolean, not {schema!r:.80}", pointer=pointer)
    return isinstance(schema, dict)


def _malformed(keyword: str, expected: str, value: object, pointer: str) -> SchemaError:
    return SchemaError(f"{keyword} must be {expected}, not {value!r:.80}", pointer=pointer + escape(keyword))


def _is_object_schema(node: Schema) -> bool:
    return "object" in (types_of(node.get("type")) or ())


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
