"""Structural tags in requests: XGrammar's ``{"type": "structural_tag", ...}``, and the places of errors in them."""

from __future__ import annotations

import json
from typing import Any

from constrain.errors import ConstrainError, SchemaError
from constrain.language.schema_text import parse_schema
from constrain.server.http.errors import ApiError
from constrain.server.requests.places import Place, report_place
from constrain.structural.source import StructuralTag

_CODE = "invalid_grammar"


def read_structural_tag(given: dict[str, Any] | str, where: str) -> tuple[StructuralTag, Place]:
    """Returns a structural tag, given as JSON or as its text, and its place. Raises ``ApiError``."""
    place = Place(where, _CODE, f"structural tag in '{where}'")
    report_place(place)
    text = given if isinstance(given, str) else json.dumps(given)
    try:
        return StructuralTag(text), place
    except ConstrainError as error:
        raise tag_error(text, place, error) from error


def tag_error(text: object, place: Place, error: ConstrainError) -> ApiError:
    """Returns the error for a structural tag, with its place within the tag, whose JSON text is given."""
    if error.pointer is None:
        return ApiError(f"Invalid {place.name}: {error}", param=place.param, code=place.code)
    param = place.param + _members_of(text, error.pointer)
    return ApiError(f"Invalid {place.name}: at {param}: {error.message}", param=param, code=place.code)


def _members_of(text: object, pointer: str) -> str:
    """Returns the place of a JSON Pointer in a tag as requests name members: ``.format.tags[0].begin``.

    The place ends where the tag has no such member. A pointer into an answer begins with its part for the content.
    """
    try:
        found: Any = parse_schema(str(text))
    except SchemaError:
        return ""
    written = ""
    for part in pointer.removeprefix("/content/").removeprefix("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found, written = found[int(name)], f"{written}[{name}]"
        elif isinstance(found, dict) and name in found:
            found, written = found[name], f"{written}.{name}"
        else:
            break
    return written
