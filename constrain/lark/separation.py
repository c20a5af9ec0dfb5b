"""Puts the text of ``%ignore``, which ``gaps`` reads, into the grammar: between lexemes, and nowhere else.

Ignored text is not allowed inside a lexeme, before the first or after the last.
``Grammar.ignored`` would also allow ignored text at both ends. Lexemes of ignored text, as edges of the rules, would
allow two words to meet without any, and the kernel could not prove that the longest match avoids dead ends. So ignored
text is read as the beginning of the lexeme after it, a *gap*; the first lexeme of a text has none. (Before a special
token, which has no text, a gap is a lexeme of its own.) This also takes fewer lexemes: a token such as " name" stays
inside one.

The rules of a *zone* have the same ignored text: the rules of one grammar text, but each grammar after ``%lark`` has
its own, and a JSON Schema has none. Within a rule, the gaps between lexemes are those of its zone. The gap before its
first lexeme is that of the place where the rule is read: none at the beginning of the text, the gap of the zone around
it elsewhere. So a rule has a variant for each zone whose gap may precede it. In a variant for another zone than its
own, a rule reads at least one lexeme: its states are doubled, before and after it. A preceding rule that reads nothing
has a further variant with its empty text only. So a grammar with one zone gets at most about five times as many edges,
and twice as many terminals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from constrain.language.emptiness import silent_rules
from constrain.language.grammar import EPSILON, Edge, Grammar, Rule, Terminal
from constrain.language.special import terminal_special
from constrain.lark.gaps import after_gaps
from constrain.regex.anchors import union

if TYPE_CHECKING:
    from constrain.lark.rules import Language


_EMPTY = -1
"""In place of a zone: the variant of a rule with its empty text only."""


def separate(language: Language, *, initial: bool = False) -> tuple[Grammar, set[int]]:
    """Returns the grammar in which gaps may stand between lexemes, and its terminals that are of JSON Schemas.

    ``initial``: whether a gap may stand before the first lexeme, too.
    """
    if not language.ignored:
        grammar, whole = Grammar(tuple(language.terminals), tuple(language.rules)), language.whole
    else:
        separation = _Separation(language)
        grammar, whole = separation.grammar(initial=initial), separation.whole
    return replace(grammar, warnings=tuple(language.warnings)), whole


class _Separation:
    """Variants of rules and terminals, and the queue of variants to make.

    ``first``: the zone whose gaps may stand before a terminal, or before the first lexeme of a rule; ``None`` for no
    gaps. The variant of a rule with its empty text only has the rule's number and ``_EMPTY``.
    """

    def __init__(self, language: Language) -> None:
        self.language = language
        self.silent = silent_rules(language.rules)
        self.terminals: dict[tuple[int, int | None], int] = {}
        self.made: list[Terminal] = []
        self.whole: set[int] = set()
        self.gaps: dict[int, int] = {}
        self.variants: dict[tuple[int, int | None], int] = {}
        self.waiting: list[tuple[int, int | None]] = []

    def grammar(self, *, initial: bool) -> Grammar:
        """Returns the grammar; ``initial``: whether a gap may stand before the first lexeme."""
        start, own = self.language.rules[0], self.language.zones[0]
        first = own if initial else None
        edges = [Edge(0, self.rule(0, first), 1)]
        if first != own and 0 in self.silent:
            edges.append(Edge(0, self.rule(0, _EMPTY), 1))
        rules = {0: Rule(start.name, tuple(edges), (1,))}
        while self.waiting:
            key = self.waiting.pop()
            rules[self.variants[key]] = self.variant(*key)
        return Grammar(tuple(self.made), tuple(rules[index] for index in range(len(rules))))

    def rule(self, index: int, first: int | None) -> int:
        """Returns the symbol of a variant of a rule."""
        key = index, first
        if key not in self.variants:
            self.variants[key] = len(self.variants) + 1
            self.waiting.append(key)
        return ~self.variants[key]

    def terminal(self, index: int, first: int | None) -> int:
        """Returns the symbol of a terminal, with or without gaps before it."""
        if first is not None and terminal_special(self.language.terminals[index]) is not None:
            return self.rule(~index, first)
        if (index, first) not in self.terminals:
            terminal = self.language.terminals[index]
            if first is not None:
                terminal = replace(terminal, expression=after_gaps(terminal.expression, self.language.ignored[first]))
            self.terminals[index, first] = len(self.made)
            if index in self.language.whole:
                self.whole.add(len(self.made))
            self.made.append(terminal)
        return self.terminals[index, first]

    def after_gap(self, index: int, zone: int) -> Rule:
        """Returns a rule that reads a special token, with or without a gap, here a lexeme of its own."""
        if zone not in self.gaps:
            self.gaps[zone] = len(self.made)
            self.made.append(Terminal("ignored text", union([gap.expression for gap in self.language.ignored[zone]])))
        token = self.terminal(index, None)
        edges = (Edge(0, self.gaps[zone], 1), Edge(0, EPSILON, 1), Edge(1, token, 2))
        return Rule(self.language.terminals[index].name, edges, (2,))

    def variant(self, index: int, first: int | None) -> Rule:
        """Returns a variant of a rule; ``~index`` is that of a special token after a gap."""
        if index < 0:
            assert first is not None
            return self.after_gap(~index, first)
        rule = self.language.rules[index]
        if first == _EMPTY:
            edges = [edge for edge in rule.edges if edge.symbol is EPSILON or edge.symbol < 0]
            return replace(rule, edges=tuple(edge._replace(symbol=self.empty(edge.symbol)) for edge in edges))
        if first == self.language.zones[index]:
            edges = [edge._replace(symbol=self.symbol(edge.symbol, first)) for edge in rule.edges]
            return replace(rule, edges=tuple(edges))
        return self.doubled(rule, first, self.language.zones[index])

    def doubled(self, rule: Rule, first: int | None, own: int | None) -> Rule:
        """Returns the rule with at least one lexeme: its states before the first lexeme, and after it."""
        behind = 1 + max((max(edge.source, edge.target) for edge in rule.edges), default=0)
        edges: list[Edge] = []
        for edge in rule.edges:
            source, target = edge.source + behind, edge.target + behind
            edges.append(edge._replace(source=source, symbol=self.symbol(edge.symbol, own), target=target))
            if edge.symbol is EPSILON:
                edges.append(edge)
                continue
            edges.append(edge._replace(symbol=self.symbol(edge.symbol, first), target=target))
            if edge.symbol < 0 and ~edge.symbol in self.silent:
                edges.append(edge._replace(symbol=self.rule(~edge.symbol, _EMPTY)))
        return replace(rule, edges=tuple(edges), accepting=tuple(state + behind for state in rule.accepting))

    def empty(self, symbol: int | None) -> int | None:
        """Returns the symbol of an edge in the variant with the empty text only."""
        return EPSILON if symbol is EPSILON else self.rule(~symbol, _EMPTY)

    def symbol(self, symbol: int | None, first: int | None) -> int | None:
        """Returns the symbol that an edge reads, with a gap of a zone before it."""
        if symbol is EPSILON:
            return EPSILON
        return self.terminal(symbol, first) if symbol >= 0 else self.rule(~symbol, first)
