"""What objects in memory are asked (``members``): about keys, and classes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.json_schema.shapes.data import Goal
    from constrain.json_schema.shapes.key_partition import SharedKeys

PRESENT, ANSWER, UNBROKEN, LEVEL = range(4)
"""What a variable asks: is the key there; is its value one of these; is no value of this class another; are there n."""


class ValueCell(NamedTuple):
    """Values that satisfy ``goal``. ``answers``: the variables that they set."""

    goal: Goal
    answers: tuple[tuple[int, bool], ...]


class Key:
    """A named key; ``present`` is its variable, or -1 where no formula asks for the key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.present = -1
        self.valued: dict[Goal, int] = {}
        self.cells: list[ValueCell] = []

    def variables(self) -> Iterator[int]:
        """All variables about it."""
        if self.present >= 0:
            yield self.present
            yield from self.valued.values()


class UndeclaredKeys:
    """A class of keys. ``levels[i]``: more than i members are there. Cells answer the goals that they violate."""

    def __init__(self, shared: SharedKeys) -> None:
        self.shared = shared
        self.number = shared.keys.number
        self.valued: dict[Goal, int] = {}
        self.levels: list[int] = []
        self.cells: list[ValueCell] = []

    @property
    def runs_out(self) -> bool:
        """Whether its highest level is the last member that it has."""
        return self.number <= len(self.levels)

    def variables(self) -> Iterator[int]:
        """All variables about it."""
        yield from self.valued.values()
        yield from self.levels


class Variable(NamedTuple):
    """``kind``: one of the four above; ``number``: the level."""

    kind: int
    owner: Key | UndeclaredKeys
    number: int = 0

    @property
    def true_of_none(self) -> bool:
        """The answer of an object without members."""
        return self.kind in (ANSWER, UNBROKEN)
