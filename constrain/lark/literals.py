"""Expressions of the strings, ranges and patterns of a grammar text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrain.errors import PatternError
from constrain.language.tree import EMPTY_TEXT, Literal
from constrain.lark.reading.places import error_at, placed
from constrain.lark.reading.strings import string_value
from constrain.regex.parsing.parser import char_class, parse_pattern

if TYPE_CHECKING:
    from constrain.language.tree import Expression
    from constrain.lark.reading.syntax import Quoted, Range

_PATTERN_AND_PLACE = re.compile(r"pattern .*?, (?:line \d+, )?column \d+: ", re.DOTALL)
_META = frozenset(r"\.+*?()|[]{}^$")


def literal_expression(text: str, literal: Quoted) -> Expression:
    """Returns the expression of a string or pattern in the grammar ``text``. Raises GrammarError or PatternError."""
    if literal.written.startswith('"'):
        return _string(text, literal)
    return _pattern(text, literal)


def range_expression(text: str, characters: Range) -> Expression:
    """Returns one character out of a range."""
    ends = [string_value(text, end) for end in (characters.first, characters.last)]
    if any(end.written.endswith("i") for end in (characters.first, characters.last)):
        raise error_at(text, characters.at, "a range takes no flags; write a pattern such as /[a-z]/i")
    if any(len(end) != 1 for end in ends) or ends[0] > ends[1]:
        raise error_at(text, characters.at, "a range goes from one character to a later one")
    return char_class(((ord(ends[0]), ord(ends[1])),), json=False)


def _string(text: str, literal: Quoted) -> Expression:
    value = string_value(text, literal)
    if literal.written.endswith("i"):
        return parse_pattern("(?i)" + "".join("\\" + char if char in _META else char for char in value), "rust")
    return Literal(value.encode()) if value else EMPTY_TEXT


def _pattern(text: str, literal: Quoted) -> Expression:
    end = literal.written.rindex("/")
    pattern, flags = literal.written[1:end], literal.written[end + 1 :]
    if "l" in flags:
        raise error_at(text, literal.at + end + 1, "flag l is not supported: there is no locale")
    if "\n" in pattern and "x" not in flags:
        raise error_at(text, literal.at, "a pattern over several lines needs flag x")
    inline = "".join(sorted(set(flags) - {"u"}))  # patterns are always Unicode
    prefix = f"(?{inline})" if inline else ""
    try:
        return parse_pattern(prefix + pattern, "rust")
    except PatternError as error:
        at = literal.at + 1 + max((error.column or 1) - 1 - len(prefix), 0)
        raise placed(PatternError, text, at, _PATTERN_AND_PLACE.sub("", error.message, count=1)) from error
