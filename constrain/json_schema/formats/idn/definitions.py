r"""Texts that may count as an ``idn-hostname`` or ``idn-email``, for negation; wider than ``expressions``.

Validators differ: some follow IDNA 2008 to the letter, others first map upper case, full width and other compatibility
forms (UTS #46). This module accepts the texts of both. So a code point may occur if its mapping may, or if Unicode has
not assigned it yet. The rules of IDNA apply only where mapping, normalization and new code points cannot lead around
them.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING

from constrain.json_schema.formats.hosts import MAX_HOSTNAME_LENGTH, MAX_LABEL_LENGTH, email_at
from constrain.json_schema.formats.idn.expressions import NOT_ASCII
from constrain.json_schema.formats.idn.tables import (
    VIRAMA,
    characters,
    context_code_points,
    is_uniform,
    script_code_points,
    valid_code_points,
)
from constrain.language.tree import ANY_JSON_CHAR, MAX_CODE_POINT, Intersection
from constrain.regex.builders import either, many, optional, sequence
from constrain.regex.classes import complement, difference, normalize
from constrain.regex.unicode.properties import property_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.language.tree import Expression, Ranges

_IGNORABLE = frozenset(
    (0xAD, 0x34F, *range(0x180B, 0x1810), 0x200B, 0x2060, 0x2064, 0xFEFF, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10))
).union(
    range(0x1BCA0, 0x1BCA4),
    range(0xE0100, 0xE01F0),
    range(0x1100, 0x1200),
    range(0xA960, 0xA980),
    range(0xD7B0, 0xD800),
)
"""Code points that UTS #46 removes, and parts of Hangul syllables, which are joined."""

_TONE_MARKS = (0x302E, 0x302F)
"""The only marks that no validator allows; some validators accept every other mark."""

_KATAKANA_HYPHEN = 0x30A0
"""A hyphen that some validators take for a letter of Katakana."""

_OTHERS = ((0xD800, 0xF8FF), (0xF0000, 0x10FFFF))
"""Surrogates and private use, which no validator allows."""

_ASCII = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


class _Table:
    """Spans of code points beyond ASCII that may occur, with their mappings; unassigned ones have none."""

    def __init__(self) -> None:
        valid = (*valid_code_points(), *context_code_points())
        long = tuple((first, last) for first, last in valid if is_uniform(first, last, assigned=False))
        self.long = normalize(long)
        self.allowed = {
            chr(code) for first, last in difference(normalize(valid), self.long) for code in range(first, last + 1)
        }
        unassigned = property_ranges("Cn")
        assert unassigned is not None
        unassigned = difference(unassigned, self.long)
        self.spans = [(first, last, chr(first)) for first, last in long]
        self.spans += [(first, last, "") for first, last in unassigned]
        for first, last in complement(normalize((*unassigned, *self.long, (0, 0x7F), *_OTHERS))):
            for code_point in range(first, last + 1):
                self._add(code_point)

    def _add(self, code_point: int) -> None:
        character = chr(code_point)
        if character in self.allowed or code_point == _KATAKANA_HYPHEN:
            self.spans.append((code_point, code_point, character))
        elif code_point in _IGNORABLE or unicodedata.category(character) == "Cn":
            self.spans.append((code_point, code_point, ""))
        else:
            folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
            kept = "".join(c for c in folded if ord(c) not in _IGNORABLE)
            is_mark = unicodedata.category(character)[0] == "M" and code_point not in _TONE_MARKS
            if is_mark or all(c in self.allowed or c in _ASCII or self._is_long(ord(c)) for c in kept):
                self.spans.append((code_point, code_point, kept))

    def _is_long(self, code_point: int) -> bool:
        return any(first <= code_point <= last for first, last in self.long)

    def maybe(self, test: Callable[[str], bool]) -> Ranges:
        """Returns the code points whose mapping has this property, and those without a known mapping."""
        return normalize((first, last) for first, last, text in self.spans if not text or test(text))

    def surely(self, test: Callable[[str], bool]) -> Ranges:
        """Returns the code points whose mapping has this property."""
        return normalize((first, last) for first, last, text in self.spans if text and test(text))


_LETTERS = ((0x41, 0x5A), (0x61, 0x7A))
_DIGITS = ((0x30, 0x39),)
_HYPHEN = ((0x2D, 0x2D),)
_BEYOND_ASCII = ((0x80, MAX_CODE_POINT),)
_DOT = r"[.\u{3002}\u{FF0E}\u{FF61}]"


@cache
def idn_hostname_definition() -> Expression:
    """Returns every text that may count as an idn-hostname."""
    table = _Table()
    label = either(
        f"[A-Za-z0-9](?:[A-Za-z0-9-]{{0,{MAX_LABEL_LENGTH - 2}}}[A-Za-z0-9])?",
        Intersection(
            (
                _directed(table),
                sequence(_ANY, f"[{NOT_ASCII}]", _ANY),
                _countable(table, MAX_LABEL_LENGTH - len("xn--"), octets=False),
            )
        ),
    )
    name = sequence(label, many(sequence(_DOT, label)))
    return sequence(Intersection((name, _countable(table, MAX_HOSTNAME_LENGTH, octets=True))), optional(_DOT))


