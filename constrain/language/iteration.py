"""Rules that join their own texts, such as ``e: e "+" e | NUMBER``, become iterations that read the same texts.

A parser follows each way to divide a text among such a rule's uses of itself, so that its work for each byte would grow
with the text. The alternatives of a rule E are sorted by where they use E itself:

    E -> P E            prefixes
    E -> E S            postfixes
    E -> E A E          operators, of which A = E ... E (with nothing but E between) is a case of its own
    E -> B              bases, with E at neither end

Then E = U (A U)* with U = P* B S*. For: these texts are closed under all alternatives (P U = U, U S = U), and each of
them is derived from E, its operators one by one. Inside P, S, A and B, the rule may be used as before: there it is read
as another rule would be, and the least solution is the same.

An alternative of k times E and nothing else joins k texts to one, which with operators between them is still one of the
same texts, so E = T (T^(k-1))* with T = U (A U)*; several such alternatives have a loop each.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from constrain.language.grammar import EPSILON, Edge

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from constrain.language.grammar import Grammar, Rule

_Arc = "tuple[Hashable, int | None, Hashable]"


def with_iterations(grammar: Grammar) -> Grammar:
    """Returns a grammar of the same language, in which no plain rule joins its own texts.

    Rules with memory, captures or a limit on tokens stay as they are.

    >>> from constrain.language.grammar import GrammarBuilder
    >>> from constrain.language.tree import Literal
    >>> builder = GrammarBuilder()
    >>> e, number, plus = builder.rule("e"), builder.terminal("1", Literal(b"1")), builder.terminal("+", Literal(b"+"))
    >>> builder.define(e, [[e, plus, e], [number]])
    >>> print(with_iterations(builder.build()).dump().partition("terminal")[0])
    rule 0 e: accepting 1
      0 -> 1: <e>
      1 -> 2: nothing
      2 -> 0: +
    rule 1 e: accepting 1
      0 -> 1: 1
    <BLANKLINE>
    """
    rules = list(grammar.rules)
    for index, rule in enumerate(grammar.rules):
        is_plain = not rule.slots and rule.capture is rule.bare is rule.max_tokens is None
        if is_plain and any(edge.symbol == ~index for edge in rule.edges):
            _Iteration(rule, ~index).replace_in(rules)
    return replace(grammar, rules=tuple(rules)) if len(rules) > len(grammar.rules) else grammar


class _Iteration:
    """One rule, whose symbol is ``own``, sorted into its alternatives.

    ``first``: the arcs that may read the first symbol; ``ends``: the states in which the rule may end.
    """

    def __init__(self, rule: Rule, own: int) -> None:
        self._rule = rule
        self._own = own
        self._arcs = [(edge.source, edge.symbol, edge.target) for edge in rule.edges]
        silent = [arc for arc in self._arcs if arc[1] is EPSILON]
        begins = _reached([0], silent)
        self._ends = _reached(rule.accepting, _reversed(silent))
        self._first = [arc for arc in self._arcs if arc[0] in begins and arc[1] is not EPSILON]
        self._is_nullable = 0 in self._ends

    def replace_in(self, rules: list[Rule]) -> None:
        """Replaces the rule by an iteration, unless it joins none of its texts; adds rules for what is iterated."""
        joined = self._joined()
        unit = self._units()
        has_both = {"P", "S"} <= {arc[0][0] for arc in unit}
        operators = self._operators(~len(rules))
        if joined is None or not (joined or has_both or any(arc[0][0] == "A" for arc in operators)):
            return
        rules.append(self._made(unit))
        if joined:
            rules.append(self._made(operators))
            whole = ~(len(rules) - 1)
            operators = [(("start",), whole, ("end",))]
            for count in joined:
                steps = [("end",), *(("J", count, step) for step in range(2, count)), ("end",)]
                operators += [(source, whole, target) for source, target in pairwise(steps)]
        rules[~self._own] = self._made(operators)

    def _units(self) -> list[_Arc]:
        """Returns the arcs of U; states of P, B and S bear the letter."""
        start, end = ("start",), ("end",)
        made: list[_Arc] = [(start, EPSILON, end)] if self._is_nullable else []
        for _, symbol, target in self._first:
            if symbol == self._own:
                made.append((end, EPSILON, ("S", target)))
                continue
            made += [(start, symbol, ("P", target)), (start, symbol, ("B", target))]
            if target in self._ends:
                made.append((start, symbol, end))
        for source, symbol, target in self._arcs:
            made += [((part, source), symbol, (part, target)) for part in "PBS"]
            if target in self._ends and symbol == self._own:
                made.append((("P", source), EPSILON, start))
            elif target in self._ends and symbol is not EPSILON:
                made += [((part, source), symbol, end) for part in "BS"]
        return _useful(made)

    def _operators(self, unit: int) -> list[_Arc]:
        """Returns the arcs of U (A U)*; states of A bear the letter, and E those before a symbol that is not E."""
        start, end = ("start",), ("end",)
        made: list[_Arc] = [(start, unit, end)]
        made += [(end, EPSILON, ("E", target)) for _, symbol, target in self._first if symbol == self._own]
        for source, symbol, target in self._arcs:
            inner = "E" if symbol in (EPSILON, self._own) else "A"
            made += [(("E", source), symbol, (inner, target)), (("A", source), symbol, ("A", target))]
            if symbol == self._own and target in self._ends:
                made.append((("A", source), EPSILON, start))
        return _useful(made)

    def _joined(self) -> list[int] | None:
        """Returns how many texts alternatives of nothing but the rule itself join; None if there are too many ways."""
        steps = [arc for arc in self._arcs if arc[1] in (EPSILON, self._own)]
        silent = [arc for arc in steps if arc[1] is EPSILON]
        found: list[int] = []
        states = {0}
        for count in range(len(steps) + 2):
            states = _reached(states, silent)
            if count >= 2 and states & self._ends:
                found.append(count)
            states = {target for source, symbol, target in steps if source in states and symbol == self._own}
            if found == [2] or not states:
                return found
        return None

    def _made(self, arcs: list[_Arc]) -> Rule:
        numbers: dict[Hashable, int] = {("start",): 0, ("end",): 1}
        edges = tuple(
            Edge(numbers.setdefault(source, len(numbers)), symbol, numbers.setdefault(target, len(numbers)))
            for source, symbol, target in arcs
        )
        return replace(self._rule, edges=edges, accepting=(1,))


def _reversed(arcs: Iterable[_Arc]) -> list[_Arc]:
    return [(target, symbol, source) for source, symbol, target in arcs]


def _reached(states: Iterable[Hashable], arcs: Iterable[_Arc]) -> set[Hashable]:
    onward: dict[Hashable, list[Hashable]] = {}
    for source, _, target in arcs:
        onward.setdefault(source, []).append(target)
    reached = set(states)
    waiting = list(reached)
    while waiting:
        new = [target for target in onward.get(waiting.pop(), ()) if target not in reached]
        reached.update(new)
        waiting += new
    return reached


def _useful(arcs: list[_Arc]) -> list[_Arc]:
    """Returns the arcs on some way from the start to the end."""
    reached, ending = _reached([("start",)], arcs), _reached([("end",)], _reversed(arcs))
    return [arc for arc in arcs if arc[0] in reached and arc[2] in ending]
