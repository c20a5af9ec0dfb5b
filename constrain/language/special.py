r"""Special tokens in grammars: a token that stands for no text, as a terminal.

To the kernel such a token is a lexeme like others: the bytes of its name between two bytes that are in no UTF-8 text.

>>> special_token("<|call|>").text
b'\xff<|call|>\xfe'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from constrain.language.tree import Literal

if TYPE_CHECKING:
    from constrain.language.grammar import Terminal

BEGIN, END = b"\xff", b"\xfe"

_MARKED = re.compile(BEGIN + b"([^\xfe\xff]+)" + END)


def special_token(name: str) -> Literal:
    """The expression of a terminal that is the special token of that name, and nothing else."""
    return Literal(mark(name))


def mark(name: str) -> bytes:
    """A special token as a grammar reads it."""
    return BEGIN + name.encode() + END


def special_name(text: bytes) -> str | None:
    """The name of the special token that a text is as ``mark`` makes it; ``None`` if it is another text."""
    marked = _MARKED.fullmatch(text)
    return marked and marked[1].decode()


def terminal_special(terminal: Terminal) -> str | None:
    """The name of the special token that a terminal is; ``None`` for other terminals."""
    return special_name(terminal.expression.text) if isinstance(terminal.expression, Literal) else None


def split_special(text: bytes) -> list[bytes]:
    """Texts and names of special tokens in turn, a text first and last.

    >>> split_special(special_token("<|a|>").text + b"b")
    [b'', b'<|a|>', b'b']
    """
    return _MARKED.split(text)


def without_special(text: bytes) -> bytes:
    """The text alone."""
    return _MARKED.sub(b"", text)
