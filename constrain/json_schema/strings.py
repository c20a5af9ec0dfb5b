"""Strings: the shape, its intersection, and the string keywords."""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain._errors import PatternError, SchemaError
from constrain.json_schema.languages import has_text, matching
from constrain.regex.parser import parse_pattern
from constrain.regex.tree import ANY_JSON_CHAR, Expression, Intersection, Repetition, Window

if TYPE_CHECKING:
    from constrain.json_schema.assertions import Assertions
    from constrain.json_schema.goals import Goals
    from constrain.json_schema.references import Location


class StringShape(NamedTuple):
    """The strings of ``minimum`` to ``maximum`` code points whose JSON content all ``parts`` match.

    With ``values``, exactly these strings.
    """

    parts: tuple[Expression, ...] = ()
    minimum: int = 0
    maximum: int | None = None
    values: tuple[str, ...] | None = None


ANY_STRING = StringShape()


def intersect_strings(a: StringShape, b: StringShape) -> StringShape | None:
    """The strings of both shapes, or ``None`` if there are none."""
    if a is ANY_STRING:
        return b
    if b is ANY_STRING:
        return a
    if a.values is not None or b.values is not None:
        if a.values is None:
            a, b = b, a
        assert a.values is not None
        if b.values is not None:
            allowed = frozenset(b.values)
            values = tuple(value for value in a.values if value in allowed)
        else:
            values = admitted(b, a.values)
        return StringShape(values=values) if values else None
    maximum = shorter(a.maximum, b.maximum)
    parts = a.parts + tuple(part for part in b.parts if part not in a.parts) if b.parts else a.parts
    return nonempty(StringShape(parts, max(a.minimum, b.minimum), maximum))


def shorter(a: int | None, b: int | None) -> int | None:
    """The lower of two bounds, either of which may be missing."""
    return a if b is None else b if a is None else min(a, b)


def nonempty(shape: StringShape) -> StringShape | None:
    """``shape``, or ``None`` if no string has it."""
    if shape.maximum is not None and shape.minimum > shape.maximum:
        return None
    return None if shape.parts and not has_text(shape.parts, shape.minimum, shape.maximum) else shape


def content(shape: StringShape) -> Expression:
    """What stands between the quotes of a string of this shape (without ``values``)."""
    unbounded = shape.minimum == 0 and shape.maximum is None
    if not shape.parts:
        return ANY_CONTENT if unbounded else Repetition(ANY_JSON_CHAR, shape.minimum, shape.maximum)
    part = shape.parts[0] if len(shape.parts) == 1 else Intersection(shape.parts)
    return part if unbounded else Window(part, ANY_JSON_CHAR, shape.minimum, shape.maximum)


ANY_CONTENT = Repetition(ANY_JSON_CHAR, 0, None)


def admitted(shape: StringShape, values: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``values`` that are strings of ``shape`` (without ``values``)."""
    found = [value for value in values if shape.minimum <= len(value)]
    if shape.maximum is not None:
        found = [value for value in found if len(value) <= shape.maximum]
    for part in shape.parts:
        found = matching(part, found)
    return tuple(found)


def pattern_expression(at: Location, text: object, *tokens: str) -> Expression:
    """The JSON content that an ECMA-262 pattern, searched for anywhere, matches."""
    if not isinstance(text, str):
        raise SchemaError(f"a pattern must be a string, not {text!r:.80}", pointer=at.pointer(*tokens))
    try:
        return parse_pattern(text, "ecma", json=True, anchored=False)
    except PatternError as error:
        raise PatternError(error.message, pointer=at.pointer(*tokens), column=error.column) from error


def min_length(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """The least number of code points."""
    found.restrict_strings(StringShape(minimum=goals.count(at, "minLength", value)))


def max_length(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """The greatest number of code points."""
    found.restrict_strings(StringShape(maximum=goals.count(at, "maxLength", value)))


def pattern(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """An ECMA-262 pattern to be found somewhere in the string."""
    found.restrict_strings(StringShape((pattern_expression(at, value, "pattern"),)))
