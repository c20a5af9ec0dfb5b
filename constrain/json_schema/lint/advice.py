"""Advice on schemas that compile, but give worse answers than they could.

Rules, by their stable names:

- ``catch-all``: anything is allowed where structure seems meant
- ``unbounded-string``, ``unbounded-array``: nothing says where to stop
- ``unbounded-date``: a date of any year that generation writes, 1000 to 2999; small models do write such years
- ``undescribed``: a property without a description, which is what the model reads
- ``enum-meant``: free text where a few fixed values seem meant
- ``quote-meant``: free text where a quotation from a text seems meant
- ``answer-first``: an answer is asked for before the reasoning that should lead to it
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrain.json_schema.documents.dialects import escape
from constrain.json_schema.documents.subschemas import subschemas
from constrain.json_schema.keywords.table import KEYWORDS
from constrain.json_schema.lint.findings import Finding
from constrain.quotes.keyword import QUOTE
from constrain.tables.keyword import ONE_OF

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = (
    "catch-all", "unbounded-string", "unbounded-array", "unbounded-date", "undescribed", "enum-meant", "quote-meant",
    "answer-first",
)  # fmt: skip

_ANSWERS = frozenset(
    (
        "answer", "answers", "result", "results", "conclusion", "verdict", "decision", "output", "prediction",
        "solution", "score", "rating", "label",
    )
)  # fmt: skip

_REASONS = frozenset(
    (
        "reasoning", "reason", "reasons", "explanation", "rationale", "steps", "thinking", "thought", "thoughts",
        "analysis", "justification", "evidence", "scratchpad", "why", "derivation", "working",
    )
)  # fmt: skip

_CATEGORIES = frozenset(
    (
        "status", "state", "type", "kind", "category", "level", "severity", "priority", "mode", "gender", "currency",
        "unit", "role", "stage", "tier", "class", "sentiment", "difficulty", "language", "frequency",
    )
)  # fmt: skip
"""Words that, at the end of a property's name, suggest one of a few values."""

_ANNOUNCED = re.compile(
    r"\b(?:one of|either|must be|can be|possible values|allowed values|valid values)\b", re.IGNORECASE
)
_BETWEEN = re.compile(r",|\bor\b|\|", re.IGNORECASE)
_ALTERNATIVES = re.compile(
    r"['\"`][\w -]+['\"`]\s*(?:,|/|\||\bor\b)\s*['\"`][\w -]+['\"`]|\b\w+\|\w+\|\w+\b", re.IGNORECASE
)

_COPIED = re.compile(
    r"\b(?:verbatim|word for word|exact (?:words|wording|text)|direct quote|quoted? from|excerpt|cop(?:y|ied) from)\b",
    re.IGNORECASE,
)
"""Words of a description that ask for a piece of another text."""

_INSIDE = KEYWORDS.names(lambda each: each.holds and each.name not in KEYWORDS.in_place) - {"additionalItems"}
_STRUCTURE = {
    "object": (_INSIDE | {"required"}) & KEYWORDS.names(lambda each: each.about == "object"),
    "array": (_INSIDE | {"required"}) & KEYWORDS.names(lambda each: each.about == "array"),
}
"""Keywords that constrain the content of an object or array."""

_OTHER_SCHEMAS = KEYWORDS.names(lambda each: each.about == "any" and not each.read_by) - {"type"}
"""Keywords that apply other schemas, so that a schema's own keywords are not all of its constraints."""

_ENDLESS = re.compile(r"(?<!\\)(?:\\\\)*(?:[*+]|\{\d+,\})")

_LEAST_EXAMPLES = 3


def advise(schema: object) -> tuple[Finding, ...]:
    """All advice about a parsed schema, in its order."""
    return tuple(_advice(schema))


def _advice(document: object) -> Iterator[Finding]:
    if _is_catch_all(document):
        yield Finding("catch-all", "", "every value is allowed: say what the answer looks like")
    pending: list[tuple[str, object, bool]] = [("", document, False)]
    while pending:
        pointer, schema, alone = pending.pop()
        if not isinstance(schema, dict):
            continue
        for rule in () if alone else (_loose, _unbounded):
            yield from rule(pointer, schema)
        yield from _properties(document, pointer, schema)
        inner = []
        for part in subschemas(schema):
            place = pointer + part.token
            if part.keyword in ("not", "if", "propertyNames", "contains"):
                continue  # their schemas describe no part of the answer
            if part.keyword in _VALUES and _is_catch_all(part.schema):
                yield Finding("catch-all", place, "every value is allowed here: say what it looks like")
            # another branch of allOf may close this one
            inner.append((place, part.schema, part.keyword in ("allOf", "then", "else", "dependentSchemas")))
        pending.extend(reversed(inner))


_VALUES = frozenset(("properties", "patternProperties", "items", "prefixItems", "anyOf", "oneOf"))
"""Keywords whose schemas a model fills in; ``additionalProperties`` often is a catch-all on purpose."""


def _is_catch_all(schema: object) -> bool:
    return schema is True or (isinstance(schema, dict) and KEYWORDS.annotations.issuperset(schema))


def _types(schema: dict[str, object]) -> list[object]:
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def _loose(pointer: str, schema: dict[str, object]) -> Iterator[Finding]:
    """Yields findings about objects and arrays of anything."""
    if not _OTHER_SCHEMAS.isdisjoint(schema):
        return
    for kind, keywords in _STRUCTURE.items():
        if kind in _types(schema) and keywords.isdisjoint(schema):
            what = "properties" if kind == "object" else "items"
            yield Finding("catch-all", pointer, f"an {kind} of anything: declare its {what}")


