"""The shape of strings: intersection and complement."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from constrain.errors import LimitError, PatternError, SchemaError, UnsupportedSchemaError
from constrain.json_schema.spelling.canonical import read_content, spell_content
from constrain.json_schema.spelling.languages import has_text, is_surely_empty, list_texts, matching, matching_table
from constrain.language.emptiness import has_text_by_structure
from constrain.language.tree import (
    ANY_JSON_CHAR,
    Alternation,
    Complement,
    Expression,
    Intersection,
    LiteralSet,
    LiteralTable,
    Repetition,
    Substring,
    Window,
    tree_bytes,
)
from constrain.quotes.texts import has_parts
from constrain.regex.parsing.parser import parse_pattern
from constrain.remembering import remembered
from constrain.work import MAX_ALTERNATIVES, spend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.json_schema.documents.locations import Location


NEGATION_BYTES = 16 << 20
"""Bytes of remembered negations and the expressions they negate; beyond it, the least recently used are forgotten."""

TEXTS_PER_STEP = 10
"""Excluded texts that are joined into one list per compilation step."""

PATTERN_STEPS = 20
"""Compilation steps for a pattern, for each ``CHARACTERS_PER_STEP`` of its text, and for each ``(?`` in it."""

CHARACTERS_PER_STEP = 2
LOOKAROUND_STEPS = 150


class WiderFormat(NamedTuple):
    """All texts that may count as a string of a format; the expression is made on demand."""

    name: str


class StringShape(NamedTuple):
    """The strings of ``minimum`` to ``maximum`` code points whose JSON content all ``parts`` match.

    With ``values``, exactly these strings. For some formats, written strings are a subset of the format: then ``parts``
    match the written strings, and all ``wider`` match every string that may count as one of this shape. Strings between
    the two are never written, so the complement is what ``wider`` does not match (and the other way round). ``formats``
    are the formats of which generation writes less (``formats.generated``).
    """

    parts: tuple[Expression, ...] = ()
    minimum: int = 0
    maximum: int | None = None
    values: tuple[str, ...] | None = None
    wider: tuple[Expression | WiderFormat, ...] | None = None  # None: equal to parts
    formats: tuple[str, ...] = ()


ANY_STRING = StringShape()

Part = TypeVar("Part", bound=Expression | WiderFormat)


def intersect_strings(a: StringShape, b: StringShape) -> StringShape | None:
    """Returns the strings of both shapes; ``None`` if there are none."""
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
    wider: tuple[Expression | WiderFormat, ...] | None = None
    if a.wider is not None or b.wider is not None:
        wider = _joined(a.wider or a.parts, b.wider or b.parts)
    maximum = shorter(a.maximum, b.maximum)
    formats = tuple(dict.fromkeys(a.formats + b.formats))
    shape = StringShape(_joined(a.parts, b.parts), max(a.minimum, b.minimum), maximum, wider=wider, formats=formats)
    if has_table(shape):
        return _of_table(shape)
    if has_strings(shape):
        return shape
    if wider is not None and any(
        has_strings(shape._replace(parts=_joined(one, two), wider=None))
        for one, two in ((a.parts, definition(b)), (definition(a), b.parts))
    ):  # strings certain in one shape and uncertain in the other; strings uncertain in both are X and not X
        raise UnsupportedSchemaError(
            "all strings allowed here are ones that a format may allow but that are never written, such as the "
            "year 0000 or the second 60"
        )
    return None


def has_table(shape: StringShape) -> bool:
    """Returns whether the strings are values of a table."""
    return any(isinstance(part, LiteralTable) for part in shape.parts)


def _of_table(shape: StringShape) -> StringShape | None:
    """Returns a shape with a table as the values that its other parts and its lengths leave; ``None`` if none are left.

    Raises UnsupportedSchemaError for a value that a format may allow but that is not certain.
    """
    tables = [part for part in shape.parts if isinstance(part, LiteralTable)]
    if len(tables) > 1:  # as an intersection of languages, each common beginning would be a state
        texts = reduce(lambda a, b: a.in_both(b), [each.texts for each in tables])
        both = LiteralTable.of(texts, Intersection(tuple(tables)))
        shape = shape._replace(parts=(both, *(part for part in shape.parts if part not in tables)))
        tables = [both]
    (table,) = tables
    left = _narrowed(table, shape)
    if shape.wider is not None:
        possible = _narrowed(table, shape._replace(parts=definition(shape), wider=None))
        if possible is not None and (left is None or len(left.texts) < len(possible.texts)):
            certain = set() if left is None else set(left.texts)
            uncertain = read_content(next(text for text in possible.texts if text not in certain))
            raise UnsupportedSchemaError(
                f"{uncertain!r:.80} is in the table, but it is not certain that the format here allows it"
            )
    return None if left is None else StringShape((left,))


def _narrowed(table: LiteralTable, shape: StringShape) -> LiteralTable | None:
    others = shape._replace(parts=tuple(part for part in shape.parts if part is not table))
    if others == ANY_STRING:
        return table if len(table.texts) else None
    return matching_table(table, content(others))


def intersect_many_strings(shapes: Sequence[StringShape]) -> StringShape | None:
    """Returns the strings of all shapes; asks once whether any are left, for all shapes without listed values."""
    others = [shape for shape in shapes if shape is not ANY_STRING]
    if any(has_table(shape) or shape.values is not None or shape.wider is not None for shape in others):
        found: StringShape | None = ANY_STRING
        for shape in others:
            found = None if found is None else intersect_strings(found, shape)
        return found
    if len(others) < 2:
        return others[0] if others else ANY_STRING
    parts = tuple(dict.fromkeys(part for shape in others for part in shape.parts))
    minimum = max(shape.minimum for shape in others)
    maximum = None
    for shape in others:
        maximum = shorter(maximum, shape.maximum)
    formats = tuple(dict.fromkeys(name for shape in others for name in shape.formats))
    joined = StringShape(parts, minimum, maximum, formats=formats)
    return joined if has_strings(joined) else None


def _joined(a: tuple[Part, ...], b: tuple[Part, ...]) -> tuple[Part, ...]:
    """Returns the parts of both, with one list of all excluded texts."""
    parts = a + tuple(part for part in b if part not in a) if b else a
    lists = [listed for part in parts if (listed := _excluded(part)) is not None]
    if len(lists) < 2:
        return parts
    texts = tuple(dict.fromkeys(text for listed in lists for text in listed))
    spend(len(texts) // TEXTS_PER_STEP)
    return (*(part for part in parts if _excluded(part) is None), cast("Part", _all_but(texts)))


def _all_but(contents: tuple[bytes, ...]) -> Expression:
    return Intersection((ANY_CONTENT, Complement(LiteralSet(contents))))


def _excluded(part: Expression | WiderFormat) -> tuple[bytes, ...] | None:
    """Returns the contents that an expression of ``_all_but`` lists; ``None`` for other expressions."""
    inside = _negated(part) if isinstance(part, Expression) else None
    return inside.texts if isinstance(inside, LiteralSet) else None


def definition(shape: StringShape) -> tuple[Expression, ...]:
    """Returns expressions that together match every string that may count as one of this shape, except for lengths."""
    if shape.wider is None:
        return shape.parts
    from constrain.json_schema.formats.definitions import format_definition

    return tuple(format_definition(part.name) if isinstance(part, WiderFormat) else part for part in shape.wider)


def shorter(a: int | None, b: int | None) -> int | None:
    """Returns the lower of two bounds, either of which may be missing."""
    return a if b is None else b if a is None else min(a, b)


def has_strings(shape: StringShape) -> bool:
    """Returns whether some string of ``shape`` (without ``values``) is written."""
    if shape.maximum is not None and shape.minimum > shape.maximum:
        return False
    shape = with_lengths(shape)
    if len(shape.parts) == 1 and isinstance(shape.parts[0], Substring):
        return has_parts(shape.parts[0])
    return not shape.parts or has_text(shape.parts, shape.minimum, shape.maximum)


def identity(shape: StringShape) -> tuple[object, ...]:
    """Returns a key for equal shapes whose patterns are the same objects; hashing patterns takes too long."""
    return tuple(map(id, shape.parts)), shape.minimum, shape.maximum, shape.values


def content(shape: StringShape) -> Expression:
    """Returns the content between the quotes of a string of this shape (without ``values``)."""
    shape = with_lengths(shape)
    unbounded = shape.minimum == 0 and shape.maximum is None
    if not shape.parts:
        return ANY_CONTENT if unbounded else Repetition(ANY_JSON_CHAR, shape.minimum, shape.maximum)
    part = shape.parts[0] if len(shape.parts) == 1 else Intersection(shape.parts)
    return part if unbounded else Window(part, ANY_JSON_CHAR, shape.minimum, shape.maximum)


def with_lengths(shape: StringShape) -> StringShape:
    """Returns the same shape, whose lengths are those of its quotes if it has any: they cost nothing there."""
    if shape.minimum == 0 and shape.maximum is None:
        return shape
    for number, part in enumerate(shape.parts):
        if isinstance(part, Substring):
            lengths = max(part.minimum, shape.minimum), shorter(part.maximum, shape.maximum)
            narrowed = replace(part, minimum=lengths[0], maximum=lengths[1])
            parts = (*shape.parts[:number], narrowed, *shape.parts[number + 1 :])
            return shape._replace(parts=parts, minimum=0, maximum=None)
    return shape


ANY_CONTENT = Repetition(ANY_JSON_CHAR, 0, None)


def admitted(shape: StringShape, values: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the members of ``values`` that are strings of ``shape`` (without ``values``)."""
    found = [value for value in values if shape.minimum <= len(value)]
    if shape.maximum is not None:
        found = [value for value in found if len(value) <= shape.maximum]
    possible = found
    for part in shape.parts:
        excluded = _excluded(part)
        if excluded is None:
            found = matching(part, found)
        else:
            others = {None, *excluded}
            found = [value for value in found if spell_content(value) not in others]
    if shape.wider is not None and len(found) < len(possible):
        for part in definition(shape):
            possible = matching(part, possible)
        if len(found) < len(possible):
            uncertain = next(value for value in possible if value not in found)
            raise UnsupportedSchemaError(
                f"{uncertain!r:.80} is listed, but it is not certain that the format here allows it"
            )
    return tuple(found)


def complement_strings(shapes: tuple[StringShape, ...]) -> tuple[StringShape, ...]:
    """Returns the strings outside all ``shapes``: one shape, or several if lengths alone are excluded.

    Raises UnsupportedSchemaError if a format leaves open whether such strings exist, and LimitError.
    """
    parts: list[Expression] = []
    wider: list[Expression] = []
    lengths: list[tuple[int, int | None]] = []
    values: dict[str, None] = {}
    for shape in shapes:
        if shape.values is not None:
            values.update(dict.fromkeys(shape.values))
        elif shape.parts:
            parts.append(_outside(definition(shape), shape))
            wider.append(parts[-1] if shape.wider is None else _outside(shape.parts, shape))
        else:
            lengths.append((shape.minimum, shape.maximum))
    spelled = tuple(content for value in values if (content := spell_content(value)) is not None)
    if spelled:
        parts.append(_all_but(spelled))
        wider.append(parts[-1])
    listed = [part for part in parts if isinstance(part, LiteralSet)]
    others = tuple(part for part in parts if not isinstance(part, LiteralSet))
    outer = tuple(part for part in wider if not isinstance(part, LiteralSet))
    found = []
    for minimum, maximum in _lengths_without(lengths):
        kept: StringShape | None = StringShape(others, minimum, maximum, wider=None if outer == others else outer)
        if kept is not None and not has_strings(kept):
            kept = None if outer == others else _folded(others, outer, StringShape((), minimum, maximum))
        for literals in listed:
            if kept is not None:
                texts = StringShape(values=tuple(map(read_content, literals.texts)))
                kept = intersect_strings(texts, kept)
        if kept is not None:
            found.append(ANY_STRING if kept == ANY_STRING else kept)
    return tuple(found)


def _folded(parts: tuple[Expression, ...], wider: tuple[Expression, ...], kept: StringShape) -> StringShape | None:
    """Returns ``kept`` intersected with the shapes of pairs of parts, one by one, to explain an empty result."""
    shape: StringShape | None = kept
    for part, wide in zip(parts, wider, strict=True):
        shape = None if shape is None else intersect_strings(shape, StringShape((part,), wider=(wide,)))
    return shape


def _outside(parts: tuple[Expression, ...], shape: StringShape) -> Expression:
    """Returns the JSON contents that some of ``parts`` do not match, or whose length ``shape`` excludes."""
    insides = [_negated(part) for part in parts]
    alternatives: list[Expression]
    if any(inside is None for inside in insides):
        alternatives = [negation(parts[0] if len(parts) == 1 else Intersection(parts))]
    else:
        alternatives = [inside for inside in insides if inside is not None]
    if shape.minimum:
        alternatives.append(Repetition(ANY_JSON_CHAR, 0, shape.minimum - 1))
    if shape.maximum is not None:
        alternatives.append(Repetition(ANY_JSON_CHAR, shape.maximum + 1, None))
    return alternatives[0] if len(alternatives) == 1 else Alternation(tuple(alternatives))


@remembered(1024, NEGATION_BYTES, tree_bytes)
def negation(expression: Expression) -> Expression:
    """Returns the JSON contents that ``expression`` does not match; the same object for the same expression."""
    inside = _negated(expression)
    return Intersection((ANY_CONTENT, Complement(expression))) if inside is None else inside


def _negated(expression: Expression) -> Expression | None:
    """Returns the expression that a result of ``negation`` negates; ``None`` for other expressions."""
    if isinstance(expression, Intersection) and expression.parts[0] is ANY_CONTENT and len(expression.parts) == 2:
        part = expression.parts[1]
        return part.part if isinstance(part, Complement) else None
    return None


def _lengths_without(removed: list[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """Returns the ranges of lengths outside the given ones."""
    left: list[tuple[int, int | None]] = []
    start = 0
    for minimum, maximum in sorted(removed, key=lambda lengths: lengths[0]):
        if minimum > start:
            left.append((start, minimum - 1))
        if maximum is None:
            break
        start = max(start, maximum + 1)
    else:
        left.append((start, None))
    if len(left) > MAX_ALTERNATIVES:
        raise LimitError(
            f"not leaves more ranges of lengths than MAX_ALTERNATIVES = {MAX_ALTERNATIVES}; exclude fewer lengths"
        )
    return left


def list_strings(shape: StringShape, limit: int) -> tuple[str, ...] | None:
    """Returns all strings of ``shape``; ``None`` if there are more than ``limit``. Raises LimitError if unclear."""
    if shape.values is not None:
        return shape.values if len(shape.values) <= limit else None
    if not shape.parts and shape.maximum is None:
        return None
    texts = list_texts(content(shape), limit)
    return None if texts is None else tuple(map(read_content, texts))


def pattern_expression(at: Location, text: object, *tokens: str) -> Expression:
    """Returns the JSON content in which an ECMA-262 pattern is found anywhere."""
    if not isinstance(text, str):
        raise SchemaError(f"a pattern must be a string, not {text!r:.80}", pointer=at.pointer(*tokens))
    spend(PATTERN_STEPS + len(text) // CHARACTERS_PER_STEP + LOOKAROUND_STEPS * text.count("(?"))
    try:
        return parse_pattern(text, "ecma", json=True, anchored=False)
    except PatternError as error:
        raise PatternError(error.message, pointer=at.pointer(*tokens), column=error.column) from error


def matches_nothing(expression: Expression) -> bool:
    """Returns whether a pattern provably has no text, such as ``a^``; asks the kernel only for lookarounds."""
    known = has_text_by_structure(expression)
    return is_surely_empty((expression,)) if known is None else not known
