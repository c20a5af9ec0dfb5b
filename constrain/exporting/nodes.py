"""Regular expressions over characters and names: what grammars are made of while they are exported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from constrain.language.tree import Ranges


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly these characters, of which there is at least one."""

    text: str


@dataclass(frozen=True, slots=True)
class Class:
    """One character out of ``ranges`` of code points."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Token:
    """The special token of a name."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A definition, by its key."""

    key: Key


class _Measured:
    """A node with parts: its numbers of leaves and levels and its hash are computed once, as nodes become large."""

    __slots__ = ("_hash", "leaves", "levels")
    leaves: int
    levels: int
    _hash: int

    def _measure(self, parts: tuple[Node, ...]) -> None:
        object.__setattr__(self, "leaves", sum(map(size, parts)))
        object.__setattr__(self, "levels", 1 + max(map(depth, parts), default=0))
        object.__setattr__(self, "_hash", hash((type(self).__name__, parts)))


@dataclass(frozen=True, slots=True)
class Sequence(_Measured):
    """All ``parts``, one after the other; without parts, the empty text."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        self._measure(self.parts)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Choice(_Measured):
    """One of the ``parts``; without parts, no text at all."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        self._measure(self.parts)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Repeat:
    """``part``, ``minimum`` to ``maximum`` times (``None``: without limit)."""

    part: Node
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class And:
    """The texts of all ``parts``."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """All texts but those of ``part``."""

    part: Node


Node: TypeAlias = "Text | Class | Token | Name | Sequence | Choice | Repeat | And | Not"

Key: TypeAlias = "tuple[str, int]"
"""What a name stands for: its kind, and its number among these."""


def size(node: Node) -> int:
    """Returns the number of leaves."""
    match node:
        case Sequence() | Choice():
            return node.leaves
        case And(parts):
            return sum(map(size, parts))
        case Repeat(part, _, _) | Not(part):
            return size(part)
        case Text(text):
            return 1 + len(text) // 20
    return 1


def depth(node: Node) -> int:
    """Returns the levels of operators."""
    match node:
        case Sequence() | Choice():
            return node.levels
        case And(parts):
            return 1 + max(map(depth, parts))
        case Repeat(part, _, _) | Not(part):
            return 1 + depth(part)
    return 0


EMPTY = Sequence(())
NOTHING = Choice(())


def sequence(*parts: Node) -> Node:
    """Returns parts in a row. Neighbouring texts become one, and neighbouring repetitions of a part, too."""
    found: list[Node] = []
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


def _together(left: Node, right: Node) -> Node | None:
    """Returns two neighbours as one node; None if they are not alike."""
    if isinstance(left, Text) and isinstance(right, Text):
        return Text(left.text + right.text)
    part, least, most = _counts(left)
    other, more, at_most = _counts(right)
    if part != other or (left is part and right is other and not isinstance(part, Class)):
        return None
    return Repeat(part, least + more, None if most is None or at_most is None else most + at_most)


def _counts(node: Node) -> tuple[Node, int, int | None]:
    return (node.part, node.minimum, node.maximum) if isinstance(node, Repeat) else (node, 1, 1)


def choice(parts: Iterable[Node]) -> Node:
    """Returns one of the parts; an empty text among them becomes ``?``, and classes become one class."""
    found: dict[Node, None] = {}
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


def _with_one_class(parts: Iterable[Node]) -> Iterator[Node]:
    """Yields the parts; those of one character become one class, at the place of the first."""
    listed = list(parts)
    single = [part for part in listed if isinstance(part, Class) or (isinstance(part, Text) and len(part.text) == 1)]
    if len(single) < 2:
        yield from listed
        return
    ranges = [pair for part in single for pair in _ranges(part)]
    for part in listed:
        if part is single[0]:
            yield Class(joined(ranges))
        elif not any(part is each for each in single):
            yield part


def _ranges(part: Node) -> Ranges:
    return part.ranges if isinstance(part, Class) else ((ord(part.text), ord(part.text)),)  # type: ignore[union-attr]


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns ranges in order, without overlaps and gaps of nothing."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def repeat(part: Node, minimum: int, maximum: int | None) -> Node:
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


def is_nullable(node: Node) -> bool:
    """Returns whether a node matches the empty text; definitions behind names do not match it."""
    match node:
        case Sequence(parts) | And(parts):
            return all(map(is_nullable, parts))
        case Choice(parts):
            return any(map(is_nullable, parts))
        case Repeat(part, minimum, _):
            return minimum == 0 or is_nullable(part)
        case Not(part):
            return not is_nullable(part)
    return False


def without_empty(node: Node) -> Node | None:
    """Returns the nonempty texts of a node without ``And`` and ``Not``; None if there are none."""
    if not is_nullable(node):
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


def names_in(node: Node) -> Iterator[Key]:
    """Yields the keys of the names in a node, as often as they stand there."""
    match node:
        case Sequence(parts) | Choice(parts) | And(parts):
            for part in parts:
                yield from names_in(part)
        case Repeat(part, _, _) | Not(part):
            yield from names_in(part)
        case Name(key):
            yield key
