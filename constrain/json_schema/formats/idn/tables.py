"""Code points in IDNA 2008 (RFC 5892): those allowed in labels, with the properties that labels need.

Computed once from the tables of ``idna`` and of Python, when a schema first names an internationalized format.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import idna.core
import idna.idnadata

from constrain.language.tree import CharClass, Ranges
from constrain.regex.classes import intersection, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

NUKTA, VIRAMA = 7, 9
"""Canonical combining classes."""

MAX_WRITTEN = 0xFFFF
"""The last code point that is written: the end of the Basic Multilingual Plane."""

_LONG_RANGE = 300
"""Code points of a range from which on it is examined as a whole: ideographs and syllables, mostly of one kind."""

_COMPOSED = range(0xA0, 0x3400)
"""Places of compositions up to MAX_WRITTEN, without Hangul: IDNA allows no parts of syllables."""


class Script(NamedTuple):
    """Code points that are valid in a label, of one direction, by their role in Normalization Form C.

    ``first`` may begin a label; ``inner`` are marks of combining class 0, which may not. ``leading_first`` and
    ``leading_inner`` are the same kinds, but may compose with a code point after them; ``trailing``, of combining class
    0, may compose with one before. ``marks`` are all others, by combining class, and ``plain_marks`` the marks that
    compose with nothing.
    """

    first: CharClass
    inner: CharClass
    leading_first: CharClass
    leading_inner: CharClass
    trailing: CharClass
    marks: dict[int, CharClass]
    plain_marks: dict[int, CharClass]


class _Found:
    """Code points of one direction, by kind and combining class."""

    def __init__(self) -> None:
        self.ranges: dict[str, dict[int, list[tuple[int, int]]]] = {kind: {} for kind in Script._fields}

    def add(self, kind: str, combining: int, first: int, last: int) -> None:
        """Adds the code points from ``first`` to ``last``, which have one kind and one combining class."""
        self.ranges[kind].setdefault(combining, []).append((first, last))

    def script(self) -> Script:
        """Returns the classes of characters of this direction."""
        classes = {
            kind: {combining: characters(ranges) for combining, ranges in found.items()}
            for kind, found in self.ranges.items()
        }
        marks, plain_marks = classes.pop("marks"), classes.pop("plain_marks")
        return Script(**{kind: found[0] for kind, found in classes.items()}, marks=marks, plain_marks=plain_marks)


def characters(ranges: Iterable[tuple[int, int]]) -> CharClass:
    """Returns one code point of these ranges."""
    return CharClass(normalize(ranges), json=True)


@cache
def valid_code_points() -> Ranges:
    """Returns PVALID of RFC 5892."""
    return _unpacked(idna.idnadata.codepoint_classes["PVALID"])


def context_code_points() -> Ranges:
    """Returns CONTEXTJ and CONTEXTO of RFC 5892."""
    classes = idna.idnadata.codepoint_classes
    return _unpacked(classes["CONTEXTJ"]) + _unpacked(classes["CONTEXTO"])


def script_code_points(name: str) -> Ranges:
    """Returns the code points of one of the scripts that contextual rules name."""
    return _unpacked(idna.idnadata.scripts[name])


def _unpacked(ranges: tuple[int, ...]) -> Ranges:
    return tuple((packed >> 32, (packed & 0xFFFFFFFF) - 1) for packed in ranges)


@cache
def scripts() -> tuple[Script, Script]:
    """Returns the valid code points of left-to-right or neutral direction, and those of right-to-left scripts.

    ASCII, digits of right-to-left scripts, and code points unknown to either table are left out. Marks without a
    direction of their own are in both.
    """
    to_right, to_left = _Found(), _Found()
    leads, trails = compositions()
    for first, last in valid_code_points():
        if first > MAX_WRITTEN:
            break
        if is_uniform(first, last):
            to_right.add("first", 0, first, last)
            continue
        for code_point in range(max(first, 0x80), last + 1):
            direction = unicodedata.bidirectional(chr(code_point))
            combining = unicodedata.combining(chr(code_point))
            if direction in ("", "AN"):
                continue
            for kind in _kinds(code_point, combining, leads, trails):
                if direction not in ("R", "AL"):
                    to_right.add(kind, combining, code_point, code_point)
                if direction in ("R", "AL", "NSM"):
                    to_left.add(kind, combining, code_point, code_point)
    return to_right.script(), to_left.script()


def is_uniform(first: int, last: int, *, assigned: bool = True) -> bool:
    """Returns whether this is a long range of left-to-right letters that never compose.

    Without ``assigned``, Python's tables may lack some of the code points.
    """
    if last - first < _LONG_RANGE:
        return False
    text = "".join(map(chr, range(first, last + 1)))
    return (
        set(map(unicodedata.bidirectional, text)) <= ({"L"} if assigned else {"L", ""})
        and set(map(unicodedata.category, text)) <= {"Lo", "Lm", "Cn"}
        and unicodedata.is_normalized("NFC", text)
    )


def compositions() -> tuple[set[int], set[int]]:
    """Returns the code points that compose with a following one, and those that compose with a preceding one.

    A text in which these do not meet, with marks in canonical order, is in Normalization Form C (UAX #15).
    """
    leads, trails = set(), set()
    for character in map(chr, _COMPOSED):
        parts = unicodedata.decomposition(character).split()
        if len(parts) == 2 and parts[0][0] != "<" and unicodedata.is_normalized("NFC", character):
            leads.add(int(parts[0], 16))
            trails.add(int(parts[1], 16))
    return leads, trails


def _kinds(code_point: int, combining: int, leads: set[int], trails: set[int]) -> tuple[str, ...]:
    if combining:
        return ("marks",) if code_point in trails else ("marks", "plain_marks")
    if code_point in trails:
        return () if code_point in leads else ("trailing",)
    kind = "inner" if unicodedata.category(chr(code_point))[0] == "M" else "first"
    return (f"leading_{kind}" if code_point in leads else kind,)


def known_viramas(viramas: CharClass) -> CharClass:
    """Returns the viramas of Unicode 3.2; some validators do not know newer ones."""
    old = unicodedata.ucd_3_2_0
    ranges = ((code_point, code_point) for first, last in viramas.ranges for code_point in range(first, last + 1))
    return characters(pair for pair in ranges if old.combining(chr(pair[0])) == VIRAMA)


def joining_letters(script: Script) -> tuple[CharClass, CharClass]:
    """Returns Arabic letters that join to the next letter, and those that join to the previous (RFC 5892, A.1)."""
    letters = intersection(normalize(script.first.ranges + script.leading_first.ranges), ((0x600, 0x6FF),))
    found = [chr(code_point) for first, last in letters for code_point in range(first, last + 1)]
    beh = "\u0628"  # joins on both sides
    before = [ord(letter) for letter in found if idna.core.valid_contextj(f"{letter}\u200c{beh}", 1)]
    after = [ord(letter) for letter in found if idna.core.valid_contextj(f"{beh}\u200c{letter}", 1)]
    return characters([(letter, letter) for letter in before]), characters([(letter, letter) for letter in after])
