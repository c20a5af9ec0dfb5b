"""Rules with a limit on the tokens of all that they read.

The kernel counts the tokens between two *borders*: marks that stand between tokens and take none. So in the grammar of
a matcher, such a rule reads the border with its number, then all that it reads without a limit, then the last border.
Tokens do not cross borders, and lexemes end at them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from constrain import kernel
from constrain.errors import GrammarError
from constrain.language.emptiness import productive_rules
from constrain.language.grammar import EPSILON, Edge, Rule, Terminal
from constrain.language.special import BORDER, numbered_mark
from constrain.language.tree import Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from constrain.language.grammar import Grammar


class Limited(NamedTuple):
    """A grammar with borders, and the most tokens of the rules that begin at each of them but the last."""

    grammar: Grammar
    limits: list[int]


def limited_rules(grammar: Grammar) -> list[int]:
    """Returns the rules with a limit that the start reads, outside others.

    Raises GrammarError if a limit is less than 1, or lower than that of a rule around it.
    """
    if all(rule.max_tokens is None for rule in grammar.rules):
        return []
    finished = productive_rules(grammar.rules)
    found: dict[int, None] = {}
    seen, waiting = {0}, [0]
    while waiting:
        index = waiting.pop()
        if grammar.rules[index].max_tokens is not None and index in finished:
            found[index] = None
            continue
        new = {other for edge in grammar.rules[index].edges for other in _called(edge)} - seen
        seen |= new
        waiting += new
    for index in found:
        rule = grammar.rules[index]
        assert rule.max_tokens is not None
        if rule.max_tokens < 1:
            raise _error(rule, f"rule {rule.name}: max_tokens is {rule.max_tokens}; it must be 1 or more")
        for other in sorted(_reached(grammar, [index])):
            limit = grammar.rules[other].max_tokens
            if limit is not None and limit < rule.max_tokens:
                inner = grammar.rules[other]
                message = (
                    f"{inner.name} has a lower limit than the rule {rule.name} around it; leave out one of the two"
                )
                raise _error(inner, message)
    return sorted(found)


def _called(edge: Edge) -> list[int]:
    return [] if edge.symbol is EPSILON or edge.symbol >= 0 else [~edge.symbol]


def _reached(grammar: Grammar, starts: Iterable[int]) -> set[int]:
    """Returns rules and all rules inside them."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        new = {other for edge in grammar.rules[waiting.pop()].edges for other in _called(edge)} - found
        found |= new
        waiting += new
    return found


def with_borders(
    grammar: Grammar, rules: Sequence[int], compiled: Callable[[Grammar], kernel.CompiledGrammar]
) -> Limited:
    """Returns the grammar with borders around rules. ``compiled`` compiles a part of it, to find out its least tokens.

    Raises GrammarError if no text of a rule is within its limit.
    """
    terminals, made = list(grammar.terminals), list(grammar.rules)
    inside = {index: len(made) + number for number, index in enumerate(sorted(_reached(grammar, rules)))}
    made += [_moved(grammar.rules[index], inside) for index in inside]
    limits: list[int] = []
    first, last = len(terminals), len(terminals) + len(rules)
    for number, index in enumerate(rules):
        rule = grammar.rules[index]
        least, limit = kernel.Matcher(compiled(_from(grammar, index))).min_tokens_left, rule.max_tokens
        assert limit is not None
        if least > limit:
            message = f"max_tokens={limit} is too few: its shortest text takes {least} tokens of this vocabulary"
            raise _error(rule, f"rule {rule.name}: {message}; give it {least} or more")
        limits.append(limit)
        edges = [Edge(0, first + number, 1), Edge(1, ~inside[index], 2), Edge(2, last, 3)]
        made[index] = Rule(rule.name, (*edges, *([] if least else [Edge(0, EPSILON, 3)])), (3,))
    terminals += [Terminal("", Literal(numbered_mark(BORDER, number))) for number in range(len(rules) + 1)]
    return Limited(_from(replace(grammar, terminals=tuple(terminals), rules=tuple(made)), 0), limits)


def _from(grammar: Grammar, start: int) -> Grammar:
    """Returns the grammar that begins with a rule, of the rules inside it."""
    order = [start, *sorted(_reached(grammar, [start]) - {start})]
    numbers = {index: number for number, index in enumerate(order)}
    return replace(grammar, rules=tuple(_moved(grammar.rules[index], numbers) for index in order))


def _moved(rule: Rule, numbers: dict[int, int]) -> Rule:
    """Returns a rule with other numbers of the rules that it calls."""
    edges = (edge._replace(symbol=~numbers[called[0]]) if (called := _called(edge)) else edge for edge in rule.edges)
    return replace(rule, edges=tuple(edges))


def _error(rule: Rule, message: str) -> GrammarError:
    line, column = rule.place or (None, None)
    return GrammarError(message, line=line, column=column)
