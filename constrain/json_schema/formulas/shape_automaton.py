"""Automata of arrays and objects that satisfy Boolean formulas; a state holds the remaining formulas.

A state is a decision diagram (``formulas``) over questions that later members answer ("is the key a there?", "do all
items satisfy G?"), with the counters that the questions need. Reading a member answers some questions. If an answer
depends on the member's value, the value is split into cases, each a goal of its own (``cases``).

An *offer* state reads a member. A state *after* a member, and OPENED, before any member, may close the value or go on
to an offer. ``exploration`` finds the states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from constrain.json_schema.formulas.formulas import too_many
from constrain.language.emptiness import reached
from constrain.work import MAX_CASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.keys import KeyClass

OPENED = -1
"""The state after the opening bracket."""


class Read(NamedTuple):
    """A transition of a ``ShapeAutomaton`` that reads a member, from an offer to a state after a member.

    ``label``: the member's key, the number of its key class, or ``None`` for an item of an array.
    """

    source: int
    label: str | int | None
    goal: Goal
    target: int


class ShapeAutomaton:
    """The automaton of arrays or objects with formulas. States are numbers; in an offer, a member must follow.

    ``go_on``: pairs of a state after a member and the offer of the next one. ``skips``: pairs of offers; the step
    leaves out a named key.
    """

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.skips: list[tuple[int, int]] = []
        self.go_on: list[tuple[int, int]] = []
        self.closing: set[int] = set()
        self.classes: list[KeyClass] = []
        self.any_order = False

    def add_read(self, read: Read) -> None:
        """Adds a transition that reads a member."""
        if len(self.reads) >= MAX_CASES:
            raise too_many()
        self.reads.append(read)

    def goals(self) -> Iterator[Goal]:
        """Yields the goals of all members."""
        return (read.goal for read in self.reads)

    def live(self) -> set[int]:
        """Returns the states from which goals that admit a value lead to the end of the value."""
        before: dict[int, list[int]] = {}
        for source, target in self._steps():
            before.setdefault(target, []).append(source)
        return reached(before, self.closing)

    def useful(self) -> set[int]:
        """Returns the states on the way of some value."""
        live = self.live()
        after: dict[int, list[int]] = {}
        for source, target in self._steps():
            if target in live:
                after.setdefault(source, []).append(target)
        return reached(after, {OPENED} & live)

    def _steps(self) -> Iterator[tuple[int, int]]:
        """Yields the pairs of states between which nothing is read, or a goal that admits a value."""
        yield from self.skips
        yield from self.go_on
        yield from ((read.source, read.target) for read in self.reads if read.goal.productive)

    def is_productive(self) -> bool:
        """Returns whether a value is known."""
        return OPENED in self.live()

    def blockers(self) -> list[Goal] | None:
        """Returns goals of which at least one must admit a value before the automaton does; ``None`` if it does."""
        live = self.live()
        if OPENED in live:
            return None
        return [read.goal for read in self.reads if read.target in live and not read.goal.productive]
