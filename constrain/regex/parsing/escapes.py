"""Backslash escapes for one character, or for a class of characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrain.regex import classes
from constrain.regex.unicode import properties as unicode

if TYPE_CHECKING:
    from constrain.language.tree import Ranges
    from constrain.regex.parsing.scanner import Scanner

_CONTROLS = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "a": "\a"}
_OCTAL = frozenset("01234567")
_LETTERS_AND_DIGITS = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

_LOW_SURROGATE = re.compile("[dD][c-fC-F][0-9a-fA-F]{2}")

_REFUSED = {
    "b": "word boundaries are not supported; spell out the characters allowed next to the word",
    "B": "word boundaries are not supported; spell out the characters allowed next to the word",
    "k": "backreferences are not supported",
    "G": "\\G is not supported",
}
_ANCHORS = {"A": "^", "Z": "$", "z": "$"}


def read_escape(scanner: Scanner, *, in_class: bool) -> str | Ranges:
    """Reads the escape at the scanner's position (a backslash); returns a character, or the set of a class escape."""
    text, start = scanner.text, scanner.position
    if start + 1 == len(text):
        scanner.fail("a backslash at the end escapes nothing; write \\\\ for a backslash", start)
    letter = text[start + 1]
    scanner.position = start + 2
    if letter in "dDsSwW":
        return _perl_class(scanner, letter)
    if letter not in _LETTERS_AND_DIGITS:
        if letter in "<>" and scanner.dialect == "rust":  # outside of brackets, if word boundaries are supported
            scanner.fail(_REFUSED["b"], start)
        if letter > "\x7f" and scanner.dialect == "rust":
            return scanner.fail(f"\\{letter} is not an escape; write {letter} alone", start)
        return letter
    if letter in _CONTROLS and not (letter == "a" and scanner.dialect == "ecma"):
        return _CONTROLS[letter]
    if letter == "b" and in_class and scanner.dialect != "rust":
        return "\b"
    if letter in "xuU":
        return _numbered(scanner, letter, start)
    if letter in "pP" and scanner.dialect != "python":
        return _property(scanner, letter, start)
    if letter == "c" and scanner.dialect == "ecma":
        return _control(scanner, start)
    if letter == "N" and scanner.dialect == "python":
        return _named(scanner, start)
    if letter.isdigit():
        return _digits(scanner, start, in_class=in_class)
    if letter in _REFUSED:
        scanner.fail(_REFUSED[letter], start)
    if letter in _ANCHORS and not in_class:
        scanner.fail(f"\\{letter} is not an escape here; write {_ANCHORS[letter]}", start)
    return scanner.fail(
        f"\\{letter} is not an escape; write {letter} for the letter or \\\\{letter} for a backslash", start
    )


def _perl_class(scanner: Scanner, letter: str) -> Ranges:
    dialect = "ascii" if scanner.flags.ascii else scanner.dialect
    ranges = unicode.perl_class(letter.lower(), dialect)
    if scanner.flags.ignore_case and dialect == "ecma":
        ranges = unicode.fold_case(ranges, dialect)
    return classes.complement(ranges) if letter.isupper() else ranges


def _numbered(scanner: Scanner, letter: str, start: int) -> str:
    r"""Reads ``\xHH``, ``\uHHHH``, ``\UHHHHHHHH`` and the forms with braces."""
    braces = scanner.text[scanner.position : scanner.position + 1] == "{"
    if braces and (scanner.dialect == "rust" or (scanner.dialect == "ecma" and letter == "u")):
        point = scanner.braced_code_point(start)
    elif letter == "U":
        if scanner.dialect == "ecma":
            scanner.fail("\\U is not an escape; write \\u{...}", start)
        point = scanner.hexadecimal(8, start)
        if point > 0x10FFFF:
            scanner.fail("the greatest code point is 10FFFF", start)
    else:
        point = scanner.hexadecimal(2 if letter == "x" else 4, start)
        if scanner.dialect == "ecma" and 0xD800 <= point < 0xDC00:
            point = _surrogate_pair(scanner, point)
    if scanner.dialect == "rust":
        if 0xD800 <= point < 0xE000:
            scanner.fail(f"{point:X} is a surrogate, which UTF-8 cannot encode", start)
        if scanner.flags.ascii and 0x80 <= point < 0x100:
            scanner.fail("with (?-u) this is a byte, not a character; write (?u:...) around the character", start)
    return chr(point)


