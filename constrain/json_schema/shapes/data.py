"""Goals and shapes, as data: what a value must satisfy, and the disjunctions that goals expand to.

A goal expands to shapes; shapes of arrays and objects have goals for their parts. So all of these are in one file; what
is done with them is in the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from constrain.json_schema.shapes.numeric import ANY_INTEGER, ANY_NUMBER, NumberShape
from constrain.json_schema.shapes.strings import ANY_STRING, StringShape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.documents.locations import Location
    from constrain.language.tree import Expression


class Goal:
    """One schema location to satisfy, or a goal to violate (``negated``), or several such goals (``parts``) at once.

    A goal that is none of these has a fixed set of shapes.

    ``shapes`` is the disjunction the goal expands to, once known. ``productive``: some finite value satisfies it.
    ``together``: which of its objects are closed together, for generation.
    ``keywords.expansion.Expansion`` makes goals, and never two of the same meaning-giving locations.
    """

    __slots__ = ("begun", "left_open", "location", "negated", "negation", "parts", "productive", "shapes", "together")

    def __init__(self, location: Location | None, parts: tuple[Goal, ...] = ()) -> None:
        self.location = location
        self.parts = parts or (self,)
        self.begun: Goal | None = None  # of several parts: a goal of the first ones
        self.negated: Goal | None = None
        self.negation: Goal | None = None  # the goal whose ``negated`` this is, once someone asked
        self.shapes: Shapes | None = None
        self.together: tuple[Together, ...] = ()
        self.left_open: tuple[int, ...] = ()  # ids of objects that are not closed, since no value would be left
        self.productive = False

    @property
    def is_fixed(self) -> bool:
        """Whether the goal belongs to no schema: it, or the goal that it negates, is shared by all compilations."""
        if self.negated is not None:
            return self.negated.is_fixed
        return self.location is None and self.parts == (self,)


ANY = Goal(None)
"""Satisfied by every value. Its shapes are set where shapes are defined."""


NOTHING = Goal(None)
"""Satisfied by no value."""


class ArrayShape(NamedTuple):
    """Arrays of ``minimum`` to ``maximum`` items: item *i* satisfies ``prefix[i]``, those after it ``rest``.

    ``unique``: no two items are equal.
    """

    prefix: tuple[Goal, ...] = ()
    rest: Goal = ANY
    minimum: int = 0
    maximum: int | None = None
    unique: bool = False


ANY_ARRAY = ArrayShape()


class KeyPattern(NamedTuple):
    """Keys whose JSON content ``expression`` matches have values that satisfy ``goal``."""

    text: str
    expression: Expression
    goal: Goal


class ObjectShape(NamedTuple):
    """Objects of ``minimum`` to ``maximum`` members, among them all of ``required``.

    The value of a key in ``properties`` satisfies that goal and nothing else is asked of it; that of another key
    that matches one of ``patterns`` (no two of which match the same key) satisfies the pattern's goal; that of
    any other key ``additional``. ``open``: no schema said anything about additional keys.
    """

    properties: dict[str, Goal]
    required: tuple[str, ...] = ()
    patterns: tuple[KeyPattern, ...] = ()
    additional: Goal = ANY
    minimum: int = 0
    maximum: int | None = None
    open: bool = True


ANY_OBJECT = ObjectShape({})


class ItemCount(NamedTuple):
    """Arrays in which at least ``number`` items satisfy ``goal``."""

    goal: Goal
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """The value has this shape."""

    shape: ObjectShape | ArrayShape | ItemCount


@dataclass(frozen=True, slots=True, eq=False)
class Not:
    """The part does not hold."""

    part: Formula


@dataclass(frozen=True, slots=True, eq=False)
class And:
    """All parts hold."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Or:
    """At least one part holds."""

    parts: tuple[Formula, ...]


Formula = Atom | Not | And | Or


class Automaton(Protocol):
    """What is known here of the automata that ``formulas`` makes of combinations."""

    def goals(self) -> Iterable[Goal]:
        """The goals of all members."""

    def is_productive(self) -> bool:
        """Whether some value is known to be read by it."""

    def blockers(self) -> list[Goal] | None:
        """Goals of which one at least must turn out productive before any value can be; ``None`` if some value is."""


@dataclass(slots=True, eq=False)
class Combination:
    """The arrays, or the objects, of the shape ``base`` that satisfy all ``formulas``.

    ``closed``: the same for generation, if objects are closed there.
    """

    base: ArrayShape | ObjectShape
    formulas: tuple[Formula, ...]
    automaton: Automaton | None = field(default=None, init=False)
    closed: Combination | None = field(default=None, init=False)

    @property
    def emitted(self) -> Combination:
        """What the grammar is made of: the closed form, unless that has no value."""
        closed = self.closed
        return closed if closed and closed.automaton and closed.automaton.is_productive() else self


Alternative = ObjectShape | Combination


class Together(NamedTuple):
    """Alternatives that may hold together, and the closed ones in their place; where no object is left, they stay."""

    members: tuple[Alternative, ...]
    closed: tuple[Alternative, ...]


NULL, FALSE, TRUE = 1, 2, 4


BOOLEAN = FALSE | TRUE


class Shapes(NamedTuple):
    """The values of any of the listed shapes; ``simple`` has a bit for each of null, false and true.

    ``combined``: arrays and objects that also satisfy Boolean formulas over other shapes.
    """

    simple: int = 0
    numbers: tuple[NumberShape, ...] = ()
    strings: tuple[StringShape, ...] = ()
    arrays: tuple[ArrayShape, ...] = ()
    objects: tuple[ObjectShape, ...] = ()
    combined: tuple[Combination, ...] = ()


NO_SHAPES = Shapes()


ANY_SHAPES = Shapes(NULL | BOOLEAN, (ANY_NUMBER,), (ANY_STRING,), (ANY_ARRAY,), (ANY_OBJECT,))


OF_TYPE = {
    "null": Shapes(NULL),
    "boolean": Shapes(BOOLEAN),
    "integer": Shapes(numbers=(ANY_INTEGER,)),
    "number": Shapes(numbers=(ANY_NUMBER,)),
    "string": Shapes(strings=(ANY_STRING,)),
    "array": Shapes(arrays=(ANY_ARRAY,)),
    "object": Shapes(objects=(ANY_OBJECT,)),
}


def fixed_goal(shapes: Shapes) -> Goal:
    """A goal that every compilation shares."""
    goal = Goal(None)
    goal.shapes, goal.productive = shapes, True
    return goal


ANY.shapes, ANY.productive = ANY_SHAPES, True
NOTHING.shapes = NO_SHAPES


PLAIN = {name: fixed_goal(shapes) for name, shapes in OF_TYPE.items()}
"""The goals of schemas that say nothing but a type."""
