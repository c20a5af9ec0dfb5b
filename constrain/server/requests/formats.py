"""``response_format`` and ``text.format``: the schema of the content, and strict mode's rules for schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.checks import TOOL_NAME, is_checked
from constrain.errors import ConstrainError, LimitError, describe_pointer
from constrain.fields.values import (
    boolean,
    is_nested_deeper,
    kind_of,
    mapping,
    missing,
    optional_text,
    required_text,
)
from constrain.json_schema.strict.subset import check_strict
from constrain.language.schema_text import parse_schema, schema_text
from constrain.server.http.errors import ApiError
from constrain.server.requests.limits import MAX_SCHEMA_NESTING
from constrain.server.requests.places import Place, report_place
from constrain.server.requests.refusals import refuse_members
from constrain.server.requests.structural import read_structural_tag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.source import Source
    from constrain.server.settings import StrictSubset

_KINDS = ("json_schema", "json_object", "text", "structural_tag")

ANY_OBJECT = '{"type": "object"}'

_JSON_SCHEMA = "invalid_json_schema"
"""Code of errors in a schema of content."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The spelling of a format at an endpoint.

    Attributes:
        field: name of the field.
        inner: member that has the name and the schema; ``""`` if they are members of the field itself.
        schema: place that errors in the schema name.
    """

    field: str
    inner: str
    schema: str

    def members(self, kind: str) -> tuple[str, ...]:
        """Returns the members, besides ``type``, that a format of a type may have."""
        of_schema = (self.inner,) if self.inner else ("schema", "strict")
        of_tag = ("format", "structures", "triggers")
        return {"text": (), "json_object": ("schema",), "json_schema": of_schema, "structural_tag": of_tag}[kind]


RESPONSE_FORMAT = Spelling("response_format", "json_schema", "response_format")
"""The format of chat completions and of text completions."""

TEXT_FORMAT = Spelling("text.format", "", "text.format.schema")
"""The format of responses."""


@dataclass(frozen=True, slots=True)
class Format:
    """The required form of the content: a JSON Schema as text or another language, and its place in the request."""

    schema: str | Source
    place: Place


def read_format(given: object, spelling: Spelling, subset: StrictSubset) -> Format | None:
    """Reads the format of the content; None for any text. Raises ``ApiError`` or ``FieldError``.

    ``json_object`` with a ``schema`` next to it, as other servers accept it, means the schema.
    """
    if given is None:
        return None
    document = mapping(given, spelling.field)
    kind = kind_of(document, _KINDS, spelling.field)
    refuse_members(document, spelling.field, kind, spelling.members(kind))
    if kind == "text":
        return None
    if kind == "structural_tag":
        require_flat(document, Place(spelling.field, "invalid_grammar", f"structural tag in '{spelling.field}'"))
        return Format(*read_structural_tag(document, spelling.field))
    if kind == "json_object":
        return _read_json_object(document, spelling)
    return _read_json_schema(document, spelling, subset)


def _read_json_object(document: Mapping[str, Any], spelling: Spelling) -> Format:
    """Returns the format for any object, or the schema next to the type."""
    place = Place(spelling.schema, _JSON_SCHEMA, "schema for response_format")
    schema = document.get("schema")
    if schema is None:
        return Format(ANY_OBJECT, place)
    inner = mapping(schema, f"{spelling.field}.schema")
    require_flat(inner, place)
    return format_of({"type": "object", **inner}, place)


def _read_json_schema(document: Mapping[str, Any], spelling: Spelling, subset: StrictSubset) -> Format:
    where, inner = spelling.field, document
    if spelling.inner:
        where = f"{spelling.field}.{spelling.inner}"
        if document.get(spelling.inner) is None:
            raise missing(where)
        inner = mapping(document[spelling.inner], where)
    name = required_text(inner, "name", f"{where}.")
    if not TOOL_NAME.fullmatch(name):
        raise ApiError(
            f"Invalid '{where}.name': string does not match pattern. Expected a string that matches the pattern "
            f"'^{TOOL_NAME.pattern}$'.",
            param=f"{where}.name",
            code="invalid_value",
        )
    if inner.get("schema") is None:
        raise missing(f"{where}.schema")
    schema = mapping(inner["schema"], f"{where}.schema")
    is_strict = boolean(inner, "strict", f"{where}.")
    optional_text(inner, "description", f"{where}.")
    place = Place(spelling.schema, _JSON_SCHEMA, f"schema for response_format '{name}'")
    require_flat(schema, place)
    found = format_of(schema, place)
    if is_strict:
        report_place(place)
        assert isinstance(found.schema, str)
        require_strict(found.schema, name, "response_format", subset, place)
    return found


def format_of(schema: dict[str, Any] | str, place: Place) -> Format:
    """Returns the format of a JSON Schema, or of its text. Raises ``ApiError``."""
    try:
        text = schema_text(schema)
        parse_schema(text)
    except ConstrainError as error:  # a number too large for Python, which reads it as infinite; a wrong short schema
        raise ApiError(f"Invalid {place.name}: {error}", param=place.param, code=place.code) from error
    return Format(text, place)


def require_flat(schema: object, place: Place) -> None:
    """Raises ``ApiError`` for a schema with too many levels, before any recursive function reads it."""
    if is_nested_deeper(schema, MAX_SCHEMA_NESTING):
        raise ApiError(
            f"Invalid {place.name}: objects and arrays stand within each other more than {MAX_SCHEMA_NESTING} levels "
            "deep. Move inner schemas to $defs and refer to them with $ref.",
            param=place.param,
            code=place.code,
        )


def require_strict(schema: str, name: str, kind: Any, subset: StrictSubset, place: Place) -> None:
    """Raises ``ApiError`` with all violations of strict mode, one per line, in OpenAI's words."""
    if subset == "off" or is_checked():
        return
    try:
        violations = check_strict(schema, name=name, kind=kind, subset=subset)
        complaint = "\n".join(map(str, violations))
    except ConstrainError as error:
        complaint = f"Invalid schema for {kind} '{name}': {error}"
    if complaint:
        raise ApiError(complaint, param=place.param, code=place.code)


def describe_refusals(schema: str | Source, error: ConstrainError) -> str:
    """Returns all parts of a schema that cannot be enforced, one per line; ``error`` is the error of its compilation.

    Grammars, and schemas over a limit, are not searched further: every search would take as long.
    """
    if isinstance(error, LimitError) or not isinstance(schema, str):
        return str(error)
    from constrain.json_schema.lint.linter import lint_schema

    try:
        refused = lint_schema(parse_schema(schema)).refused
    except (ConstrainError, RecursionError):  # the search found no more than ``error`` says
        refused = ()
    lines = [f"at {describe_pointer(finding.pointer)}: {finding.message}" for finding in refused]
    return "\n".join(lines or [str(error)])
