"""Arrays and objects that satisfy Boolean formulas over shapes, from ``not``, ``if`` and overlapping ``oneOf``.

Such an alternative has a plain shape that always holds (``base``), and formulas. Formulas are read only after all goals
can be expanded: then ``formulas.shape_automaton`` turns them into an automaton.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.json_schema.shapes.arrays import intersect_arrays
from constrain.json_schema.shapes.data import (
    ANY_ARRAY,
    ANY_OBJECT,
    And,
    ArrayShape,
    Atom,
    Combination,
    Formula,
    ItemCount,
    Not,
    ObjectShape,
    Or,
    Shapes,
)
from constrain.json_schema.shapes.objects import intersect_objects
from constrain.work import MAX_ALTERNATIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from constrain.json_schema.shapes.goals import Goals

    FormulaOf = Callable[["ArrayShape | ObjectShape | Combination"], Formula]

TRUE_FORMULA = And(())


def intersect_combined(goals: Goals, a: Shapes, b: Shapes) -> tuple[Combination, ...]:
    """Returns the arrays and objects of both disjunctions that have a formula from either side."""
    found: list[Combination | None] = []
    ours: tuple[Combination | Structure, ...] = (*a.combined, *a.arrays, *a.objects)
    theirs: tuple[Combination | Structure, ...] = (*b.combined, *b.arrays, *b.objects)
    for one in ours:
        others: tuple[Combination | Structure, ...] = theirs if isinstance(one, Combination) else b.combined
        found += [_both(goals, one, two) for two in others]
    if len(found) > MAX_ALTERNATIVES:
        raise LimitError(
            f"schemas combine to more alternatives than MAX_ALTERNATIVES = {MAX_ALTERNATIVES}; use fewer anyOf"
        )
    return tuple(shape for shape in found if shape is not None)


Structure = ArrayShape | ObjectShape


def _both(goals: Goals, one: Combination | Structure, two: Combination | Structure) -> Combination | None:
    ours, formulas = (one.base, one.formulas) if isinstance(one, Combination) else (one, ())
    theirs, others = (two.base, two.formulas) if isinstance(two, Combination) else (two, ())
    base = _intersect(goals, ours, theirs)
    if base is None:
        return None
    if isinstance(one, Combination) and base is ours and not others:
        return one
    return Combination(base, tuple(dict.fromkeys(formulas + others)))


def _intersect(
    goals: Goals, a: ArrayShape | ObjectShape, b: ArrayShape | ObjectShape
) -> ArrayShape | ObjectShape | None:
    if isinstance(a, ArrayShape):
        return intersect_arrays(goals, a, b) if isinstance(b, ArrayShape) else None
    return intersect_objects(goals, a, b) if isinstance(b, ObjectShape) else None


def names_in_order(shape: Combination) -> list[str]:
    """Returns the keys that shapes of objects in the combination name, in their order."""
    base = shape.base
    assert isinstance(base, ObjectShape)
    names = dict.fromkeys(base.properties)
    for atom in atoms(shape.formulas):
        assert isinstance(atom.shape, ObjectShape)
        names.update(dict.fromkeys((*atom.shape.properties, *atom.shape.required)))
    names.update(dict.fromkeys(base.required))
    return list(names)


def is_array(shape: Combination) -> bool:
    """Returns whether the combination is of arrays, not objects."""
    return isinstance(shape.base, ArrayShape)


def formula_of(shape: ArrayShape | ObjectShape | Combination) -> Formula:
    """Returns the formula that holds for exactly the arrays or objects of this shape."""
    if isinstance(shape, Combination):
        base = shape.base
        parts: list[Formula] = [] if base is ANY_ARRAY or base is ANY_OBJECT else [Atom(base)]
        parts += shape.formulas
        return parts[0] if len(parts) == 1 else And(tuple(parts))
    return TRUE_FORMULA if shape is ANY_ARRAY or shape is ANY_OBJECT else Atom(shape)


def array_formula(shapes: Shapes, of: FormulaOf = formula_of) -> Formula:
    """Returns the formula of exactly the arrays among these values; ``of`` makes the formula of one shape."""
    return _any_of((*shapes.arrays, *filter(is_array, shapes.combined)), of)


def object_formula(shapes: Shapes, of: FormulaOf = formula_of) -> Formula:
    """Returns the formula of exactly the objects among these values."""
    return _any_of((*shapes.objects, *(shape for shape in shapes.combined if not is_array(shape))), of)


def _any_of(shapes: Iterable[ArrayShape | ObjectShape | Combination], of: FormulaOf) -> Formula:
    """Returns the formula that a value has at least one of the shapes; ``of`` makes the formula of one shape."""
    parts = tuple(map(of, shapes))
    return parts[0] if len(parts) == 1 else Or(parts)


def restricted(
    goals: Goals, base: ArrayShape | ObjectShape, formulas: Iterable[Formula]
) -> Iterator[ArrayShape | ObjectShape | Combination]:
    """Yields the alternative of this shape with the formulas, if it can have values; a plain shape if possible."""
    kept: dict[Formula, None] = {}
    stack = list(formulas)[::-1]
    while stack:
        formula = stack.pop()
        if isinstance(formula, And):
            stack += reversed(formula.parts)
        elif isinstance(formula, Or) and not formula.parts:
            return
        elif isinstance(formula, Atom) and not isinstance(formula.shape, ItemCount):
            both = _intersect(goals, base, formula.shape)
            if both is None:
                return
            base = both
        else:
            kept[formula] = None
    yield Combination(base, tuple(kept)) if kept else base


def atoms(formulas: tuple[Formula, ...]) -> Iterator[Atom]:
    """Yields the atoms of the formulas, each once, from left to right."""
    seen: set[Formula] = set()
    stack = list(reversed(formulas))
    while stack:
        formula = stack.pop()
        if formula in seen:
            continue
        seen.add(formula)
        match formula:
            case Atom():
                yield formula
            case Not(part):
                stack.append(part)
            case And(parts) | Or(parts):
                stack += reversed(parts)


def as_one(goals: Goals, shapes: Shapes) -> Shapes:
    """Returns the same values with one alternative for all arrays, and one for all objects.

    Equal shapes always become the same formula, so diagrams do not grow when alternatives are multiplied repeatedly.
    """
    known = goals.formulas

    def shared(shape: ArrayShape | ObjectShape | Combination) -> Formula:
        found = known.get(id(shape))
        if found is None:
            found = known[id(shape)] = shape, formula_of(shape)
        return found[1]

    structures: list[ArrayShape | ObjectShape | Combination] = []
    structures += restricted(goals, ANY_ARRAY, (array_formula(shapes, shared),))
    structures += restricted(goals, ANY_OBJECT, (object_formula(shapes, shared),))
    return with_structures(scalars_of(shapes), structures)


def with_structures(scalars: Shapes, structures: Iterable[ArrayShape | ObjectShape | Combination]) -> Shapes:
    """Returns the scalars of the shapes, together with these arrays and objects."""
    arrays, objects, combined = [], [], []
    for shape in structures:
        if isinstance(shape, Combination):
            combined.append(shape)
        elif isinstance(shape, ArrayShape):
            arrays.append(shape)
        else:
            objects.append(shape)
    return scalars._replace(arrays=tuple(arrays), objects=tuple(objects), combined=tuple(combined))


def scalars_of(shapes: Shapes) -> Shapes:
    """Returns the shapes without arrays and objects."""
    return Shapes(shapes.simple, shapes.numbers, shapes.strings)


def arrays_of(shapes: Shapes) -> Shapes:
    """Returns the arrays among the values of the shapes."""
    return Shapes(arrays=shapes.arrays, combined=tuple(filter(is_array, shapes.combined)))


def objects_of(shapes: Shapes) -> Shapes:
    """Returns the objects among the values of the shapes."""
    return Shapes(objects=shapes.objects, combined=tuple(each for each in shapes.combined if not is_array(each)))
