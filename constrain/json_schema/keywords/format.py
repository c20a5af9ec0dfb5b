"""The keyword ``format`` and its policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.formats.expressions import INEXACT_FORMATS, LEFT_OUT, format_expression
from constrain.json_schema.formats.generated import GENERATED_FORMATS
from constrain.json_schema.shapes.strings import StringShape, WiderFormat

if TYPE_CHECKING:
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def format_(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``format``: enforced in every draft if it is known.

    Schemas of older drafts also use the formats of newer ones. An unknown format is an annotation. Under
    ``formats="strict"``, unknown and inexact formats are refused; under ``inexact="refuse"``, inexact ones.
    """
    if not isinstance(value, str):
        raise SchemaError(f"format must be a string, not {value!r:.80}", pointer=at.pointer("format"))
    policy = goals.policies.formats
    if policy == "annotation":
        return
    expression = format_expression(value)
    if value in INEXACT_FORMATS:
        if policy == "strict" or goals.policies.inexact == "refuse":
            refusal = f"the format {value!r} cannot be enforced exactly: it is written without {LEFT_OUT[value]}"
            raise UnsupportedSchemaError(refusal, pointer=at.pointer("format"))
        narrowed = f"the format {value!r} is narrowed: it is written without {LEFT_OUT[value]}"
        goals.warnings.setdefault(narrowed, at.pointer("format"))
    if expression is not None:
        formats = (value,) if value in GENERATED_FORMATS else ()
        found.restrict_strings(StringShape((expression,), wider=_WIDER.get(value), formats=formats))
    else:
        unknown = f"the format {value!r:.80} is not known"
        if policy == "strict":
            raise UnsupportedSchemaError(unknown, pointer=at.pointer("format"))
        goals.warnings.setdefault(f"{unknown} and is not enforced", at.pointer("format"))


_WIDER = {name: (WiderFormat(name),) for name in LEFT_OUT}
