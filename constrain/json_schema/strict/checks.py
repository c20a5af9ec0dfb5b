"""The rules of OpenAI's strict subset of JSON Schema, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from constrain.errors import LimitError, PatternError
from constrain.json_schema.documents.dialects import escape
from constrain.json_schema.formats.expressions import KNOWN_FORMATS
from constrain.json_schema.keywords.joining import types_of
from constrain.json_schema.keywords.table import KEYWORDS
from constrain.json_schema.strict.conversion import find
from constrain.json_schema.strict.limits import Sizes
from constrain.notebooks import one_line
from constrain.regex.parsing.parser import parse_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.strict.merging import Schema

NOT_PERMITTED = frozenset(
    (
        "additionalItems", "allOf", "contains", "default", "dependencies", "dependentRequired", "dependentSchemas",
        "else", "if", "maxContains", "maxProperties", "minContains", "minProperties", "not", "oneOf",
        "patternProperties", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
        "uniqueItems", "$dynamicRef", "$recursiveRef",
    )
)  # fmt: skip
"""Keywords outside of the subset."""

FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
"""Formats in the subset."""

TYPES = frozenset(("string", "number", "boolean", "integer", "object", "array", "null"))

TYPED_BY = frozenset(("type", "$ref", "anyOf", "enum", "const", "oneOf", "allOf", "not"))
"""Keywords that fix the type of a schema's values (the last three are refused by rules of their own)."""

MAPS = KEYWORDS.holding["map"] - {"dependencies"}
LISTS = KEYWORDS.holding["list"] - {"items"}
SINGLES = KEYWORDS.holding["schema"] - {"additionalProperties", "unevaluatedProperties"}
ASIDE = frozenset(("contains", "dependentSchemas", "else", "if", "not", "propertyNames", "then"))
"""Keywords whose schemas do not describe a value alone: objects need not be closed under them."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A place where a schema breaks a rule of OpenAI's strict mode; ``check_strict`` returns a list of them.

    Attributes:
        pointer: JSON Pointer of the keyword or schema that breaks the rule; ``""`` for the root.
        context: OpenAI's path to the schema object; ``None`` if the rule is about the schema as a whole.
        message: description of the error, in OpenAI's words.
        subject: use of the schema, for example ``response_format 'response'``.
    """

    pointer: str
    context: tuple[str, ...] | None
    message: str
    subject: str

    __repr__ = one_line

    @property
    def complaint(self) -> str:
        """The message, with the context in front of it."""
        return self.message if self.context is None else f"In context={self.context!r}, {self.message}"

    def __str__(self) -> str:
        return f"Invalid schema for {self.subject}: {self.complaint}"


def check(document: object, subject: str, *, full: bool) -> list[Violation]:
    """Returns all violations of a parsed schema: of the structural rules, or with ``full`` of the whole subset."""
    if not isinstance(document, dict):
        return [Violation("", None, f"{shown(document)} is not of type 'object'.", subject)]
    checks = _Checks(document, subject, full)
    checks.root()
    checks.all_schemas()
    if full:
        checks.found += [Violation("", None, message, subject) for message in checks.sizes.exceeded()]
    return checks.found


def shown(value: object) -> str:
    """Returns a parsed JSON value as Python writes it, shortened."""
    try:
        text = str(value) if isinstance(value, Decimal) else repr(value)
    except RecursionError:
        return "a deeply nested value"
    return text if len(text) <= 200 else text[:197] + "..."


