"""From automata over bytes to automata over characters."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from constrain.exporting.nodes import Text
from constrain.language.tree import CharClass
from constrain.regex.classes import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from constrain.language.tree import Expression, Ranges

_ASCII_END = 0x80
_MARKS = 0xFE
"""The first of the bytes that mark special tokens; texts of terminals that have such bytes do not count."""

_LEADS = ((0xC2, 0xDF, 1, 0xC0, 0x80), (0xE0, 0xEF, 2, 0xE0, 0x800), (0xF0, 0xF4, 3, 0xF0, 0x10000))
"""First bytes of characters: from, to, bytes that follow, the part of the byte that is no code, the first character."""

_SURROGATES = (0xD800, 0xDFFF)
_LAST = 0x10FFFF


class NotCharactersError(Exception):
    """A language has bytes that do not form whole characters; the caller adds the place."""


class ByteArc(NamedTuple):
    """An edge of an automaton: it reads a byte out of ``label``, or a node, or nothing."""

    source: int
    label: Ranges | Expression | None
    target: int


class CharacterArc(NamedTuple):
    """An edge of an automaton over characters."""

    source: int
    label: Expression | None
    target: int


def whole_characters(arcs: Iterable[ByteArc], accepting: Iterable[int]) -> list[CharacterArc]:
    """Returns the automaton with characters in place of bytes; states keep their numbers, and 0 is the start.

    Raises NotCharactersError if a path begins or ends within a character.
    """
    return _Merging(arcs, accepting).arcs()


class _Merging:
    def __init__(self, arcs: Iterable[ByteArc], accepting: Iterable[int]) -> None:
        self._out: dict[int, list[ByteArc]] = {}
        for arc in arcs:
            self._out.setdefault(arc.source, []).append(arc)
        self._accepting = set(accepting)
        self._tails: dict[tuple[int, int], list[tuple[Ranges, int]]] = {}

    def arcs(self) -> list[CharacterArc]:
        found: list[CharacterArc] = []
        seen, waiting = {0}, [0]
        while waiting:
            source = waiting.pop()
            made = self._from(source)
            found += made
            for arc in made:
                if arc.target not in seen:
                    seen.add(arc.target)
                    waiting.append(arc.target)
        return found

    def _from(self, source: int) -> list[CharacterArc]:
        """Returns the edges of a state that stands between two characters."""
        found: list[CharacterArc] = []
        codes: dict[int, list[tuple[int, int]]] = {}
        for arc in self._out.get(source, ()):
            if not isinstance(arc.label, tuple):
                found.append(CharacterArc(source, arc.label, arc.target))
                continue
            for low, high in arc.label:
                if low < _ASCII_END:
                    codes.setdefault(arc.target, []).append((low, min(high, _ASCII_END - 1)))
                if high >= _ASCII_END:
                    self._add_longer(max(low, _ASCII_END), min(high, _MARKS - 1), arc.target, codes)
        return found + [CharacterArc(source, _node(normalize(ranges)), target) for target, ranges in codes.items()]

    def _add_longer(self, low: int, high: int, after: int, codes: dict[int, list[tuple[int, int]]]) -> None:
        """Adds the characters that begin with one of these bytes and lead on from the state ``after`` it."""
        left = max(0, high - low + 1)
        for first, last, more, base, least in _LEADS:
            lead = max(low, first), min(high, last)
            if lead[0] > lead[1]:
                continue
            left -= lead[1] - lead[0] + 1
            for tail, target in self._tail(after, more):
                ranges = _codes((lead[0] - base, lead[1] - base), tail, 64**more)
                if any(_is_no_character(pair, least) for pair in ranges):
                    raise NotCharactersError
                codes.setdefault(target, []).extend(ranges)
        if left:
            raise NotCharactersError

    def _tail(self, state: int, more: int) -> list[tuple[Ranges, int]]:
        """Returns the ends of characters, as numbers, that lead from a state within one to a state behind it."""
        if (key := (state, more)) in self._tails:
            return self._tails[key]
        if state in self._accepting:
            raise NotCharactersError
        found: dict[int, list[tuple[int, int]]] = {}
        for arc in self._out.get(state, ()):
            if not isinstance(arc.label, tuple):
                raise NotCharactersError
            for low, high in arc.label:
                high = min(high, _MARKS - 1)  # noqa: PLW2901
                if low <= high and (low < 0x80 or high > 0xBF):
                    raise NotCharactersError
                ends = [(((0, 0),), arc.target)] if more == 1 else self._tail(arc.target, more - 1)
                for tail, target in ends:
                    found.setdefault(target, []).extend(_codes((low - 0x80, high - 0x80), tail, 64 ** (more - 1)))
        self._tails[key] = [(normalize(ranges), target) for target, ranges in found.items()]
        return self._tails[key]


def _node(ranges: Ranges) -> Expression:
    low, high = ranges[0]
    return Text(chr(low)) if low == high and len(ranges) == 1 else CharClass(ranges)


def _codes(digits: tuple[int, int], tail: Ranges, width: int) -> Ranges:
    """Returns the numbers whose first digit is in a range and whose rest, below ``width``, is in ``tail``."""
    low, high = digits
    if tail == ((0, width - 1),):
        return ((low * width, (high + 1) * width - 1),)
    return normalize((digit * width + a, digit * width + b) for digit, (a, b) in product(range(low, high + 1), tail))


def _is_no_character(pair: tuple[int, int], least: int) -> bool:
    low, high = pair
    return low < least or high > _LAST or (low <= _SURROGATES[1] and high >= _SURROGATES[0])
