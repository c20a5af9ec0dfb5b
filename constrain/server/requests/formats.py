"""``response_format``: the schema of the content, and strict mode's rules for schemas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.checks import is_checked
from constrain.errors import ConstrainError, LimitError
from constrain.json_schema.strict.subset import check_strict
from constrain.server.http.errors import ApiError
from constrain.server.requests.fields import (
    MAX_SCHEMA_NESTING,
    boolean,
    is_nested_deeper,
    mapping,
    missing,
    wrong_type,
    wrong_value,
)
from constrain.server.requests.places import Place, come_to
from constrain.server.requests.refusals import refuse_beside

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.server.settings import StrictSubset

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_READ: dict[str, tuple[str, ...]] = {"text": (), "json_object": ("schema",), "json_schema": ("json_schema",)}
"""What a format of each type has beside it."""

_ANY_OBJECT: dict[str, Any] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class Format:
    """What content must match: a JSON Schema, and what the request calls it, ``""`` where that has no name."""

    schema: dict[str, Any]
    name: str = ""


def read_response_format(given: object, subset: StrictSubset) -> Format | None:
    """What the content must match, None for any text. Raises ``ApiError``.

    ``json_object`` with a ``schema`` beside it, as other servers take it, is that schema.
    """
    if given is None:
        return None
    document = mapping(given, "response_format")
    kind = document.get("type")
    if isinstance(kind, str) and kind in _READ:
        refuse_beside(document, "response_format", kind, _READ[kind])
    if kind == "text":
        return None
    if kind == "json_object":
        at = Place("response_format", "invalid_json_schema", "schema for response_format")
        return Format(object_schema(document, "response_format", at))
    if kind == "json_schema":
        return _json_schema(document, subset)
    if kind is None:
        raise missing("response_format.type")
    raise wrong_value("response_format.type", kind, ("json_schema", "json_object", "text"))


def object_schema(document: Mapping[str, Any], where: str, at: Place) -> dict[str, Any]:
    """The schema of a format of the type ``json_object``: any object, or the schema beside the type.

    ``where``: the name of the format in the request; ``at``: the place of its schema, for errors. Raises ``ApiError``.
    """
    schema = document.get("schema")
    if schema is None:
        return _ANY_OBJECT
    inner = mapping(schema, f"{where}.schema")
    require_flat(inner, at)
    return {**_ANY_OBJECT, **inner}


def _json_schema(document: Mapping[str, Any], subset: StrictSubset) -> Format:
    place = "response_format.json_schema"
    if document.get("json_schema") is None:
        raise missing(place)
    inner = mapping(document["json_schema"], place)
    for name in ("name", "schema"):
        if inner.get(name) is None:
            raise missing(f"{place}.{name}")
    name, schema = inner["name"], mapping(inner["schema"], f"{place}.schema")
    if not isinstance(name, str):
        raise wrong_type(f"{place}.name", "a string", name)
    if not _NAME.fullmatch(name):
        raise ApiError(
            f"Invalid '{place}.name': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]{1,64}$'.",
            param=f"{place}.name",
            code="invalid_value",
        )
    if inner.get("description") is not None and not isinstance(inner["description"], str):
        raise wrong_type(f"{place}.description", "a string", inner["description"])
    at = Place("response_format", "invalid_json_schema", f"schema for response_format '{name}'")
    require_flat(schema, at)
    if boolean(inner, "strict", f"{place}."):
        come_to(at)
        complaint = strict_complaint(schema, name, "response_format", subset)
        if complaint:
            raise ApiError(complaint, param="response_format", code="invalid_json_schema")
    return Format(schema, name)


def require_flat(schema: object, place: Place) -> None:
    """Raises ``ApiError`` for a schema of too many levels, before anything looks into it."""
    if is_nested_deeper(schema, MAX_SCHEMA_NESTING):
        raise ApiError(
            f"Invalid {place.name}: objects and arrays stand within each other more than {MAX_SCHEMA_NESTING} levels "
            "deep. Move inner schemas to $defs and refer to them with $ref.",
            param=place.param,
            code=place.code,
        )


def strict_complaint(schema: Mapping[str, Any], name: str, kind: Any, subset: StrictSubset) -> str:
    """All that strict mode has against a schema, a line each, in OpenAI's words; ``""`` if it is content."""
    if subset == "off" or is_checked():
        return ""
    try:
        violations = check_strict(dict(schema), name=name, kind=kind, subset=subset)
    except ConstrainError as error:
        return f"Invalid schema for {kind} '{name}': {error}"
    return "\n".join(map(str, violations))


def refused_schema(schema: Mapping[str, Any], error: ConstrainError) -> str:
    """All that cannot be enforced of a schema, a line each; ``error`` is what compiling it raised.

    Of a schema that met a limit no more is looked for: every look would take as long.
    """
    if isinstance(error, LimitError):
        return str(error)
    from constrain.json_schema.lint.linter import lint_schema
    from constrain.language.schema_text import parse_schema, schema_text

    try:
        refused = lint_schema(parse_schema(schema_text(dict(schema)))).refused
    except (ConstrainError, RecursionError):  # nothing more is found than ``error`` says
        refused = ()
    lines = [f"at {finding.pointer or '/'}: {finding.message}" for finding in refused]
    return "\n".join(lines or [str(error)])
