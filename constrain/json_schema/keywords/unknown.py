"""Warnings about keywords that the draft does not have, with suggestions."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from constrain.json_schema.documents.dialects import DRAFTS
from constrain.json_schema.keywords.table import KEYWORDS
from constrain.remembering import remembered
from constrain.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.json_schema.documents.dialects import Dialect
    from constrain.json_schema.documents.locations import Location

LIKENESS = 0.82
"""Least similarity (``difflib``, 0 to 1) of a keyword to the suggested one: ``requierd`` is above it, ``desc``
below."""

_INSTEAD = {
    "nullable": 'it is of OpenAPI 3.0; to allow null, write "type": [..., "null"]',
    "optional": "a property may be left out unless the required of its object lists it",
    "extends": "it is of draft 3; write allOf",
    "disallow": "it is of draft 3; write not",
    "divisibleBy": "it is of draft 3; write multipleOf",
    "min": "did you mean minimum, minLength or minItems?",
    "max": "did you mean maximum, maxLength or maxItems?",
    "inclusiveMinimum": "minimum is inclusive",
    "inclusiveMaximum": "maximum is inclusive",
    "regex": "did you mean pattern?",
    "property": "did you mean properties?",
    "props": "did you mean properties?",
}
"""Replacements for keywords that no draft from 4 on has."""

_OWN = ("x-", "_")
"""The prefixes of authors' own keywords."""


def about_unknown(keyword: str, at: Location) -> str:
    """Returns the warning about a keyword that the draft of the schema at ``at`` does not have."""
    dialect = at.resource.dialect
    ignored = f"the keyword {keyword!r:.80} is not one of {dialect.name} and is ignored"
    hint = _hint(keyword, dialect) or _about_keys(at, dialect)
    return f"{ignored} (first at {at.pointer(keyword)})" + (f": {hint}" if hint else "")


_HINTED = re.compile(r"^required names |^the keyword .* and is ignored \(first at .*\): ", re.DOTALL)


def with_hints(warnings: Iterable[str]) -> Iterator[str]:
    """Yields those of a constraint's warnings that say which keyword or key seems to be meant."""
    return filter(_HINTED.search, warnings)


def _about_keys(at: Location, dialect: Dialect) -> str:
    """Returns the hint about a schema without any keyword, which is often meant as an object."""
    schema = at.schema
    if not isinstance(schema, dict) or any(key in KEYWORDS.handlers[dialect] or key.startswith(_OWN) for key in schema):
        return ""
    return "no key of this schema is a keyword, so it allows every value; keys of an object belong in its properties"


def _hint(keyword: str, dialect: Dialect) -> str:
    if keyword in _INSTEAD:
        return _INSTEAD[keyword]
    for other in reversed(DRAFTS):
        if keyword in KEYWORDS.handlers[other] and keyword != "id":
            return f"it is of {other.name}, which $schema must name"
    if keyword.startswith(_OWN):
        return ""
    close = _closest(keyword, dialect)
    return "" if close is None else f"did you mean {close}?"


def _bytes(keyword: str, _: Dialect) -> int:
    return 2 * sys.getsizeof(keyword)


@remembered(1024, 1 << 18, _bytes)
def _closest(keyword: str, dialect: Dialect) -> str | None:
    suggested = KEYWORDS.handlers[dialect].keys() - (KEYWORDS.annotations - {"$defs", "definitions"})
    return closest(keyword, sorted(suggested), LIKENESS)
