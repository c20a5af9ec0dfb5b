r"""Tokens in grammars: terminals that read one token out of some, instead of a text.

The kernel reads such a token as a lexeme: what the grammar calls it, between two bytes that no UTF-8 text contains. A
grammar names tokens by name (``<|call|>``), by id (``<[5]>``, ``<[5-9,12]>``, ``<[^5]>``, ``<[*]>``), or as all tokens
but one (``!<|call|>``, ``!<[5]>``). ``engine.special`` finds them in a vocabulary.

>>> special_token("<|call|>").text
b'\xff<|call|>\xfe'
>>> token_set("<[^5-9,12]>")
TokenSet(name=None, ranges=((5, 9), (12, 12)), is_negated=True)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from constrain.errors import GrammarError
from constrain.language.tree import Literal

if TYPE_CHECKING:
    from collections.abc import Collection

    from constrain.language.grammar import Terminal

BEGIN, END = b"\xff", b"\xfe"
CLASS, BORDER = b"\xc0", b"\xc1"
"""The second bytes of two kinds of marks that have a number in place of a name. No name has them, because names are
UTF-8. A class is read in place of one of its tokens, and a border between two tokens (``engine.limited_rules``)."""

_MARKED = re.compile(BEGIN + b"([^\xfe\xff]+)" + END)
_BY_ID = re.compile(r"<\[(\^?)(.*)\]>", re.DOTALL)
_ITEM = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_DIGITS = 20
"""Digits of an id that are read; an id of so many is beyond any vocabulary."""
_SHOWN = 40
"""Characters of a wrong id that an error shows."""


@dataclass(frozen=True, slots=True)
class TokenSet:
    """The tokens that a part of a grammar stands for, still without a vocabulary.

    Attributes:
        name: name of the one token; ``None`` for tokens by id.
        ranges: ids, first and last of each range; the last is ``None`` for "up to the end of the vocabulary".
        is_negated: whether the tokens are all others.
    """

    name: str | None
    ranges: tuple[tuple[int, int | None], ...] = ()
    is_negated: bool = False

    @property
    def single_ids(self) -> frozenset[int]:
        """The ids that are written one by one."""
        return frozenset(first for first, last in self.ranges if first == last and not self.is_negated)


def token_set(written: str) -> TokenSet:
    """Reads the name or the ids of tokens as a grammar writes them. Raises GrammarError without a place."""
    found = _named_or_numbered(written.removeprefix("!"))
    return replace(found, is_negated=True) if written.startswith("!") else found


def _named_or_numbered(written: str) -> TokenSet:
    by_id = _BY_ID.fullmatch(written)
    if by_id is None:
        return TokenSet(written)
    if by_id[2] == "*" and not by_id[1]:
        return TokenSet(None, ((0, None),))
    items = [item for item in by_id[2].split(",") if item]
    if not items:
        raise GrammarError(f"{written} names no token; write ids, such as <[5]>, <[5-9,12]> or <[^5]>")
    return TokenSet(None, tuple(_range(item) for item in items), bool(by_id[1]))


def _range(item: str) -> tuple[int, int]:
    if "*" in item:
        raise GrammarError("* stands for all tokens, so it stands alone: <[*]>")
    found = _ITEM.fullmatch(item)
    if found is None:
        raise GrammarError(f"{item[:_SHOWN]} is no id of a token, and no range of ids such as 5-9")
    first = int(found[1][:_DIGITS])
    last = first if found[2] is None else int(found[2][:_DIGITS])
    if last < first:
        raise GrammarError(f"ids go up: {last} is less than {first}")
    return first, last


class Tokens(Protocol):
    """The tokens of a vocabulary, for languages that name some of them; ``names``: those of special tokens."""

    @property
    def names(self) -> Collection[str]:
        """The names of the special tokens."""

    def is_special(self, name: str) -> bool:
        """Returns whether a name, or ``<[id]>``, is a special token or one that ends a generation."""

    def ids(self, name: str) -> tuple[int, ...]:
        """Returns the ids of the tokens with that name or text, or of ``<[id]>``; none if it does not exist."""

    def text(self, name: str) -> bytes | None:
        """Returns the text of the token with that text, or ``<[id]>``; None if it is special or does not exist."""

    def close_to(self, name: str) -> str:
        """Returns a remark on special tokens with similar names, or an empty text."""


def special_token(name: str) -> Literal:
    """Returns the expression of a terminal that reads one of the tokens that this names (see ``token_set``)."""
    return Literal(mark(name))


def mark(name: str) -> bytes:
    """Returns a special token as a grammar reads it."""
    return BEGIN + name.encode() + END


def numbered_mark(kind: bytes, number: int) -> bytes:
    """Returns a class of tokens, or a border, as a grammar reads it."""
    return BEGIN + kind + str(number).encode() + END


def special_name(text: bytes) -> str | None:
    """Returns the name of the special token in a text made by ``mark``; ``None`` for other texts."""
    marked = _MARKED.fullmatch(text)
    return marked and marked[1].decode()


def terminal_special(terminal: Terminal) -> str | None:
    """Returns what a terminal that reads a token names it; ``None`` for other terminals."""
    return special_name(terminal.expression.text) if isinstance(terminal.expression, Literal) else None


def pieces(text: str, names: Collection[str]) -> list[tuple[str, bool]]:
    """Returns the nonempty texts and special tokens that a text consists of; true: the name of a special token.

    Where two names begin, the longer one counts.

    >>> pieces("<|a|>b", {"<|a|>"})
    [('<|a|>', True), ('b', False)]
    """
    longest_first = sorted((name for name in names if name in text), key=len, reverse=True)
    if not longest_first:
        return [(text, False)] if text else []
    parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
    return [(part, index % 2 == 1) for index, part in enumerate(parts) if part]


def split_special(text: bytes) -> list[bytes]:
    """Returns texts and names of special tokens in turn, a text first and last.

    >>> split_special(special_token("<|a|>").text + b"b")
    [b'', b'<|a|>', b'b']
    """
    return _MARKED.split(text)


def without_special(text: bytes) -> bytes:
    """Returns the text without special tokens."""
    return _MARKED.sub(b"", text)
