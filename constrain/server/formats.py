"""``response_format``: the schema of the content, and strict mode's rules for schemas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain._errors import ConstrainError, LimitError
from constrain.chat.checks import is_checked
from constrain.json_schema.strict import check_strict
from constrain.server.errors import ApiError
from constrain.server.fields import boolean, mapping, missing, unsupported, wrong_type, wrong_value
from constrain.server.reading import Place, come_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.server.settings import StrictSubset

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_OTHERS = (
    "ebnf",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "json_schema",
    "regex",
    "structural_tag",
    "structured_outputs",
)
"""By these names other servers take formats."""

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
    if kind == "text":
        return None
    if kind == "json_object":
        schema = document.get("schema")
        return Format(_ANY_OBJECT if schema is None else {**_ANY_OBJECT, **mapping(schema, "response_format.schema")})
    if kind == "json_schema":
        return _json_schema(document, subset)
    if kind is None:
        raise missing("response_format.type")
    raise wrong_value("response_format.type", kind, ("json_schema", "json_object", "text"))


def refuse_other_formats(body: Mapping[str, Any]) -> None:
    """Raises ``ApiError`` for a format under a name that other servers have for it: it must not be ignored."""
    for name in _OTHERS:
        if body.get(name) is not None:
            raise unsupported(
                name,
                "This server takes a JSON Schema as 'response_format' ('text.format' of a response), and grammars and "
                "regular expressions as formats of custom tools.",
            )


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
    if boolean(inner, "strict", f"{place}."):
        come_to(Place("response_format", "invalid_json_schema", f"schema for response_format '{name}'"))
        complaint = strict_complaint(schema, name, "response_format", subset)
        if complaint:
            raise ApiError(complaint, param="response_format", code="invalid_json_schema")
    return Format(schema, name)


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
    from constrain._schema_text import parse_schema, schema_text
    from constrain.json_schema.lint import lint_schema

    try:
        refused = lint_schema(parse_schema(schema_text(dict(schema)))).refused
    except (ConstrainError, RecursionError):  # nothing more is found than ``error`` says
        refused = ()
    lines = [f"at {finding.pointer or '/'}: {finding.message}" for finding in refused]
    return "\n".join(lines or [str(error)])
