"""Closing objects for generation: keys that no schema that holds declares are left out.

Done once, on the finished shape, as with ``unevaluatedProperties: false``; so never for what ``not`` or ``if`` say.
An object that declares no key, or that says something about additional ones itself, stays open; so does one of which
nothing would be left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain._errors import LimitError
from constrain.json_schema.combined import Combined, names_in_order
from constrain.json_schema.complements import has_keys
from constrain.json_schema.formulas import And, Atom, Formula, Not, Or
from constrain.json_schema.goal import ANY, NOTHING
from constrain.json_schema.languages import is_surely_empty, matching
from constrain.json_schema.objects import KeyPattern, ObjectShape, apart

if TYPE_CHECKING:
    from constrain.json_schema.goal import Goal
    from constrain.json_schema.goals import Goals

MAX_OCCURRENCES = 20_000
"""Places of shapes in the formulas of one object."""


def closed_shape(shape: ObjectShape) -> ObjectShape | None:
    """The shape without the keys that it does not declare; ``None`` for one that stays open."""
    return shape._replace(additional=NOTHING) if shape.open and _declares_some(shape) else None


def _declares_some(shape: ObjectShape) -> bool:
    """Whether the shape names keys that may be there; those that ``not`` and ``propertyNames`` exclude do not count."""
    return any(goal is not NOTHING for goal in shape.properties.values()) or any(
        pattern.goal is not NOTHING for pattern in shape.patterns
    )


def closed_combination(goals: Goals, shape: Combined) -> Combined | None:
    """The combination without the keys that no schema that holds declares; ``None`` for one that stays open."""
    base = shape.base
    assert isinstance(base, ObjectShape)
    declaring = _asserted(shape.formulas)
    shapes = [each.shape for each in declaring]
    if not all(each.open for each in (base, *shapes)):
        return None
    if not any(map(_declares_some, (base, *shapes))):
        return None
    patterns = list(base.patterns)
    for each in shapes:
        cells = apart(goals, patterns, [pattern._replace(goal=ANY) for pattern in each.patterns])
        patterns = [*cells.both, *cells.left, *cells.right]
    formulas: list[Formula] = []
    properties: dict[str, Goal] = {}
    for name in names_in_order(shape):  # all of them, so that they come in the same order as without closing
        if name in base.properties:
            properties[name] = base.properties[name]
            continue
        holding = [each.holding for each in declaring if _declares(each.shape, name)]
        in_base = any(matching(pattern.expression, (name,)) for pattern in base.patterns)
        properties[name] = _goal(patterns, name) if in_base or holding else NOTHING
        if holding and not in_base:
            formulas.append(Or((Not(has_keys(name)), *holding)))
    named = dict.fromkeys(properties, ANY)
    for pattern in patterns:
        if pattern.goal is not NOTHING and not _overlaps(base, pattern):
            holding = [each.holding for each in declaring if _overlaps(each.shape, pattern)]
            none_matches = Atom(ObjectShape(named, (), (pattern._replace(goal=NOTHING),)))
            formulas.append(Or((none_matches, *holding)))
    closed = ObjectShape(properties, base.required, tuple(patterns), NOTHING, base.minimum, base.maximum, open=False)
    return Combined(closed, (*shape.formulas, *formulas))


class _Asserted(NamedTuple):
    """A shape that applies and holds if ``holding`` does."""

    shape: ObjectShape
    holding: Formula


def _asserted(formulas: tuple[Formula, ...]) -> list[_Asserted]:
    """The shapes of objects that the formulas ask for, rather than exclude."""
    found: list[_Asserted] = []
    seen: set[tuple[Formula, bool, tuple[Formula, ...]]] = set()
    stack: list[tuple[Formula, bool, tuple[Formula, ...]]] = [(formula, True, ()) for formula in reversed(formulas)]
    while stack:
        formula, asserted, around = stack.pop()
        if (formula, asserted, around) in seen:
            continue
        seen.add((formula, asserted, around))
        if len(seen) > MAX_OCCURRENCES:
            raise LimitError(f"shapes occur in formulas more often than MAX_OCCURRENCES = {MAX_OCCURRENCES} allows")
        match formula:
            case Atom():
                if asserted and isinstance(formula.shape, ObjectShape):
                    found.append(_Asserted(formula.shape, And((*around, formula))))
            case Not(part):
                stack.append((part, not asserted, around))
            case And(parts):
                within = (*around, formula) if asserted else around
                stack += ((part, asserted, within) for part in reversed(parts))
            case Or(parts):
                stack += ((part, asserted, around) for part in reversed(parts))
    return found


def _declares(shape: ObjectShape, name: str) -> bool:
    return name in shape.properties or any(matching(pattern.expression, (name,)) for pattern in shape.patterns)


def _overlaps(shape: ObjectShape, cell: KeyPattern) -> bool:
    """Whether one of the shape's patterns matches the keys of the cell, which matches none or all of them."""
    return any(not is_surely_empty((pattern.expression, cell.expression)) for pattern in shape.patterns)


def _goal(patterns: list[KeyPattern], name: str) -> Goal:
    return next((pattern.goal for pattern in patterns if matching(pattern.expression, (name,))), ANY)
