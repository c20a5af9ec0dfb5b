"""Puts the text of ``%ignore``, which ``gaps`` reads, into the grammar: between lexemes, and nowhere else.

Ignored text is not allowed inside a lexeme, before the first or after the last.
``Grammar.ignored`` would also allow ignored text at both ends. Lexemes of ignored text, as edges of the rules, would
allow two words to meet without any, and the kernel could not prove that the longest match avoids dead ends. So ignored
text is read as the beginning of the lexeme after it, a *gap*; the first lexeme of a text has none. (Before a special
token, which has no text, a gap is a lexeme of its own.) This also takes fewer lexemes: a token such as " name" stays
inside one. Each rule has variants, by the form of its terminals before and after its first lexeme:

    bare, bare        without gaps: inside of JSON
    gap, gap          gaps before all lexemes: somewhere behind the first lexeme of the text
    bare, gap         the rule reads the first lexeme of the text
    gap, bare         a JSON value behind the first lexeme of the text

In the last two variants a rule reads at least one lexeme: its states are doubled, before and after it. A preceding rule
that reads nothing has a fifth variant with its empty text only. So a grammar gets at most about five times as many
edges, and twice as many terminals.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from constrain.language.emptiness import silent_rules
from constrain.language.grammar import EPSILON, Edge, Grammar, Rule, Terminal
from constrain.language.special import terminal_special
from constrain.lark.gaps import Gap, after_gaps
from constrain.regex.anchors import union

if TYPE_CHECKING:
    from constrain.lark.rules import Language


class _Variant(Enum):
    BARE = auto()
    GAP = auto()
    BARE_THEN_GAP = auto()
    GAP_THEN_BARE = auto()
    EMPTY = auto()


_BEHIND_FIRST = {_Variant.BARE_THEN_GAP: _Variant.GAP, _Variant.GAP_THEN_BARE: _Variant.BARE}


def separate(language: Language, between: list[Gap]) -> tuple[Grammar, set[int]]:
    """Returns the grammar in which gaps may stand between lexemes, and its terminals that are of JSON Schemas."""
    if not between:
        grammar, whole = Grammar(tuple(language.terminals), tuple(language.rules)), language.whole
    else:
        separation = _Separation(language, between)
        grammar, whole = separation.grammar(), separation.whole
    return replace(grammar, warnings=tuple(language.warnings)), whole


class _Separation:
    """Variants of rules and terminals, and the queue of variants to make."""

    def __init__(self, language: Language, between: list[Gap]) -> None:
        self.language = language
        self.between = between
        self.silent = silent_rules(language.rules)
        self.terminals: dict[tuple[int, bool], int] = {}
        self.made: list[Terminal] = []
        self.whole: set[int] = set()
        self.gap: int | None = None
        self.variants: dict[tuple[int, _Variant], int] = {}
        self.waiting: list[tuple[int, _Variant]] = []

    def grammar(self) -> Grammar:
        start = self.language.rules[0]
        edges = [Edge(0, self.rule(0, _Variant.BARE if 0 in self.language.solid else _Variant.BARE_THEN_GAP), 1)]
        if 0 in self.silent:
            edges.append(Edge(0, self.rule(0, _Variant.EMPTY), 1))
        rules = {0: Rule(start.name, tuple(edges), (1,))}
        while self.waiting:
            key = self.waiting.pop()
            rules[self.variants[key]] = self.variant(*key)
        return Grammar(tuple(self.made), tuple(rules[index] for index in range(len(rules))))

    def rule(self, index: int, variant: _Variant) -> int:
        """Returns the symbol of a variant of a rule."""
        key = index, variant
        if key not in self.variants:
            self.variants[key] = len(self.variants) + 1
            self.waiting.append(key)
        return ~self.variants[key]

    def terminal(self, index: int, *, gap: bool) -> int:
        """Returns the symbol of a terminal, with or without gaps before it."""
        if gap and terminal_special(self.language.terminals[index]) is not None:
            return self.rule(~index, _Variant.GAP)
        if (index, gap) not in self.terminals:
            terminal = self.language.terminals[index]
            if gap:
                after = after_gaps(terminal.expression, self.between)
                terminal = replace(terminal, expression=after, bare=terminal.expression)
            self.terminals[index, gap] = len(self.made)
            if index in self.language.whole:
                self.whole.add(len(self.made))
            self.made.append(terminal)
        return self.terminals[index, gap]

    def after_gap(self, index: int) -> Rule:
        """Returns a rule that reads a special token, with or without a gap, here a lexeme of its own."""
        if self.gap is None:
            self.gap = len(self.made)
            self.made.append(Terminal("ignored text", union([gap.expression for gap in self.between])))
        token = self.terminal(index, gap=False)
        edges = (Edge(0, self.gap, 1), Edge(0, EPSILON, 1), Edge(1, token, 2))
        return Rule(self.language.terminals[index].name, edges, (2,))

    def variant(self, index: int, variant: _Variant) -> Rule:
        if index < 0:
            return self.after_gap(~index)
        rule = self.language.rules[index]
        if variant is _Variant.EMPTY:
            edges = [edge for edge in rule.edges if edge.symbol is EPSILON or edge.symbol < 0]
            return replace(rule, edges=tuple(edge._replace(symbol=self.empty(edge.symbol)) for edge in edges))
        if variant in (_Variant.BARE, _Variant.GAP):
            edges = [edge._replace(symbol=self.symbol(edge.symbol, variant)) for edge in rule.edges]
            return replace(rule, edges=tuple(edges))
        return self.doubled(rule, variant)

    def doubled(self, rule: Rule, variant: _Variant) -> Rule:
        """Returns the rule with at least one lexeme: its states before the first lexeme, and after it."""
        behind = 1 + max((max(edge.source, edge.target) for edge in rule.edges), default=0)
        later = _BEHIND_FIRST[variant]
        edges: list[Edge] = []
        for edge in rule.edges:
            source, target = edge.source + behind, edge.target + behind
            edges.append(edge._replace(source=source, symbol=self.symbol(edge.symbol, later), target=target))
            if edge.symbol is EPSILON:
                edges.append(edge)
                continue
            edges.append(edge._replace(symbol=self.symbol(edge.symbol, variant), target=target))
            if edge.symbol < 0 and ~edge.symbol in self.silent:
                edges.append(edge._replace(symbol=self.rule(~edge.symbol, _Variant.EMPTY)))
        return replace(rule, edges=tuple(edges), accepting=tuple(state + behind for state in rule.accepting))

    def empty(self, symbol: int | None) -> int | None:
        return EPSILON if symbol is EPSILON else self.rule(~symbol, _Variant.EMPTY)

    def symbol(self, symbol: int | None, variant: _Variant) -> int | None:
        """Returns the symbol that an edge reads in a variant of its rule."""
        if symbol is EPSILON:
            return EPSILON
        gap = variant in (_Variant.GAP, _Variant.GAP_THEN_BARE)
        if symbol >= 0:
            return self.terminal(symbol, gap=gap)
        if variant in (_Variant.BARE_THEN_GAP, _Variant.GAP) and ~symbol in self.language.solid:
            variant = _Variant.GAP_THEN_BARE if gap else _Variant.BARE
        return self.rule(~symbol, variant)
