"""The search for the states of an automaton, with members that are made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from constrain.json_schema.formulas.exploration import Move, State, explore_states
from constrain.json_schema.formulas.formulas import ALWAYS, NEVER
from constrain.json_schema.formulas.shape_automaton import OPENED, Read, ShapeAutomaton
from constrain.json_schema.shapes.data import ANY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.shapes.goals import Goals


class Counted:
    """Up to two members, of which the first may be left out."""

    def __init__(self, node: int = ALWAYS) -> None:
        self.start = State(offers=False, position=0, node=node, counters=(0,))

    def closes(self, state: State) -> bool:
        return state.position == 2

    def after(self, state: State) -> Iterator[Move]:
        if state.position < 2:
            following = state._replace(position=state.position + 1)
            yield Move("key", ANY, following._replace(offers=False))
            if state.position == 0:
                yield Move(None, None, following)


class Explored:
    """Counts states, as ``Goals`` do."""

    number = 0

    def explore(self) -> None:
        self.number += 1


def explored(node: int = ALWAYS) -> tuple[ShapeAutomaton, int]:
    goals = Explored()
    return explore_states(cast("Goals", cast("Any", goals)), Counted(node), ShapeAutomaton()), goals.number


def test_every_state_is_found_once_and_in_the_order_in_which_it_is_met() -> None:
    automaton, number = explored()
    assert automaton.go_on == [(OPENED, 0), (1, 2), (3, 4)]
    assert automaton.reads == [Read(0, "key", ANY, 1), Read(2, "key", ANY, 3)]
    assert automaton.skips == [(0, 2)]
    assert automaton.closing == {3}
    assert number == 5


def test_formulas_that_never_hold_have_no_states() -> None:
    automaton, number = explored(NEVER)
    assert not automaton.go_on
    assert number == 0