@cache
def idn_email_definition() -> Expression:
    """Returns every text that may count as an idn-email."""
    host = idn_hostname_definition()
    return email_at(host, NOT_ASCII, quoted=r'"(?:[^"\\]|\\[^])*"')


def _directed(table: _Table) -> Expression:
    """Returns labels with marks and hyphens in valid places, under the Bidi rule (RFC 5893, section 2)."""

    def has(*directions: str) -> Callable[[str], bool]:
        return lambda text: any(unicodedata.bidirectional(c) in directions for c in text)

    every = normalize([*_LETTERS, *_DIGITS, *table.maybe(bool)])
    mark = table.surely(lambda text: unicodedata.category(text[0])[0] == "M")
    left_to_right = _label_of(difference(every, table.surely(has("R", "AL", "AN"))), mark)
    no_left = difference(every, normalize([*_LETTERS, *_IN_LEFT_TO_RIGHT, *table.surely(has("L"))]))
    no_first = normalize(
        [*mark, *_DIGITS, *table.surely(lambda text: unicodedata.bidirectional(text[0]) in ("EN", "AN", "ON"))]
    )
    right_to_left = either(
        *(
            _label_of(difference(no_left, normalize(digits)), no_first)
            for digits in (_DIGITS + table.surely(has("EN")), table.surely(has("AN")))
        )
    )
    joiners = _joiners(table)
    return either(
        Intersection((left_to_right, *joiners, *_left_to_right_contexts(table))),
        Intersection((right_to_left, *joiners, _needs(_of(table, "Hebrew"), ((0x5F3, 0x5F4),), before=True))),
    )


def _label_of(ranges: Ranges, not_first: Ranges) -> Expression:
    end = characters(ranges)
    inside = characters(normalize([*ranges, *_HYPHEN]))
    return Intersection(
        (sequence(characters(difference(ranges, not_first)), many(inside)), sequence(many(inside), end))
    )


# The rules of RFC 5892, appendix A, where a text surely breaks them.

_IN_LEFT_TO_RIGHT = ((0xB7, 0xB7), (0x375, 0x375), (0x387, 0x387), (0x30FB, 0x30FB), (0xFF65, 0xFF65))
"""Characters that need letters of left-to-right scripts next to them."""


def _left_to_right_contexts(table: _Table) -> list[Expression]:
    small_l = normalize([(0x4C, 0x4C), (0x6C, 0x6C), *table.maybe(lambda text: "l" in text)])
    middle_dot = ((0xB7, 0xB7), (0x387, 0x387))
    katakana_dot = ((0x30FB, 0x30FB), (0xFF65, 0xFF65))
    return [
        _needs(small_l, middle_dot, before=True),
        _needs(small_l, middle_dot, before=False),
        _needs(_of(table, "Greek"), ((0x375, 0x375),), before=False),
        either(
            many(characters(complement(katakana_dot))),
            sequence(_ANY, characters(_of(table, "Hiragana", "Katakana", "Han")), _ANY),
        ),
    ]


def _joiners(table: _Table) -> list[Expression]:
    virama = table.maybe(lambda text: any(unicodedata.combining(c) == VIRAMA for c in text))
    return [
        _needs(virama, ((0x200D, 0x200D),), before=True),
        _needs(_BEYOND_ASCII, ((0x200C, 0x200C),), before=True),  # a virama, or letters that join
    ]


def _of(table: _Table, *names: str) -> Ranges:
    ranges = normalize(pair for name in names for pair in script_code_points(name))
    starts = [first for first, _ in ranges]

    def is_in(text: str) -> bool:
        return any((place := bisect_right(starts, ord(c))) and ord(c) <= ranges[place - 1][1] for c in text)

    return table.maybe(is_in)


_ANY = many(ANY_JSON_CHAR)


def _needs(neighbours: Ranges, what: Ranges, *, before: bool) -> Expression:
    """Returns the texts in which one of ``neighbours`` is before, or after, each ``what``.

    The expression has no complements, so that the kernel sees dead ends at once, without a search.
    """
    neighbours = difference(neighbours, what)
    neighbour, those = characters(neighbours), characters(what)
    if before:
        others = characters(complement(normalize((*neighbours, *what))))
        return many(either(others, sequence(neighbour, optional(those))))
    return many(either(characters(complement(what)), sequence(those, neighbour)))


def _countable(table: _Table, maximum: int, *, octets: bool) -> Expression:
    """Returns names of at most so many code points, without those that may be removed or composed.

    Punycode has at least one octet for each remaining code point; with ``octets``, ASCII counts, too.
    """
    starters = table.surely(
        lambda text: (
            unicodedata.is_normalized("NFC", text) and unicodedata.category(text[0])[0] == "L" and not text.isascii()
        )
    )
    counted = normalize([*starters, *(((0x2D, 0x2E), *_LETTERS, *_DIGITS) if octets else ())])
    others = many(characters(complement(counted)))
    return sequence(many(sequence(others, characters(counted)), 0, maximum), others)
