"""Automata of arrays and objects that satisfy Boolean formulas: states say what is left of the formulas.

A state is a decision diagram (``constrain.json_schema.formulas.formulas``) over questions that the members still to
come will answer ("is the key a there?", "do all items satisfy G?"), with as many counters as questions ask for. Reading
a member answers some; where that depends on the member's value, the value is split into cases, each a goal of its own
(``constrain.json_schema.formulas.cases``).

An *offer* state reads a member, a state *after* one may close the value or go on to an offer, as may OPENED, where
nothing has been read yet. ``constrain.json_schema.formulas.exploration`` finds the states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.keys import KeyClass

MAX_READS = 50_000
"""Ways to read a member, over all states of one automaton. Beyond: LimitError."""


OPENED = -1
"""The state after the opening bracket."""


class Read(NamedTuple):
    """A member that takes an offer to a state after it. ``label``: a key, the number of a key class, or None (item)."""

    source: int
    label: str | int | None
    goal: Goal
    target: int


class ShapeAutomaton:
    """States are numbers. ``go_on`` leads from states after a member to offers, ``skips`` from offers to offers."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.skips: list[tuple[int, int]] = []
        self.go_on: list[tuple[int, int]] = []
        self.closing: set[int] = set()
        self.classes: list[KeyClass] = []
        self.any_order = False

    def add_read(self, read: Read) -> None:
        """Adds a way to read a member."""
        if len(self.reads) >= MAX_READS:
            raise LimitError(f"schemas combine to an automaton with more edges than MAX_READS = {MAX_READS}")
        self.reads.append(read)

    def goals(self) -> Iterator[Goal]:
        """The goals of all members."""
        return (read.goal for read in self.reads)

    def live(self) -> set[int]:
        """The states from which the value can be closed, by goals that are known to be productive."""
        before: dict[int, list[int]] = {}
        for source, target in (*self.skips, *self.go_on):
            before.setdefault(target, []).append(source)
        for read in self.reads:
            if read.goal.productive:
                before.setdefault(read.target, []).append(read.source)
        found = set(self.closing)
        stack = list(found)
        while stack:
            for source in before.get(stack.pop(), ()):
                if source not in found:
                    found.add(source)
                    stack.append(source)
        return found

    def useful(self) -> set[int]:
        """The states that some value passes through."""
        live = self.live()
        after: dict[int, list[int]] = {}
        for source, target in (*self.skips, *self.go_on):
            after.setdefault(source, []).append(target)
        for read in self.reads:
            if read.goal.productive:
                after.setdefault(read.source, []).append(read.target)
        found = {OPENED} & live
        stack = list(found)
        while stack:
            for target in after.get(stack.pop(), ()):
                if target in live and target not in found:
                    found.add(target)
                    stack.append(target)
        return found

    def is_productive(self) -> bool:
        """Whether some value is known to be read by it."""
        return OPENED in self.live()

    def blockers(self) -> list[Goal] | None:
        """Goals of which one at least must turn out productive before any value can be; ``None`` if some value is."""
        live = self.live()
        if OPENED in live:
            return None
        return [read.goal for read in self.reads if read.target in live and not read.goal.productive]
