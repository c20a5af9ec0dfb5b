"""Ends of words in a string that an answer ends early.

A word is what white space separates, without the punctuation behind it. A wide character, such as a Chinese one, is a
word of its own.
"""

from __future__ import annotations

import re
import unicodedata

_PLAIN_CHARACTER = rb"[\x00-\x7f]|[\xc2-\xf4][\x80-\xbf]+"
_CHARACTER = re.compile(_PLAIN_CHARACTER)
_ESCAPED_CHARACTER = re.compile(rb"\\u[0-9a-fA-F]{4}|\\[^u]|(?!\\)(?:" + _PLAIN_CHARACTER + rb")")
_ESCAPES = {b"\\n": "\n", b"\\t": "\t", b"\\r": "\r", b"\\f": "\f", b"\\b": " "}
_QUOTE = b'"'
_OF_WORDS = "%&#@*"
"""Punctuation that belongs to the word in front of it."""


def find_word_end(text: bytes, *, is_json: bool) -> tuple[int, bool]:
    """Returns the position behind the last word that is certainly whole, and whether the string itself ends.

    A word is certainly whole if white space or a wide character follows. Position 0 stands for no whole word; if the
    string ends, the position is that of the closing quote.

    Args:
        text: UTF-8 bytes of the string so far, without the opening quote; the last character may be unfinished.
        is_json: whether the string has JSON's escapes, and ends with a quote.
    """
    whole = end = at = 0
    pattern = _ESCAPED_CHARACTER if is_json else _CHARACTER
    while found := pattern.match(text, at):
        if is_json and found[0] == _QUOTE:
            return at, True
        at = found.end()
        character = _character(found[0]) if is_json else found[0].decode("utf-8", "replace")[0]
        is_wide = unicodedata.east_asian_width(character) in ("W", "F")
        if character.isspace() or (is_wide and _is_punctuation(character)):
            whole = end
        elif is_wide:
            whole = end = at
        elif not _is_punctuation(character):
            end = at
    return whole, False


def _character(spelled: bytes) -> str:
    """Returns the character that a JSON string spells like this."""
    if spelled.startswith(b"\\u"):
        return chr(int(spelled.removeprefix(b"\\u"), base=16))
    return _ESCAPES.get(spelled) or spelled.removeprefix(b"\\").decode("utf-8", "replace")[0]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P") and character not in _OF_WORDS
