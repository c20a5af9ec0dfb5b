"""The texts of strings in grammar texts, with their escapes resolved."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrain.lark.reading.places import error_at

if TYPE_CHECKING:
    from constrain.lark.reading.syntax import Quoted

_ESCAPE = re.compile(r"\\(?:([\\\"/])|([bnrtf])|x(..)|u([dD][89abAB]..)\\u([dD][c-fC-F]..)|u(.{4})|U(.{8}))", re.DOTALL)
_CONTROL = {"b": "\b", "n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def string_value(text: str, literal: Quoted) -> str:
    """Returns the text between the quotes, with escapes resolved; before other characters, a backslash is itself."""

    def resolve(escape: re.Match[str]) -> str:
        if escape[1]:
            return escape[1]
        if escape[2]:
            return _CONTROL[escape[2]]
        try:
            if escape[4]:  # a surrogate pair, as JSON spells characters beyond U+FFFF
                return bytes.fromhex(escape[4] + escape[5]).decode("utf-16-be")
            char = chr(int(escape[3] or escape[6] or escape[7], 16))
            char.encode()
        except ValueError as error:
            raise error_at(text, literal.at + 1 + escape.start(), f"{escape[0]} is no character") from error
        return char

    inside = literal.written[1 : literal.written.rindex('"')]
    return _ESCAPE.sub(resolve, inside)
