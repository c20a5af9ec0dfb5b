"""Elements: arguments as a mark with the name, the value, and a mark behind it, one after the other.

Strings are plain text. Some notations write the type of a value into the mark before it. Some write the members of
inner objects, and the items of arrays, as elements, too; in all others, every value but a string is JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from constrain.errors import UnsupportedSchemaError
from constrain.json_schema.spelling.languages import has_endless_texts, has_text
from constrain.language.special import BEGIN, mark, pieces
from constrain.language.tree import (
    ANY_BYTE,
    ANY_BYTES,
    CharClass,
    Complement,
    Concatenation,
    Expression,
    Intersection,
    Literal,
    LiteralSet,
    Repetition,
)
from constrain.regex.anchors import sequence, union

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Pieces = tuple[bytes, ...]
"""Texts and marked special tokens, one after the other; none is empty."""

_DIGITS = Repetition(CharClass(((0x30, 0x39),)), 1, None)
_WHITE = Repetition(LiteralSet((b" ", b"\t", b"\n", b"\r")), 0, None)


def _optional(*parts: Expression) -> Expression:
    return Repetition(sequence(*parts), 0, 1)


_NUMBER = Concatenation(
    (
        Repetition(Literal(b"-"), 0, 1),
        _DIGITS,
        _optional(Literal(b"."), _DIGITS),
        _optional(LiteralSet((b"e", b"E")), Repetition(LiteralSet((b"+", b"-")), 0, 1), _DIGITS),
    )
)
_BRACKETED = sequence(LiteralSet((b"[", b"{", b'"')), ANY_BYTES)
_WORDS = LiteralSet((b"true", b"false", b"null", b"NaN", b"Infinity", b"-Infinity"))
LIKE_JSON = sequence(_WHITE, union([_NUMBER, _WORDS, _BRACKETED]), _WHITE)
"""Texts that a reader, such as Python's ``json``, could take for JSON.

