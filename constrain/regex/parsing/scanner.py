"""The state of reading a pattern: its text, the position, the dialect and the flags in force."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import NamedTuple, NoReturn

from constrain.errors import PatternError

Dialect = OneOf["ecma", "rust", "python"]

_WHITE_SPACE = frozenset(" \t\n\r\f\v")
_UNICODE_WHITE_SPACE = (
    _WHITE_SPACE
    | frozenset("\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000")
    | {chr(point) for point in range(0x2000, 0x200B)}
)


class Flags(NamedTuple):
    """Inline flags, by their effect."""

    ignore_case: bool = False  # i
    dot_all: bool = False  # s
    verbose: bool = False  # x
    multi_line: bool = False  # m
    ascii: bool = False  # a (python), -u (rust)
    any_newline: bool = False  # R (rust)
    lazy: bool = False  # U (rust): swaps greedy and lazy quantifiers, no difference for whole texts


class Scanner:
    """A pattern and a position in it (an index into ``text``); ``all_rust``: see ``parse_pattern``."""

    __slots__ = ("all_rust", "dialect", "flags", "look", "names", "position", "text")

    def __init__(self, text: str, dialect: Dialect, *, all_rust: bool = False) -> None:
        self.text = text
        self.dialect = dialect
        self.all_rust = all_rust and dialect == "rust"
        self.flags = Flags()
        self.names: set[str] = set()  # of groups
        self.position = 0
        self.look = ""

    def fail(self, message: str, at: int) -> NoReturn:
        """Raises ``PatternError`` about the place ``at`` (an index)."""
        before = self.text.count("\n", 0, at)
        if not before:
            raise PatternError(f"pattern {_excerpt(self.text)}, column {at + 1}: {message}", column=at + 1)
        column = at - self.text.rindex("\n", 0, at)
        place = f"line {before + 1}, column {column}"
        raise PatternError(f"pattern {_excerpt(self.text)}, {place}: {message}", column=at + 1)

    @property
    def folding(self) -> str:
        """Returns the dialect for ``unicode.fold_case``, or None without case folding."""
        return "ascii" if self.flags.ascii else self.dialect

    def skip_white_space(self) -> None:
        """Skips white space and comments, which have no meaning under flag x."""
        text, white_space = self.text, _UNICODE_WHITE_SPACE if self.dialect == "rust" else _WHITE_SPACE
        while self.position < len(text):
            char = text[self.position]
            if char == "#":
                end = text.find("\n", self.position)
                self.position = len(text) if end < 0 else end + 1
            elif char in white_space:
                self.position += 1
            else:
                return

    def hexadecimal(self, digits: int, start: int) -> int:
        """Reads exactly ``digits`` hexadecimal digits; ``start``: beginning of the escape."""
        found = self.text[self.position : self.position + digits]
        if len(found) < digits or not _is_hexadecimal(found):
            self.fail(f"\\{self.text[start + 1]} needs {digits} hexadecimal digits", start)
        self.position += digits
        return int(found, 16)

    def braced(self, start: int) -> str:
        """Reads ``{...}`` and returns the content; ``start``: beginning of the escape."""
        end = self.text.find("}", self.position)
        if self.text[self.position : self.position + 1] != "{" or end < 0:
            self.fail(f"\\{self.text[start + 1]} needs a name or number in braces", start)
        inside = self.text[self.position + 1 : end]
        self.position = end + 1
        return inside

    def braced_code_point(self, start: int) -> int:
        """Reads ``{hexadecimal}`` and returns the code point."""
        digits = self.braced(start)
        if not _is_hexadecimal(digits) or len(digits.lstrip("0")) > 6 or int(digits, 16) > 0x10FFFF:
            self.fail(f"{{{digits}}} is not a code point; write 1 to 6 hexadecimal digits up to 10FFFF", start)
        return int(digits, 16)


def _is_hexadecimal(text: str) -> bool:
    return bool(text) and all(char in "0123456789abcdefABCDEF" for char in text)


def _excerpt(text: str) -> str:
    return repr(text) if len(text) <= 60 else repr(text[:57]) + "..."
