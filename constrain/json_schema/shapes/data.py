"""Goals and shapes, as data: constraints on a value, and the disjunctions that goals expand to.

A goal expands to shapes, and shapes of arrays and objects have goals for their parts. So this file holds both; the
other files hold the functions over them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from constrain.json_schema.numbers.shape import ANY_INTEGER, ANY_NUMBER, NumberShape
from constrain.json_schema.shapes.strings import ANY_STRING, StringShape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.json_schema.documents.locations import Location
    from constrain.language.tree import Expression


class Goal:
    """One schema location to satisfy, or a goal to violate (``negated``), or several such goals (``parts``) at once.

    Any other goal has a fixed set of shapes.

    ``shapes`` is the disjunction that the goal expands to, once known. ``productive``: some finite value satisfies the
    goal. ``together``: the objects that are closed together, for generation. ``keywords.expansion.Expansion`` makes
    goals, and only one for each meaning.
    """

    __slots__ = (
        "begun",
        "first",
        "left_open",
        "location",
        "negated",
        "negation",
        "parts",
        "productive",
        "shapes",
        "together",
    )

    def __init__(self, location: Location | None, parts: tuple[Goal, ...] = ()) -> None:
        self.location = location
        self.parts = parts or (self,)
        self.begun: Goal | None = None  # for several parts: the goal of all but the last
        self.first: Goal | None = None  # of an equal schema, once asked for (``goal.representative``)
        self.negated: Goal | None = None
        self.negation: Goal | None = None  # the goal whose ``negated`` this is, once made
        self.shapes: Shapes | None = None
        self.together: tuple[Together, ...] = ()
        self.left_open: tuple[int, ...] = ()  # ids of objects that stay open, because closing would leave no value
        self.productive = False

    @property
    def is_fixed(self) -> bool:
        """Returns whether all compilations share the goal, or the goal that it negates."""
        if self.negated is not None:
            return self.negated.is_fixed
        return self.location is None and self.parts == (self,)


ANY = Goal(None)
"""The goal that every value satisfies. Its shapes are set below."""


NOTHING = Goal(None)
"""The goal that no value satisfies."""


class ArrayShape(NamedTuple):
    """Arrays of ``minimum`` to ``maximum`` items: item *i* satisfies ``prefix[i]``, later items ``rest``.

    ``unique``: no two items are equal.
    """

    prefix: tuple[Goal, ...] = ()
    rest: Goal = ANY
    minimum: int = 0
    maximum: int | None = None
    unique: bool = False


ANY_ARRAY = ArrayShape()


class KeyPattern(NamedTuple):
    """A pattern: keys whose JSON content ``expression`` matches have values that satisfy ``goal``."""

    text: str
    expression: Expression
    goal: Goal


class ObjectShape(NamedTuple):
    """Objects of ``minimum`` to ``maximum`` members, among them all of ``required``.

    The value of a key in ``properties`` satisfies the goal there, and nothing else applies to it. The value of another
    key that matches one of ``patterns`` (no two patterns match the same key) satisfies the pattern's goal. The value of
    any other key satisfies ``additional``. ``open``: no schema restricts additional keys.
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
    """A formula: the value has this shape."""

    shape: ObjectShape | ArrayShape | ItemCount


@dataclass(frozen=True, slots=True, eq=False)
class Not:
    """A formula: ``part`` does not hold."""

    part: Formula


@dataclass(frozen=True, slots=True, eq=False)
class And:
    """A formula: all parts hold."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Or:
    """A formula: at least one part holds."""

    parts: tuple[Formula, ...]


Formula = Atom | Not | And | Or


class Automaton(Protocol):
    """The interface of a ``Combination``'s automaton, which the package ``formulas`` makes."""

    def goals(self) -> Iterable[Goal]:
        """Yields the goals of all members."""

    def is_productive(self) -> bool:
        """Returns whether the automaton is known to admit a value."""

    def blockers(self) -> list[Goal] | None:
        """Returns goals of which at least one must admit a value before the automaton does; ``None`` if it does."""


@dataclass(slots=True, eq=False)
class Combination:
    """The arrays, or the objects, of the shape ``base`` that satisfy all ``formulas``.

    ``closed``: the combination with closed objects, for generation.
    """

    base: ArrayShape | ObjectShape
    formulas: tuple[Formula, ...]
    automaton: Automaton | None = field(default=None, init=False)
    closed: Combination | None = field(default=None, init=False)

    @property
    def emitted(self) -> Combination:
        """Returns the combination that the grammar contains: the closed one, unless that has no value."""
        closed = self.closed
        return closed if closed and closed.automaton and closed.automaton.is_productive() else self


Alternative = ObjectShape | Combination


class Together(NamedTuple):
    """Alternatives that may hold together, and the closed ones that replace them unless these have no object."""

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
    """Returns a goal that every compilation shares."""
    goal = Goal(None)
    goal.shapes, goal.productive = shapes, True
    return goal


ANY.shapes, ANY.productive = ANY_SHAPES, True
NOTHING.shapes = NO_SHAPES


PLAIN = {name: fixed_goal(shapes) for name, shapes in OF_TYPE.items()}
"""The goals of schemas with a type and nothing else."""
