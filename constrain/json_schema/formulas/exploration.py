"""The states of a combination's automaton, found from the opening bracket on: one search for arrays and for objects.

Arrays and objects differ in which members may come next, and in what these leave to be decided: ``Moves``.
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
    """What the members still to come must decide. ``offers``: one of them must follow.

    ``position``: items read, up to the length of the longest prefix; named keys that had their turn, 0 in any order.
    ``node``: the diagram. ``read``: the named keys that were read, as bits, where that must be known.
    """

    offers: bool
    position: int
    node: int
    counters: Counters
    read: int = 0


class Move(NamedTuple):
    """A way on from an offer: a member is read, or a key left out (``goal`` is ``None``). ``label``: as of ``Read``."""

    label: str | int | None
    goal: Goal | None
    target: State


class Moves(Protocol):
    """The members that the values of one combination may have, one after the other."""

    start: State

    def closes(self, state: State) -> bool:
        """Whether the formulas hold if no member follows."""

    def after(self, state: State) -> Iterable[Move]:
        """The ways on from an offer."""


def explore_states(goals: Goals, moves: Moves, automaton: ShapeAutomaton) -> ShapeAutomaton:
    """Adds to an automaton all states, with the ways between them. Raises LimitError."""
    numbers: dict[State, int] = {}
    found: list[State] = []  # by number; grows while it is gone through

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
