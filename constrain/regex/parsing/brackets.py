"""Character classes in brackets, with the set operations and nested classes of the regex crate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.regex import classes
from constrain.regex.parsing.escapes import read_escape
from constrain.regex.unicode import properties as unicode
from constrain.work import MAX_PATTERN_NESTING

if TYPE_CHECKING:
    from constrain.language.tree import Ranges
    from constrain.regex.parsing.scanner import Scanner

_POSIX = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": ((0x30, 0x39),),
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}


def read_class(scanner: Scanner, depth: int = 0) -> Ranges:
    """Reads the class at the scanner's position (its opening bracket); returns the code points that it matches."""
    text, start, rust = scanner.text, scanner.position, scanner.dialect == "rust"
    if depth > MAX_PATTERN_NESTING:
        scanner.fail(f"classes are nested more than {MAX_PATTERN_NESTING} deep (MAX_PATTERN_NESTING)", start)
    scanner.position += 1
    negated = text.startswith("^", scanner.position)
    scanner.position += negated
    members: list[tuple[int, int]] = []
    if rust:
        _skip(scanner)
        while text.startswith("-", scanner.position):
            scanner.position += 1
            members.append((0x2D, 0x2D))
    if not members and scanner.dialect != "ecma" and text.startswith("]", scanner.position):
        scanner.position += 1
        members.append((0x5D, 0x5D))
    result: Ranges | None = None
    operator = ""
    while True:
        if rust:
            _skip(scanner)
        if scanner.position >= len(text):
            scanner.fail("the class that begins here has no closing ]", start)
        char = text[scanner.position]
        if char == "]":
            scanner.position += 1
            break
        if rust and char == "[":
            posix = _read_posix(scanner)
            members += read_class(scanner, depth + 1) if posix is None else posix
        elif rust and text[scanner.position : scanner.position + 2] in ("&&", "--", "~~"):
            result = _combine(operator, result, _folded(scanner, members))
            operator, members = text[scanner.position : scanner.position + 2], []
            scanner.position += 2
        else:
            _read_members(scanner, members)
    ranges = _combine(operator, result, _folded(scanner, members))
    return classes.complement(ranges) if negated else ranges


def _read_members(scanner: Scanner, members: list[tuple[int, int]]) -> None:
    """Reads one character, class escape or range."""
    text, start, ecma = scanner.text, scanner.position, scanner.dialect == "ecma"
    low = _read_member(scanner)
    after = text[scanner.position + 1 : scanner.position + 2]
    ranged = text.startswith("-", scanner.position) and after not in ("", "]")
    if not ranged or (after == "-" and scanner.dialect == "rust"):
        members += ((ord(low), ord(low)),) if isinstance(low, str) else low
        return
    scanner.position += 1
    if scanner.dialect == "rust":
        _skip(scanner)
    high = _read_member(scanner)
    if isinstance(low, str) and isinstance(high, str):
        if high < low:
            scanner.fail(f"the range {low!r} to {high!r} is out of order", start)
        members.append((ord(low), ord(high)))
        return
    if not ecma:
        scanner.fail("a class escape cannot be the end of a range; put the - first or write \\-", start)
    members.append((0x2D, 0x2D))  # ECMA-262, B.1.2.8.1: the - stands for itself
    for part in (low, high):
        members += ((ord(part), ord(part)),) if isinstance(part, str) else part


def _read_member(scanner: Scanner) -> str | Ranges:
    text, position = scanner.text, scanner.position
    if position >= len(text):
        scanner.fail("the class is not closed; add ]", position)
    if text[position] == "\\":
        return read_escape(scanner, in_class=True)
    scanner.position += 1
    return text[position]


def _read_posix(scanner: Scanner) -> Ranges | None:
    """Reads ``[:name:]`` or ``[:^name:]``; returns None and reads nothing if there is none."""
    if not scanner.text.startswith("[:", scanner.position):
        return None
    end = scanner.text.find(":]", scanner.position + 2)
    name = scanner.text[scanner.position + 2 : end] if end >= 0 else ""
    ranges = _POSIX.get(name.removeprefix("^"))
    if ranges is None:
        return None
    scanner.position = end + 2
    if scanner.flags.ignore_case:
        ranges = unicode.fold_case(ranges, scanner.folding)
    return classes.complement(ranges) if name.startswith("^") else ranges


def _skip(scanner: Scanner) -> None:
    """Skips white space and comments under flag x."""
    if scanner.flags.verbose:
        scanner.skip_white_space()


def _folded(scanner: Scanner, members: list[tuple[int, int]]) -> Ranges:
    ranges = classes.normalize(members)
    return unicode.fold_case(ranges, scanner.folding) if scanner.flags.ignore_case else ranges


def _combine(operator: str, left: Ranges | None, right: Ranges) -> Ranges:
    if left is None:
        return right
    if operator == "&&":
        return classes.intersection(left, right)
    if operator == "--":
        return classes.difference(left, right)
    return classes.difference(classes.normalize((*left, *right)), classes.intersection(left, right))
