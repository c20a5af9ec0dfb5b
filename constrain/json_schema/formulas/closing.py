"""Closing of objects for generation: keys that no applicable schema declares are left out.

Closing happens once, on the finished shape, with the meaning of ``unevaluatedProperties: false`` (2020-12 Core, section
11.3). Every schema that applies to an object and holds declares its keys, ``if`` included. A schema with its own
``additionalProperties`` keeps the keys that this keyword allows. Schemas under ``not`` declare nothing, even under two
of them.

An object stays open if no schema declares a key, or if closing would leave no value. ``alternatives`` closes the
objects of ``anyOf``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.json_schema.formats.expressions import format_expression
from constrain.json_schema.formats.generated import DATED, FAR_YEARS, USUAL_YEARS, generated_format
from constrain.json_schema.formulas.complements import has_keys
from constrain.json_schema.formulas.formulas import too_many
from constrain.json_schema.shapes.combined import names_in_order
from constrain.json_schema.shapes.data import (
    ANY,
    NOTHING,
    And,
    Atom,
    Combination,
    Formula,
    KeyPattern,
    Not,
    ObjectShape,
    Or,
)
from constrain.json_schema.shapes.keys import capacity
from constrain.json_schema.shapes.objects import divide_keys
from constrain.json_schema.spelling.languages import has_text, is_surely_empty, matching
from constrain.kernel import unproductive_member
from constrain.work import MAX_CASES

if TYPE_CHECKING:
    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.goals import Goals
    from constrain.json_schema.shapes.strings import StringShape
    from constrain.language.policies import Policies
    from constrain.language.tree import Expression


def emitted(goal: Goal, *, close_objects: bool) -> tuple[list[ObjectShape], list[Combination]]:
    """Returns the objects and combinations that the grammar contains for a goal that admits a value.

    Only objects and combinations with values are returned, closed if ``close_objects``.
    """
    shapes = goal.shapes
    assert shapes is not None
    objects = [shape for shape in shapes.objects if is_productive(shape)]
    combined = [shape for shape in shapes.combined if has_value(shape)]
    if not close_objects:
        return objects, combined
    if goal.together:
        apart = {id(member) for group in goal.together for member in group.members}
        objects = [shape for shape in objects if id(shape) not in apart]
        combined = [shape for shape in combined if id(shape) not in apart]
    objects = [shape if id(shape) in goal.left_open else _closed(shape) for shape in objects]
    combined = [shape.emitted for shape in combined]
    for group in goal.together:
        left = [each for each in group.closed if has_value(each)]
        for shape in left or filter(has_value, group.members):
            if isinstance(shape, Combination):
                combined.append(shape)
            else:
                objects.append(shape)
    return objects, combined


def emitted_strings(goal: Goal, policies: Policies) -> tuple[StringShape, ...]:
    """Returns the strings of a goal that the grammar contains: for some formats, policies narrow them."""
    assert goal.shapes is not None
    strings = goal.shapes.strings
    if not any(shape.formats for shape in strings) or not (policies.close_objects or policies.years != "any"):
        return strings
    return tuple(generated(shape, policies) for shape in strings)


def closed_forms(goal: Goal) -> tuple[list[ObjectShape], list[Combination]]:
    """Returns the closed objects and combinations of a goal, even empty ones; those marked as open stay open."""
    shapes = goal.shapes
    assert shapes is not None
    apart = {id(member) for group in goal.together for member in group.members}
    objects = [
        _without_undeclared(shape) if _closes(shape) and id(shape) not in goal.left_open else shape
        for shape in shapes.objects
        if id(shape) not in apart
    ]
    combined = [shape.closed or shape for shape in shapes.combined if id(shape) not in apart]
    for group in goal.together:
        for shape in group.closed or group.members:
            if isinstance(shape, Combination):
                combined.append(shape)
            else:
                objects.append(shape)
    return objects, combined


def leave_open(goal: Goal) -> bool:
    """Marks objects of the goal as open if closing leaves no value; returns whether any were marked."""
    shapes = goal.shapes
    assert shapes is not None
    apart = {id(member) for group in goal.together for member in group.members}
    objects = [
        id(shape)
        for shape in shapes.objects
        if id(shape) not in apart and _closes(shape) and id(shape) not in goal.left_open
        if is_productive(shape) and not is_productive(_without_undeclared(shape))
    ]
    goal.left_open += tuple(objects)
    combined = [
        shape
        for shape in shapes.combined
        if id(shape) not in apart and shape.closed is not None
        if has_value(shape) and not has_value(shape.closed)
    ]
    for shape in combined:
        shape.closed = None
    groups = [
        group.closed != () and any(map(has_value, group.members)) and not any(map(has_value, group.closed))
        for group in goal.together
    ]
    goal.together = tuple(
        group._replace(closed=()) if opened else group for group, opened in zip(goal.together, groups, strict=True)
    )
    return bool(objects or combined or any(groups))


def has_value(shape: ObjectShape | Combination) -> bool:
    """Returns whether the shape or combination has a value."""
    if isinstance(shape, Combination):
        return shape.automaton is not None and shape.automaton.is_productive()
    return is_productive(shape)


def is_productive(shape: ObjectShape) -> bool:
    """Returns whether the shape has an object."""
    return unproductive_member(shape) is None and (shape.minimum == 0 or capacity(shape) >= shape.minimum)


def _closed(shape: ObjectShape) -> ObjectShape:
    """Returns the shape without undeclared keys; unchanged if it declares no key or would have no value."""
    if not _closes(shape):
        return shape
    without = _without_undeclared(shape)
    return without if is_productive(without) else shape


def _closes(shape: ObjectShape) -> bool:
    return shape.open and _names_keys(shape)


def _without_undeclared(shape: ObjectShape) -> ObjectShape:
    return shape._replace(additional=NOTHING)


def declares_keys(shape: ObjectShape | Combination) -> bool:
    """Returns whether the shape declares a key that may be present; ``not`` and ``propertyNames`` declare none."""
    if isinstance(shape, Combination):
        assert isinstance(shape.base, ObjectShape)
        return _names_keys(shape.base) or any(_names_keys(each.shape) for each in _asserted(shape.formulas))
    return _names_keys(shape)


def _names_keys(shape: ObjectShape) -> bool:
    return any(goal is not NOTHING for goal in shape.properties.values()) or any(
        pattern.goal is not NOTHING for pattern in shape.patterns
    )


def closed_combination(goals: Goals, shape: Combination) -> Combination | None:
    """Returns the combination without undeclared keys; ``None`` if it stays as it is."""
    base = shape.base
    assert isinstance(base, ObjectShape)
    if not base.open:
        return None
    asserted = _asserted(shape.formulas)
    declaring = [each for each in asserted if each.shape.open]
    closed = tuple(each.holding for each in asserted if not each.shape.open)  # these constrain all other keys
    free = [Or(closed)] if closed else []  # one formula, which all keys share
    patterns = list(base.patterns)
    for each in declaring:
        cells = divide_keys(goals, patterns, [pattern._replace(goal=ANY) for pattern in each.shape.patterns])
        patterns = [*cells.both, *cells.left, *cells.right]
    formulas: list[Formula] = []
    properties: dict[str, Goal] = {}
    for name in names_in_order(shape):  # all of them, for the same order as without closing
        if name in base.properties:
            properties[name] = base.properties[name]
            continue
        holding = [*(each.holding for each in declaring if _declares(each.shape, name)), *free]
        in_base = any(matching(pattern.expression, (name,)) for pattern in base.patterns)
        properties[name] = _goal(patterns, name) if in_base or holding else NOTHING
        if holding and not in_base:
            formulas.append(Or((Not(has_keys(name)), *holding)))
    named = dict.fromkeys(properties, ANY)
    for pattern in patterns:
        if pattern.goal is not NOTHING and not _overlaps(base, pattern):
            holding = [*(each.holding for each in declaring if _overlaps(each.shape, pattern)), *free]
            none_matches = Atom(ObjectShape(named, (), (pattern._replace(goal=NOTHING),)))
            formulas.append(Or((none_matches, *holding)))
    if free:
        declared = tuple(pattern._replace(goal=ANY) for pattern in patterns)
        formulas.append(Or((Atom(ObjectShape(named, (), declared, NOTHING)), *free)))
    additional = base.additional if free else NOTHING
    base = base._replace(properties=properties, patterns=tuple(patterns), additional=additional, open=False)
    return Combination(base, (*formulas, *shape.formulas))  # diagrams stay smaller if a key comes before its shapes


class _Asserted(NamedTuple):
    """A shape that applies and holds if the formula ``holding`` is true."""

    shape: ObjectShape
    holding: Formula


def _asserted(formulas: tuple[Formula, ...]) -> list[_Asserted]:
    """Returns the object shapes that the formulas assert; none under ``Not``, not even under two."""
    found: list[_Asserted] = []
    seen: set[tuple[Formula, tuple[Formula, ...]]] = set()
    stack: list[tuple[Formula, tuple[Formula, ...]]] = [(formula, ()) for formula in reversed(formulas)]
    while stack:
        formula, around = stack.pop()
        if (formula, around) in seen:
            continue
        seen.add((formula, around))
        if len(seen) > MAX_CASES:
            raise too_many()
        match formula:
            case Atom():
                if isinstance(formula.shape, ObjectShape):
                    found.append(_Asserted(formula.shape, And((*around, formula))))
            case And(parts):
                stack += ((part, (*around, formula)) for part in reversed(parts))
            case Or(parts):
                stack += ((part, around) for part in reversed(parts))
    return found


def _declares(shape: ObjectShape, name: str) -> bool:
    return name in shape.properties or any(matching(pattern.expression, (name,)) for pattern in shape.patterns)


def _overlaps(shape: ObjectShape, cell: KeyPattern) -> bool:
    """Returns whether a pattern of the shape matches the keys of the cell, which are all alike to each pattern."""
    return any(not is_surely_empty((pattern.expression, cell.expression)) for pattern in shape.patterns)


def _goal(patterns: list[KeyPattern], name: str) -> Goal:
    return next((pattern.goal for pattern in patterns if matching(pattern.expression, (name,))), ANY)


def generated(shape: StringShape, policies: Policies) -> StringShape:
    """Returns the subset of the strings of this shape that the policies leave, or the shape itself."""
    for name in shape.formats if policies.close_objects else ():
        whole = format_expression(name)
        parts = tuple(generated_format(name) if part is whole else part for part in shape.parts)
        if _has_some(shape._replace(parts=parts)):
            shape = shape._replace(parts=parts, wider=None)
    if policies.years != "any" and not DATED.isdisjoint(shape.formats):
        shape = _of_usual_years(shape)
    return shape._replace(formats=()) if shape.formats else shape


def _of_usual_years(shape: StringShape) -> StringShape:
    """Returns the dates of the years 1000 to 2999, but all on a side where the schema itself excludes a far year."""
    is_plain = len(shape.parts) == 1
    open_sides = [
        side for side, far in FAR_YEARS.items() if is_plain or all(_has_some(_with_part(shape, each)) for each in far)
    ]
    usual = _with_part(shape, USUAL_YEARS["".join(open_sides)]) if open_sides else shape
    return usual if _has_some(usual) else shape


def _with_part(shape: StringShape, part: Expression) -> StringShape:
    return shape._replace(parts=(*shape.parts, part), wider=None)


def _has_some(shape: StringShape) -> bool:
    """Returns whether the shape has strings; False if the limits of such questions leave it open."""
    if len(shape.parts) == 1 and shape.minimum == 0 and shape.maximum is None:
        return True
    try:
        return has_text(shape.parts, shape.minimum, shape.maximum)
    except LimitError:
        return False
