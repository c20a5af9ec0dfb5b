"""Dialects: the drafts of JSON Schema, and what tells them apart besides their keywords."""

from __future__ import annotations

from typing import NamedTuple

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

DRAFTS = (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020)

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


class Declared(NamedTuple):
    """The meaning of ``$schema``: a draft, without the keywords that the metaschema's ``$vocabulary`` leaves out."""

    dialect: Dialect
    left_out: frozenset[str] = frozenset()


def escape(token: str) -> str:
    """Returns ``/token`` as a JSON Pointer writes it (RFC 6901 section 3)."""
    if "~" in token or "/" in token:
        token = token.replace("~", "~0").replace("/", "~1")
    return "/" + token


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
