"""The search for the states of a combination's automaton, from the opening bracket on.

Arrays and objects share the search. They differ in their ``Moves``: the members that may come next, and the questions
that these leave open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from constrain.json_schema.formulas.formulas import NEVER
from constrain.json_schema.formulas.shape_automaton import OPENED, Read, ShapeAutomaton

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.formulas.cases import Counters
    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.goals import Goals


class State(NamedTuple):
    """A position in an array or object, with the conditions that later members must meet.

    ``offers``: whether a member must follow. ``position``: number of items read, up to the longest prefix; or number of
    named keys already read or skipped, 0 in any order. ``node``: the decision diagram of the conditions. ``read``: bits
    of the named keys that were read, where a formula needs them.
    """

    offers: bool
    position: int
    node: int
    counters: Counters
    read: int = 0


class Move(NamedTuple):
    """A transition of an array or object: it reads the next member, or skips a named key (``goal`` is ``None``).

    ``label``: the key, the number of its class, or ``None`` for an item. ``goal``: what the value must satisfy.
    """

    label: str | int | None
    goal: Goal | None
    target: State


class Moves(Protocol):
    """The members that may follow one another in the arrays or objects of one combination."""

    start: State

    def closes(self, state: State) -> bool:
        """Returns whether the array or object may end in this state: then all formulas of its combination hold."""

    def after(self, state: State) -> Iterable[Move]:
        """Yields the members that may come next in this state, and the keys that may be skipped."""


def explore_states(goals: Goals, moves: Moves, automaton: ShapeAutomaton) -> ShapeAutomaton:
    """Adds the states that ``moves`` reaches, and their transitions, to an automaton. Raises LimitError."""
    numbers: dict[State, int] = {}
    found: list[State] = []  # by number; grows during the loop

    def number(state: State) -> int:
        known = numbers.get(state)
        if known is None:
            known = numbers[state] = len(found)
            found.append(state)
        return known

    def add_after(state: State, own: int) -> None:
        if moves.closes(state):
            automaton.closing.add(own)
        offer = State(offers=True, position=state.position, node=state.node, counters=state.counters, read=state.read)
        automaton.go_on.append((own, number(offer)))

    if moves.start.node == NEVER:
        return automaton
    add_after(moves.start, OPENED)
    for own, state in enumerate(found):
        goals.explore()
        if not state.offers:
            add_after(state, own)
            continue
        for label, goal, target in moves.after(state):
            if goal is None:
                automaton.skips.append((own, number(target)))
            else:
                automaton.add_read(Read(own, label, goal, number(target)))
    return automaton
