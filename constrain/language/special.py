r"""Special tokens in grammars: a token that stands for no text, as a terminal.

To the kernel such a token is a lexeme like others: the bytes of its name between two bytes that are in no UTF-8 text.

>>> special_token("<|call|>").text
b'\xff<|call|>\xfe'
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.errors import GrammarError
from constrain.language.tree import Literal

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar, Terminal
    from constrain.vocabulary.vocabulary import Vocabulary

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


def resolve_special(grammar: Grammar, vocabulary: Vocabulary) -> Grammar:
    """The grammar with the special tokens that the vocabulary has.

    Tokens with a text, which tokenizers call user-defined or added ones, are that text. Raises GrammarError for names
    that the vocabulary does not know.
    """
    terminals = tuple(_resolved(terminal, vocabulary) for terminal in grammar.terminals)
    changed = any(new is not old for new, old in zip(terminals, grammar.terminals, strict=True))
    return replace(grammar, terminals=terminals) if changed else grammar


def _resolved(terminal: Terminal, vocabulary: Vocabulary) -> Terminal:
    name = terminal_special(terminal)
    if name is None or name in vocabulary.special_tokens:
        return terminal
    if vocabulary._core.knows(name.encode()):
        return replace(terminal, expression=Literal(name.encode()))
    close = difflib.get_close_matches(name, vocabulary.special_tokens, n=3)
    known = f"; it has {', '.join(close)}" if close else ""
    raise GrammarError(
        f"terminal {terminal.name}: this vocabulary has no special token {name} that may be written (tokens that end a "
        f"generation may not){known}"
    )
