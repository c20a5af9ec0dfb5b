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
from typing import TYPE_CHECKING, NamedTuple

from constrain.language.emptiness import silent_rules
from constrain.language.grammar import EPSILON, Edge, Grammar, Rule, Terminal
from constrain.language.special import terminal_special
from constrain.language.tree import EMPTY_TEXT
from constrain.lark.lexing.gaps import after_gaps
from constrain.regex.anchors import union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.lark.rules import Language


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


class _Variant(NamedTuple):
    """A variant of a rule.

    ``first``: the zone whose gaps may stand before the first lexeme; ``None`` for no gaps. ``reads``: whether the
    variant reads at least one lexeme, or else nothing, or (``None``) either.
    """

    rule: int
    first: int | None
    reads: bool | None = None


class _Separation:
    """Variants of rules and terminals, and the queue of variants to make. ``first``: as in ``_Variant``."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.silent = silent_rules(language.rules)
        self.terminals: dict[tuple[int, int | None], int] = {}
        self.made: list[Terminal] = []
        self.whole: set[int] = set()
        self.gaps: dict[int, int] = {}
        self.variants: dict[_Variant, int] = {}
        self.waiting: list[_Variant] = []

    def grammar(self, *, initial: bool) -> Grammar:
        """Returns the grammar; ``initial``: whether a gap may stand before the first lexeme."""
        first = self.language.zones[0] if initial else None
        rules = {0: Rule(self.language.rules[0].name, tuple(self.calls(Edge(0, ~0, 1), first)), (1,))}
        while self.waiting:
            variant = self.waiting.pop()
            rules[self.variants[variant]] = self.variant(variant)
        return Grammar(tuple(self.made), tuple(rules[index] for index in range(len(rules))))

    def rule(self, variant: _Variant) -> int:
        """Returns the symbol of a variant of a rule."""
        if variant not in self.variants:
            self.variants[variant] = len(self.variants) + 1
            self.waiting.append(variant)
        return ~self.variants[variant]

    def calls(self, edge: Edge, first: int | None, *, reads: bool | None = None) -> Iterator[Edge]:
        """Yields the edges in place of one that reads a rule, which may read nothing unless ``reads``."""
        assert edge.symbol is not None
        index = ~edge.symbol
        if index not in self.silent:
            reads = None
        elif reads is None and first != self.language.zones[index]:
            yield edge._replace(symbol=self.rule(_Variant(index, None, reads=False)))
            reads = True
        yield edge._replace(symbol=self.rule(_Variant(index, first, reads)))

    def terminal(self, index: int, first: int | None) -> int:
        """Returns the symbol of a terminal, with or without gaps before it."""
        if first is not None and terminal_special(self.language.terminals[index]) is not None:
            return self.rule(_Variant(~index, first))
        if (index, first) not in self.terminals:
            terminal = self.language.terminals[index]
            if first is not None:
                after = after_gaps(terminal.expression, self.language.ignored[first])
                terminal = replace(terminal, expression=after, bare=terminal.expression)
            self.terminals[index, first] = len(self.made)
            if index in self.language.whole:
                self.whole.add(len(self.made))
            self.made.append(terminal)
        return self.terminals[index, first]

    def after_gap(self, index: int, zone: int) -> Rule:
        """Returns a rule that reads a special token, with or without a gap, here a lexeme of its own."""
        if zone not in self.gaps:
            self.gaps[zone] = len(self.made)
            ignored = union([gap.expression for gap in self.language.ignored[zone]])
            self.made.append(Terminal("ignored text", ignored, bare=EMPTY_TEXT))
        token = self.terminal(index, None)
        edges = (Edge(0, self.gaps[zone], 1), Edge(0, EPSILON, 1), Edge(1, token, 2))
        return Rule(self.language.terminals[index].name, edges, (2,))

    def variant(self, variant: _Variant) -> Rule:
        """Returns a variant of a rule; ``~index`` is that of a special token after a gap."""
        index, first, reads = variant
        if index < 0:
            assert first is not None
            return self.after_gap(~index, first)
        rule, own = self.language.rules[index], self.language.zones[index]
        if reads is False:
            return replace(rule, edges=tuple(self.silent_edges(rule)), max_tokens=None)
        if reads is None and first == own:
            return replace(rule, edges=tuple(made for edge in rule.edges for made in self.edges(edge, first)))
        return self.doubled(rule, first, own)

    def doubled(self, rule: Rule, first: int | None, own: int | None) -> Rule:
        """Returns the rule with at least one lexeme: its states before the first lexeme, and after it."""
        behind = 1 + max((max(edge.source, edge.target) for edge in rule.edges), default=0)
        edges: list[Edge] = []
        for edge in rule.edges:
            target = edge.target + behind
            edges.extend(self.edges(edge._replace(source=edge.source + behind, target=target), own))
            if edge.symbol is not EPSILON:
                edges.extend(self.edges(edge._replace(target=target), first, reads=True))
        edges.extend(self.silent_edges(rule))
        return replace(rule, edges=tuple(edges), accepting=tuple(state + behind for state in rule.accepting))

    def silent_edges(self, rule: Rule) -> Iterator[Edge]:
        """Yields the edges of a rule that may read nothing, and read nothing."""
        for edge in rule.edges:
            if edge.symbol is EPSILON:
                yield edge
            elif edge.symbol < 0 and ~edge.symbol in self.silent:
                yield edge._replace(symbol=self.rule(_Variant(~edge.symbol, None, reads=False)))

    def edges(self, edge: Edge, first: int | None, *, reads: bool | None = None) -> Iterator[Edge]:
        """Yields the edges in place of one, with gaps before the first lexeme."""
        if edge.symbol is EPSILON:
            yield edge
        elif edge.symbol >= 0:
            yield edge._replace(symbol=self.terminal(edge.symbol, first))
        else:
            yield from self.calls(edge, first, reads=reads)
