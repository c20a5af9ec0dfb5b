r"""Special tokens in grammars: terminals for tokens without text.

The kernel reads a special token as a lexeme: the bytes of its name between two bytes that no UTF-8 text contains.

>>> special_token("<|call|>").text
b'\xff<|call|>\xfe'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from constrain.language.tree import Literal

if TYPE_CHECKING:
    from collections.abc import Collection

    from constrain.language.grammar import Terminal

BEGIN, END = b"\xff", b"\xfe"

_MARKED = re.compile(BEGIN + b"([^\xfe\xff]+)" + END)


class Tokens(Protocol):
    """The tokens of a vocabulary, for languages that name some of them; ``names``: those of special tokens."""

    @property
    def names(self) -> Collection[str]:
        """The names of the special tokens."""

    def is_special(self, name: str) -> bool:
        """Returns whether a name, or ``<[id]>``, is a special token or one that ends a generation."""

    def text(self, name: str) -> bytes | None:
        """Returns the text of the token with that text, or ``<[id]>``; None if it is special or does not exist."""

    def close_to(self, name: str) -> str:
        """Returns a remark on special tokens with similar names, or an empty text."""


def special_token(name: str) -> Literal:
    """Returns the expression of a terminal that is the special token of that name."""
    return Literal(mark(name))


def mark(name: str) -> bytes:
    """Returns a special token as a grammar reads it."""
    return BEGIN + name.encode() + END


def special_name(text: bytes) -> str | None:
    """Returns the name of the special token in a text made by ``mark``; ``None`` for other texts."""
    marked = _MARKED.fullmatch(text)
    return marked and marked[1].decode()


def terminal_special(terminal: Terminal) -> str | None:
    """Returns the name of the special token that a terminal is; ``None`` for other terminals."""
    return special_name(terminal.expression.text) if isinstance(terminal.expression, Literal) else None


def split_special(text: bytes) -> list[bytes]:
    """Returns texts and names of special tokens in turn, a text first and last.

    >>> split_special(special_token("<|a|>").text + b"b")
    [b'', b'<|a|>', b'b']
    """
    return _MARKED.split(text)


def without_special(text: bytes) -> bytes:
    """Returns the text without special tokens."""
    return _MARKED.sub(b"", text)
