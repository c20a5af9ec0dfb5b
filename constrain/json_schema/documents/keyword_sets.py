"""Sets of keywords that several modules use."""

from __future__ import annotations

IN_PLACE_APPLICATORS = frozenset(
    (
        "$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
        "dependentSchemas", "dependencies",
    )
)  # fmt: skip
"""Keywords that apply other schemas to the same value."""

ABOUT_STRINGS = IN_PLACE_APPLICATORS - {"dependentSchemas", "dependencies"} | {
    "type", "const", "enum", "minLength", "maxLength", "pattern", "format",
    "x-quote",
}  # fmt: skip
"""Keywords that restrict strings."""

ANNOTATIONS = frozenset(
    (
        "title", "description", "default", "examples", "$comment", "readOnly", "writeOnly", "deprecated",
        "contentEncoding", "contentMediaType", "contentSchema", "$schema", "$defs", "definitions", "$vocabulary",
        "x-sources", "x-given-sources", "discriminator",
    )
)  # fmt: skip
"""Keywords that assert nothing in any draft, nor in OpenAPI, and do not change the meaning of ``$ref``."""
