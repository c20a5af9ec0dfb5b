"""Keywords that name a schema, keep schemas for references, or annotate: they restrict no value."""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError
from constrain.json_schema.documents.dialects import DRAFT_4, DRAFT_6, DRAFT_2019, DRAFT_2020
from constrain.json_schema.documents.keyword import KEYWORDS, Keyword

if TYPE_CHECKING:
    from constrain.json_schema.documents.keyword import Handler
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


@Keyword("id", "document", until=DRAFT_4)
def identifier_of_draft_4(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``id``: the URI of the schema; a value that is no string, often a misplaced property, is ignored."""
    if not isinstance(value, str):
        goals.warnings.setdefault(f"the id at {at.pointer('id')} is not a string and is ignored")


def _checked(keyword: str, kind: type, noun: str) -> Handler:
    """Returns a function that checks the type of a keyword's value, which ``documents`` reads earlier."""

    def check(goals: Goals, at: Location, value: object, found: Assertions) -> None:
        if not isinstance(value, kind):
            raise SchemaError(f"{keyword} must be a {noun}, not {value!r:.80}", pointer=at.pointer(keyword))

    return check


for _record in (
    Keyword("$id", "document", since=DRAFT_6, says="the URI of the schema"),
    Keyword("$anchor", "document", since=DRAFT_2019, says="a name of the schema, for ``$ref``"),
    Keyword("$dynamicAnchor", "document", since=DRAFT_2020, says="a name of the schema, for ``$dynamicRef``"),
):
    _record(_checked(_record.name, str, "string"))
Keyword(
    "$recursiveAnchor", "document", since=DRAFT_2019, until=DRAFT_2019, says="whether ``$recursiveRef`` may lead here"
)(_checked("$recursiveAnchor", bool, "boolean"))

KEYWORDS.add(Keyword("$schema", "document", says="the draft, or a metaschema of one's own"))
KEYWORDS.add(Keyword("$vocabulary", "document", says="in a metaschema: the vocabularies whose keywords count"))
KEYWORDS.add(Keyword("$defs", "document", says="schemas for ``$ref``", holds="map", in_place=None))
KEYWORDS.add(Keyword("definitions", "document", says="the same as ``$defs``", holds="map", in_place=None))

for _name in (
    "title", "description", "default", "examples", "$comment", "readOnly", "writeOnly", "deprecated",
    "contentEncoding", "contentMediaType", "x-sources", "x-given-sources", "x-given-tables", "discriminator",
):  # fmt: skip
    KEYWORDS.add(Keyword(_name, "annotation"))
KEYWORDS.add(Keyword("contentSchema", "annotation", holds="schema", in_place=None, since=DRAFT_2019, everywhere=True))
