"""Expressions over characters and names: what grammars are made of while they are exported.

Their inner nodes are those of ``language.tree``, but compare by content: the same part is written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.language.tree import (
    Alternation,
    CharClass,
    Complement,
    Concatenation,
    Expression,
    Inner,
    Intersection,
    Repetition,
    inside,
    nullable,
    parts_of,
    with_parts,
)
from constrain.regex.classes import normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from constrain.language.tree import Ranges


@dataclass(frozen=True, slots=True)
class Text(Expression):
    """Exactly these characters, of which there is at least one."""

    text: str


@dataclass(frozen=True, slots=True)
class Token(Expression):
    """The special token of a name."""

    name: str


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """A definition, by its key."""

    key: Key


class _ByContent(Inner):
    """A node whose numbers of leaves and levels and hash are computed once, as nodes become large."""

    __slots__ = ()
    measures: tuple[int, int, int]

    def __init__(self, *fields: Any) -> None:
        super().__init__(*fields)
        parts = parts_of(self)
        leaves, levels = sum(map(size, parts)), 1 + max(map(depth, parts), default=0)
        object.__setattr__(self, "measures", (leaves, levels, hash((type(self), fields))))

    def __eq__(self, other: object) -> bool:
        """Returns whether the other node has the same content."""
        if type(self) is not type(other) or self.measures != other.measures:
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self.__match_args__)

    def __hash__(self) -> int:
        """Returns the hash of the content."""
        return self.measures[2]


class Sequence(_ByContent, Concatenation):
    """All ``parts``, one after the other; without parts, the empty text."""

    __slots__ = ("measures",)


class Choice(_ByContent, Alternation):
    """One of the ``parts``; without parts, no text at all."""

    __slots__ = ("measures",)


class Repeat(_ByContent, Repetition):
    """``part``, ``minimum`` to ``maximum`` times (``None``: without limit)."""

    __slots__ = ("measures",)


class And(_ByContent, Intersection):
    """The texts of all ``parts``."""

    __slots__ = ("measures",)


class Not(_ByContent, Complement):
    """All texts but those of ``part``."""

    __slots__ = ("measures",)


Key: TypeAlias = "tuple[str, int]"
"""What a name stands for: its kind, and its number among these."""


def size(node: Expression) -> int:
    """Returns the number of leaves."""
    if isinstance(node, _ByContent):
        return node.measures[0]
    return 1 + len(node.text) // 20 if isinstance(node, Text) else 1


def depth(node: Expression) -> int:
    """Returns the levels of operators."""
    return node.measures[1] if isinstance(node, _ByContent) else 0


EMPTY = Sequence(())
NOTHING = Choice(())


def sequence(*parts: Expression) -> Expression:
    """Returns parts in a row. Neighbouring texts become one, and neighbouring repetitions of a part, too."""
    found: list[Expression] = []
    if NOTHING in parts:
        return NOTHING
    for part in parts:
        for each in part.parts if isinstance(part, Sequence) else (part,):
            both = _together(found[-1], each) if found else None
            if both is None:
                found.append(each)
            else:
                found[-1] = both
    return found[0] if len(found) == 1 else Sequence(tuple(found))


def _together(left: Expression, right: Expression) -> Expression | None:
    """Returns two neighbours as one node; None if they are not alike."""
    if isinstance(left, Text) and isinstance(right, Text):
        return Text(left.text + right.text)
    part, least, most = _counts(left)
    other, more, at_most = _counts(right)
    if part != other or (left is part and right is other and not isinstance(part, CharClass)):
        return None
    return Repeat(part, least + more, None if most is None or at_most is None else most + at_most)


def _counts(node: Expression) -> tuple[Expression, int, int | None]:
    return (node.part, node.minimum, node.maximum) if isinstance(node, Repeat) else (node, 1, 1)


def choice(parts: Iterable[Expression]) -> Expression:
    """Returns one of the parts; an empty text among them becomes ``?``, and classes become one class."""
    found: dict[Expression, None] = {}
    optional = False
    for part in parts:
        for each in part.parts if isinstance(part, Choice) else (part,):
            if isinstance(each, Repeat) and (each.minimum, each.maximum) == (0, 1):
                optional, each = True, each.part  # noqa: PLW2901
            if each == EMPTY:
                optional = True
            else:
                found[each] = None
    if not found:
        return EMPTY if optional else NOTHING
    kept = tuple(_with_one_class(found))
    made = kept[0] if len(kept) == 1 else Choice(kept)
    return repeat(made, 0, 1) if optional else made


def _with_one_class(parts: Iterable[Expression]) -> Iterator[Expression]:
    """Yields the parts; those of one character become one class, at the place of the first."""
    known = [(part, _character(part)) for part in parts]
    single = [ranges for _, ranges in known if ranges is not None]
    for part, ranges in known:
        if ranges is None or len(single) == 1:
            yield part
        elif ranges is single[0]:
            yield CharClass(normalize(pair for each in single for pair in each))


def _character(node: Expression) -> Ranges | None:
    """Returns the texts of a node that reads one character; None for other nodes."""
    if isinstance(node, Text):
        return ((ord(node.text), ord(node.text)),) if len(node.text) == 1 else None
    return node.ranges if isinstance(node, CharClass) else None


def repeat(part: Expression, minimum: int, maximum: int | None) -> Expression:
    """Returns a repetition; the part of an unlimited one must not match the empty text (see ``without_empty``)."""
    if part == EMPTY or maximum == 0 or (part == NOTHING and minimum == 0):
        return EMPTY
    if part == NOTHING:
        return NOTHING
    if (minimum, maximum) == (1, 1):
        return part
    if isinstance(part, Repeat) and (minimum, maximum) == (0, 1):
        if part.minimum == 0:
            return part
        if part.minimum == 1:
            return Repeat(part.part, 0, part.maximum)
    return Repeat(part, minimum, maximum)


def rebuilt(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Returns a node with other nodes directly inside it."""
    match node:
        case Sequence(parts):
            return sequence(*map(change, parts))
        case Choice(parts):
            return choice(map(change, parts))
        case Repeat(part, minimum, maximum):
            return repeat(change(part), minimum, maximum)
    return with_parts(node, change)


def without_empty(node: Expression) -> Expression | None:
    """Returns the nonempty texts of a node without ``And`` and ``Not``; None if there are none."""
    if not nullable(node):
        return node
    match node:
        case Sequence(parts):
            ways = []
            for index, part in enumerate(parts):
                if (some := without_empty(part)) is not None:
                    ways.append(sequence(some, *parts[index + 1 :]))
            return choice(ways) if ways else None
        case Choice(parts):
            kept = [some for part in parts if (some := without_empty(part)) is not None]
            return choice(kept) if kept else None
        case Repeat(part, _, maximum):
            some = without_empty(part)
            return None if some is None or maximum == 0 else repeat(some, 1, maximum)
    raise AssertionError(node)


def names_in(node: Expression) -> Iterator[Key]:
    """Yields the keys of the names in a node, as often as they stand there."""
    return (each.key for each in inside(node) if isinstance(each, Name))
