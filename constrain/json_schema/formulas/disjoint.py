"""Exclusive alternatives (``oneOf``), and proofs that two of them share no value, so that they are plain alternatives.

The proof uses cheap facts only: types, constants, bounds, lengths, and for objects a required key with different values
(a discriminator) or a key that the other side forbids. Every other pair counts as not proved.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from constrain.json_schema.documents.keyword import KEYWORDS
from constrain.json_schema.numbers.shape import intersect_numbers
from constrain.json_schema.shapes.arrays import item_goal
from constrain.json_schema.shapes.combined import arrays_of, objects_of, scalars_of
from constrain.json_schema.shapes.data import ANY, FALSE, NOTHING, NULL, TRUE, ArrayShape, Goal, ObjectShape, Shapes
from constrain.json_schema.shapes.objects import key_goals
from constrain.json_schema.shapes.shapes import all_but_one, intersect, union
from constrain.json_schema.shapes.strings import StringShape, definition, has_table, intersect_strings, shorter
from constrain.json_schema.spelling.languages import is_surely_empty
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.json_schema.shapes.goals import Goals

PAIR_STEPS = 3
"""Compilation steps for each pair of ``oneOf`` branches that may overlap."""

_CURE = "use fewer branches of oneOf, or write anyOf if no value can satisfy two of them"

COMPARISON_STEPS = 10
"""Compilation steps for one comparison of two alternatives, arrays or objects."""

DISCRIMINATOR_DEPTH = 2
"""Levels below the value at which the proof compares members."""


def find_overlap(goals: Goals, branches: list[Shapes]) -> tuple[int, int] | None:
    """Returns the indices of two branches that are not proved disjoint; ``None`` if all are."""
    shared = _shared_constant(branches)
    if shared is not None:
        return shared
    kinds = [_kinds(branch) for branch in branches]
    unlisted: list[int] = []  # branches with values that are not listed
    for index, (constants, others) in enumerate(kinds):
        for earlier in range(index) if others else unlisted:
            if not ((constants | others) & kinds[earlier][1] or others & kinds[earlier][0]):
                continue
            spend(PAIR_STEPS, _CURE)
            if not are_disjoint(goals, branches[earlier], branches[index], DISCRIMINATOR_DEPTH):
                return earlier, index
        if others:
            unlisted.append(index)
    return None


def exclusive_union(goals: Goals, alternatives: list[Shapes], context: Shapes) -> Shapes:
    """Returns the values of ``context`` that satisfy exactly one of the alternatives.

    Scalars, arrays and objects are separate, so that branches that overlap in one of them stay plain in the others.
    """
    narrowed = [intersect(goals, context, alternative) for alternative in alternatives]
    return union(
        _exclusive(goals, list(map(kind, alternatives)), list(map(kind, narrowed)))
        for kind in (scalars_of, arrays_of, objects_of)
    )


def _exclusive(goals: Goals, alternatives: list[Shapes], narrowed: list[Shapes]) -> Shapes:
    """Returns the values in exactly one of ``narrowed``, which are the alternatives in their context."""
    from constrain.json_schema.formulas.complements import complement

    overlap = find_overlap(goals, narrowed)
    if overlap is None:
        return union(narrowed)
    spend(len(narrowed) ** 2 // 2 * PAIR_STEPS, _CURE)
    overlapping: list[set[int]] = [{index} for index in range(len(narrowed))]
    for first, second in combinations(range(len(narrowed)), 2):
        if (first, second) == overlap or find_overlap(goals, [narrowed[first], narrowed[second]]) is not None:
            overlapping[first].add(second)
            overlapping[second].add(first)
    exclusive = list(narrowed)
    others: dict[int, Shapes] = {}
    shared: dict[frozenset[int], list[Sequence[Shapes]]] = {}
    for index, indices in enumerate(overlapping):
        if len(indices) == 1:
            continue
        among = sorted(indices)
        for other in among:
            if other not in others:
                others[other] = complement(goals, alternatives[other])
        if all(overlapping[other] == indices for other in among):
            key = frozenset(indices)
            if key not in shared:
                shared[key] = all_but_one(goals, [others[other] for other in among])
            excluded = shared[key][among.index(index)]
        else:
            excluded = [others[other] for other in among if other != index]
        for shapes in excluded:
            exclusive[index] = intersect(goals, exclusive[index], shapes)
    return union(exclusive)


def _shared_constant(branches: list[Shapes]) -> tuple[int, int] | None:
    """Returns two branches that list the same scalar."""
    seen: dict[object, int] = {}
    for index, branch in enumerate(branches):
        values: list[object] = [("simple", bit) for bit in (NULL, FALSE, TRUE) if branch.simple & bit]
        for shape in branch.numbers + branch.strings:
            values += dict.fromkeys(shape.values or ())
        for value in values:
            if seen.setdefault(value, index) != index:
                return seen[value], index
    return None


def listed_scalars(shapes: Shapes) -> list[object] | None:
    """Returns every value of the shapes, if these are finitely many scalars; otherwise ``None``.

    Numbers and strings count only if the schema lists them.
    """
    if shapes.arrays or shapes.objects or shapes.combined:
        return None
    found: list[object] = [("simple", bit) for bit in (NULL, FALSE, TRUE) if shapes.simple & bit]
    for values in (*(each.values for each in shapes.numbers), *(each.values for each in shapes.strings)):
        if values is None:
            return None
        found += values
    return found


def _kinds(branch: Shapes) -> tuple[int, int]:
    """Returns two bit sets of JSON types: those with listed values in the branch, and those with other values."""
    constants = others = 0
    for bit, shapes in ((1, branch.numbers), (2, branch.strings)):
        for shape in shapes:
            if shape.values is None:
                others |= bit
            else:
                constants |= bit
    for combined in branch.combined:
        others |= 4 if isinstance(combined.base, ArrayShape) else 8
    return constants, others | (4 if branch.arrays else 0) | (8 if branch.objects else 0)


def without_formulas(shapes: Shapes) -> Shapes:
    """Returns shapes of all these values, and perhaps of more, without formulas."""
    arrays = tuple(shape.base for shape in shapes.combined if isinstance(shape.base, ArrayShape))
    objects = tuple(shape.base for shape in shapes.combined if isinstance(shape.base, ObjectShape))
    return shapes._replace(arrays=shapes.arrays + arrays, objects=shapes.objects + objects, combined=())


def are_disjoint(goals: Goals, a: Shapes, b: Shapes, depth: int) -> bool:
    """Returns whether no value provably has a shape of both; compares ``depth`` levels of arrays and objects."""
    if a.simple & b.simple:
        return False
    spend(COMPARISON_STEPS)
    if a.combined or b.combined:  # disjoint base shapes make the whole disjoint
        a, b = without_formulas(a), without_formulas(b)
    return (
        not any(intersect_numbers(x, y) is not None for x in a.numbers for y in b.numbers)
        and all(_disjoint_strings(x, y) for x in a.strings for y in b.strings)
        and all(_disjoint_arrays(goals, x, y, depth) for x in a.arrays for y in b.arrays)
        and all(_disjoint_objects(goals, x, y, depth) for x in a.objects for y in b.objects)
    )


def satisfying_both(goals: Goals, goal: Goal, wanted: Goal) -> Goal:
    """Returns the goal of satisfying both, without negations in ``goal`` of what ``wanted`` surely excludes."""
    shapes = goals.shapes(wanted)
    if not shapes.objects:
        return goals.conjunction(goal, wanted)
    kept = [
        part
        for part in goal.parts
        if part.negated is None or not are_disjoint(goals, goals.shapes(part.negated), shapes, DISCRIMINATOR_DEPTH)
    ]
    if len(kept) < len(goal.parts):
        goal = ANY
        for part in kept:
            goal = goals.conjunction(goal, part)
    return goals.conjunction(goal, wanted)


def _disjoint_strings(a: StringShape, b: StringShape) -> bool:
    if any(each.values is not None or has_table(each) for each in (a, b)):
        return intersect_strings(a, b) is None
    shape = StringShape(definition(a) + definition(b), max(a.minimum, b.minimum), shorter(a.maximum, b.maximum))
    if shape.maximum is not None and shape.maximum < shape.minimum:
        return True
    return bool(shape.parts) and is_surely_empty(shape.parts, shape.minimum, shape.maximum)


def _disjoint_goals(goals: Goals, a: Goal, b: Goal, depth: int) -> bool:
    if a is NOTHING or b is NOTHING:
        return True
    if depth == 0 or a is b or not (is_cheap(a) and is_cheap(b)):
        return False
    return are_disjoint(goals, goals.shapes(a), goals.shapes(b), depth - 1)


def is_cheap(goal: Goal) -> bool:
    """Returns whether the goal is expanded already, or expands without expanding other goals."""
    if goal.shapes is not None:
        return True
    location = goal.location
    if location is None:
        return is_cheap(goal.negated) if goal.negated is not None else all(map(is_cheap, goal.parts))
    if location.shapes is not None or not isinstance(location.schema, dict):
        return True
    return not location.expanding and KEYWORDS.in_place.isdisjoint(location.schema)


def _disjoint_arrays(goals: Goals, a: ArrayShape, b: ArrayShape, depth: int) -> bool:
    spend(COMPARISON_STEPS)
    least = max(a.minimum, b.minimum)
    if (a.maximum is not None and a.maximum < least) or (b.maximum is not None and b.maximum < least):
        return True
    compared = min(least, max(len(a.prefix), len(b.prefix)) + 1)
    return any(_disjoint_goals(goals, item_goal(a, i), item_goal(b, i), depth) for i in range(compared))


def _disjoint_objects(goals: Goals, a: ObjectShape, b: ObjectShape, depth: int) -> bool:
    spend(COMPARISON_STEPS + len(a.required) + len(b.required))
    required = dict.fromkeys(a.required + b.required)
    least = max(a.minimum, b.minimum, len(required))
    if (a.maximum is not None and a.maximum < least) or (b.maximum is not None and b.maximum < least):
        return True
    ours, theirs = key_goals(a, required), key_goals(b, required)
    return any(_disjoint_goals(goals, ours[key], theirs[key], depth) for key in required)
