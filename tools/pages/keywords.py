"""Writes docs/reference/keywords.md: the keywords and formats of JSON Schema, by draft.

The sources are the records of keywords. The refused schemas are compiled while the page is written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import constrain
from constrain.json_schema.documents.dialects import DRAFTS
from constrain.json_schema.formats.expressions import INEXACT_FORMATS, KNOWN_FORMATS, LEFT_OUT
from constrain.json_schema.formats.generated import GENERATED_FORMATS
from constrain.json_schema.keywords.table import KEYWORDS
from tools.pages.markdown import NOTE, byte_vocabulary, cell, code, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.documents.dialects import Dialect
    from constrain.json_schema.documents.keyword import Keyword

_HEADER = f"""# Keywords

All keywords of the drafts 4, 6, 7, 2019-09 and 2020-12 are known. A keyword is enforced exactly, or compiling raises an
[error](errors.md) with its place. `$schema` names the draft; without it a schema is read as one of 2020-12, or of draft
4 if it makes sense only there.

- **yes**: enforced in every schema that compiles.
- **restricted**: enforced, but some values are refused; see [what is refused](#refused).
- **annotation**: says nothing about values, and is ignored.
- empty: no keyword of this draft; ignored, and `Constraint.warnings` says so.

`dependencies` and `additionalItems` are read in every draft, since many schemas have them. Bounds, `const` and `enum`
may name [another field of the answer](../guides/bounds.md) (`$data`), and `x-one-of` may depend on
[another column of the row](../guides/tables.md#rows) (`given`). `x-unique-by` and `x-refers` need an answer that is
one JSON text.

{NOTE}
"""

_SECTIONS = {
    "any": "Any value",
    "number": "Numbers",
    "string": "Strings",
    "array": "Arrays",
    "object": "Objects",
    "document": "Names and documents",
    "annotation": "Annotations",
}
"""The sections of the page, by what a keyword is about."""


class Refusal(NamedTuple):
    """A schema that is refused; ``keyword``: the one that is restricted; ``instead``: what to write."""

    keyword: str
    what: str
    schema: Any
    error: type[constrain.ConstrainError]
    instead: str


REFUSALS = (
    Refusal("pattern", "backreferences", {"pattern": r"(a|b)\1"}, constrain.PatternError, "write out the alternatives"),
    Refusal(
        "pattern",
        "lookaround that depends on text of any length on both sides",
        {"pattern": "a(?=b+)b*(?<=ab+)c"},
        constrain.PatternError,
        "split it into several patterns under `allOf`",
    ),
    Refusal(
        "patternProperties",
        "the same patterns, for keys",
        {"patternProperties": {r"(a|b)\1": {}}},
        constrain.PatternError,
        "as for `pattern`",
    ),
    Refusal(
        "uniqueItems",
        "arrays that must not be unique, or only under a condition",
        {"not": {"type": "array", "uniqueItems": True}},
        constrain.UnsupportedSchemaError,
        "remove the condition",
    ),
    Refusal(
        "uniqueItems",
        "items whose values may run out, but are more than 2,000 (`MAX_SCARCE_VALUES`) or of unknown number",
        {"prefixItems": [{"type": "string", "pattern": "^[a-z]{3}$"}, {"const": "abc"}], "uniqueItems": True},
        constrain.UnsupportedSchemaError,
        "list the items in an `enum`",
    ),
    Refusal(
        "uniqueItems",
        "listed arrays or objects next to items that may equal them",
        {"prefixItems": [{"type": "array"}, {"const": [True]}], "uniqueItems": True},
        constrain.UnsupportedSchemaError,
        "list all of these items in enums",
    ),
    Refusal(
        "$ref",
        "documents that are not in the registry",
        {"$ref": "https://example.com/address"},
        constrain.UnsupportedSchemaError,
        "pass the document as `registry`; nothing is fetched",
    ),
    Refusal(
        "$schema",
        "draft 3 and older",
        {"$schema": "http://json-schema.org/draft-03/schema"},
        constrain.UnsupportedSchemaError,
        "convert the schema",
    ),
    Refusal(
        "const",
        "a number with an exponent that is no double, and so in `enum`",
        {"const": 1e300},
        constrain.UnsupportedSchemaError,
        'write it as an integer, or pass `precision="decimal"`',
    ),
    Refusal(
        "const",
        "a lone surrogate, and so in `enum` and keys",
        {"const": "\ud800"},
        constrain.UnsupportedSchemaError,
        "write a character",
    ),
    Refusal(
        "enum", "the same values as for `const`", {"enum": [1e300]}, constrain.UnsupportedSchemaError, "as for `const`"
    ),
)
"""What is refused by kind; single schemas may also meet a limit."""


def page() -> str:
    """Returns the text of the page."""
    parts = [_HEADER]
    head = ("keyword", *(draft.name.removeprefix("draft ") for draft in DRAFTS), "meaning")
    for about, title in _SECTIONS.items():
        found = [record for _, record in sorted(KEYWORDS.records.items()) if record.about == about]
        rows = ((code(each.name), *(_mark(each, draft) for draft in DRAFTS), cell(each.says)) for each in found)
        parts.append(f"## {title}\n\n{table(head, rows, 'lcccccl')}\n")
    parts.append("## Refused\n\n" + table(("keyword", "refused", "example", "raises", "instead"), _refused()))
    parts.append(
        "\nAny schema may also meet a [limit](limits.md), which raises `LimitError`, or have no value at all, which "
        "raises `UnsatisfiableSchemaError`. A Python type that no schema describes exactly raises "
        "`UnsupportedSchemaError` with the name of the field.\n"
    )
    parts.append(f"\n## Formats\n\n{_ABOUT_FORMATS}\n{table(('format', 'left out', 'remark'), _formats())}")
    return "".join(parts)


_ABOUT_FORMATS = """\
Known formats are enforced in every draft, unless `formats="annotation"`. An unknown format causes a warning, or an
error with `formats="strict"`. Every text that is written is of the format. Some texts are *left out*, mostly because
common readers refuse them; `constrain check` says which for a schema. Under `not` and the like, they count as texts of
the format. Two remarks:

- *inexact*: common readers take what is left out, but no expression describes it. So there is a warning;
  `inexact="refuse"` and `formats="strict"` refuse the format.
- *narrower in `generate`*: `generate` keeps to what Pydantic, zod and the URL Standard read, as long as the rest of the
  schema leaves any of that. `compile` does not.
"""


def _mark(record: Keyword, draft: Dialect) -> str:
    if record.name not in KEYWORDS.handlers[draft]:
        return ""
    if record.about == "annotation":
        return "annotation"
    return "restricted" if record.name in {refusal.keyword for refusal in REFUSALS} else "yes"


def _refused() -> Iterator[tuple[str, ...]]:
    for refusal in REFUSALS:
        assert is_refused(refusal), f"is not refused: {refusal.schema}"
        yield (
            code(refusal.keyword),
            cell(refusal.what),
            code(json.dumps(refusal.schema)),
            f"`{refusal.error.__name__}`",
            cell(refusal.instead),
        )


def is_refused(refusal: Refusal) -> bool:
    """Returns whether compiling the schema raises exactly this error."""
    try:
        constrain.compile(refusal.schema, byte_vocabulary())
    except constrain.ConstrainError as error:
        return type(error) is refusal.error
    return False


def _formats() -> Iterator[tuple[str, ...]]:
    for name in sorted(KNOWN_FORMATS):
        remarks = ["inexact"] if name in INEXACT_FORMATS else []
        remarks += ["narrower in `generate`"] if name in GENERATED_FORMATS else []
        yield code(name), LEFT_OUT.get(name, ""), "; ".join(remarks)
