"""All quotes of a source as an expression, and folded texts."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from constrain.language.tree import Expression, Substring, tree_bytes
from constrain.regex.parsing.parser import parse_pattern
from constrain.regex.unicode.properties import perl_class
from constrain.remembering import remembered

if TYPE_CHECKING:
    from constrain.quotes.keyword import QuoteKeyword, Texts

EXPRESSION_BYTES = 16 << 20
"""Bytes of remembered expressions of quotes; beyond it, the least recently used are dropped."""


class Folded(NamedTuple):
    """A text in lower case, with one space for each run of white space.

    ``positions``: for each character the position of its source in the text as given; at the end the text's length.
    """

    text: str
    positions: list[int]


def fold(text: str) -> Folded:
    """Folds case and white space. Letters whose folded form is several characters stay unchanged."""
    characters: list[str] = []
    positions: list[int] = []
    for position, given in enumerate(text):
        if given.isspace():
            if position > 0 and text[position - 1].isspace():
                continue
            folded = " "
        else:
            folded = given.casefold()
        characters.append(folded if len(folded) == 1 else given)
        positions.append(position)
    return Folded("".join(characters), [*positions, len(text)])


def _class(letter: str) -> str:
    """Returns a class of Rust's patterns, such as ``w``, as a class of Python's."""
    return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in perl_class(letter, "rust")) + "]"


@cache
def _words() -> re.Pattern[str]:
    """Returns the pattern of words of two characters or more."""
    return re.compile(_class("w") + "{2,}")


@cache
def _spaces() -> re.Pattern[str]:
    """Returns the pattern of a white space character."""
    return re.compile(_class("s"))


@cache
def without_spaces_around() -> Expression:
    """Returns the contents of JSON strings that neither begin nor end with white space."""
    return parse_pattern(r"(?:\S(?s:.*\S)?)?", "rust", json=True)


def cuts(text: str) -> bytes:
    """Returns a byte for each character of a text: 0 within a word, a run of letters, marks, digits and ``_``."""
    found = bytearray(b"\1") * len(text)
    for word in _words().finditer(text):
        begin, end = word.span()
        found[begin + 1 : end] = bytes(end - begin - 1)
    return bytes(found)


@remembered(64, EXPRESSION_BYTES, lambda texts, _: 60 + 4 * sum(map(len, texts)), tree_bytes)
def quote_expression(texts: Texts, keyword: QuoteKeyword) -> Substring:
    """Returns the contents of JSON strings that are quotes."""
    matched = tuple(fold(text).text for text in texts) if keyword.fold else texts
    between = tuple(map(cuts, matched)) if keyword.whole_words else ()
    return Substring(matched, keyword.min_length, keyword.max_length, cuts=between)


def has_parts(expression: Substring) -> bool:
    """Returns whether the expression matches any text; one of whole words without white space around them."""
    minimum, maximum = expression.minimum, expression.maximum
    if minimum == 0:
        return maximum is None or maximum >= 0
    if maximum is not None and maximum < minimum:
        return False
    if not expression.cuts:
        return any(len(text) >= minimum for text in expression.texts)
    for text, cut in zip(expression.texts, expression.cuts, strict=True):
        spaces = {found.start() for found in _spaces().finditer(text)}
        places = [position for position, begins in enumerate(cut) if begins] + [len(text)]
        ends = [position for position in places if position > 0 and position - 1 not in spaces]
        for begin in (position for position in places if position not in spaces):
            nearest = bisect_left(ends, begin + minimum)
            if nearest < len(ends) and (maximum is None or ends[nearest] <= begin + maximum):
                return True
    return False
