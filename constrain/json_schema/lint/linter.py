"""Findings about a schema: refused keywords, unusable parts, and advice."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from constrain.errors import ConstrainError, LimitError, PatternError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.compiler import compile_schema
from constrain.json_schema.documents.dialects import escape
from constrain.json_schema.documents.subschemas import subschemas
from constrain.json_schema.formats.expressions import LEFT_OUT
from constrain.json_schema.keywords.table import KEYWORDS
from constrain.json_schema.lint.advice import advise
from constrain.json_schema.lint.findings import Finding
from constrain.json_schema.lint.unsatisfiable import find_unsatisfiable
from constrain.json_schema.stages.pointers import find_data

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_REFUSALS = 100
"""Refused keywords that are reported; each takes one more compilation, without the earlier ones."""


@dataclass(frozen=True)
class Lint:
    """The findings about one schema.

    ``refused``: keywords that cannot be enforced, and contradictions that leave no value; ``narrowed``: formats with
    texts that are never written; ``unsatisfiable``: parts that no value can ever use; ``advice``: what works, and could
    be better. ``enforced``: the places of every keyword that restricts values, by keyword. ``remaining``: the schema
    without the refused keywords; None where that is none, or has no value.
    """

    refused: tuple[Finding, ...]
    narrowed: tuple[Finding, ...]
    unsatisfiable: tuple[Finding, ...]
    advice: tuple[Finding, ...]
    enforced: dict[str, tuple[str, ...]]
    remaining: object

    @property
    def exact(self) -> bool:
        """Returns whether every keyword is enforced, and some value satisfies them all."""
        return not self.refused


def lint_schema(schema: object, *, registry: object = None, **policies: str) -> Lint:
    """Returns the findings about a parsed JSON Schema (dict or bool); registry, policies: as in ``compile_schema``.

    Parts that no value can use are searched only if nothing is refused. Raises SchemaError or LimitError if an error
    names no place in the schema.

    >>> [finding.rule for finding in lint_schema({"type": "array", "items": {"const": 1}}).advice]
    ['unbounded-array']
    """
    refused, remaining = _without_refused(schema, registry, policies)
    enforced = _enforced(schema, {finding.pointer for finding in refused})
    asserts = policies.get("formats") != "annotation"
    return Lint(
        refused=tuple(refused),
        narrowed=tuple(_narrowed(schema, enforced.get("format", ()))) if asserts else (),
        unsatisfiable=()
        if refused or find_data(schema) is not None
        else find_unsatisfiable(schema, registry=registry, **policies),
        advice=advise(schema),
        enforced=enforced,
        remaining=remaining,
    )


def _without_refused(schema: object, registry: object, policies: dict[str, str]) -> tuple[list[Finding], object]:
    """Returns the refused keywords and schemas, and the schema without them and without references into them."""
    refused: list[Finding] = []
    remaining = copy.deepcopy(schema)
    while len(refused) < MAX_REFUSALS:
        try:
            compile_schema(remaining, registry=registry, in_stages=True, **policies)  # type: ignore[arg-type]
        except ConstrainError as error:  # noqa: PERF203
            if error.pointer is None:
                raise
            removable = isinstance(error, (UnsupportedSchemaError, PatternError, LimitError))
            if not removable and _points_into(remaining, error.pointer, refused):
                _remove(remaining, error.pointer)
                continue
            rule = "refused" if removable else "malformed" if type(error) is SchemaError else "no-value"
            refused.append(Finding(rule, error.pointer, error.message))
            if not removable or not _remove(remaining, error.pointer):
                break
        else:
            return refused, remaining
    return refused, None


def _narrowed(schema: object, places: tuple[str, ...]) -> Iterator[Finding]:
    """Yields a finding for each of these formats that leaves out texts of its definition."""
    for place in places:
        path = _path(schema, place)
        name = path[-1][0][path[-1][1]] if path else None
        if isinstance(name, str) and name in LEFT_OUT:
            yield Finding("narrowed", place, f"the format {name!r} is written without {LEFT_OUT[name]}")


def _path(schema: object, pointer: str) -> list[tuple[Any, Any]]:
    """Returns the containers on the way of a JSON Pointer, each with its key or index; empty if nothing is there."""
    path: list[tuple[Any, Any]] = []
    node: Any = schema
    for part in pointer.split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        key = int(step) if isinstance(node, list) and step.isdecimal() else step
        try:
            path.append((node, key))
            node = node[key]
        except (LookupError, TypeError):
            return []
    return path


def _points_into(schema: object, pointer: str, removed: list[Finding]) -> bool:
    """Returns whether the keyword at a JSON Pointer is a reference to what was removed, or to something inside it."""
    path = _path(schema, pointer)
    reference = path[-1][0][path[-1][1]] if path else None
    target = unquote(reference) if isinstance(reference, str) else ""
    return any(f"{target}/".startswith(f"#{finding.pointer}/") for finding in removed)


def _remove(schema: object, pointer: str) -> bool:
    """Removes the keyword at a JSON Pointer; a schema in a list or map of schemas becomes one that allows every value.

    Returns ``False`` if that is not possible.
    """
    path = _path(schema, pointer)
    among_schemas = False
    for node, key in path[:-1]:
        is_list = isinstance(node[key], list) and key in KEYWORDS.holding["list"]
        among_schemas = not among_schemas and (is_list or key in KEYWORDS.holding["map"])
    if not path or (not among_schemas and isinstance(path[-1][0], list)):
        return False
    if among_schemas and path[-2][1] != "oneOf":
        path[-1][0][path[-1][1]] = True
    else:  # ``oneOf`` goes as a whole: with a schema that allows every value, it would forbid the others
        node, key = path[-2 if among_schemas else -1]
        del node[key]
    return True


def _enforced(schema: object, without: set[str]) -> dict[str, tuple[str, ...]]:
    """Returns the places of every keyword that constrains values, except those ``without``."""
    restricting = KEYWORDS.names(lambda each: each.restricts and each.handler is not None)
    places: dict[str, list[str]] = {}
    pending: list[tuple[str, object]] = [("", schema)]
    while pending:
        pointer, node = pending.pop()
        if not isinstance(node, dict):
            continue
        for keyword in node:
            place = pointer + escape(keyword)
            if keyword in restricting and place not in without:
                places.setdefault(keyword, []).append(place)
        inner = [(pointer + child.token, child.schema) for child in subschemas(node)]
        pending.extend((place, child) for place, child in reversed(inner) if not _is_within(place, without))
    return {keyword: tuple(found) for keyword, found in sorted(places.items())}


def _is_within(place: str, pointers: set[str]) -> bool:
    parts = place.split("/")
    return any("/".join(parts[:length]) in pointers for length in range(2, len(parts) + 1))
