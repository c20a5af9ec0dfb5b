"""A rule's automaton while it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.grammar import Edge

START, END = 0, 1


class RuleAutomaton:
    """Edges and slots so far; state ``START`` and the accepting state ``END`` exist from the beginning."""

    __slots__ = ("edges", "slots", "states")

    def __init__(self) -> None:
        self.edges: list[Edge] = []
        self.slots: list[int] = []
        self.states = 2

    def state(self) -> int:
        """A new state."""
        self.states += 1
        return self.states - 1

    def slot(self, kind: int) -> int:
        """A new slot: a counter up to ``kind``, or a set of texts."""
        self.slots.append(kind)
        return len(self.slots) - 1
