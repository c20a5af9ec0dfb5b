"""Grammars under construction: terminals and rules, and those of other grammars with new numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.emptiness import non_empty_part
from constrain.language.grammar import EPSILON, Edge, Grammar, Kind, Rule, Terminal

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from constrain.language.tree import Expression


class Merging:
    """The terminals and rules made so far, and what the grammars among them say about themselves."""

    def __init__(self) -> None:
        self.terminals: list[Terminal] = []
        self.rules: list[Rule] = []
        self.numbers_by_double = True
        self.strings_by_value = False
        self.warnings: dict[str, None] = {}
        self.split: dict[str, None] = {}
        self.no_forcing = False
        self._texts: dict[Hashable, tuple[int | None, bool]] = {}

    def reserve(self) -> int:
        """Adds a rule that is to be replaced; returns its number."""
        self.rules.append(Rule("", (), ()))
        return len(self.rules) - 1

    def texts(
        self, key: Hashable, expression: Expression, name: str, pointer: str = "", kind: Kind = Kind.OTHER
    ) -> tuple[int | None, bool]:
        """Returns the symbol of the nonempty texts of an expression, if it has any; and whether it has the empty one.

        For each key, a terminal is made once.
        """
        if key not in self._texts:
            some, nullable = non_empty_part(expression)
            if some is not None:
                self.terminals.append(Terminal(name, some, pointer, kind=kind))
            self._texts[key] = None if some is None else len(self.terminals) - 1, nullable
        return self._texts[key]

    def terminal(self, key: Hashable, expression: Expression, name: str, pointer: str = "") -> int:
        """Returns the symbol of an expression that has texts, and not the empty one."""
        symbol, _ = self.texts(key, expression, name, pointer)
        assert symbol is not None
        return symbol

    def add(self, grammar: Grammar, named: str, pointer: str, note: str) -> int:
        """Adds the terminals and rules of a grammar; returns the symbol of its first rule.

        ``named``: the end of the names of its terminals; ``pointer``: the beginning of their pointers; ``note``: the
        end of its warnings.
        """
        first = len(self.terminals)
        self.terminals += [each.of(named, pointer) for each in grammar.terminals]
        return self.add_rules(grammar, range(first, len(self.terminals)), named, note)

    def add_rules(self, grammar: Grammar, terminals: Sequence[int], named: str, note: str) -> int:
        """Adds the rules of a grammar whose terminals have these symbols; returns the symbol of the first."""
        first = len(self.rules)

        def moved(edge: Edge) -> Edge:
            source, symbol, target, conditions, actions, excluding, distinct = edge
            if symbol is EPSILON:
                return edge
            symbol = terminals[symbol] if symbol >= 0 else symbol - first
            return Edge(source, symbol, target, conditions, actions, excluding, distinct)

        self.rules += [replace(rule, edges=tuple(map(moved, rule.edges))) for rule in grammar.rules]
        self.warnings |= {warning + note: None for warning in grammar.warnings}
        self.split |= {name + named: None for name in grammar.split}
        self.no_forcing |= grammar.no_forcing
        self.numbers_by_double &= grammar.numbers_by_double
        self.strings_by_value |= grammar.strings_by_value
        return ~first

    def merged(self) -> Grammar:
        """Returns the grammar."""
        return Grammar(
            tuple(self.terminals),
            tuple(self.rules),
            numbers_by_double=self.numbers_by_double,
            strings_by_value=self.strings_by_value,
            warnings=tuple(self.warnings),
            split=tuple(self.split),
            no_forcing=self.no_forcing,
        )


def edges_of(source: int, texts: tuple[int | None, bool], target: int) -> list[Edge]:
    """Returns the edges that read texts (see ``Merging.texts``) from state to state."""
    symbol, nullable = texts
    edges = [] if symbol is None else [Edge(source, symbol, target)]
    return [*edges, Edge(source, EPSILON, target)] if nullable else edges