def _unbounded(pointer: str, schema: dict[str, object]) -> Iterator[Finding]:
    """Yields findings about strings and arrays of any length."""
    if not _OTHER_SCHEMAS.isdisjoint(schema):
        return
    types = _types(schema)
    if "string" in types and _LIMITING.isdisjoint(schema):
        pattern = schema.get("pattern")
        if not isinstance(pattern, str) or not _is_bounded(pattern):
            yield Finding("unbounded-string", pointer, "a string of any length: give it a maxLength")
    if "string" in types and schema.get("format") in _DATED and "pattern" not in schema:
        message = "a date of any year from 1000 to 2999; small models do write such years: add a pattern like ^(19|20)"
        yield Finding("unbounded-date", pointer, message)
    if "array" in types and "maxItems" not in schema and not _is_tuple(schema):
        yield Finding("unbounded-array", pointer, "an array of any length: give it maxItems")


_LIMITING = frozenset(("maxLength", "format", ONE_OF))
"""Keywords that limit the length of strings."""

_DATED = ("date", "date-time")
"""Formats that begin with a year."""


def _lists_values(description: str) -> bool:
    """Returns whether a description seems to list the values of a property."""
    announced = _ANNOUNCED.search(description)
    if announced is not None and _BETWEEN.search(description, announced.end()):
        return True
    return _ALTERNATIVES.search(description) is not None


def _is_bounded(pattern: str) -> bool:
    """Returns whether the pattern has both anchors and no endless repetition (it takes ``[*]`` for one)."""
    return pattern.startswith("^") and pattern.endswith("$") and _ENDLESS.search(pattern) is None


def _is_tuple(schema: dict[str, object]) -> bool:
    after = "additionalItems" if isinstance(schema.get("items"), list) else "items"
    return schema.get(after) is False or schema.get("unevaluatedItems") is False


def _properties(document: object, pointer: str, schema: dict[str, object]) -> Iterator[Finding]:
    """Yields findings about the properties of one object."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, inner in properties.items():
        if not isinstance(inner, dict):
            continue
        place = f"{pointer}/properties{escape(name)}"
        target = _target(document, inner)
        if not any(_has_text(part, keyword) for part in (inner, target) for keyword in ("description", "title")):
            yield Finding("undescribed", place, "no description tells what belongs here")
        if _is_free_text(target):
            why = _why_enum(name, {**target, **inner})
            if why is not None:
                yield Finding("enum-meant", place, f"free text, and {why}: list the values in an enum")
            if QUOTE not in {**target, **inner} and _is_copied({**target, **inner}):
                message = f"free text, and its description asks for a quotation: make it a quote with {QUOTE}"
                yield Finding("quote-meant", place, message)
    yield from _order(pointer, list(properties))


def _target(document: object, schema: dict[str, object]) -> dict[str, object]:
    """Returns the target of a plain reference within the document; the schema itself without one."""
    for _ in range(_MAX_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        node = document
        for part in reference[2:].split("/"):
            step = part.replace("~1", "/").replace("~0", "~")
            node = node.get(step) if isinstance(node, dict) else None
        if not isinstance(node, dict):
            break
        schema = node
    return schema


_MAX_REFERENCES = 10


def _has_text(schema: dict[str, object], keyword: str) -> bool:
    value = schema.get(keyword)
    return isinstance(value, str) and bool(value.strip())


def _is_free_text(schema: dict[str, object]) -> bool:
    closed = ("pattern", "format", *_OTHER_SCHEMAS)
    return "string" in _types(schema) and not any(keyword in schema for keyword in closed)


def _why_enum(name: str, schema: dict[str, object]) -> str | None:
    """Returns the sign that a string is one of a few values, or None."""
    words = _words(name)
    if words and words[-1] in _CATEGORIES:
        return f"{name!r:.80} sounds like one of a few values"
    description = schema.get("description")
    if isinstance(description, str) and _lists_values(description):
        return "its description lists values"
    examples = schema.get("examples")
    if isinstance(examples, list) and len(examples) >= _LEAST_EXAMPLES and all(map(_is_label, examples)):
        return "its examples are labels"
    return None


def _is_copied(schema: dict[str, object]) -> bool:
    """Returns whether the description of a string asks for a piece of another text."""
    description = schema.get("description")
    return isinstance(description, str) and _COPIED.search(description) is not None


_LONGEST_LABEL = 20


def _is_label(example: object) -> bool:
    return isinstance(example, str) and len(example) <= _LONGEST_LABEL and re.fullmatch(r"[\w-]+", example) is not None


def _words(name: str) -> list[str]:
    """Returns the words of a name in camelCase, snake_case or kebab-case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _order(pointer: str, names: list[str]) -> Iterator[Finding]:
    """Yields a finding if the answer comes before the reasoning: keys are written in the order of the schema."""
    last = None
    for name in names:
        if _REASONS.intersection(_words(name)):
            last = name
    for name in names:
        if name == last:
            return
        words = _words(name)
        if last is not None and _ANSWERS.intersection(words) and not _REASONS.intersection(words):
            message = f"the answer is written before {last!r:.80}: put the reasoning first"
            yield Finding("answer-first", f"{pointer}/properties{escape(name)}", message)
