"""Dialects: the drafts, the places of subschemas in each, and custom metaschemas with ``$vocabulary``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError, SchemaError, UnsupportedSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SCHEMA_DEPTH = 500
"""Levels of subschemas within subschemas; hand-written schemas have fewer than 50. Beyond: LimitError."""


class Dialect(NamedTuple):
    """The differences between drafts, apart from the set of keywords."""

    name: str
    id_keyword: str
    ref_ignores_siblings: bool


DRAFT_4 = Dialect("draft 4", "id", ref_ignores_siblings=True)
DRAFT_6 = Dialect("draft 6", "$id", ref_ignores_siblings=True)
DRAFT_7 = Dialect("draft 7", "$id", ref_ignores_siblings=True)
DRAFT_2019 = Dialect("draft 2019-09", "$id", ref_ignores_siblings=False)
DRAFT_2020 = Dialect("draft 2020-12", "$id", ref_ignores_siblings=False)

DRAFT_4_URI = "http://json-schema.org/draft-04/schema"

DIALECTS = {
    DRAFT_4_URI: DRAFT_4,
    "http://json-schema.org/draft-06/schema": DRAFT_6,
    "http://json-schema.org/draft-07/schema": DRAFT_7,
    "https://json-schema.org/draft/2019-09/schema": DRAFT_2019,
    "https://json-schema.org/draft/2020-12/schema": DRAFT_2020,
    "http://json-schema.org/schema": DRAFT_2020,
    "https://json-schema.org/schema": DRAFT_2020,
}


ANCHOR_KEYWORDS: dict[Dialect, tuple[str, ...]] = {
    DRAFT_4: (),
    DRAFT_6: (),
    DRAFT_7: (),
    DRAFT_2019: ("$anchor",),
    DRAFT_2020: ("$anchor", "$dynamicAnchor"),
}
"""Keywords that name a place within a resource, by draft; the fragment of an ``$id`` may name one, too."""

RECURSIVE_ANCHOR = frozenset((DRAFT_2019,))
"""The drafts with ``$recursiveAnchor``."""


class Declared(NamedTuple):
    """The meaning of ``$schema``: a draft, without the keywords that the metaschema's ``$vocabulary`` leaves out."""

    dialect: Dialect
    left_out: frozenset[str] = frozenset()


# Places of subschemas. ``definitions`` and ``$defs`` are read in every draft: a schema that uses the one of another
# draft means the same.

_ONE = frozenset(("additionalItems", "additionalProperties", "items", "not"))
_ONE_6 = _ONE | {"contains", "propertyNames"}
_ONE_7 = _ONE_6 | {"if", "then", "else"}
_ONE_2019 = _ONE_7 | {"contentSchema", "unevaluatedItems", "unevaluatedProperties"}
_MANY = frozenset(
    ("items", "allOf", "anyOf", "oneOf", "properties", "patternProperties", "definitions", "$defs", "dependencies")
)
_MANY_2019 = _MANY | {"dependentSchemas"}

SINGLE_SUBSCHEMA = {
    DRAFT_4: _ONE,
    DRAFT_6: _ONE_6,
    DRAFT_7: _ONE_7,
    DRAFT_2019: _ONE_2019,
    DRAFT_2020: _ONE_2019 - {"additionalItems"},
}
"""Keywords whose value is a schema."""

SUBSCHEMAS = {
    DRAFT_4: _MANY,
    DRAFT_6: _MANY,
    DRAFT_7: _MANY,
    DRAFT_2019: _MANY_2019,
    DRAFT_2020: _MANY_2019 | {"prefixItems"},
}
"""Keywords whose value is a list of schemas or an object with schemas as values."""


def escape(token: str) -> str:
    """Returns ``/token`` as a JSON Pointer writes it (RFC 6901 section 3)."""
    if "~" in token or "/" in token:
        token = token.replace("~", "~0").replace("/", "~1")
    return "/" + token


def subschemas_of_draft(
    schema: dict[str, object], dialect: Dialect
) -> Iterator[tuple[tuple[str, ...], dict[str, object]]]:
    """Yields the object subschemas directly inside ``schema``, each with the steps that lead to it."""
    single, several = SINGLE_SUBSCHEMA[dialect], SUBSCHEMAS[dialect]
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in single:
                yield (keyword,), value
            elif keyword in several:
                for name, inner in value.items():
                    if isinstance(inner, dict):
                        yield (keyword, str(name)), inner
        elif isinstance(value, list) and keyword in several:
            for index, inner in enumerate(value):
                if isinstance(inner, dict):
                    yield (keyword, str(index)), inner


def is_schema_position(schema: object, steps: list[str], dialect: Dialect) -> bool:
    """Returns whether ``steps`` lead from a schema to a subschema, not into the value of another keyword."""
    single, several = SINGLE_SUBSCHEMA[dialect], SUBSCHEMAS[dialect]
    rest = iter(steps)
    for keyword in rest:
        value = schema[keyword] if isinstance(schema, dict) else None
        if isinstance(value, dict) and keyword in single:
            schema = value
            continue
        step = next(rest, None)
        if keyword not in several or step is None:
            return False
        schema = value[step] if isinstance(value, dict) else value[int(step)] if isinstance(value, list) else None
    return True


# Vocabularies (2019-09 and 2020-12, section 8.1.2).

_VALIDATION = frozenset(
    (
        "type", "const", "enum", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains",
        "maxProperties", "minProperties", "required", "dependentRequired", "x-quote",
    )
)  # fmt: skip
_UNEVALUATED = frozenset(("unevaluatedItems", "unevaluatedProperties"))
_APPLICATOR = frozenset(
    (
        "prefixItems", "items", "contains", "additionalProperties", "properties", "patternProperties",
        "dependentSchemas", "propertyNames", "if", "then", "else", "allOf", "anyOf", "oneOf", "not",
    )
)  # fmt: skip
_FORMAT = frozenset(("format",))
_NOTHING: frozenset[str] = frozenset()

