"""The automaton of a rule under construction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from constrain.errors import LimitError
from constrain.work import MAX_COUNTER

if TYPE_CHECKING:
    from constrain.language.grammar import Edge

START, END = 0, 1


class RuleAutomaton:
    """The edges so far; state ``START`` and the accepting state ``END`` always exist."""

    __slots__ = ("edges", "states")

    def __init__(self) -> None:
        self.edges: list[Edge] = []
        self.states = 2

    def state(self) -> int:
        """Returns a new state."""
        self.states += 1
        return self.states - 1


def refuse_count() -> NoReturn:
    """Raises the error for a counter that must count too far."""
    raise LimitError(f"a bound on items or members exceeds MAX_COUNTER = {MAX_COUNTER}")
