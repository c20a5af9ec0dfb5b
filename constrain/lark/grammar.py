"""Conversion of a grammar text to a ``Grammar``, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.emptiness import productive_rules
from constrain.lark.lexing.separation import separate
from constrain.lark.lexing.splitting import settle_lexing
from constrain.lark.library import Library
from constrain.lark.named import read_list
from constrain.lark.reading.places import error_at
from constrain.lark.reading.reader import read
from constrain.lark.rules import language

if TYPE_CHECKING:
    from constrain.language.grammar import Grammar
    from constrain.lark.named import LarkSource


def lark_grammar(source: LarkSource) -> Grammar:
    """Returns the grammar of a Lark text; its terminals have the names of the text, with line and column.

    Raises GrammarError or PatternError with line, column and an excerpt for text that is wrong or not supported;
    LimitError.

    >>> from constrain.lark.source import Lark
    >>> len(lark_grammar(Lark('start: "a"+')).terminals)
    1
    """
    return settle_lexing(*grammar_of_lexemes(source))


def grammar_of_lexemes(source: LarkSource) -> tuple[Grammar, set[int]]:
    """Returns the grammar whose terminals are all read by the longest match, and those that are of JSON Schemas.

    It may have dead ends. Raises as ``lark_grammar`` does.
    """
    listed = read_list(source)
    syntax = read(listed)
    bare = language(syntax, listed.start, Library(listed.grammars))
    if 0 not in productive_rules(bare.rules):
        message = f"the language is empty: every way through {source.start} leads back to itself, or to no text at all"
        raise error_at(syntax.text, syntax.rules[source.start].at, message)
    grammar, whole = separate(bare, initial=syntax.settings.allow_initial_skip)
    return replace(grammar, no_forcing=bare.no_forcing), whole