CORE_VOCABULARY = {
    DRAFT_2019: "https://json-schema.org/draft/2019-09/vocab/core",
    DRAFT_2020: "https://json-schema.org/draft/2020-12/vocab/core",
}
"""The vocabulary that every metaschema must name, by draft; it identifies the draft."""

VOCABULARIES = {
    DRAFT_2019: {
        CORE_VOCABULARY[DRAFT_2019]: _NOTHING,
        "https://json-schema.org/draft/2019-09/vocab/applicator": (
            (_APPLICATOR - {"prefixItems"}) | {"additionalItems"} | _UNEVALUATED
        ),
        "https://json-schema.org/draft/2019-09/vocab/validation": _VALIDATION,
        "https://json-schema.org/draft/2019-09/vocab/meta-data": _NOTHING,
        "https://json-schema.org/draft/2019-09/vocab/format": _FORMAT,
        "https://json-schema.org/draft/2019-09/vocab/content": _NOTHING,
    },
    DRAFT_2020: {
        CORE_VOCABULARY[DRAFT_2020]: _NOTHING,
        "https://json-schema.org/draft/2020-12/vocab/applicator": _APPLICATOR,
        "https://json-schema.org/draft/2020-12/vocab/unevaluated": _UNEVALUATED,
        "https://json-schema.org/draft/2020-12/vocab/validation": _VALIDATION,
        "https://json-schema.org/draft/2020-12/vocab/meta-data": _NOTHING,
        "https://json-schema.org/draft/2020-12/vocab/format-annotation": _FORMAT,
        "https://json-schema.org/draft/2020-12/vocab/format-assertion": _FORMAT,
        "https://json-schema.org/draft/2020-12/vocab/content": _NOTHING,
    },
}
"""The asserting keywords of each vocabulary, by draft."""


def declared_vocabulary(vocabulary: object, uri: str, pointer: str) -> Declared:
    """Returns the dialect of the metaschema ``uri`` with this ``$vocabulary``; ``pointer``: its ``$schema`` keyword."""
    if not isinstance(vocabulary, dict) or not all(isinstance(needed, bool) for needed in vocabulary.values()):
        raise SchemaError(f"the $vocabulary of {uri} must map URIs to booleans", pointer=pointer)
    dialect = next((draft for draft, core in CORE_VOCABULARY.items() if core in vocabulary), None)
    if dialect is None:
        raise UnsupportedSchemaError(f"the $vocabulary of {uri} lacks the core vocabulary", pointer=pointer)
    known = VOCABULARIES[dialect]
    for name, needed in vocabulary.items():
        if needed and name not in known:
            raise UnsupportedSchemaError(f"{uri} requires the vocabulary {name}, which is not known", pointer=pointer)
    used = frozenset[str]().union(*(keywords for name, keywords in known.items() if name in vocabulary))
    return Declared(dialect, frozenset[str]().union(*known.values()) - used)


def without_keywords(schema: dict[str, object], declared: Declared) -> dict[str, object]:
    """Returns a copy of a schema without ``declared.left_out``, in the schema and its subschemas.

    Subschemas with their own ``$id`` and ``$schema`` stay unchanged.
    """
    dialect, left_out = declared
    stack: list[tuple[dict[str, object], int]] = []

    def copied(inner: object, depth: int) -> object:
        if not isinstance(inner, dict) or ("$schema" in inner and isinstance(inner.get("$id"), str)):
            return inner
        if depth > MAX_SCHEMA_DEPTH:
            raise LimitError(f"the schema is nested deeper than MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}")
        copy = {key: value for key, value in inner.items() if key not in left_out}
        stack.append((copy, depth))
        return copy

    top: dict[str, object] = {key: value for key, value in schema.items() if key not in left_out}
    stack.append((top, 0))
    while stack:
        target, depth = stack.pop()
        for keyword, value in target.items():
            if isinstance(value, dict) and keyword in SINGLE_SUBSCHEMA[dialect]:
                target[keyword] = copied(value, depth + 1)
            elif isinstance(value, dict) and keyword in SUBSCHEMAS[dialect]:
                target[keyword] = {name: copied(inner, depth + 1) for name, inner in value.items()}
            elif isinstance(value, list) and keyword in SUBSCHEMAS[dialect]:
                target[keyword] = [copied(inner, depth + 1) for inner in value]
    return top


def sign_of_draft_4(document: object) -> str | None:
    """Returns the sign of draft 4 in a schema without ``$schema`` that is invalid in newer drafts."""
    if not isinstance(document, dict) or "$schema" in document:
        return None
    stack: list[tuple[object, bool]] = [(document, True)]  # with a flag "is a schema": the value of properties is none
    while stack:
        node, is_schema = stack.pop()
        if isinstance(node, list):
            stack.extend((inner, True) for inner in node)
        elif isinstance(node, dict):
            if is_schema:
                for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
                    if isinstance(node.get(keyword), bool):
                        return f"a boolean {keyword}"
                if isinstance(node.get("id"), str) and "$id" not in node:
                    return f"the id {node['id']!r:.80}"
            names = ("properties", "patternProperties", "definitions", "$defs", "dependencies")
            stack.extend(
                (inner, not is_schema or keyword not in names)
                for keyword, inner in node.items()
                if not is_schema or keyword not in ("enum", "const", "default", "examples")
            )
    return None
