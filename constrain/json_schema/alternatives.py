"""Alternatives of one object that may hold together: what closing objects for generation makes of them.

An object may have the keys that any alternative declares that holds for it. Where two may hold at once, the objects of
both, with the keys of both, are one more alternative. So each alternative keeps its own order of keys, and no value is
ever asked to violate a schema. As that may double the alternatives with each one, many of them become one formula.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.closing import closed_combination, declares_keys
from constrain.json_schema.combined import Combined, formula_of, intersect_combined, is_array
from constrain.json_schema.disjoint import DISCRIMINATOR_DEPTH, MAX_BRANCH_PAIRS, are_disjoint
from constrain.json_schema.formulas import And, Atom, Formula, Not, Or
from constrain.json_schema.goal import ANY, NOTHING
from constrain.json_schema.object_formulas import object_automaton
from constrain.json_schema.objects import ANY_OBJECT, ObjectShape, intersect_objects, key_goals
from constrain.json_schema.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.json_schema.goal import Goal
    from constrain.json_schema.goals import Goals

MAX_TOGETHER = 30
"""Alternatives that those of one object make together, before they become one formula."""

FEW_ALTERNATIVES = 8
"""So many are compared pair by pair; of more, at first only a key is looked for whose value tells them apart."""

Alternative = ObjectShape | Combined


class Together(NamedTuple):
    """Alternatives that may hold together, and the closed ones in their place; where no object is left, they stay."""

    members: tuple[Alternative, ...]
    closed: tuple[Alternative, ...]


def alternatives_together(goals: Goals, shapes: Shapes, pointer: str) -> tuple[Together, ...]:
    """The objects of a value that cannot be closed each by itself. Raises LimitError."""
    alternatives: list[Alternative] = [*shapes.objects, *(each for each in shapes.combined if not is_array(each))]
    if len(alternatives) < 2:  # noqa: PLR2004
        return ()
    groups = _overlapping(goals, alternatives)
    return tuple(_together(goals, group, pointer) for group in groups if any(map(declares_keys, group)))


def _together(goals: Goals, members: list[Alternative], pointer: str) -> Together:
    found = _all_together(goals, members)
    closed = [_closed(goals, each) for each in found or [Combined(ANY_OBJECT, (Or(tuple(map(formula_of, members))),))]]
    for each in closed:
        if isinstance(each, Combined) and each.automaton is None:
            each.automaton = object_automaton(goals, each, pointer)
    return Together(tuple(members), tuple(closed))


def _closed(goals: Goals, shape: Alternative) -> Alternative:
    """The alternative without the keys that it does not declare, and be it without any key."""
    if isinstance(shape, Combined):
        return shape.closed or closed_combination(goals, shape) or shape
    return _closed_shape(shape)


def _closed_shape(shape: ObjectShape) -> ObjectShape:
    return shape._replace(additional=NOTHING) if shape.open else shape


def _all_together(goals: Goals, members: list[Alternative]) -> list[Alternative] | None:
    """The members, and what they have in common where that allows more keys; ``None`` if that is too much."""
    found: list[Alternative] = []
    for number, member in enumerate(members, 1):
        later = members[number:]
        more = [member]
        superseded: set[int] = set()
        for other in found:
            both = _intersection(goals, other, member) if _may_overlap(goals, other, member) else None
            if both is not None and not _covers(goals, other, both) and not _covers(goals, member, both):
                more.append(both)
                superseded |= {
                    id(one)
                    for one, two in ((other, member), (member, other))
                    if _absorbs(both, one) and all(_agrees(each, two) for each in later)
                }
        found = [each for each in (*found, *more) if id(each) not in superseded]
        if len(found) > MAX_TOGETHER:
            return None
    return [
        each
        for place, each in enumerate(found)
        if not any(_absorbs(other, each) for other in found[place + 1 :])
        and not any(_absorbs(other, each) and not _absorbs(each, other) for other in found[:place])
    ]


def _intersection(goals: Goals, a: Alternative, b: Alternative) -> Alternative | None:
    if isinstance(a, Combined) or isinstance(b, Combined):
        combined = intersect_combined(goals, _as_shapes(a), _as_shapes(b))
        return combined[0] if combined else None
    return intersect_objects(goals, a, b)


def _as_shapes(shape: Alternative) -> Shapes:
    return Shapes(combined=(shape,)) if isinstance(shape, Combined) else Shapes(objects=(shape,))


def _base(shape: Alternative) -> ObjectShape:
    base = shape.base if isinstance(shape, Combined) else shape
    assert isinstance(base, ObjectShape)
    return base


def _formulas(shape: Alternative) -> tuple[Formula, ...]:
    return shape.formulas if isinstance(shape, Combined) else ()


# Which alternatives may hold together.


def _overlapping(goals: Goals, alternatives: list[Alternative]) -> Iterator[list[Alternative]]:
    """Groups of alternatives that may overlap, directly or by way of others, and that declare different keys."""
    profiles = [_profile(goals, each) for each in alternatives]
    if all(profile == profiles[0] for profile in profiles):
        return
    group_of = list(range(len(alternatives)))

    def group(index: int) -> int:
        while group_of[index] != index:
            group_of[index] = index = group_of[group_of[index]]
        return index

    for compared, (one, two) in enumerate(_pairs(goals, alternatives)):
        if group(one) != group(two) and profiles[one] != profiles[two]:
            if compared > MAX_BRANCH_PAIRS or _may_overlap(goals, alternatives[one], alternatives[two]):
                group_of[group(two)] = group(one)
    members: dict[int, list[Alternative]] = {}
    for index, each in enumerate(alternatives):
        members.setdefault(group(index), []).append(each)
    yield from (each for each in members.values() if len(each) > 1)


def _profile(goals: Goals, shape: Alternative) -> object:
    """What decides how an alternative is closed, and the objects within it."""
    base = _base(shape)
    return (
        base.open,
        frozenset((name, _structure(goals, goal)) for name, goal in base.properties.items() if goal is not NOTHING),
        frozenset(
            (pattern.text, _structure(goals, pattern.goal)) for pattern in base.patterns if pattern.goal is not NOTHING
        ),
        _structure(goals, base.additional),
        _declaring(shape),
    )


def _declaring(shape: Alternative) -> frozenset[Formula]:
    """The formulas by which keys are declared."""
    return frozenset(each for each in _formulas(shape) if declares_keys(Combined(ANY_OBJECT, (each,))))


def _structure(goals: Goals, goal: Goal) -> Goal | None:
    """The goal, if there may be objects within its values."""
    shapes = goals.shapes(goal)
    return goal if shapes.arrays or shapes.objects or shapes.combined else None


def _pairs(goals: Goals, alternatives: list[Alternative]) -> Iterator[tuple[int, int]]:
    """Pairs of alternatives, without those that a required key with listed values tells apart."""
    numbers = range(len(alternatives))
    if len(alternatives) > FEW_ALTERNATIVES:
        bases = [_base(each) for each in alternatives]
        shared = set(bases[0].required).intersection(*(base.required for base in bases[1:]))
        for key in sorted(shared):
            listed = [_listed(goals, key_goals(base, (key,))[key]) for base in bases]
            if None not in listed:
                having: dict[object, list[int]] = {}
                for number, values in enumerate(listed):
                    for value in values or ():
                        having.setdefault(value, []).append(number)
                yield from dict.fromkeys(pair for same in having.values() for pair in combinations(same, 2))
                return
    yield from combinations(numbers, 2)


def _listed(goals: Goals, goal: Goal) -> list[object] | None:
    """All values of the goal, if they are listed strings."""
    shapes = goals.shapes(goal)
    if shapes._replace(strings=()) != Shapes() or any(shape.values is None for shape in shapes.strings):
        return None
    return [value for shape in shapes.strings for value in shape.values or ()]


def _may_overlap(goals: Goals, a: Alternative, b: Alternative) -> bool:
    return not (
        any(isinstance(formula, Not) and _surely(formula.part, b) for formula in _formulas(a))
        or any(isinstance(formula, Not) and _surely(formula.part, a) for formula in _formulas(b))
        or are_disjoint(goals, Shapes(objects=(_base(a),)), Shapes(objects=(_base(b),)), DISCRIMINATOR_DEPTH)
    )


def _surely(formula: Formula, shape: Alternative) -> bool:
    """Whether it is plain to see that the formula holds for all these objects."""
    match formula:
        case Atom(each):
            return isinstance(each, ObjectShape) and _implies(_base(shape), each)
        case And(parts):
            return all(part in _formulas(shape) or _surely(part, shape) for part in parts)
        case Or(parts):
            return any(_surely(part, shape) for part in parts)
    return False


# What makes one more alternative superfluous.


def _covers(goals: Goals, one: Alternative, both: Alternative) -> bool:
    """Whether ``one``, of which ``both`` is a part, allows the same keys, in the object and within it, once closed."""
    if _declaring(one) != _declaring(both):
        return False
    part, whole = _base(both), _base(one)
    names = [name for name, goal in part.properties.items() if goal is not NOTHING]
    if whole.open:
        if not whole.properties.keys() >= set(names):
            return False
        if not {pattern.text for pattern in whole.patterns} >= {
            pattern.text for pattern in part.patterns if pattern.goal is not NOTHING
        }:
            return False
    ours, theirs = key_goals(whole, names), key_goals(part, names)
    pairs = [(ours[name], theirs[name]) for name in names]
    in_whole = {pattern.text: pattern.goal for pattern in whole.patterns}
    pairs += ((in_whole.get(pattern.text, whole.additional), pattern.goal) for pattern in part.patterns)
    pairs.append((whole.additional, part.additional))
    return all(a is b or a is ANY or _structure(goals, b) is None for a, b in pairs)


def _absorbs(larger: Alternative, shape: Alternative) -> bool:
    """Whether all objects of ``shape``, closed, are objects of ``larger``, closed, with their keys in the same order."""
    if isinstance(larger, Combined) or isinstance(shape, Combined):
        return False
    kept = _closed_shape(shape)
    if larger.open and not (shape.open and {each.text for each in larger.patterns} >= {e.text for e in kept.patterns}):
        return False
    names = [name for name, goal in kept.properties.items() if goal is not NOTHING]
    others = [name for name in larger.properties if name not in kept.properties]
    return (
        [name for name in larger.properties if name in set(names)] == names
        and all(goal is NOTHING for goal in key_goals(kept, others).values())
        and _late(kept) == _late(larger)
        and _implies(kept, larger)
    )


def _late(shape: ObjectShape) -> list[str]:
    """The required keys that come after those that are declared."""
    return [name for name in shape.required if name not in shape.properties]


def _agrees(one: Alternative, two: Alternative) -> bool:
    """Whether the first, closed, asks of every key at least what the second asks."""
    return isinstance(one, ObjectShape) and isinstance(two, ObjectShape) and _asks_for(_closed_shape(one), two)


def _implies(one: ObjectShape, two: ObjectShape) -> bool:
    """Whether it is plain to see that all objects of the first shape have the second."""
    if not set(one.required) >= set(two.required) or max(one.minimum, len(one.required)) < two.minimum:
        return False
    if two.maximum is not None and (one.maximum is None or one.maximum > two.maximum):
        return False
    return _asks_for(one, two)


def _asks_for(one: ObjectShape, two: ObjectShape) -> bool:
    """Whether the first shape asks of every key what the second asks."""
    names = dict.fromkeys((*one.properties, *two.properties))
    ours, theirs = key_goals(one, names), key_goals(two, names)
    if not all(_goal_implies(ours[name], theirs[name]) for name in names):
        return False
    asked = {pattern.text: pattern.goal for pattern in two.patterns}
    others = dict.fromkeys((*asked.values(), two.additional))  # what a key may be asked for that has no pattern here
    for pattern in one.patterns:
        wanted: Iterable[Goal] = (asked[pattern.text],) if pattern.text in asked else others
        if not all(_goal_implies(pattern.goal, goal) for goal in wanted):
            return False
    return all(_goal_implies(one.additional, goal) for goal in others)


def _goal_implies(one: Goal, two: Goal) -> bool:
    return one is two or two is ANY or one is NOTHING or set(two.parts) <= set(one.parts)
