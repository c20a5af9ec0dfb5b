"""Closing of objects whose alternatives may hold together (``anyOf`` and overlapping ``oneOf``), for generation.

An object may have every key that one of its valid alternatives declares. If two alternatives may hold at once, the
objects of both, with the keys of both, become one more alternative. So each alternative keeps its own order of keys,
and no value has to violate a schema. Each overlap may double the number of alternatives. If they become too many, each
is closed by itself, and a warning says so.

Alternatives that overlap, directly or through others, are treated as one object. The object stays open if no
alternative declares a key, or if closing would leave no value. In a closed object, an alternative that declares nothing
adds no key, and an alternative with its own ``additionalProperties`` allows the keys that it names. An alternative
without overlap is an object of its own.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from constrain.errors import describe_pointer
from constrain.json_schema.formulas.closing import closed_combination, declares_keys
from constrain.json_schema.formulas.disjoint import DISCRIMINATOR_DEPTH, are_disjoint, listed_scalars
from constrain.json_schema.formulas.objects import object_automaton
from constrain.json_schema.shapes.combined import intersect_combined, is_array
from constrain.json_schema.shapes.data import (
    ANY,
    ANY_OBJECT,
    NOTHING,
    Alternative,
    And,
    Atom,
    Combination,
    Formula,
    Not,
    ObjectShape,
    Or,
    Shapes,
    Together,
)
from constrain.json_schema.shapes.objects import intersect_objects, key_goals

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.goals import Goals

MAX_TOGETHER = 40
"""Alternatives of one object, combinations included: enough for all combinations of five. Beyond: each object has the
keys of one alternative only, and a warning says so."""

COMPARED_PAIRS = 50_000
"""Pairs of alternatives that are compared; later ones count as overlapping."""

FEW_ALTERNATIVES = 8
"""Number of alternatives up to which all pairs are compared; for more, a discriminating key is searched first."""


def alternatives_together(goals: Goals, shapes: Shapes, pointer: str) -> tuple[Together, ...]:
    """Returns the groups of alternatives that must be closed together. Raises LimitError."""
    alternatives: list[Alternative] = [*shapes.objects, *(each for each in shapes.combined if not is_array(each))]
    if len(alternatives) < 2:
        return ()
    groups = _overlapping(goals, alternatives)
    return tuple(_together(goals, group, pointer) for group in groups if any(map(declares_keys, group)))


def _together(goals: Goals, members: list[Alternative], pointer: str) -> Together:
    found = _all_together(goals, members)
    if found is None:
        goals.warnings[
            f"objects at {describe_pointer(pointer)} have the keys of one alternative and not of several at once: "
            f"together, {len(members)} alternatives make more than MAX_TOGETHER = {MAX_TOGETHER}"
        ] = None
    closed = [_closed(goals, each) for each in found or members]
    for each in closed:
        if isinstance(each, Combination) and each.automaton is None:
            each.automaton = object_automaton(goals, each, pointer)
    return Together(tuple(members), tuple(closed))


def _closed(goals: Goals, shape: Alternative) -> Alternative:
    """Returns the alternative without undeclared keys, even if no key is left."""
    if isinstance(shape, Combination):
        return shape.closed or closed_combination(goals, shape) or shape
    return _closed_shape(shape)


def _closed_shape(shape: ObjectShape) -> ObjectShape:
    return shape._replace(additional=NOTHING) if shape.open else shape


def _all_together(goals: Goals, members: list[Alternative]) -> list[Alternative] | None:
    """Returns the members and their larger combinations; ``None`` if there are too many."""
    found: list[Alternative] = []
    for number, member in enumerate(members, 1):
        more = [member]
        for other in found:
            if _concerned(other, member) and _may_overlap(goals, other, member):
                both = _intersection(goals, other, member)
                if both is not None and not _covers(goals, other, both) and not _covers(goals, member, both):
                    more.append(both)
        found = _without_absorbed(goals, found, more, members[number:])
        if len(found) > MAX_TOGETHER:
            return None
    return found


def _without_absorbed(
    goals: Goals, found: list[Alternative], more: list[Alternative], later: list[Alternative]
) -> list[Alternative]:
    """Returns both lists without alternatives that a member of the second list makes redundant in every combination."""
    kept = [*found, *more]
    superfluous: set[int] = set()
    for larger in sorted(more[1:], key=lambda each: -len(_base(each).properties)):
        if id(larger) not in superfluous:  # an alternative that one of these absorbs is gone already
            superfluous |= {
                id(each)
                for each in kept
                if each is not larger
                and id(each) not in superfluous
                and _absorbs(goals, larger, each)
                and all(_absorbs_with(larger, each, member) for member in later)
            }
    return [each for each in kept if id(each) not in superfluous]


def _intersection(goals: Goals, a: Alternative, b: Alternative) -> Alternative | None:
    if isinstance(a, Combination) or isinstance(b, Combination):
        combined = intersect_combined(goals, _as_shapes(a), _as_shapes(b))
        return combined[0] if combined else None
    both = intersect_objects(goals, a, b)
    if both is None:
        return None
    properties = {name: goal if any(goals.shapes(goal)) else NOTHING for name, goal in both.properties.items()}
    if any(properties.get(name) is NOTHING for name in both.required):
        return None
    return both._replace(properties=properties)


def _as_shapes(shape: Alternative) -> Shapes:
    return Shapes(combined=(shape,)) if isinstance(shape, Combination) else Shapes(objects=(shape,))


def _base(shape: Alternative) -> ObjectShape:
    base = shape.base if isinstance(shape, Combination) else shape
    assert isinstance(base, ObjectShape)
    return base


def _formulas(shape: Alternative) -> tuple[Formula, ...]:
    return shape.formulas if isinstance(shape, Combination) else ()


# Overlaps between alternatives.


def _overlapping(goals: Goals, alternatives: list[Alternative]) -> Iterator[list[Alternative]]:
    """Yields groups of alternatives that may overlap, directly or through others, and need joint closing.

    Two alternatives that declare the same keys, and keep values when closed, need none.
    """
    profiles = [_profile(goals, each) for each in alternatives]
    lasting = [_surely_lasts(each) for each in alternatives]
    if all(lasting) and all(profile == profiles[0] for profile in profiles):
        return
    group_of = list(range(len(alternatives)))

    def group(index: int) -> int:
        while group_of[index] != index:
            group_of[index] = index = group_of[group_of[index]]
        return index

    for compared, (one, two) in enumerate(_pairs(goals, alternatives)):
        if group(one) == group(two) or (lasting[one] and lasting[two] and profiles[one] == profiles[two]):
            continue
        a, b = alternatives[one], alternatives[two]
        if _concerned(a, b) and (compared > COMPARED_PAIRS or _may_overlap(goals, a, b)):
            group_of[group(two)] = group(one)
    members: dict[int, list[Alternative]] = {}
    for index, each in enumerate(alternatives):
        members.setdefault(group(index), []).append(each)
    yield from (each for each in members.values() if len(each) > 1)


def _profile(goals: Goals, shape: Alternative) -> object:
    """Returns a key that is equal for alternatives with the same closed form, nested objects included."""
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
    """Returns the formulas that declare keys."""
    return frozenset(each for each in _formulas(shape) if declares_keys(Combination(ANY_OBJECT, (each,))))


def _concerned(one: Alternative, two: Alternative) -> bool:
    """Returns whether at least one of the two alternatives needs closing."""
    return _base(one).open or _base(two).open


def _surely_lasts(shape: Alternative) -> bool:
    """Returns whether the closed alternative obviously has a value; False if that is unclear."""
    return isinstance(shape, ObjectShape) and not shape.minimum and shape.properties.keys() >= set(shape.required)


def _structure(goals: Goals, goal: Goal) -> Goal | None:
    """Returns the goal if its values may contain objects."""
    seen = {goal}
    stack = [goal]
    while stack:
        shapes = goals.shapes(stack.pop())
        if shapes.objects or shapes.combined:
            return goal
        for array in shapes.arrays:
            for part in (*array.prefix, array.rest):
                if part not in seen:
                    seen.add(part)
                    stack.append(part)
    return None


def _pairs(goals: Goals, alternatives: list[Alternative]) -> Iterator[tuple[int, int]]:
    """Yields pairs of alternatives, except pairs whose listed values of a required key differ."""
    numbers = range(len(alternatives))
    if len(alternatives) > FEW_ALTERNATIVES:
        bases = [_base(each) for each in alternatives]
        shared = set(bases[0].required).intersection(*(base.required for base in bases[1:]))
        for key in sorted(shared):
            listed = [listed_scalars(goals.shapes(key_goals(base, (key,))[key])) for base in bases]
            if None not in listed:
                having: dict[object, list[int]] = {}
                for number, values in enumerate(listed):
                    for value in values or ():
                        having.setdefault(value, []).append(number)
                yield from dict.fromkeys(pair for same in having.values() for pair in combinations(same, 2))
                return
    yield from combinations(numbers, 2)


def _may_overlap(goals: Goals, a: Alternative, b: Alternative) -> bool:
    return not (
        any(isinstance(formula, Not) and _surely(formula.part, b) for formula in _formulas(a))
        or any(isinstance(formula, Not) and _surely(formula.part, a) for formula in _formulas(b))
        or are_disjoint(goals, Shapes(objects=(_base(a),)), Shapes(objects=(_base(b),)), DISCRIMINATOR_DEPTH)
    )


def _surely(formula: Formula, shape: Alternative) -> bool:
    """Returns whether the formula obviously holds for all objects of the shape; False if that is unclear."""
    match formula:
        case Atom(each):
            return isinstance(each, ObjectShape) and _implies(_base(shape), each)
        case And(parts):
            return all(part in _formulas(shape) or _surely(part, shape) for part in parts)
        case Or(parts):
            return any(_surely(part, shape) for part in parts)
    return False


# Redundant alternatives.


def _covers(goals: Goals, one: Alternative, both: Alternative) -> bool:
    """Returns whether ``one``, once closed, allows every key of ``both``, its subset, at every level."""
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
    return all(a is b or _structure(goals, b) is None for a, b in pairs)


def _absorbs(goals: Goals, larger: Alternative, shape: Alternative) -> bool:
    """Returns whether the closed ``larger`` has every object of the closed ``shape``, with keys in the same order.

    This stays true under further constraints on the keys that ``shape`` declares.
    """
    if isinstance(larger, Combination) or isinstance(shape, Combination):
        return False
    if not set(shape.required) >= set(larger.required) or _late(shape) != _late(larger):
        return False
    names = {name: goal for name, goal in shape.properties.items() if goal is not NOTHING}
    if [name for name in larger.properties if name in names] != list(names):
        return False
    kept = _closed_shape(shape)
    if larger.open and not (shape.open and {each.text for each in larger.patterns} >= {e.text for e in kept.patterns}):
        return False
    if kept.patterns or kept.additional is not NOTHING:  # other keys would come later than declared ones
        others = [name for name in larger.properties if name not in kept.properties]
        if any(goal is not NOTHING for goal in key_goals(kept, others).values()):
            return False

    def absorbed(one: Goal, two: Goal) -> bool:
        """Returns whether every closed value of the first goal is one of the second."""
        return one is two or one is NOTHING or (_goal_implies(one, two) and _structure(goals, one) is None)

    return _implies(kept, larger, absorbed)


def _late(shape: ObjectShape) -> list[str]:
    """Returns the required keys that come after the declared ones."""
    return [name for name in shape.required if name not in shape.properties]


def _absorbs_with(larger: Alternative, shape: Alternative, member: Alternative) -> bool:
    """Returns whether ``larger`` still absorbs ``shape`` after both are intersected with ``member``."""
    if isinstance(larger, Combination) or isinstance(shape, Combination) or isinstance(member, Combination):
        return False
    return not shape.open or _asks_for(_closed_shape(member), larger, except_for=shape.properties)


def _goal_implies(one: Goal, two: Goal) -> bool:
    return one is two or two is ANY or one is NOTHING or set(two.parts) <= set(one.parts)


def _implies(one: ObjectShape, two: ObjectShape, implies: Callable[[Goal, Goal], bool] = _goal_implies) -> bool:
    """Returns whether every object of the first shape obviously has the second."""
    if not set(one.required) >= set(two.required) or max(one.minimum, len(one.required)) < two.minimum:
        return False
    if two.maximum is not None and (one.maximum is None or one.maximum > two.maximum):
        return False
    return _asks_for(one, two, implies)


def _asks_for(
    one: ObjectShape,
    two: ObjectShape,
    implies: Callable[[Goal, Goal], bool] = _goal_implies,
    except_for: Container[str] = (),
) -> bool:
    """Returns whether the first shape constrains every key, apart from some, as much as the second."""
    if one.additional is NOTHING and not one.patterns and not two.patterns:
        asked, other = two.properties, two.additional
        return all(
            goal is NOTHING or name in except_for or implies(goal, asked.get(name, other))
            for name, goal in one.properties.items()
        )
    names = [name for name in dict.fromkeys((*one.properties, *two.properties)) if name not in except_for]
    ours, theirs = key_goals(one, names), key_goals(two, names)
    if not all(implies(ours[name], theirs[name]) for name in names):
        return False
    by_pattern = {pattern.text: pattern.goal for pattern in two.patterns}
    others = dict.fromkeys((*by_pattern.values(), two.additional))  # the constraints on a key without this pattern
    for pattern in one.patterns:
        wanted: Iterable[Goal] = (by_pattern[pattern.text],) if pattern.text in by_pattern else others
        if not all(implies(pattern.goal, goal) for goal in wanted):
            return False
    return all(implies(one.additional, goal) for goal in others)
