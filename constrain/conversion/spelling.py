"""Strings and sets of characters as Lark writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.conversion.regularity import difference
from constrain.language.tree import MAX_CODE_POINT
from constrain.regex.classes import normalize

if TYPE_CHECKING:
    from constrain.conversion.parts import Characters
    from constrain.language.tree import Ranges

_ALL: Ranges = ((0, MAX_CODE_POINT),)
_OPERATORS = {(0, 1): "?", (0, None): "*", (1, None): "+"}
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_SPECIAL_IN_CLASS = frozenset(r"\]^[-&~/")


def quoted(text: str) -> str:
    """Returns a string in double quotes."""
    return '"' + "".join(_escaped(char, '"\\') for char in text) + '"'


def character_class(node: Characters) -> str:
    """Returns the pattern of characters, without the slashes around it: ``[a-z]``, or ``.`` with flag s.

    Ranges stand in the order of the text, if they stand there.
    """
    if node.ranges == _ALL:
        return "."
    listed = tuple(dict.fromkeys(node.listed))
    others = difference(_ALL, node.ranges)
    if listed:
        return f"[{'' if normalize(listed) == node.ranges else '^'}{_listed(listed)}]"
    if node.ranges[-1][1] == MAX_CODE_POINT and len(others) <= len(node.ranges):
        return f"[^{_listed(others)}]"
    return f"[{_listed(node.ranges)}]"


def pattern(inside: str) -> str:
    """Returns a pattern in slashes; its dot is any character."""
    return f"/{inside}/{'s' if inside.startswith('.') else ''}"


def operator(minimum: int, maximum: int | None) -> str:
    """Returns the operator of a repetition; that of one time is empty."""
    if minimum == maximum:
        return "" if minimum == 1 else f"{{{minimum}}}"
    return _OPERATORS.get((minimum, maximum)) or f"{{{minimum},{'' if maximum is None else maximum}}}"


def _listed(ranges: Ranges) -> str:
    parts = []
    for index, (low, high) in enumerate(ranges):
        if low == high == ord("-") and index in (0, len(ranges) - 1):
            parts.append("-")
            continue
        first, last = (_escaped(chr(code), _SPECIAL_IN_CLASS) for code in (low, high))
        parts.append(first if low == high else f"{first}{last}" if high == low + 1 else f"{first}-{last}")
    return "".join(parts)


def _escaped(char: str, special: frozenset[str] | str) -> str:
    """Returns a character as strings and patterns have it."""
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char in special:
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
