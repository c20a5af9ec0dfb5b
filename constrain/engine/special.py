"""Special tokens that a grammar names, looked up in a vocabulary."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.errors import GrammarError
from constrain.language.special import special_token, terminal_special
from constrain.language.tree import Literal

if TYPE_CHECKING:
    from collections.abc import Collection

    from constrain.language.grammar import Grammar, Terminal
    from constrain.vocabulary.vocabulary import Vocabulary


_NUMBERED = re.compile(r"<\[([0-9]+)\]>")


class VocabularyTokens:
    """The tokens of a vocabulary, as ``Source.bound`` asks for them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @property
    def names(self) -> Collection[str]:
        """The names of the special tokens that a grammar may name."""
        return self._vocabulary.special_tokens

    def is_special(self, name: str) -> bool:
        """Returns whether a name, or ``<[id]>``, is a special token or one that ends a generation."""
        token = _token_number(name)
        if token is None:
            return name in self._vocabulary.special_tokens
        return token < self._vocabulary.n_vocab and not self._vocabulary.token_bytes(token)

    def text(self, name: str) -> bytes | None:
        """Returns the text of the token with that text, or ``<[id]>``; None if it is special or does not exist."""
        token = _token_number(name)
        if token is not None:
            return self._vocabulary.token_bytes(token) or None if token < self._vocabulary.n_vocab else None
        if name in self._vocabulary.special_tokens or not self._vocabulary._core.knows(name.encode()):
            return None
        return name.encode()

    def close_to(self, name: str) -> str:
        """Returns a remark on special tokens with similar names, or an empty text."""
        close = difflib.get_close_matches(name, self._vocabulary.special_tokens, n=3)
        return f"; it has {', '.join(close)}" if close else ""


def _token_number(name: str) -> int | None:
    numbered = _NUMBERED.fullmatch(name)
    return int(numbered[1][:20]) if numbered else None


def resolve_special(grammar: Grammar, vocabulary: Vocabulary) -> Grammar:
    """The grammar with its special tokens replaced by those of the vocabulary.

    A token with a text, which tokenizers call user-defined or added, becomes that text. Raises GrammarError for a name
    that the vocabulary does not know.
    """
    terminals = tuple(_resolved(terminal, vocabulary) for terminal in grammar.terminals)
    changed = any(new is not old for new, old in zip(terminals, grammar.terminals, strict=True))
    return replace(grammar, terminals=terminals, proved=False) if changed else grammar


def _by_id(terminal: Terminal, token: int, vocabulary: Vocabulary) -> Literal:
    """Returns the expression of the token with an id: its mark, or its text. Raises GrammarError."""
    if token >= vocabulary.n_vocab:
        raise GrammarError(
            f"terminal {terminal.name}: there is no token {token}; ids go from 0 to {vocabulary.n_vocab - 1}"
        )
    for name, number in vocabulary.special_tokens.items():
        if number == token:
            return special_token(name)
    if text := vocabulary.token_bytes(token):
        return Literal(text)
    raise GrammarError(
        f"terminal {terminal.name}: a grammar may not use the token {token}: it ends a generation, or has neither text "
        "nor name"
    )


def _resolved(terminal: Terminal, vocabulary: Vocabulary) -> Terminal:
    name = terminal_special(terminal)
    if name is None or name in vocabulary.special_tokens:
        return terminal
    if numbered := _NUMBERED.fullmatch(name):
        return replace(terminal, expression=_by_id(terminal, int(numbered[1][:20]), vocabulary))
    if vocabulary._core.knows(name.encode()):
        return replace(terminal, expression=Literal(name.encode()))
    known = VocabularyTokens(vocabulary).close_to(name)
    raise GrammarError(
        f"terminal {terminal.name}: this vocabulary has no special token {name} that a grammar may use (it may not use "
        f"tokens that end a generation){known}"
    )
