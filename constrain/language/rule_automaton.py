"""The automaton of a rule under construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.work import MAX_COUNTER

if TYPE_CHECKING:
    from constrain.language.grammar import Edge

START, END = 0, 1


class RuleAutomaton:
    """The edges and slots so far; state ``START`` and the accepting state ``END`` always exist.

    Only one alternative of a rule is active at a time, so alternatives share slots.
    """

    __slots__ = ("_slots", "_used", "edges", "slots", "states")

    def __init__(self) -> None:
        self.edges: list[Edge] = []
        self.slots: list[int] = []
        self.states = 2
        self._slots: dict[int, list[int]] = {}  # by kind
        self._used: dict[int, int] = {}  # by kind: number of slots in this alternative

    def state(self) -> int:
        """Returns a new state."""
        self.states += 1
        return self.states - 1

    def slot(self, kind: int) -> int:
        """Returns a slot for the current alternative: a counter up to ``kind``, or a set of texts."""
        if kind > MAX_COUNTER:
            raise LimitError(f"a bound on items or members exceeds MAX_COUNTER = {MAX_COUNTER}")
        slots = self._slots.setdefault(kind, [])
        used = self._used.get(kind, 0)
        self._used[kind] = used + 1
        if used == len(slots):
            slots.append(len(self.slots))
            self.slots.append(kind)
        return slots[used]

    def begin_alternative(self) -> None:
        """Frees the slots of earlier alternatives for the next one."""
        self._used.clear()