def _surrogate_pair(scanner: Scanner, high: int) -> int:
    """Returns one code point for a high surrogate and the escaped low one after it; a lone high one is itself."""
    digits = scanner.text[scanner.position + 2 : scanner.position + 6]
    if scanner.text.startswith("\\u", scanner.position) and _LOW_SURROGATE.fullmatch(digits):
        scanner.position += 6
        return 0x10000 + ((high - 0xD800) << 10) + (int(digits, 16) - 0xDC00)
    return high


def _property(scanner: Scanner, letter: str, start: int) -> Ranges:
    following = scanner.text[scanner.position : scanner.position + 1]
    if scanner.flags.ascii:
        scanner.fail("there are no Unicode properties with (?-u); write (?u:...) around this", start)
    if scanner.dialect == "rust" and following.isalpha():
        expression = following
        scanner.position += 1
    else:
        expression = scanner.braced(start)
    negated = letter == "P"
    if scanner.dialect == "rust":
        if expression.startswith("^"):
            negated, expression = not negated, expression[1:]
        if "!=" in expression:
            negated, expression = not negated, expression.replace("!=", "=")
        expression = expression.replace(":", "=")
    ranges = unicode.property_ranges(expression)
    if ranges is None:
        scanner.fail(f"{expression!r} is no general category, script or binary property of Unicode", start)
    ignore_case = scanner.flags.ignore_case
    if ignore_case and not (negated and scanner.dialect == "ecma"):
        ranges = unicode.fold_case(ranges, scanner.dialect)
    if negated:
        ranges = classes.complement(ranges)
        if ignore_case and scanner.dialect == "ecma":  # ECMA-262 complements before it folds case
            ranges = unicode.fold_case(ranges, scanner.dialect)
    return ranges


def _control(scanner: Scanner, start: int) -> str:
    letter = scanner.text[scanner.position : scanner.position + 1]
    if not ("a" <= letter.lower() <= "z" and letter.isascii()):
        scanner.fail("\\c needs a letter after it", start)
    scanner.position += 1
    return chr(ord(letter) % 32)


def _named(scanner: Scanner, start: int) -> str:
    import unicodedata

    name = scanner.braced(start)
    try:
        char = unicodedata.lookup(name)
    except (KeyError, UnicodeEncodeError):  # the latter for a name with half of a surrogate pair
        scanner.fail(f"{name!r} is not the name of a character", start)
    if len(char) != 1:
        scanner.fail(f"{name!r} is a sequence of characters", start)
    return char


def _digits(scanner: Scanner, start: int, *, in_class: bool) -> str:
    r"""Reads ``\0``, the character NUL, and octal escapes (python); refuses backreferences, any other digits."""
    text = scanner.text
    digits = text[start + 1 : start + 4]
    if scanner.dialect == "python":
        octal = next((index for index, char in enumerate(digits) if char not in _OCTAL), len(digits))
        if digits[0] == "0" or octal == 3 or (in_class and octal):
            scanner.position = start + 1 + octal
            point = int(digits[:octal], 8)
            if point > 0o377:
                scanner.fail("the greatest octal escape is \\377", start)
            return chr(point)
    elif scanner.dialect == "ecma" and digits[0] == "0" and not digits[1:2].isdigit():
        return "\0"
    if digits[0] == "0" or in_class:
        scanner.fail("octal escapes are not supported; write \\xHH", start)
    return scanner.fail("backreferences are not supported", start)
