"""Unicode properties and case folding as ranges of code points; the tables are loaded when first needed."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING

from constrain.language.tree import PART_BYTES
from constrain.regex import classes
from constrain.remembering import remembered

if TYPE_CHECKING:
    from constrain.language.tree import Ranges

DIGITS_ASCII: Ranges = ((0x30, 0x39),)
WORD_ASCII: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE_ASCII: Ranges = ((0x09, 0x0D), (0x20, 0x20))
# ECMA-262, WhiteSpace and LineTerminator: the ASCII ones, U+FEFF, U+2028, U+2029 and the category Zs.
SPACE_ECMA: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)


RANGES_BYTES = 4 << 20
"""Bytes of cached ranges of properties, with the names in patterns, known or not; beyond it, the least recently used
are dropped."""


def _names_bytes(*names: str) -> int:
    return sum(map(len, names))


def _ranges_bytes(ranges: Ranges | None) -> int:
    return 2 * PART_BYTES * len(ranges or ())


def property_ranges(expression: str) -> Ranges | None:
    r"""Returns the code points of ``\p{expression}``; None if the property is not known.

    ``expression`` is ``name`` or ``name=value``: a general category, a script, a script extension or a binary
    property, by any of its names; case, spaces, ``-``, ``_`` and ``is`` in front do not matter (UAX #44, rule LM3).
    """
    name, _, value = expression.replace("_", "").replace("-", "").replace(" ", "").upper().partition("=")
    found = _property(name, value)
    return _property(name[2:], value) if found is None and name.startswith("IS") else found


@remembered(1024, RANGES_BYTES, _names_bytes, _ranges_bytes)
def _property(name: str, value: str) -> Ranges | None:
    if value:
        if name in ("GC", "GENERALCATEGORY"):
            return _category(value)
        if name in ("SC", "SCRIPT"):
            return _script(value, extended=False)
        if name in ("SCX", "SCRIPTEXTENSIONS"):
            return _script(value, extended=True)
        return None
    found = _category(name)
    if found is None:
        found = _binary(name)
    return _script(name, extended=False) if found is None else found


@remembered(1024, RANGES_BYTES, _names_bytes, _ranges_bytes)
def _category(name: str) -> Ranges | None:
    from constrain.regex.unicode import data as unicode_data

    name = _aliases(unicode_data.CATEGORY_ALIASES).get(name, name)
    if name == "LC":
        leaves = ["LU", "LL", "LT"]
    elif len(name) == 1:
        leaves = [leaf for leaf in unicode_data.CATEGORIES if leaf[0] == name]
    else:
        leaves = [leaf for leaf in unicode_data.CATEGORIES if leaf == name]
    if not leaves:
        return None
    return classes.normalize(pair for leaf in leaves for pair in _decode(unicode_data.CATEGORIES[leaf]))


def _script(name: str, *, extended: bool) -> Ranges | None:
    from constrain.regex.unicode import data as unicode_data

    name = _aliases(unicode_data.SCRIPT_ALIASES).get(name, name)
    table = unicode_data.SCRIPT_EXTENSIONS.get(name) if extended else None
    table = table or unicode_data.SCRIPTS.get(name)
    return None if table is None else _decode(table)


def _binary(name: str) -> Ranges | None:
    from constrain.regex.unicode import data as unicode_data

    if name == "ANY":
        return classes.ANY
    if name == "ASCII":
        return ((0, 0x7F),)
    if name == "ASSIGNED":
        return classes.complement(_category("CN") or ())
    table = unicode_data.BINARY.get(_aliases(unicode_data.BINARY_ALIASES).get(name, name))
    return None if table is None else _decode(table)


@cache
def perl_class(letter: str, dialect: str) -> Ranges:
    r"""Returns the code points of ``\d``, ``\s`` or ``\w``; dialects are "ecma", "rust", "python" and "ascii"."""
    if letter == "d":
        return DIGITS_ASCII if dialect in ("ecma", "ascii") else (_category("ND") or ())
    if letter == "s":
        if dialect == "ecma":
            return SPACE_ECMA
        return SPACE_ASCII if dialect == "ascii" else _space(dialect)
    return WORD_ASCII if dialect in ("ecma", "ascii") else _word(dialect)


def _space(dialect: str) -> Ranges:
    from constrain.regex.unicode import data as unicode_data

    return _decode(unicode_data.PYTHON_SPACE) if dialect == "python" else (_property("WHITESPACE", "") or ())


def _word(dialect: str) -> Ranges:
    from constrain.regex.unicode import data as unicode_data

    if dialect == "python":
        return _decode(unicode_data.PYTHON_WORD)
    # UTS #18, annex C: the definition of \w that the regex crate follows.
    parts = ("ALPHABETIC", "M", "ND", "PC", "JOINCONTROL")
    return classes.normalize(pair for part in parts for pair in _property(part, "") or ())


def fold_case(ranges: Ranges, dialect: str) -> Ranges:
    """Returns ``ranges`` and every code point that differs from a member in case only.

    Simple case folding, as in ECMA-262 and the regex crate; "python" folds as ``re.IGNORECASE`` does, "ascii" folds
    letters in ASCII only.
    """
    if not ranges or ranges[-1][1] < 0x80:
        chars = [chr(point) for low, high in ranges for point in range(low, high + 1)]
        return classes.normalize(pair for char in chars for pair in fold_character(char, dialect))
    lows = [low for low, _ in ranges]

    def holds(char: str) -> bool:
        index = bisect_right(lows, ord(char)) - 1
        return index >= 0 and ord(char) <= ranges[index][1]

    added = [(ord(char), ord(char)) for orbit in _orbits(dialect) if any(map(holds, orbit)) for char in orbit]
    return classes.normalize((*ranges, *added))


def fold_character(char: str, dialect: str) -> Ranges:
    """Returns the code points that equal ``char`` without regard to case."""
    orbit = _orbit_of(dialect).get(char, char)
    return classes.normalize((ord(member), ord(member)) for member in orbit)


@cache
def _orbits(dialect: str) -> tuple[str, ...]:
    if dialect == "ascii":
        return tuple(chr(point) + chr(point + 0x20) for point in range(0x41, 0x5B))
    from constrain.regex.unicode import data as unicode_data

    text = unicode_data.PYTHON_CASE_ORBITS if dialect == "python" else unicode_data.CASE_ORBITS
    return tuple(text.split(" "))


@cache
def _orbit_of(dialect: str) -> dict[str, str]:
    return {char: orbit for orbit in _orbits(dialect) for char in orbit}


@cache
def _aliases(table: str) -> dict[str, str]:
    return dict(entry.split("=") for entry in table.split(" "))


def _decode(table: str) -> Ranges:
    ranges, start = [], 0
    numbers = [int(number, 36) for number in table.split()]
    for gap, more in zip(numbers[::2], numbers[1::2], strict=True):
        first = start + gap
        start = first + more + 1
        ranges.append((first, start - 1))
    return tuple(ranges)
