"""Rules of one grammar inside another, with new numbers for all symbols."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.grammar import EPSILON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.language.grammar import Edge, Grammar, Rule


def moved_rules(grammar: Grammar, terminals: int, rules: int) -> Iterator[Rule]:
    """Yields the rules of a grammar, renumbered to follow so many terminals and rules of another one."""

    def moved(edge: Edge) -> Edge:
        if edge.symbol is EPSILON:
            return edge
        return edge._replace(symbol=edge.symbol + terminals if edge.symbol >= 0 else edge.symbol - rules)

    for rule in grammar.rules:
        yield replace(rule, edges=tuple(map(moved, rule.edges)))
