"""One way to read a text by the rules of a grammar: which rule reads which lexemes.

``Derivation`` takes one of the ways that ``Earley`` finds, from left to right: every part of a rule is as long as
possible, and of equally long ways the first one in the grammar counts.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import merge
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.engine.earley import Earley, Tables, allows
from constrain.language.grammar import EPSILON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.engine.earley import Lexemes
    from constrain.language.grammar import Edge, Grammar

MAX_CAPTURE_WORK = 2_000_000
"""Steps of the second reading of a text, for captures; a step takes about a microsecond. Beyond: LimitError; the answer
of a model is complete, but has no captures."""

CAPTURES_LIMIT = f"{MAX_CAPTURE_WORK=}".partition("=")[0]
"""The name of this limit, for ``Completion.limits_met``."""

TOO_MUCH_WORK = f"this text takes too many steps to read again, for its captures ({CAPTURES_LIMIT})"
"""The message of the error beyond this limit."""


class Reading(NamedTuple):
    """A rule, or a terminal, and the lexemes that it reads: from place ``start`` to place ``end``."""

    symbol: int
    start: int
    end: int


class _Node(NamedTuple):
    """A state of a rule that is being read, at a place between lexemes."""

    state: int
    counters: tuple[Any, ...]
    at: int


class Derivation:
    """The ways to read some lexemes by the rules of a grammar. Raises LimitError if there are too many."""

    def __init__(self, grammar: Grammar, lexemes: Lexemes) -> None:
        self._rules = grammar.rules
        self._lexemes = lexemes
        self._tables = Tables(grammar)
        self._reader = Earley(self._tables, lexemes, MAX_CAPTURE_WORK, TOO_MUCH_WORK)
        self._reader.read()
        self._found = self._reader.found
        self._ends: dict[tuple[int, int], list[int]] = {}  # by rule and start, ascending
        for symbol, start, end in self._found:
            self._ends.setdefault((~symbol, start), []).append(end)
        self._contained: dict[int, set[int]] = {}  # by rule

    def readings(self) -> Iterator[Reading]:
        """Yields the rules of one way to read all lexemes, from left to right, each before the parts that it reads."""
        whole = Reading(~0, 0, len(self._lexemes.offsets) - 1)
        assert whole in self._found, "the lexemes are those of a text that matches"
        waiting = [whole]
        while waiting:
            reading = waiting.pop()
            yield reading
            if reading.symbol < 0:
                waiting.extend(reversed(self._parts(reading)))

    # The way from left to right

    def _parts(self, whole: Reading) -> list[Reading]:
        """Returns what a rule reads, in order.

        A part as long as the rule, of a rule that may contain this one, was found before it: no way is a circle.
        """
        start = _Node(0, self._tables.fresh[~whole.symbol], whole.start)
        seen = {start}
        path: list[tuple[Reading | None, Iterator[tuple[Reading, _Node]]]] = [(None, self._onward(whole, start))]
        if self._may_end(whole, start):
            return []
        while path:
            step = next(path[-1][1], None)
            if step is None:
                path.pop()
                continue
            reading, node = step
            if node in seen:
                continue
            seen.add(node)
            path.append((reading, self._onward(whole, node)))
            if self._may_end(whole, node):
                return [each for each, _ in path if each is not None]
        raise AssertionError(whole)

    def _may_end(self, whole: Reading, node: _Node) -> bool:
        accepting = self._rules[~whole.symbol].accepting
        return node.at == whole.end and any(each.state in accepting for each in self._without_reading(whole, node))

    def _onward(self, whole: Reading, node: _Node) -> Iterator[tuple[Reading, _Node]]:
        """Returns what may be read next in a rule, the longest part first."""
        ways = [
            self._steps(whole, edge, each)
            for each in self._without_reading(whole, node)
            for _, edge in self._tables.edges[~whole.symbol].get(each.state, ())
            if edge.symbol is not EPSILON and allows(edge, each.counters)
        ]
        return merge(*ways, key=lambda step: -self._lexemes.offsets[step[0].end])

    def _steps(self, whole: Reading, edge: Edge, node: _Node) -> Iterator[tuple[Reading, _Node]]:
        """Yields the ways to take one edge, the longest first."""
        symbol, at = edge.symbol, node.at
        assert symbol is not None
        counters = self._reader.after(~whole.symbol, node.counters, edge)
        if symbol >= 0:
            for lexeme in self._lexemes.after[at]:
                if lexeme.end <= whole.end and symbol in lexeme.terminals:
                    yield Reading(symbol, at, lexeme.end), _Node(edge.target, counters, lexeme.end)
            return
        ends = self._ends.get((~symbol, at), [])
        for number in range(bisect_right(ends, whole.end) - 1, -1, -1):
            self._reader.spend()
            part = Reading(symbol, at, ends[number])
            is_shorter = part.start != whole.start or part.end != whole.end
            if is_shorter or self._found[part] < self._found[whole] or ~whole.symbol not in self._inside(~symbol):
                yield part, _Node(edge.target, counters, part.end)

    def _inside(self, rule: int) -> set[int]:
        """Returns the rules that a rule may contain."""
        if rule not in self._contained:
            found: set[int] = set()
            waiting = [rule]
            while waiting:
                edges = self._rules[waiting.pop()].edges
                new = {~edge.symbol for edge in edges if edge.symbol is not EPSILON and edge.symbol < 0} - found
                found |= new
                waiting += new
            self._contained[rule] = found
        return self._contained[rule]

    def _without_reading(self, whole: Reading, node: _Node) -> list[_Node]:
        """Returns the states of a rule that can be reached from one without reading anything, itself first."""
        rule = ~whole.symbol
        found: dict[_Node, None] = {}
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each in found:
                continue
            found[each] = None
            waiting.extend(
                _Node(edge.target, self._reader.after(rule, each.counters, edge), each.at)
                for _, edge in reversed(self._tables.edges[rule].get(each.state, ()))
                if edge.symbol is EPSILON and allows(edge, each.counters)
            )
        return list(found)
