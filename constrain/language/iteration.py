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
from typing import TYPE_CHECKING, Any

from constrain.language.emptiness import reached
from constrain.language.grammar import EPSILON, Edge
from constrain.work import spend

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from constrain.language.grammar import Grammar, Rule

    _Arc = tuple[Any, int | None, Any]

INLINED_EDGES = 1_000
"""Edges of a rule beyond which no other rule is written into it."""

ALL_INLINED_EDGES = 10_000
"""Edges of all such rules together, beyond which a rule gets fewer."""


def with_iterations(grammar: Grammar) -> Grammar:
    """Returns a grammar of the same language, in which no plain rule joins its own texts.

    Rules with memory or a limit on tokens stay as they are; and all rules if one has captures, because these depend on
    how a text is divided. Other rules with which a rule begins or ends, and which begin or end with it
    (``e: sum | NUMBER``, ``sum: e "+" e``), are read as if they were written inside it.

    >>> from constrain.language.grammar import GrammarBuilder
    >>> from constrain.language.tree import Literal
    >>> builder = GrammarBuilder()
    >>> e, number, plus = builder.rule("e"), builder.terminal("1", Literal(b"1")), builder.terminal("+", Literal(b"+"))
    >>> builder.define(e, [[e, plus, e], [number]])
    >>> print(with_iterations(builder.build()).dump().partition("terminal")[0])
    rule 0 e: accepting 1
      0 -> 1: <e>
      1 -> 2: nothing
      2 -> 3: +
      3 -> 0: nothing
    rule 1 e: accepting 1
      0 -> 1: 1
    <BLANKLINE>
    """
    rules = list(grammar.rules)
    called = [~edge.symbol for rule in rules for edge in rule.edges if edge.symbol is not EPSILON and edge.symbol < 0]
    if any(rule.capture is not None for rule in rules) or max(called, default=0) >= len(rules):
        return grammar  # the kernel refuses rules that do not exist
    components = _components(rules)
    most = min(INLINED_EDGES, ALL_INLINED_EDGES // max(len(components), 1))
    for index in sorted(components):
        _Iteration(rules, index, components, most).replace()
    return replace(grammar, rules=tuple(rules)) if len(rules) > len(grammar.rules) else grammar


def _is_plain(rule: Rule) -> bool:
    is_well_formed = all(min(edge.source, edge.target) >= 0 and edge[3:] == ((), (), -1, -1) for edge in rule.edges)
    return is_well_formed and not rule.slots and rule.bare is None and rule.max_tokens is None


def _borders(rule: Rule) -> set[int]:
    """Returns the rules with which a plain rule may begin or end."""
    if all(edge.symbol is EPSILON or edge.symbol >= 0 for edge in rule.edges) or not _is_plain(rule):
        return set()
    silent = [(edge.source, EPSILON, edge.target) for edge in rule.edges if edge.symbol is EPSILON]
    begins, ends = _reached([0], silent), _reached(rule.accepting, _reversed(silent))
    return {
        ~edge.symbol
        for edge in rule.edges
        if edge.symbol is not EPSILON and edge.symbol < 0 and (edge.source in begins or edge.target in ends)
    }


def _components(rules: Sequence[Rule]) -> dict[int, int]:
    """Returns a number for each rule that may begin or end with itself; rules on one such way have the same.

    Kosaraju's algorithm: depth first forward, then backward from the rules that were finished last.
    """
    onward = [_borders(rule) for rule in rules]
    backward: list[set[int]] = [set() for _ in rules]
    for index, borders in enumerate(onward):
        for other in borders:
            backward[other].add(index)
    finished: list[int] = []
    seen: set[int] = set()
    for root in (index for index, borders in enumerate(onward) if borders):
        way = [] if root in seen else [(root, iter(onward[root]))]
        seen.add(root)
        while way:
            index, others = way[-1]
            new = next((other for other in others if other not in seen), None)
            if new is None:
                finished.append(index)
                way.pop()
            else:
                seen.add(new)
                way.append((new, iter(onward[new])))
    found: dict[int, int] = {}
    for root in reversed(finished):
        waiting = [root]
        while waiting:
            if (index := waiting.pop()) not in found:
                found[index] = root
                waiting += backward[index] - found.keys()
    return {index: root for index, root in found.items() if any(found[other] == root for other in onward[index])}


class _Iteration:
    """One rule, sorted into its alternatives.

    ``first``: the arcs that may read the first symbol; ``ends``: the states in which the rule may end.
    """

    def __init__(self, rules: list[Rule], index: int, components: dict[int, int], most: int) -> None:
        self._most = most
        self._rules = rules
        self._components = components
        self._index = index
        self._own = ~index
        self._rule = rules[index]
        self._arcs: list[_Arc] = []
        self._inline(index, 0, {index})
        spend(len(self._arcs))
        silent = [arc for arc in self._arcs if arc[1] is EPSILON]
        begins = _reached([(0, 0)], silent)
        self._ends = _reached([(0, state) for state in self._rule.accepting], _reversed(silent))
        self._first = [arc for arc in self._arcs if arc[0] in begins and arc[1] is not EPSILON]
        self._is_nullable = (0, 0) in self._ends

    def _inline(self, index: int, way: int, around: set[int]) -> None:
        """Adds the arcs of a rule, and in it those of rules that may begin or end with it, and it with them.

        ``way``: number of the place of the rule, for the names of its states; ``around``: the rules on the way.
        """
        for edge in self._rules[index].edges:
            source, target, symbol = (way, edge.source), (way, edge.target), edge.symbol
            inner = index if symbol is EPSILON or symbol >= 0 else ~symbol
            is_related = self._components.get(inner) == self._components[self._index]
            if inner in around or not is_related or len(self._arcs) > self._most:
                self._arcs.append((source, symbol, target))
                continue
            deeper = len(self._arcs) + 1
            self._arcs.append((source, EPSILON, (deeper, 0)))
            self._arcs += [((deeper, state), EPSILON, target) for state in self._rules[inner].accepting]
            self._inline(inner, deeper, {*around, inner})

    def replace(self) -> None:
        """Replaces the rule by an iteration, unless it joins none of its texts; adds rules for what is iterated."""
        rules, joined = self._rules, self._joined()
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
        rules[self._index] = self._made(operators)

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
        states: set[Hashable] = {(0, 0)}
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
    return reached(onward, states)


def _useful(arcs: list[_Arc]) -> list[_Arc]:
    """Returns the arcs on some way from the start to the end."""
    reached, ending = _reached([("start",)], arcs), _reached([("end",)], _reversed(arcs))
    return [arc for arc in arcs if arc[0] in reached and arc[2] in ending]
