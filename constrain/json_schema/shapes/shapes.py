"""Disjunctions of shapes, each of one JSON type: union and intersection."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from constrain.errors import LimitError
from constrain.json_schema.numbers.shape import ANY_NUMBER, NumberShape, intersect_numbers
from constrain.json_schema.shapes.arrays import intersect_arrays
from constrain.json_schema.shapes.combined import intersect_combined
from constrain.json_schema.shapes.data import (
    ANY_SHAPES,
    ArrayShape,
    Combination,
    ObjectShape,
    Shapes,
)
from constrain.json_schema.shapes.objects import intersect_objects
from constrain.json_schema.shapes.strings import ANY_STRING, StringShape, intersect_many_strings, intersect_strings
from constrain.work import MAX_ALTERNATIVES, spend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from constrain.json_schema.numbers.shape import Number
    from constrain.json_schema.shapes.goals import Goals

MAX_PRODUCT = 64
"""Pairs of alternatives that are intersected one by one; more become formulas, which do not multiply."""

MIN_SHARED = 4
"""Least number of schemas for which intersections of all but one are shared."""

MIN_INTERSECTED_APART = 16
"""Schemas of one value from which on all their numbers, and all their strings, are intersected at once."""

INTERSECTION_STEPS = 5
"""Compilation steps for one intersection, and for each pair of alternatives."""

COMPARISONS_PER_STEP = 10
"""Shapes that are compared with a new one per compilation step."""


Shape = TypeVar("Shape")


def union(alternatives: Iterable[Shapes]) -> Shapes:
    """Returns the values of any of the alternatives; listed scalars become one list."""
    simple = 0
    numbers: list[NumberShape] = []
    strings: list[StringShape] = []
    arrays: dict[ArrayShape, None] = {}
    objects: list[ObjectShape] = []
    combined: dict[Combination, None] = {}
    listed_numbers: dict[NumberShape, dict[Number, None]] = {}
    listed_strings: dict[str, None] = {}
    for shapes in alternatives:
        spend(INTERSECTION_STEPS + (len(numbers) + len(strings) + len(objects)) // COMPARISONS_PER_STEP)
        simple |= shapes.simple
        for number in shapes.numbers:
            if isinstance(number.values, tuple):
                listed_numbers.setdefault(number._replace(values=()), {}).update(dict.fromkeys(number.values))
            elif number not in numbers:
                numbers.append(number)
        for string in shapes.strings:
            if string.values is not None:
                listed_strings.update(dict.fromkeys(string.values))
            elif string not in strings:
                strings.append(string)
        arrays.update(dict.fromkeys(shapes.arrays))
        objects += (shape for shape in shapes.objects if shape not in objects)
        combined.update(dict.fromkeys(shapes.combined))
        if max(len(numbers), len(strings), len(arrays), len(objects), len(combined)) > MAX_ALTERNATIVES:
            raise LimitError(f"a value has more alternatives than MAX_ALTERNATIVES = {MAX_ALTERNATIVES}; use fewer")
    if ANY_NUMBER in numbers:
        numbers = [ANY_NUMBER]
    else:
        numbers += (shape._replace(values=tuple(values)) for shape, values in listed_numbers.items())
    if ANY_STRING in strings:
        strings = [ANY_STRING]
    elif listed_strings:
        strings.append(StringShape(values=tuple(listed_strings)))
    return Shapes(simple, tuple(numbers), tuple(strings), tuple(arrays), tuple(objects), tuple(combined))


def intersect(goals: Goals, a: Shapes, b: Shapes) -> Shapes:
    """Returns the values of both."""
    if a is ANY_SHAPES or a is b:
        return b
    if b is ANY_SHAPES:
        return a
    spend(INTERSECTION_STEPS)
    if _structures(a) * _structures(b) > MAX_PRODUCT and not (_is_single(a) or _is_single(b)):
        from constrain.json_schema.shapes.combined import as_one

        a, b = as_one(goals, a), as_one(goals, b)
    return Shapes(
        a.simple & b.simple,
        _product(a.numbers, b.numbers, intersect_numbers) if a.numbers and b.numbers else (),
        _product(a.strings, b.strings, intersect_strings) if a.strings and b.strings else (),
        _product(a.arrays, b.arrays, lambda x, y: intersect_arrays(goals, x, y)) if a.arrays and b.arrays else (),
        _product(a.objects, b.objects, lambda x, y: intersect_objects(goals, x, y)) if a.objects and b.objects else (),
        intersect_combined(goals, a, b) if a.combined or b.combined else (),
    )


def intersect_all(goals: Goals, shapes: Sequence[Shapes]) -> Shapes:
    """Returns the values of all, intersected one after the other.

    For many schemas, numbers and strings are intersected separately; otherwise each excluded number and each pattern
    would be examined again with every further schema.
    """
    kept = [each for each in shapes if each is not ANY_SHAPES]
    if len(kept) < MIN_INTERSECTED_APART or any(len(each.numbers) > 1 or len(each.strings) > 1 for each in kept):
        found = ANY_SHAPES
        for each in shapes:
            found = intersect(goals, found, each)
        return found
    numbers = _intersection([each.numbers for each in kept], _intersect_numbers)
    strings = _intersection([each.strings for each in kept], intersect_many_strings)
    found = kept[0]._replace(numbers=(), strings=())
    for each in kept[1:]:
        found = intersect(goals, found, each._replace(numbers=(), strings=()))
    return found._replace(numbers=numbers, strings=strings)


def _intersection(
    shapes: Sequence[tuple[Shape, ...]], meet: Callable[[Sequence[Shape]], Shape | None]
) -> tuple[Shape, ...]:
    """Returns the shape common to all of these, which have one shape at most."""
    if not all(shapes):
        return ()
    shape = meet([each[0] for each in shapes])
    return () if shape is None else (shape,)


def _intersect_numbers(shapes: Sequence[NumberShape]) -> NumberShape | None:
    """Returns the numbers of all, pair by pair: a list of excluded numbers is copied only when it doubles."""
    found: list[NumberShape] = list(shapes)
    while len(found) > 1:
        pairs = [intersect_numbers(*found[index : index + 2]) for index in range(0, len(found) - 1, 2)]
        odd = found[len(found) // 2 * 2 :]
        found = [shape for shape in (*pairs, *odd) if shape is not None]
        if len(found) < len(pairs) + len(odd):
            return None
    return found[0]


def all_but_one(goals: Goals, shapes: Sequence[Shapes]) -> list[Sequence[Shapes]]:
    """Returns, for each index, shapes whose intersection is that of all the others.

    Made one by one, these are quadratically many intersections of linear size. If all have a single alternative of a
    type, the intersections of the shapes before and after an index are shared.
    """
    last = len(shapes) - 1
    if last < MIN_SHARED or not all(max(map(len, each[1:])) <= 1 for each in shapes):
        return [(*shapes[:index], *shapes[index + 1 :]) for index in range(last + 1)]
    before, after = [ANY_SHAPES], [ANY_SHAPES]
    for index in range(last):
        before.append(intersect(goals, before[-1], shapes[index]))
        after.append(intersect(goals, shapes[last - index], after[-1]))
    return list(zip(before, reversed(after), strict=True))


def _structures(shapes: Shapes) -> int:
    return len(shapes.combined) + max(len(shapes.arrays), len(shapes.objects))


def _is_single(shapes: Shapes) -> bool:
    """Returns whether an intersection with these shapes never has more alternatives than before."""
    return max(len(shapes.arrays), len(shapes.objects)) <= 1 and not shapes.combined


def _product(
    left: tuple[Shape, ...], right: tuple[Shape, ...], meet: Callable[[Shape, Shape], Shape | None]
) -> tuple[Shape, ...]:
    if len(left) * len(right) > MAX_ALTERNATIVES:
        raise LimitError(
            f"allOf and the keywords around it multiply to more alternatives than MAX_ALTERNATIVES = {MAX_ALTERNATIVES}"
            "; use fewer anyOf and oneOf there"
        )
    if len(left) == 1 and len(right) == 1:
        shape = meet(left[0], right[0])
        return () if shape is None else (shape,)
    found: list[Shape] = []
    for first in left:
        spend(INTERSECTION_STEPS * len(right))
        for second in right:
            shape = meet(first, second)
            if shape is not None and shape not in found:
                spend(len(found) // COMPARISONS_PER_STEP)
                found.append(shape)
    return tuple(found)
