"""Terminals whose longest match could lead into a dead end become rules that read them byte by byte.

The kernel reads lexemes by the longest match, and proves that this never strands (``kernel.lexing_conflict``). Where it
cannot prove it, terminals are *split* until lexing loses no text: the automaton of each, over single bytes, becomes a
rule. The parser then follows every way to divide a text, as Lark's Earley parser with its dynamic lexer does, and no
dead end is left by construction. Terminals of JSON Schemas are never split.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from constrain import kernel
from constrain.errors import GrammarError, LimitError
from constrain.language.grammar import Edge, Grammar, Rule
from constrain.language.special import terminal_special
from constrain.language.tree import ByteClass
from constrain.work import asked, spend

if TYPE_CHECKING:
    from collections.abc import Collection

    from constrain.language.grammar import Terminal
    from constrain.language.tree import Ranges

SPLIT_STATES = 5_000
"""States of the automata of all terminals of a Lark or GBNF grammar that are read byte by byte. With more, none is
split: a Lark grammar raises GrammarError, which names two terminals between which the longest match could lead into a
dead end, or LimitError; in a GBNF grammar every terminal is one character.
"""


def settle_lexing(grammar: Grammar, whole: Collection[int], *, lossless_first: bool = False) -> Grammar:
    """Returns the grammar with terminals split until its lexing leads to no dead end; their names are in ``split``.

    Nothing is split if the longest match leads to none. Otherwise terminals are split until lexing loses no text, or,
    where that is not possible, until it leads to no dead end. ``whole``: terminals that are not split. If a conflict is
    left, the grammar is returned unproved, so that compiling it raises the error. ``lossless_first``: lexing must lose
    no text if that is possible.

    Tokens of a terminal with ``max_tokens`` are counted, so it is not split. If it is in the way, a rule with the limit
    reads it instead. If a rule has ``max_tokens``, its texts end between two tokens, wherever the longest match would.
    So lexing must lose no text; GrammarError if that is not possible.
    """
    limited = {index for index, terminal in enumerate(grammar.terminals) if terminal.max_tokens is not None}
    has_limited_rules = any(rule.max_tokens is not None for rule in grammar.rules)
    if not has_limited_rules and not lossless_first:
        proved = _proved(grammar)
        if proved.proved:
            return proved
    kept = {*whole, *limited}
    settled = split_until_lossless(grammar, kept)
    if settled is None and not has_limited_rules:
        settled = _split(grammar, kept, lossless=False)
    if settled is None and limited:
        settled = _settled_by_rules(grammar, whole, limited)
    if settled is None and has_limited_rules:
        _refuse_limited_rule(grammar)
    return settled or grammar


def _settled_by_rules(grammar: Grammar, whole: Collection[int], limited: Collection[int]) -> Grammar | None:
    """Returns the grammar with rules in place of terminals with a limit: of those in the way, or else of all."""
    try:
        in_the_way = set(limited).intersection(asked(kernel.conflicting_terminals, grammar, True))  # noqa: FBT003 - lossless
    except LimitError:
        in_the_way = set(limited)
    for chosen in (in_the_way, set(limited)):
        left = set(limited) - chosen
        settled = split_until_lossless(_with_limited_rules(grammar, chosen), {*whole, *left})
        if settled is not None or not left:
            return settled
    return None


def _with_limited_rules(grammar: Grammar, limited: Collection[int]) -> Grammar:
    """Returns the grammar in which a rule with the limit reads each of some terminals, which lose their own."""
    terminals, made = list(grammar.terminals), {}
    rules: list[Rule] = []
    for index in sorted(limited):
        terminal = terminals[index]
        terminals[index] = replace(terminal, max_tokens=None, place=None)
        made[index] = ~(len(grammar.rules) + len(rules))
        edges = (Edge(0, index, 1),)
        rules.append(
            Rule(terminal.name, edges, (1,), bare=terminal.bare, max_tokens=terminal.max_tokens, place=terminal.place)
        )
    around = [replace(rule, edges=tuple(_replaced(edge, made) for edge in rule.edges)) for rule in grammar.rules]
    return replace(grammar, terminals=tuple(terminals), rules=(*around, *rules))


def _refuse_limited_rule(grammar: Grammar) -> NoReturn:
    """Raises GrammarError for a grammar with ``max_tokens`` of rules whose lexing loses texts."""
    try:
        conflict = asked(kernel.lexing_conflict, grammar, lossless=True)
    except LimitError:
        conflict = None
    where = ""
    if conflict is not None:
        first, second = (grammar.terminals[index].name for index in conflict[:2])
        where = f": where {second} follows {first}, the longest match could take away some of its text"
    rule = next(rule for rule in grammar.rules if rule.max_tokens is not None)
    line, column = rule.place or (None, None)
    raise GrammarError(
        f"max_tokens of the rule {rule.name} needs lexemes whose end is certain{where}; end each lexeme with a "
        "character that occurs neither inside it nor at the beginning of an alternative, or remove max_tokens",
        line=line,
        column=column,
    )


def split_until_lossless(grammar: Grammar, whole: Collection[int] = ()) -> Grammar | None:
    """Returns the grammar with terminals split until lexing loses no text; None if that is not possible."""
    return _split(grammar, whole, lossless=True)


def _split(grammar: Grammar, whole: Collection[int], *, lossless: bool) -> Grammar | None:
    splitting = _Splitting(grammar, whole, lossless=lossless)
    while conflicting := splitting.conflicting():
        if not splitting.split(conflicting):
            return None
    split = replace(splitting.grammar, split=(*grammar.split, *splitting.names))
    return replace(_proved(split), proved=True)


def _proved(grammar: Grammar) -> Grammar:
    """Returns the grammar with what can be proved. Where lexemes end by themselves, a budget leaves more tokens.

    Nothing is proved if an expression is too large; compiling the grammar raises the error.
    """
    try:
        no_dead_end, self_delimiting = asked(kernel.lexing_claims, grammar)
    except LimitError:
        return grammar
    return replace(grammar, proved=no_dead_end, self_delimiting=self_delimiting)


class _Splitting:
    """A grammar, some of whose terminals have become rules; terminals keep their numbers, and new ones come last."""

    def __init__(self, grammar: Grammar, whole: Collection[int], *, lossless: bool) -> None:
        self.grammar = grammar
        self._lossless = lossless
        self.names: dict[str, None] = {}
        self._bytes: dict[tuple[str, Ranges], int] = {}
        self._splittable = {
            index
            for index, terminal in enumerate(grammar.terminals)
            if index not in whole and terminal_special(terminal) is None
        }
        self._states = 0

    def conflicting(self) -> Collection[int]:
        """Returns the terminals of all conflicts; all terminals if deciding takes too long."""
        try:
            return asked(kernel.conflicting_terminals, self.grammar, self._lossless)
        except LimitError:
            spend(0)  # raises if the compilation has no steps left
            return range(len(self.grammar.terminals))

    def split(self, terminals: Collection[int]) -> bool:
        """Splits those of some terminals that can be split; returns whether there are any."""
        chosen = self._splittable.intersection(terminals)
        made: dict[int, int] = {}
        rules, known = list(self.grammar.rules), list(self.grammar.terminals)
        for index in sorted(chosen):
            rule = self._rule(known[index], known)
            if rule is None:
                return False
            made[index] = ~len(rules)
            rules.append(rule)
            self.names[known[index].name] = None
        self._splittable -= chosen
        split = tuple(replace(rule, edges=tuple(_replaced(edge, made) for edge in rule.edges)) for rule in rules)
        self.grammar = replace(self.grammar, terminals=tuple(known), rules=split)
        return bool(chosen)

    def _rule(self, terminal: Terminal, known: list[Terminal]) -> Rule | None:
        """Returns a rule that reads a terminal byte by byte; None if it has too many states."""
        automaton = asked(kernel.automaton, terminal.expression, SPLIT_STATES - self._states)
        if automaton is None:
            return None
        self._states += len(automaton)
        edges = [
            Edge(source, self._byte(terminal, tuple(ranges), known), target)
            for source, (_, steps) in enumerate(automaton)
            for target, ranges in steps
        ]
        ends = tuple(at for at, (accepting, _) in enumerate(automaton) if accepting)
        return Rule(terminal.name, tuple(edges), ends, bare=terminal.bare)

    def _byte(self, whole: Terminal, ranges: Ranges, known: list[Terminal]) -> int:
        """Returns the terminal for one byte of another terminal, whose name it has."""
        if (key := (whole.name, ranges)) not in self._bytes:
            self._bytes[key] = len(known)
            known.append(replace(whole, expression=ByteClass(ranges), lazy=False, bare=None))
        return self._bytes[key]


def _replaced(edge: Edge, made: dict[int, int]) -> Edge:
    return edge if edge.symbol is None else edge._replace(symbol=made.get(edge.symbol, edge.symbol))