class _Checks:
    """A walk over one document."""

    def __init__(self, document: Schema, subject: str, full: bool) -> None:  # noqa: FBT001
        self.document = document
        self.subject = subject
        self.full = full
        self.found: list[Violation] = []
        self.sizes = Sizes()
        self.anchors = _anchors(document)

    def add(self, path: tuple[str, ...], keyword: str | None, message: str) -> None:
        """Records a violation by the schema at ``path``, or by one of its keywords."""
        steps = path if keyword is None else (*path, *keyword.split("/"))
        self.found.append(Violation("".join(map(escape, steps)), path, message, self.subject))

    def root(self) -> None:
        """Checks that the root is an object, and not a choice."""
        kind = self.document.get("type")
        if kind != "object":
            message = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
            self.found.append(Violation("/type" if "type" in self.document else "", None, message, self.subject))
        for keyword in ("anyOf", "oneOf"):
            if keyword in self.document:
                message = (
                    "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
                )
                self.found.append(Violation(f"/{keyword}", None, message, self.subject))

    def all_schemas(self) -> None:
        """Checks every schema of the document, in its order."""
        # For each schema: path, whether objects must be closed there, level of nesting, and the enclosing definition.
        stack: list[tuple[object, tuple[str, ...], bool, int, int]] = [(self.document, (), True, 0, id(self.document))]
        while stack:
            node, path, decides, level, base = stack.pop()
            if path and isinstance(node, bool):
                if self.full:
                    self.add(path, None, "schema must have a 'type' key.")
                continue
            if not isinstance(node, dict):
                self.add(path, None, f"{shown(node)} is not of type 'object', 'boolean'.")
                continue
            types = self.types(node, path)
            nested = level + ("object" in types or "array" in types)
            self.sizes.note(node, base, nested)
            self.one(node, path, types, decides=decides)
            closed = node.get("additionalProperties") is False
            children = []
            for keyword, steps, child in self.children(node, path):
                inner = decides and keyword not in ASIDE and not (keyword == "allOf" and closed)
                if keyword in ("$defs", "definitions"):
                    children.append((child, (*path, *steps), inner, 0, id(child)))
                else:
                    children.append((child, (*path, *steps), inner, nested, base))
            stack += children[::-1]

    def children(self, node: Schema, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], object]]:
        """Yields the subschemas of ``node``: keyword, steps and schema."""
        for keyword, value in node.items():
            if keyword in MAPS:
                if isinstance(value, dict):
                    for key, schema in value.items():
                        yield keyword, (keyword, key), schema
                else:
                    self.add(path, keyword, f"{shown(value)} is not of type 'object'.")
            elif keyword in LISTS or (keyword == "items" and isinstance(value, list)):
                if isinstance(value, list):
                    for index, schema in enumerate(value):
                        yield keyword, (keyword, str(index)), schema
                else:
                    self.add(path, keyword, f"{shown(value)} is not of type 'array'.")
            elif keyword in SINGLES and not (keyword == "items" and isinstance(value, bool)):
                yield keyword, (keyword,), value

    def types(self, node: Schema, path: tuple[str, ...]) -> list[str]:
        """Returns the types that a schema names."""
        if "type" not in node:
            return ["object"] if "properties" in node else []
        types = types_of(node["type"])
        if not types or not TYPES.issuperset(types):
            self.add(path, "type", f"{shown(node['type'])} is not valid under any of the given schemas.")
            return []
        return types

    def one(self, node: Schema, path: tuple[str, ...], types: list[str], *, decides: bool) -> None:
        """Checks the rules for one schema object."""
        if "object" in types and decides:
            self.object_schema(node, path)
        if "array" in types and not (isinstance(node.get("items"), (dict, list)) or "prefixItems" in node):
            self.add(path, None, "array schema missing items.")
        if "$ref" in node:
            self.reference(node, path)
        if "pattern" in node:
            self.pattern(node["pattern"], path)
        if "enum" in node and not isinstance(node["enum"], list):
            self.add(path, "enum", f"{shown(node['enum'])} is not of type 'array'.")
        if "format" in node and not self.is_format(node, types):
            self.add(path, "format", f"{shown(node['format'])} is not a valid format.")
        if not self.full:
            return
        if path and TYPED_BY.isdisjoint(node):
            self.add(path, None, "schema must have a 'type' key.")
        for keyword in node:
            if keyword in NOT_PERMITTED:
                self.add(path, keyword, f"'{keyword}' is not permitted.")

    def is_format(self, node: Schema, types: list[str]) -> bool:
        """Returns whether OpenAI has the format, or, for formats outside strings, whether it has no meaning here.

        A format that names a pattern of zod (``starts_with``, ``nanoid``) is fine: the pattern beside it has the
        meaning.
        """
        name = node["format"]
        if not isinstance(name, str):
            return False
        if self.full:
            return name in FORMATS
        return "string" not in types or "pattern" in node or name in KNOWN_FORMATS

    def object_schema(self, node: Schema, path: tuple[str, ...]) -> None:
        """Checks that an object is closed and requires exactly its properties."""
        if node.get("additionalProperties") is not False:
            keyword = "additionalProperties" if "additionalProperties" in node else None
            self.add(path, keyword, "'additionalProperties' is required to be supplied and to be false.")
        properties = node.get("properties", {})
        if not isinstance(properties, dict):
            return  # reported with its schemas
        if self.full and "properties" not in node:
            self.add(path, None, "object schema missing properties.")
        required = node.get("required", [])
        if not isinstance(required, list):
            self.add(path, "required", f"{shown(required)} is not of type 'array'.")
            return
        rule = "'required' is required to be supplied and to be an array including every key in properties."
        strings = {key for key in required if isinstance(key, str)}
        for key in properties:
            if key not in strings:
                self.add(path, "required" if "required" in node else None, f"{rule} Missing {shown(key)}.")
        for index, key in enumerate(required):
            if not isinstance(key, str):
                self.add(path, f"required/{index}", f"{shown(key)} is not of type 'string'.")
            elif key not in properties:
                self.add(path, f"required/{index}", f"{rule} Extra required key {shown(key)} supplied.")

    def reference(self, node: Schema, path: tuple[str, ...]) -> None:
        """Checks that a reference stands alone and points to a definition."""
        reference = node["$ref"]
        if not isinstance(reference, str):
            self.add(path, "$ref", f"{shown(reference)} is not of type 'string'.")
            return
        siblings = sorted(node.keys() - {"$ref", "$defs", "definitions", "$schema"})
        if self.full and siblings:
            self.add(path, None, f"$ref cannot have keywords {{{', '.join(map(shown, siblings))}}}.")
        local = reference == "#" or reference.startswith("#/")
        target = find(self.document, reference)
        known = isinstance(target, (dict, bool)) if local else reference[1:] in self.anchors
        if reference.startswith("#") and not known:
            self.add(path, "$ref", f"reference to component {shown(reference)} which was not found in the schema.")
        elif self.full and reference != "#":
            steps = reference.split("/")
            if not (local and len(steps) == 3 and steps[1] in ("$defs", "definitions")):
                message = "reference can only point to definitions defined at the top level of the schema."
                self.add(path, "$ref", message)

    def pattern(self, pattern: object, path: tuple[str, ...]) -> None:
        """Checks that a pattern is a regular expression, in the subset without lookaround."""
        if not isinstance(pattern, str):
            self.add(path, "pattern", f"{shown(pattern)} is not of type 'string'.")
            return
        try:
            parse_pattern(pattern, "ecma", json=True, anchored=False)
        except PatternError as error:
            # The compiler reports regular expressions that it does not support.
            if "not supported" not in error.message and "(MAX_" not in error.message:
                self.add(path, "pattern", f"{shown(pattern)} is not a 'regex'.")
        except LimitError:
            pass
        if self.full and _has_lookaround(pattern):
            self.add(path, "pattern", f"{shown(pattern)} is not permitted: lookaround is not supported.")


def _has_lookaround(pattern: str) -> bool:
    index, in_class = 0, False
    while index < len(pattern):
        character = pattern[index]
        if character == "\\":
            index += 2
            continue
        if in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif pattern.startswith(("(?=", "(?!", "(?<=", "(?<!"), index):
            return True
        index += 1
    return False


def _anchors(document: Schema) -> frozenset[str]:
    """Returns the names that ``#name`` may refer to."""
    found: set[str] = set()
    stack: list[object] = [document]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            identifiers = [node.get(keyword) for keyword in ("$id", "id")]
            names = [node.get("$anchor"), node.get("$dynamicAnchor")]
            names += [name[1:] for name in identifiers if isinstance(name, str) and name.startswith("#")]
            found.update(name for name in names if isinstance(name, str))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return frozenset(found)
