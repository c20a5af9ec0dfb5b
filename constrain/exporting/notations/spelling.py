"""How characters, classes and counts are written, in regular expressions and in GBNF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.exporting.nodes import Choice, Repeat, Sequence, Text
from constrain.gbnf.spelling import count_text
from constrain.language.tree import CharClass, inside
from constrain.regex.classes import complement, normalize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.language.tree import Expression, Ranges

_LAST = 0x10FFFF
_ASCII_END = 0x80
_SURROGATES = (0xD800, 0xDFFF)
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SYNTAX = frozenset(".^$*+?()[]{}|\\")
_CLASS_SYNTAX = frozenset("\\]^[-&~")


def escaped(character: str, syntax: Mapping[str, str]) -> str:
    """Returns a character as texts have it: itself, its form in ``syntax``, or its number."""
    if (form := syntax.get(character) or _CONTROLS.get(character)) is not None:
        return form
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < _ASCII_END else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def class_text(ranges: Ranges, syntax: Mapping[str, str], last: int = _LAST) -> str:
    """Returns a class in brackets; with ^ if all characters that it lacks come before ``last``, and are fewer.

    The text of the full class is empty.
    """
    gaps = complement(normalize((*ranges, _SURROGATES)))
    if not gaps:
        return ""
    if gaps[-1][1] <= last and len(gaps) < len(ranges):
        return f"[^{_ranges(gaps, syntax)}]"
    return f"[{_ranges(ranges, syntax)}]"


def _ranges(ranges: Ranges, syntax: Mapping[str, str]) -> str:
    found = ""
    for low, high in ranges:
        first, last = escaped(chr(low), syntax), escaped(chr(high), syntax)
        found += first if low == high else first + last if high == low + 1 else f"{first}-{last}"
    return found


def only_character(ranges: Ranges) -> str | None:
    """Returns the character of a class that has one only."""
    return chr(ranges[0][0]) if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else None


_IN_PATTERN = {character: f"\\{character}" for character in _SYNTAX}
_IN_CLASS = {character: f"\\{character}" for character in _CLASS_SYNTAX}


def pattern(node: Expression) -> str:
    """Returns a node without names as a regular expression that Rust's ``regex`` crate and Python's ``re`` read."""
    match node:
        case Choice(parts):
            return "|".join(map(pattern, parts))
        case Sequence(parts):
            return "".join(f"(?:{pattern(part)})" if isinstance(part, Choice) else pattern(part) for part in parts)
        case Repeat(part, minimum, maximum):
            inner = pattern(part)
            single = isinstance(part, CharClass) or (isinstance(part, Text) and len(part.text) == 1)
            return (inner if single else f"(?:{inner})") + count_text(minimum, maximum)
        case Text(text):
            return "".join(escaped(character, _IN_PATTERN) for character in text)
    assert isinstance(node, CharClass), node
    character = only_character(node.ranges)
    return class_text(node.ranges, _IN_CLASS) or r"[\s\S]" if character is None else escaped(character, _IN_PATTERN)


def has_pattern(node: Expression) -> bool:
    """Returns whether ``pattern`` can write a node: it has no names, and no "and" or "not"."""
    return all(isinstance(each, Text | CharClass | Sequence | Choice | Repeat) for each in inside(node))
