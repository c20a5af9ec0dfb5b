"""Special tokens that a grammar names, looked up in a vocabulary."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.errors import GrammarError
from constrain.language.special import terminal_special
from constrain.language.tree import Literal

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar, Terminal
    from constrain.vocabulary.vocabulary import Vocabulary


def resolve_special(grammar: Grammar, vocabulary: Vocabulary) -> Grammar:
    """The grammar with its special tokens replaced by those of the vocabulary.

    A token with a text, which tokenizers call user-defined or added, becomes that text. Raises GrammarError for a name
    that the vocabulary does not know.
    """
    terminals = tuple(_resolved(terminal, vocabulary) for terminal in grammar.terminals)
    changed = any(new is not old for new, old in zip(terminals, grammar.terminals, strict=True))
    return replace(grammar, terminals=terminals, proved=False) if changed else grammar


def _resolved(terminal: Terminal, vocabulary: Vocabulary) -> Terminal:
    name = terminal_special(terminal)
    if name is None or name in vocabulary.special_tokens:
        return terminal
    if vocabulary._core.knows(name.encode()):
        return replace(terminal, expression=Literal(name.encode()))
    close = difflib.get_close_matches(name, vocabulary.special_tokens, n=3)
    known = f"; it has {', '.join(close)}" if close else ""
    raise GrammarError(
        f"terminal {terminal.name}: this vocabulary has no special token {name} that a grammar may use (it may not use "
        f"tokens that end a generation){known}"
    )
