"""Arrays and objects that satisfy Boolean formulas over shapes: what ``not``, ``if`` and overlapping ``oneOf`` make.

An alternative of such a kind has a plain shape that holds in any case (``base``), and formulas beside it. Formulas are
only read once all goals can be expanded: then ``constrain.json_schema.formulas.shape_automaton`` makes an automaton of
them.
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from constrain.json_schema.shapes.goals import Goals

    FormulaOf = Callable[["ArrayShape | ObjectShape | Combination"], Formula]

MAX_COMBINED = 1_000
"""Alternatives of one value that have formulas. Beyond: LimitError."""

TRUE_FORMULA = And(())


def intersect_combined(goals: Goals, a: Shapes, b: Shapes) -> tuple[Combination, ...]:
    """Of the arrays and objects of both disjunctions, those that have a formula from either side."""
    found: list[Combination | None] = []
    ours: tuple[Combination | Structure, ...] = (*a.combined, *a.arrays, *a.objects)
    theirs: tuple[Combination | Structure, ...] = (*b.combined, *b.arrays, *b.objects)
    for one in ours:
        others: tuple[Combination | Structure, ...] = theirs if isinstance(one, Combination) else b.combined
        found += [_both(goals, one, two) for two in others]
    if len(found) > MAX_COMBINED:
        raise LimitError(f"schemas combine to more alternatives than MAX_COMBINED = {MAX_COMBINED}")
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
    """The keys that any of the shapes of objects names, in the order in which they come."""
    base = shape.base
    assert isinstance(base, ObjectShape)
    names = dict.fromkeys(base.properties)
    for atom in atoms(shape.formulas):
        assert isinstance(atom.shape, ObjectShape)
        names.update(dict.fromkeys((*atom.shape.properties, *atom.shape.required)))
    names.update(dict.fromkeys(base.required))
    return list(names)


def is_array(shape: Combination) -> bool:
    """Whether arrays are meant, and not objects."""
    return isinstance(shape.base, ArrayShape)


def formula_of(shape: ArrayShape | ObjectShape | Combination) -> Formula:
    """The formula that holds for exactly the arrays or objects of this shape."""
    if isinstance(shape, Combination):
        base = shape.base
        parts: list[Formula] = [] if base is ANY_ARRAY or base is ANY_OBJECT else [Atom(base)]
        parts += shape.formulas
        return parts[0] if len(parts) == 1 else And(tuple(parts))
    return TRUE_FORMULA if shape is ANY_ARRAY or shape is ANY_OBJECT else Atom(shape)


def array_formula(shapes: Shapes, of: FormulaOf = formula_of) -> Formula:
    """The formula that holds for exactly the arrays among these values; ``of`` gives that of one shape."""
    return _any_of((*shapes.arrays, *filter(is_array, shapes.combined)), of)


def object_formula(shapes: Shapes, of: FormulaOf = formula_of) -> Formula:
    """The same for objects."""
    return _any_of((*shapes.objects, *(shape for shape in shapes.combined if not is_array(shape))), of)


def _any_of(shapes: Iterable[ArrayShape | ObjectShape | Combination], of: FormulaOf) -> Formula:
    parts = tuple(map(of, shapes))
    return parts[0] if len(parts) == 1 else Or(parts)


def restricted(
    goals: Goals, base: ArrayShape | ObjectShape, formulas: Iterable[Formula]
) -> Iterator[ArrayShape | ObjectShape | Combination]:
    """The alternative of this shape that satisfies the formulas, if there is one; a plain shape where that is all."""
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
    """The atoms of the formulas, each once, from left to right."""
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
    """The same values with one alternative for all arrays, and one for all objects.

    The same shape becomes the same formula every time: where alternatives are multiplied again and again, the diagrams
    do not grow by it.
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
    """The scalars of some shapes, with these arrays and objects."""
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
    """The shapes without arrays and objects."""
    return Shapes(shapes.simple, shapes.numbers, shapes.strings)
