"""The keyword ``format`` and its policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.formats.expressions import IRREGULAR_FORMATS, WIDER_FORMATS, format_expression
from constrain.json_schema.formats.generated import GENERATED_FORMATS
from constrain.json_schema.shapes.strings import StringShape, WiderFormat

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def format_(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``format``: enforced in every draft if it is known; refused if exact enforcement is impossible.

    Schemas of older drafts also use the formats of newer ones. An unknown format is an annotation, or refused under
    ``formats="strict"``.
    """
    if not isinstance(value, str):
        raise SchemaError(f"format must be a string, not {value!r:.80}", pointer=at.pointer("format"))
    policy = goals.policies.formats
    if policy == "annotation":
        return
    expression = format_expression(value)
    if expression is not None:
        formats = (value,) if value in GENERATED_FORMATS else ()
        found.restrict_strings(StringShape((expression,), wider=_WIDER.get(value), formats=formats))
    elif value in IRREGULAR_FORMATS:
        raise UnsupportedSchemaError(IRREGULAR_FORMATS[value], pointer=at.pointer("format"))
    else:
        unknown = f"the format {value!r:.80} is not known"
        if policy == "strict":
            raise UnsupportedSchemaError(unknown, pointer=at.pointer("format"))
        goals.warnings.setdefault(f"{unknown} and is not enforced (first at {at.pointer('format')})")


_WIDER = {name: (WiderFormat(name),) for name in WIDER_FORMATS}
