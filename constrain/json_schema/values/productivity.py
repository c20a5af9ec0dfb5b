"""Productivity: the goals that have a value, as a least fixed point.

A goal is productive if one of its shapes needs no unproductive goal. Each other goal waits for one blocking goal per
shape, and is examined again when that goal turns out to be productive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError, UnsupportedSchemaError
from constrain.json_schema.shapes.combined import is_array
from constrain.json_schema.shapes.data import Combination, Shapes
from constrain.json_schema.shapes.goal import place
from constrain.json_schema.shapes.keys import capacity
from constrain.kernel import unproductive_item, unproductive_member
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.json_schema.shapes.data import Goal, ObjectShape
    from constrain.json_schema.shapes.goals import Goals


GOAL_STEPS = 2
"""Compilation steps for one subschema, or one combination of several that a value must satisfy."""


def expand_all(goals: Goals, root: Goal) -> list[Goal]:
    """Expands every goal reachable from ``root``; returns the goals, each after one that leads to it."""
    found = {root}
    queue = [root]
    waiting: list[Goal] = []  # alternatives are compared after all goals they lead to are expanded
    for goal in queue:
        spend(GOAL_STEPS)
        shapes = _expanded(goals, goal)
        for child in _parts(shapes):
            if child not in found:
                found.add(child)
                queue.append(child)
        if goals.policies.close_objects and len(shapes.objects) + len(shapes.combined) > 1 and not goal.together:
            waiting.append(goal)
        while waiting and goal is queue[-1]:
            queue += _close_together(goals, waiting.pop(), found)
    return queue


def _expanded(goals: Goals, goal: Goal) -> Shapes:
    """Returns the shapes of a goal, with the automata of its combinations."""
    try:
        shapes = goals.shapes(goal)
        if shapes.combined:
            add_automata(goals, goal, shapes)
    except (LimitError, UnsupportedSchemaError) as error:
        place(error, goal)
        raise
    return shapes


def _close_together(goals: Goals, goal: Goal, found: set[Goal]) -> Iterator[Goal]:
    """Closes alternatives that may hold together; yields the goals that are new."""
    from constrain.json_schema.formulas.alternatives import alternatives_together

    assert goal.shapes is not None
    goal.together = alternatives_together(goals, goal.shapes, goals.pointer_of(goal))
    for child in _parts_together(goal):
        if child not in found:
            found.add(child)
            yield child


def children(goal: Goal) -> Iterator[Goal]:
    """Yields the goals of the direct items and members of a goal's arrays and objects, not of those inside them."""
    assert goal.shapes is not None
    yield from _parts(goal.shapes)
    yield from _parts_together(goal)


def _parts_together(goal: Goal) -> Iterator[Goal]:
    for group in goal.together:
        for shape in group.closed:
            if isinstance(shape, Combination):
                assert shape.automaton is not None
                yield from shape.automaton.goals()
            else:
                yield from _parts(Shapes(objects=(shape,)))


def _parts(shapes: Shapes) -> Iterator[Goal]:
    for array in shapes.arrays:
        yield from array.prefix
        yield array.rest
    for shape in shapes.objects:
        yield from shape.properties.values()
        for pattern in shape.patterns:
            yield pattern.goal
        yield shape.additional
    for combined in shapes.combined:
        for variant in (combined, combined.closed):
            if variant is not None and variant.automaton is not None:
                yield from variant.automaton.goals()


def add_automata(goals: Goals, goal: Goal, shapes: Shapes) -> None:
    """Makes the missing automata of combinations."""
    from constrain.json_schema.formulas.arrays import array_automaton
    from constrain.json_schema.formulas.closing import closed_combination, declares_keys
    from constrain.json_schema.formulas.objects import object_automaton

    pointer = goals.pointer_of(goal)
    for shape in shapes.combined:
        if shape.automaton is None:
            build = array_automaton if is_array(shape) else object_automaton
            shape.automaton = build(goals, shape, pointer)
            if goals.policies.close_objects and not is_array(shape) and declares_keys(shape):
                shape.closed = closed_combination(goals, shape)
                if shape.closed is not None:
                    shape.closed.automaton = object_automaton(goals, shape.closed, pointer)


def mark_productive(order: list[Goal], *, close_objects: bool = False) -> None:
    """Sets ``productive`` on every goal of ``order`` that has a value.

    With ``close_objects``, objects stay open if only undeclared keys end a value that contains itself.
    """
    _mark(order)
    if not close_objects:
        return
    from constrain.json_schema.formulas.closing import leave_open

    alive = [goal for goal in order if goal.productive and not goal.is_fixed]
    for goal in alive:
        goal.productive = False
    while True:
        _mark(alive, closed=True)
        alive = [goal for goal in alive if not goal.productive]
        if not alive:
            return
        opened = [leave_open(goal) for goal in alive]
        assert any(opened)


def _mark(order: list[Goal], *, closed: bool = False) -> None:
    waiting: dict[Goal, dict[Goal, None]] = {}  # each goal once: one that waits for many would be examined many times
    for start in reversed(order):
        stack = [start]
        while stack:
            goal = stack.pop()
            if goal.productive:
                continue
            blockers = _blockers(goal, closed=closed)
            if blockers is None:
                goal.productive = True
                stack += waiting.pop(goal, ())
            else:
                for blocker in blockers:
                    waiting.setdefault(blocker, {})[goal] = None


def _blockers(goal: Goal, *, closed: bool) -> list[Goal] | None:
    """Returns the goals that each shape waits for; ``None`` if some shape waits for none."""
    shapes = goal.shapes
    assert shapes is not None
    objects: Iterable[ObjectShape] = shapes.objects
    combinations: Iterable[Combination] = shapes.combined
    if closed and (objects or combinations):
        from constrain.json_schema.formulas.closing import closed_forms

        objects, combinations = closed_forms(goal)
    if shapes.simple or shapes.numbers or shapes.strings:
        return None
    spend(2 * (len(shapes.arrays) + sum(1 + len(shape.required) // 5 for shape in objects)))
    blockers: list[Goal] = []
    for array in shapes.arrays:
        item = unproductive_item(array)
        if item is None:
            return None
        blockers.append(item[0])
    for shape in objects:
        member = unproductive_member(shape)
        if member is not None:
            blockers.append(member[0])
        elif shape.minimum == 0 or capacity(shape) >= shape.minimum:
            return None
        else:  # any further member may help
            blockers += (child for child in _parts(Shapes(objects=(shape,))) if not child.productive)
    for combined in combinations:
        assert combined.automaton is not None
        frontier = combined.automaton.blockers()
        if frontier is None:
            return None
        blockers += frontier
    return blockers
