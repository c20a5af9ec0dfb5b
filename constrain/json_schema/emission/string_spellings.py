"""``escapes="any"``: terminals of strings and keys with all spellings.

All stages before emission use the one canonical spelling of each string (``spelling.canonical``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.grammar import Kind
from constrain.language.tree import Expression, Literal, LiteralSet
from constrain.regex.anchors import union
from constrain.regex.string_spellings import AnySpelling

if TYPE_CHECKING:
    from constrain.language.grammar import Terminal


class StringSpellings:
    """All spellings of the terminals of one grammar; equal objects for equal terminals and expressions."""

    def __init__(self) -> None:
        self._spelling = AnySpelling()
        self._terminals: dict[int, tuple[Terminal, Terminal]] = {}  # by identity, with the key object to keep it alive

    def of(self, expression: Expression) -> Expression:
        """Returns all spellings of the strings that an expression matches."""
        return self._spelling.of(expression)

    def of_terminal(self, terminal: Terminal) -> Terminal:
        """Returns the terminal with all spellings of the strings among its texts."""
        known = self._terminals.get(id(terminal))
        if known is None:
            known = self._terminals[id(terminal)] = terminal, self._widened(terminal)
        return known[1]

    def _widened(self, terminal: Terminal) -> Terminal:
        if terminal.kind in (Kind.STRING, Kind.TEXT):
            return replace(terminal, expression=self.of(terminal.expression))
        texts: tuple[bytes, ...] = ()
        match terminal.expression:  # constants of any kind
            case Literal(text):
                texts = (text,)
            case LiteralSet(texts):
                pass
        strings = tuple(text for text in texts if text.startswith(b'"'))
        if not strings:
            return terminal
        others = tuple(text for text in texts if not text.startswith(b'"'))
        parts = [self.of(LiteralSet(strings)), *([LiteralSet(others)] if others else [])]
        return replace(terminal, expression=union(parts))
