"""A rule's automaton while it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import LimitError

if TYPE_CHECKING:
    from constrain.language.grammar import Edge

START, END = 0, 1

MAX_COUNT = 2**31 - 1
"""Items, members or repetitions that a counter of the kernel counts. Beyond: LimitError."""


class RuleAutomaton:
    """Edges and slots so far; state ``START`` and the accepting state ``END`` exist from the beginning.

    Only one alternative of a rule is under way at a time, so alternatives share slots.
    """

    __slots__ = ("_slots", "_used", "edges", "slots", "states")

    def __init__(self) -> None:
        self.edges: list[Edge] = []
        self.slots: list[int] = []
        self.states = 2
        self._slots: dict[int, list[int]] = {}  # by kind
        self._used: dict[int, int] = {}  # by kind: how many of those this alternative has

    def state(self) -> int:
        """A new state."""
        self.states += 1
        return self.states - 1

    def slot(self, kind: int) -> int:
        """A slot for the alternative being made: a counter up to ``kind``, or a set of texts."""
        if kind > MAX_COUNT:
            raise LimitError(f"more items or members are counted than MAX_COUNT = {MAX_COUNT}")
        slots = self._slots.setdefault(kind, [])
        used = self._used.get(kind, 0)
        self._used[kind] = used + 1
        if used == len(slots):
            slots.append(len(self.slots))
            self.slots.append(kind)
        return slots[used]

    def begin_alternative(self) -> None:
        """Slots of alternatives made so far are free again."""
        self._used.clear()
