"""Places of the subschemas of a schema object, keyword by keyword."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.documents.dialects import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SINGLE = frozenset(
    (
        "items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties",
        "propertyNames", "not", "if", "then", "else",
    )
)  # fmt: skip
"""Keywords whose value is a schema."""

LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
"""Keywords whose value is a list of schemas; ``items`` is one up to draft 2019-09."""

MAPS = frozenset(("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"))
"""Keywords whose value maps names to schemas (in ``dependencies`` also to lists of keys)."""


class Subschema(NamedTuple):
    """A subschema; ``token`` is its JSON Pointer from the schema that contains it."""

    keyword: str
    name: str
    """The key or index below the keyword; empty if the keyword's value is the subschema."""
    token: str
    schema: object


def subschemas(schema: Mapping[str, object]) -> Iterator[Subschema]:
    """Yields the schemas directly inside a schema object, in its order."""
    for keyword, value in schema.items():
        if isinstance(value, list):
            if keyword in LISTS:
                for index, item in enumerate(value):
                    yield Subschema(keyword, str(index), f"/{keyword}/{index}", item)
        elif isinstance(value, dict) and keyword in MAPS:
            for name, item in value.items():
                if not isinstance(item, list):
                    yield Subschema(keyword, name, f"/{keyword}{escape(name)}", item)
        elif keyword in SINGLE:
            yield Subschema(keyword, "", f"/{keyword}", value)