Where nothing tells strings from other values, no string is one of them.
"""


@dataclass(frozen=True, slots=True)
class Elements:
    """A notation: ``before_name name behind_name value end``, a line break between elements and around JSON values.

    Attributes:
        before_name, behind_name: the mark before a value, around the name.
        end: the mark behind a value.
        types: end of the mark before a value, by the type of the value in JSON Schema (``number`` for integers, too);
            empty if marks do not tell the type.
        item: the marks before and behind an item of an array, which has no name; ``None`` if inner objects and arrays
            are JSON.
        repeats_name: whether ``end`` is followed by the name and ``behind_name``.
        entities: spellings of characters that stand for themselves nowhere in names.
        reserved: text that plain strings do not contain; ``end`` if empty.
        line_breaks: whether the line breaks may stand there.
        special: names of special tokens that the marks consist of.
    """

    before_name: str
    behind_name: str
    end: str
    types: Mapping[str, str] = field(default_factory=dict)
    item: tuple[str, str] | None = None
    repeats_name: bool = False
    entities: Mapping[str, str] = field(default_factory=dict)
    reserved: str = ""
    line_breaks: bool = True
    special: frozenset[str] = frozenset()

    def marks(self) -> tuple[str, ...]:
        """Returns the texts that marks consist of."""
        return self.before_name, self.behind_name, self.end, *self.types.values(), *(self.item or ())

    def pieces(self, text: str) -> Pieces:
        """Returns a mark as texts and special tokens."""
        return tuple(mark(piece) if is_token else piece.encode() for piece, is_token in pieces(text, self.special))

    def around_name(self) -> tuple[Pieces, bytes, bytes, Pieces]:
        """Returns the mark around a name: up to its last special token, the texts at the name, and what is left."""
        before, behind = self.pieces(self.before_name), self.pieces(self.behind_name)
        left = b"" if is_token(before[-1]) else before[-1]
        right = b"" if is_token(behind[0]) else behind[0]
        return before[: len(before) - bool(left)], left, right, behind[bool(right) :]

    def opening(self, name: str) -> Pieces:
        """Returns the mark before a value. Raises UnsupportedSchemaError."""
        before, left, right, behind = self.around_name()
        return (*before, left + self._spelled(name) + right, *behind)

    def closing(self, name: str | None) -> str:
        """Returns the mark behind a value; ``None``: the name is not declared."""
        if not self.repeats_name:
            return self.end
        assert name is not None
        return f"{self.end}{name}{self.behind_name}"

    def _spelled(self, name: str) -> bytes:
        wrong = set(self._unwritable) - set(self.entities)
        if not name.strip() or not name.isprintable() or wrong.intersection(name) or self._begins_wrong(name):
            raise UnsupportedSchemaError(
                f"{name!r:.80} cannot be an argument name, which is written between "
                f"{self.before_name!r} and {self.behind_name!r}",
                pointer="",
            )
        return "".join(self.entities.get(char, char) for char in name).encode()

    @property
    def _unwritable(self) -> str:
        return self.behind_name[0] + "".join(self.entities)

    def _begins_wrong(self, name: str) -> bool:
        return f"{self.before_name}{name}".startswith(self.end)

    def undeclared(self, content: Expression) -> Expression:
        """Returns those of some names that are written unchanged. Raises UnsupportedSchemaError if too few are left."""
        if self.repeats_name:
            raise UnsupportedSchemaError(
                "arguments that the schema does not declare by name cannot be written in this style, because its "
                'marks behind values repeat the names; list them in properties, or set "additionalProperties": false',
                pointer="",
            )
        excluded = sorted({*range(0x20), 0x7F, *map(ord, self._unwritable)})
        bounds = [(low + 1, high - 1) for low, high in zip([-1, *excluded], [*excluded, 0x110000], strict=True)]
        ranges = tuple((low, high) for low, high in bounds if low <= high)
        written = Repetition(CharClass(ranges), 1, None)
        kept = Intersection((content, written))
        if has_text((content, Complement(written))) and not has_endless_texts(kept):
            shown = ", ".join(map(repr, self._unwritable))
            raise UnsupportedSchemaError(
                "the names of arguments that the schema does not declare can all, or all but a few, not be written in "
                f"this style: none may be empty or contain {shown} or control characters",
                pointer="",
            )
        return kept

    def split_closing(self, closing: str) -> tuple[bytes, Pieces]:
        """Returns the text of a mark behind a value that belongs to the lexeme of a string, and the rest of the mark.

        The text is empty if the mark begins with a special token. It is the same for all names.
        """
        first, *rest = self.pieces(closing)
        if is_token(first):
            return b"", (first, *rest)
        reserved = (self.reserved or self.end).encode()
        if first != reserved and first.startswith(reserved):
            return reserved, (first[len(reserved) :], *rest)
        return first, tuple(rest)

    def plain(self, texts: Expression, behind: bytes) -> Expression:
        """Returns plain strings, with the text behind them that belongs to their lexeme."""
        reserved = (self.reserved or self.end).encode()
        if behind == reserved:  # found where the mark begins, and nowhere earlier
            early = sequence(ANY_BYTES, Literal(reserved), Repetition(ANY_BYTE, 1, None))
            return Intersection((sequence(texts, Literal(reserved)), Complement(early)))
        free = Intersection((texts, Complement(sequence(ANY_BYTES, Literal(reserved), ANY_BYTES))))
        return sequence(free, Literal(behind)) if behind else free


def is_token(piece: bytes) -> bool:
    """Returns whether a piece is a special token."""
    return piece.startswith(BEGIN)


def with_special(elements: Elements, names: Iterable[str]) -> Elements:
    """Returns the notation for a vocabulary in which these names are those of special tokens."""
    marks = elements.marks()
    return replace(elements, special=frozenset(name for name in names if any(name in each for each in marks)))
