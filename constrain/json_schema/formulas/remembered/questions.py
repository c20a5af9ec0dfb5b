"""Questions to the memory of an object (``members``): about keys, and about classes of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.key_partition import SharedKeys

PRESENT, ANSWER, UNBROKEN, LEVEL = range(4)
"""The kinds of variables: the key is there; its value is one of these; no value of this class is another; n are
there."""


class ValueCell(NamedTuple):
    """Values that satisfy ``goal``. ``answers``: the variables that they make true."""

    goal: Goal
    answers: tuple[tuple[int, bool], ...]


class Key:
    """A named key; ``present`` is its variable, or -1 if no formula asks for the key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.present = -1
        self.valued: dict[Goal, int] = {}
        self.cells: list[ValueCell] = []

    def variables(self) -> Iterator[int]:
        """Yields all variables of the key."""
        if self.present >= 0:
            yield self.present
            yield from self.valued.values()


class UndeclaredKeys:
    """A class of undeclared keys. ``levels[i]``: more than i members are there. Cells hold the goals they violate."""

    def __init__(self, shared: SharedKeys) -> None:
        self.shared = shared
        self.number = shared.keys.number
        self.valued: dict[Goal, int] = {}
        self.levels: list[int] = []
        self.cells: list[ValueCell] = []

    @property
    def runs_out(self) -> bool:
        """Returns whether the highest level is the last possible member of the class."""
        return self.number <= len(self.levels)

    def variables(self) -> Iterator[int]:
        """Yields all variables of the class."""
        yield from self.valued.values()
        yield from self.levels


class Variable(NamedTuple):
    """A variable: its ``kind``, one of the four above, and its ``number``, the level."""

    kind: int
    owner: Key | UndeclaredKeys
    number: int = 0

    @property
    def true_of_none(self) -> bool:
        """Returns the answer of an empty object."""
        return self.kind in (ANSWER, UNBROKEN)
