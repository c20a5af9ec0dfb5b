"""Code points as IDNA 2008 sees them (RFC 5892): which may stand in a label, and what matters about them there.

Made of the tables of ``idna`` and of Python's own, once, when a schema first names an internationalized format.
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
"""The end of the Basic Multilingual Plane; nothing beyond it is written."""

_LONG_RANGE = 300
"""Ranges with more code points are ideographs and syllables, mostly all of one kind: one look at all of them."""

_COMPOSED = range(0xA0, 0x3400)
"""Where compositions up to MAX_WRITTEN are, those of Hangul apart: IDNA does not allow parts of syllables."""


class Script(NamedTuple):
    """Code points that are valid in a label, of one direction, by what they do to a text in Normalization Form C.

    ``first`` may begin a label; ``inner`` are marks of combining class 0, which may not. ``leading_first`` and
    ``leading_inner`` are the same, but may compose with a code point after them; ``trailing``, of combining class 0,
    may compose with one before. ``marks`` are all others, by combining class, and ``plain_marks`` those that compose
    with nothing.
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
        self.ranges[kind].setdefault(combining, []).append((first, last))

    def script(self) -> Script:
        classes = {
            kind: {combining: characters(ranges) for combining, ranges in found.items()}
            for kind, found in self.ranges.items()
        }
        marks, plain_marks = classes.pop("marks"), classes.pop("plain_marks")
        return Script(**{kind: found[0] for kind, found in classes.items()}, marks=marks, plain_marks=plain_marks)


def characters(ranges: Iterable[tuple[int, int]]) -> CharClass:
    """One code point of these ranges."""
    return CharClass(normalize(ranges), json=True)


@cache
def valid_code_points() -> Ranges:
    """PVALID of RFC 5892."""
    return _unpacked(idna.idnadata.codepoint_classes["PVALID"])


def context_code_points() -> Ranges:
    """CONTEXTJ and CONTEXTO of RFC 5892."""
    classes = idna.idnadata.codepoint_classes
    return _unpacked(classes["CONTEXTJ"]) + _unpacked(classes["CONTEXTO"])


def script_code_points(name: str) -> Ranges:
    """The code points of one of the scripts that contextual rules name."""
    return _unpacked(idna.idnadata.scripts[name])


def _unpacked(ranges: tuple[int, ...]) -> Ranges:
    return tuple((packed >> 32, (packed & 0xFFFFFFFF) - 1) for packed in ranges)


@cache
def scripts() -> tuple[Script, Script]:
    """The valid code points written from left to right, or in any direction, and those of right-to-left scripts.

    Without ASCII, digits of right-to-left scripts, and what either table does not know. Marks that have no direction
    of their own are in both.
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
    """Is this a long range of letters that are written from left to right and never compose?

    Unless all must be ``assigned``, some may be what Python's tables do not have yet.
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
    """The code points that compose with one after them, and those that compose with one before them.

    Where neither meets the other, and marks are in canonical order, a text is in Normalization Form C (UAX #15).
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
    """Those that have been viramas since Unicode 3.2: of newer ones, not every validator knows."""
    old = unicodedata.ucd_3_2_0
    ranges = ((code_point, code_point) for first, last in viramas.ranges for code_point in range(first, last + 1))
    return characters(pair for pair in ranges if old.combining(chr(pair[0])) == VIRAMA)


def joining_letters(script: Script) -> tuple[CharClass, CharClass]:
    """Arabic letters that join to the letter after them, and those that join to the one before (RFC 5892, A.1)."""
    letters = intersection(normalize(script.first.ranges + script.leading_first.ranges), ((0x600, 0x6FF),))
    found = [chr(code_point) for first, last in letters for code_point in range(first, last + 1)]
    beh = "\u0628"  # joins on both sides
    before = [ord(letter) for letter in found if idna.core.valid_contextj(f"{letter}\u200c{beh}", 1)]
    after = [ord(letter) for letter in found if idna.core.valid_contextj(f"{beh}\u200c{letter}", 1)]
    return characters([(letter, letter) for letter in before]), characters([(letter, letter) for letter in after])
