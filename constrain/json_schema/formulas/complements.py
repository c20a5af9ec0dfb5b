"""Complements of shapes, and what is built with them: conditions (``if``) and sets of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.json_schema.formulas.formulas import negated
from constrain.json_schema.numbers.shape import complement_numbers
from constrain.json_schema.shapes.arrays import intersect_arrays
from constrain.json_schema.shapes.combined import (
    array_formula,
    atoms,
    formula_of,
    is_array,
    object_formula,
    restricted,
    scalars_of,
    with_structures,
)
from constrain.json_schema.shapes.data import (
    ANY,
    ANY_ARRAY,
    ANY_OBJECT,
    ANY_SHAPES,
    BOOLEAN,
    NO_SHAPES,
    NOTHING,
    NULL,
    And,
    ArrayShape,
    Atom,
    Combination,
    Formula,
    Not,
    ObjectShape,
    Or,
    Shapes,
)
from constrain.json_schema.shapes.objects import intersect_objects
from constrain.json_schema.shapes.shapes import intersect, union
from constrain.json_schema.shapes.strings import complement_strings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.shapes.goals import Goals


def complement(goals: Goals, shapes: Shapes) -> Shapes:
    """Returns the values that have none of the shapes."""
    if shapes is ANY_SHAPES:
        return NO_SHAPES
    if shapes is NO_SHAPES:
        return ANY_SHAPES
    goals.note_negated(shapes)
    arrays = _complement_arrays(goals, (*shapes.arrays, *filter(is_array, shapes.combined)))
    objects = _complement_objects(goals, (*shapes.objects, *(s for s in shapes.combined if not is_array(s))))
    return with_structures(
        Shapes(
            (NULL | BOOLEAN) & ~shapes.simple,
            complement_numbers(shapes.numbers),
            complement_strings(shapes.strings),
        ),
        (*arrays, *objects),
    )


def _complement_arrays(
    goals: Goals, shapes: tuple[ArrayShape | Combination, ...]
) -> Iterable[ArrayShape | ObjectShape | Combination]:
    base = ANY_ARRAY
    formulas: list[Formula] = []
    for shape in shapes:
        simple = _opposite_array(shape) if isinstance(shape, ArrayShape) else None
        if simple is None:
            formulas.append(_opposite(goals, formula_of(shape)))
        else:
            both = intersect_arrays(goals, base, simple)
            if both is None:
                return ()
            base = both
    return restricted(goals, base, map(_simplified, formulas))


def _complement_objects(
    goals: Goals, shapes: tuple[ObjectShape | Combination, ...]
) -> Iterable[ArrayShape | ObjectShape | Combination]:
    base = ANY_OBJECT
    formulas: list[Formula] = []
    for shape in shapes:
        simple = _opposite_object(goals, shape) if isinstance(shape, ObjectShape) else None
        if simple is None:
            formulas.append(_opposite(goals, formula_of(shape)))
        else:
            both = intersect_objects(goals, base, simple)
            if both is None:
                return ()
            base = both
    return restricted(goals, base, map(_simplified, formulas))


def _opposite(goals: Goals, formula: Formula) -> Formula:
    """Returns the negated formula; with closed objects, it declares no keys, not even under a second ``not``."""
    return Not(formula) if goals.policies.close_objects else negated(formula)


def _simplified(formula: Formula) -> Formula:
    """Returns ``formula`` without a negation around an empty list."""
    match formula:
        case Not(And(())):
            return Or(())
        case Not(Or(())):
            return And(())
    return formula


def _opposite_array(shape: ArrayShape) -> ArrayShape | None:
    """Returns the complement of a shape with a single constraint, if it is a plain shape of arrays."""
    if shape.prefix or shape.rest is not ANY or shape.unique:
        return None
    if shape.maximum is None and shape.minimum:
        return ArrayShape(maximum=shape.minimum - 1)
    if shape.maximum is not None and not shape.minimum:
        return ArrayShape(minimum=shape.maximum + 1)
    return None


def _opposite_object(goals: Goals, shape: ObjectShape) -> ObjectShape | None:
    """Returns the complement of a shape with a single constraint, if it is a plain shape of objects."""
    if shape.patterns or shape.additional is not ANY:
        return None
    keys = [key for key, goal in shape.properties.items() if goal is not ANY]
    if keys or shape.required:
        if shape.minimum or shape.maximum is not None or len({*keys, *shape.required}) > 1:
            return None
        if keys and goals.policies.close_objects:
            return None  # the opposite would declare a key
        key = keys[0] if keys else shape.required[0]
        goal = goals.negation(shape.properties[key]) if keys else NOTHING
        return ObjectShape({key: goal}, () if shape.required else (key,))
    if shape.maximum is None and shape.minimum:
        return ObjectShape({}, maximum=shape.minimum - 1)
    if shape.maximum is not None and not shape.minimum:
        return ObjectShape({}, minimum=shape.maximum + 1)
    return None


def conditional(goals: Goals, condition: Shapes, then: Shapes, otherwise: Shapes) -> Shapes:
    """Returns the values of ``condition`` that are in ``then``, and all other values that are in ``otherwise``."""
    if condition is ANY_SHAPES:
        return then
    if condition is NO_SHAPES:
        return otherwise
    structures: list[ArrayShape | ObjectShape | Combination] = []
    declaring = goals.policies.close_objects
    for formula, base in ((array_formula, ANY_ARRAY), (object_formula, ANY_OBJECT)):
        test, yes, no = formula(condition), formula(then), formula(otherwise)
        unless = _opposite(goals, test)
        if declaring and base is ANY_OBJECT and _always(yes) and _always(no) and any(atoms((test,))):
            conjuncts: tuple[Formula, ...] = (Or((test, unless)),)  # asserts nothing, but may declare keys
        else:
            conjuncts = _conjuncts(test, unless, yes, no)
        structures += restricted(goals, base, conjuncts)
    scalars = union(
        (
            intersect(goals, scalars_of(condition), scalars_of(then)),
            intersect(goals, scalars_of(complement(goals, scalars_of(condition))), scalars_of(otherwise)),
        )
    )
    return with_structures(scalars, structures)


def _conjuncts(test: Formula, unless: Formula, yes: Formula, no: Formula) -> tuple[Formula, ...]:
    """Returns formulas for: if ``test``, then ``yes``; else (``unless``) ``no``. Constant cases are simplified.

    A schema that applies only if ``test`` holds is kept next to it, so that closing sees when it applies.
    """
    if _always(test):
        return (yes,)
    if _never(test):
        return (no,)
    if _always(yes) and _always(no):
        return ()
    if _always(no):
        return (Or((unless, And((test, yes)))),)
    if _always(yes):
        return (Or((test, And((unless, no)))),)
    return (Or((And((test, yes)), And((unless, no)))),)


def _always(formula: Formula) -> bool:
    return isinstance(formula, And) and not formula.parts


def _never(formula: Formula) -> bool:
    return isinstance(formula, Or) and not formula.parts


def objects_where(goals: Goals, formulas: Iterable[Formula]) -> Shapes:
    """Returns all values except objects that violate the formulas."""
    return with_structures(ANY_SHAPES._replace(objects=()), (ANY_ARRAY, *restricted(goals, ANY_OBJECT, formulas)))


def arrays_where(goals: Goals, formulas: Iterable[Formula]) -> Shapes:
    """Returns all values except arrays that violate the formulas."""
    return with_structures(ANY_SHAPES._replace(arrays=()), (ANY_OBJECT, *restricted(goals, ANY_ARRAY, formulas)))


def has_keys(*keys: str) -> Formula:
    """Returns the formula for objects with all of the keys."""
    return Atom(ObjectShape({}, keys))
