"""The options of a rule about its tokens, ``max_tokens`` and ``temperature``: for its terminals, or for itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.lark.reading.places import line_and_column

if TYPE_CHECKING:
    from constrain.language.grammar import Rule, Terminal
    from constrain.lark.reading.syntax import Options


def with_token_options(terminal: Terminal, text: str, options: Options) -> Terminal:
    """Returns a terminal with the options of the rule around it; ``text``: the grammar text.

    A terminal that has a temperature keeps it.
    """
    if options.temperature is not None and terminal.temperature is None:
        terminal = replace(terminal, temperature=options.temperature.value)
    if options.max_tokens is not None:
        where = line_and_column(text, options.max_tokens.at)
        terminal = replace(terminal, max_tokens=options.max_tokens.value, place=where)
    return terminal


def with_limit(rule: Rule, text: str, options: Options) -> Rule:
    """Returns a rule of more than one lexeme with its limit on tokens, if it has one; ``text``: the grammar text."""
    if options.max_tokens is None:
        return rule
    return replace(rule, max_tokens=options.max_tokens.value, place=line_and_column(text, options.max_tokens.at))
