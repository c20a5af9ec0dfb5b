"""Places of the subschemas of a schema object, keyword by keyword, in all drafts or in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.json_schema.documents.dialects import MAX_SCHEMA_DEPTH, escape
from constrain.json_schema.documents.keyword import KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from constrain.json_schema.documents.dialects import Declared, Dialect


class Subschema(NamedTuple):
    """A subschema; ``token`` is its JSON Pointer from the schema that contains it."""

    keyword: str
    name: str
    """The key or index below the keyword; empty if the keyword's value is the subschema."""
    token: str
    schema: object


def subschemas(schema: Mapping[str, object]) -> Iterator[Subschema]:
    """Yields the schemas directly inside a schema object, in its order."""
    holding = KEYWORDS.holding
    for keyword, value in schema.items():
        if isinstance(value, list):
            if keyword in holding["list"]:
                for index, item in enumerate(value):
                    yield Subschema(keyword, str(index), f"/{keyword}/{index}", item)
        elif isinstance(value, dict) and keyword in holding["map"]:
            for name, item in value.items():
                if not isinstance(item, list):
                    yield Subschema(keyword, name, f"/{keyword}{escape(name)}", item)
        elif keyword in holding["schema"]:
            yield Subschema(keyword, "", f"/{keyword}", value)


def subschemas_of_draft(
    schema: dict[str, object], dialect: Dialect
) -> Iterator[tuple[tuple[str, ...], dict[str, object]]]:
    """Yields the object subschemas directly inside ``schema``, each with the steps that lead to it."""
    single, several = KEYWORDS.single[dialect], KEYWORDS.several[dialect]
    for keyword, value in schema.items():
        if isinstance(value, dict) and keyword in single:
            yield (keyword,), value
        elif isinstance(value, (dict, list)) and keyword in several:
            for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(inner, dict):
                    yield (keyword, str(name)), inner


def is_schema_position(schema: object, steps: list[str], dialect: Dialect) -> bool:
    """Returns whether ``steps`` lead from a schema to a subschema, not into the value of another keyword."""
    single, several = KEYWORDS.single[dialect], KEYWORDS.several[dialect]
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


def without_keywords(schema: dict[str, object], declared: Declared) -> dict[str, object]:
    """Returns a copy of a schema without ``declared.left_out``, in the schema and its subschemas.

    Subschemas with their own ``$id`` and ``$schema`` stay unchanged.
    """
    dialect, left_out = declared
    single, several = KEYWORDS.single[dialect], KEYWORDS.several[dialect]
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
            if isinstance(value, dict) and keyword in single:
                target[keyword] = copied(value, depth + 1)
            elif isinstance(value, dict) and keyword in several:
                target[keyword] = {name: copied(inner, depth + 1) for name, inner in value.items()}
            elif isinstance(value, list) and keyword in several:
                target[keyword] = [copied(inner, depth + 1) for inner in value]
    return top
