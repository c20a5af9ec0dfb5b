"""Loops that a counter of their own bounds, such as the items of an array: they become repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.exporting.arcs import Arc, Automaton, counted
from constrain.exporting.nodes import Name
from constrain.language.emptiness import reached
from constrain.language.grammar import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.exporting.nodes import Key


class _Loop(NamedTuple):
    """A loop at a state: its first edges, the edges that leave it, its other states, and how often it may be taken."""

    begins: list[Arc]
    leaves: list[Arc]
    inside: set[int]
    minimum: int
    maximum: int | None


def write_counted_loops(rule: Automaton, define: Callable[[Automaton], Key]) -> None:
    """Replaces the loops of a rule that are counted alone by repetitions; ``define`` takes their bodies."""
    for slot, cap in enumerate(rule.slots):
        if cap < 0:
            continue
        states = {arc.source for arc in rule.arcs if _touches(arc, slot)}
        loops = {state: _loop(rule, slot, state) for state in states}
        if not states or any(loop is None for loop in loops.values()) or _meet(rule, states):
            continue
        for state, loop in loops.items():
            assert loop is not None
            _replace(rule, state, loop, define)


def _touches(arc: Arc, slot: int) -> bool:
    return any(each.slot == slot for each in arc.conditions) or (Action.INCREMENT, slot) in arc.actions


def _meet(rule: Automaton, states: set[int]) -> bool:
    """Returns whether a way leads from one of the states to another: then they count on from each other."""
    onward: dict[int, set[int]] = {}
    for arc in rule.arcs:
        onward.setdefault(arc.source, set()).add(arc.target)
    return any(reached(onward, {state}) & states != {state} for state in states)


def _loop(rule: Automaton, slot: int, state: int) -> _Loop | None:
    """Returns the loop at a state whose edges alone test and change a counter; None if it is not so simple."""
    out = rule.out()[state]
    begins = [arc for arc in out if (Action.INCREMENT, slot) in arc.actions]
    leaves = [arc for arc in out if (Action.INCREMENT, slot) not in arc.actions]
    cap = rule.slots[slot]
    bounds = {_begin_bounds(arc, slot, cap) for arc in begins}
    enough = {_leave_bound(arc, slot) for arc in leaves}
    if state in rule.accepting:
        enough.add(0)
    if len(bounds) != 1 or len(enough) != 1 or None in bounds or None in enough:
        return None
    ((maximum,),) = bounds  # type: ignore[misc]  # no None is left
    (minimum,) = enough
    inside = _inside(rule, state, begins)
    assert minimum is not None
    if inside is None or _returns(rule, state, begins) or minimum > min(cap, cap if maximum is None else maximum):
        return None
    return _Loop(begins, leaves, inside, minimum, maximum)


def _begin_bounds(arc: Arc, slot: int, cap: int) -> tuple[int | None] | None:
    """Returns how often an edge may be taken; None if it has other memory or may read the empty text."""
    names_terminal = isinstance(arc.label, Name) and arc.label.key[0] == "terminal"
    if arc.actions != ((Action.INCREMENT, slot),) or arc.excluding >= 0 or arc.distinct >= 0 or not names_terminal:
        return None
    if not arc.conditions:
        return (None,)
    (condition, *others) = arc.conditions
    if others or condition.slot != slot or condition.minimum > 0 or condition.maximum is None:
        return None
    return (None if condition.maximum >= cap else condition.maximum + 1,)


def _leave_bound(arc: Arc, slot: int) -> int | None:
    """Returns how often the loop must have been taken before an edge; None if it tests or changes other memory."""
    if arc.actions or arc.excluding >= 0 or arc.distinct >= 0:
        return None
    if not arc.conditions:
        return 0
    (condition, *others) = arc.conditions
    return None if others or condition.slot != slot or condition.maximum is not None else condition.minimum


def _inside(rule: Automaton, state: int, begins: list[Arc]) -> set[int] | None:
    """Returns the states of the loop but its first; None if anything else leads into it or out of it."""
    out = rule.out()
    inside: set[int] = set()
    waiting = [arc.target for arc in begins]
    while waiting:
        at = waiting.pop()
        if at == state or at in inside:
            continue
        inside.add(at)
        if at in rule.accepting or any(arc.has_memory for arc in out[at]):
            return None
        waiting += [arc.target for arc in out[at]]
    if 0 in inside:
        return None
    others = (arc for arc in rule.arcs if arc.target in inside and arc.source not in inside)
    return None if any(arc not in begins for arc in others) else inside


def _returns(rule: Automaton, state: int, begins: list[Arc]) -> bool:
    """Returns whether the loop can be left and come to again, with the counter where it was."""
    onward: dict[int, set[int]] = {}
    for arc in rule.arcs:
        if arc not in begins:
            onward.setdefault(arc.source, set()).add(arc.target)
    return any(state in reached(onward, {target}) for target in onward.get(state, ()))


def _replace(rule: Automaton, state: int, loop: _Loop, define: Callable[[Automaton], Key]) -> None:
    body = [arc for arc in rule.arcs if arc.source in loop.inside]
    numbers = {at: index for index, at in enumerate(sorted(loop.inside), 2)}
    arcs = [Arc(numbers.get(arc.source, 0), arc.label, numbers.get(arc.target, 1)) for arc in (*loop.begins, *body)]
    part = Name(define(Automaton(f"{rule.name}/item", arcs, {1})))
    after = rule.states
    kept = [arc for arc in rule.arcs if arc.source != state and arc.source not in loop.inside]
    rule.arcs = [
        *kept,
        *(Arc(state, label, after) for label in counted(part, loop.minimum, loop.maximum)),
        *(Arc(after, arc.label, arc.target) for arc in loop.leaves),
    ]
    if state in rule.accepting:
        rule.accepting = rule.accepting - {state} | {after}
