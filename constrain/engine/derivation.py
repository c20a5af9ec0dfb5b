"""One way to read a text by the rules of a grammar: which rule reads which lexemes.

The kernel says where lexemes end and which terminals match each. ``Derivation`` then reads the lexemes with an Earley
parser, whose items remember counters, and takes one of the ways it finds, from left to right: every part of a rule is
as long as possible, and of equally long ways the first one in the grammar counts. The texts that a rule remembers
(keys, values) do not matter here: the kernel has compared them already.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from constrain.errors import LimitError
from constrain.language.grammar import EPSILON, Action

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from constrain.language.grammar import Edge, Rule

MAX_CAPTURE_WORK = 2_000_000
"""Steps of the second reading of a text, for captures; a step takes about a microsecond. Beyond: LimitError; the answer
of a model is complete, but has no captures."""

CAPTURES_LIMIT = f"{MAX_CAPTURE_WORK=}".partition("=")[0]
"""The name of this limit, for ``Completion.limits_met``."""

TOO_MUCH_WORK = f"this text takes too many steps to read again, for its captures ({CAPTURES_LIMIT})"
"""The message of the error beyond this limit."""

_Counters = tuple[int, ...]


class Lexeme(NamedTuple):
    """A lexeme of a text: its end, and the terminals that match it."""

    end: int
    terminals: frozenset[int]


class Reading(NamedTuple):
    """A rule, or a terminal, and the lexemes that it reads: from number ``start`` to before number ``end``."""

    symbol: int
    start: int
    end: int


class _Item(NamedTuple):
    rule: int
    state: int
    counters: _Counters
    origin: int


class _Node(NamedTuple):
    """A state of a rule that is being read, before a lexeme."""

    state: int
    counters: _Counters
    at: int


class Derivation:
    """The ways to read some lexemes by the rules of a grammar. Raises LimitError if there are too many."""

    def __init__(self, rules: Sequence[Rule], lexemes: Sequence[Lexeme]) -> None:
        self._rules = rules
        self._lexemes = lexemes
        self._edges = [_by_source(rule) for rule in rules]
        self._work = 0
        self._found: dict[Reading, int] = {}  # whole rules, by the order in which they were found
        self._ends: dict[tuple[int, int], list[int]] = {}  # by rule and start, ascending
        self._read()

    def readings(self) -> Iterator[Reading]:
        """Yields the rules of one way to read all lexemes, from left to right, each before the parts that it reads."""
        whole = Reading(~0, 0, len(self._lexemes))
        assert whole in self._found, "the lexemes are those of a text that matches"
        waiting = [whole]
        while waiting:
            reading = waiting.pop()
            yield reading
            if reading.symbol < 0:
                waiting.extend(reversed(self._parts(reading)))

    def _spend(self) -> None:
        self._work += 1
        if self._work > MAX_CAPTURE_WORK:
            raise LimitError(TOO_MUCH_WORK)

    # Earley's algorithm

    def _read(self) -> None:
        waiting_for: list[dict[int, list[tuple[_Item, Edge]]]] = []  # by place and rule: items that need the rule there
        current: dict[_Item, None] = {self._begin(0, 0): None}
        for at in range(len(self._lexemes) + 1):
            waiting_for.append({})
            current = self._read_set(at, current, waiting_for)
        for ends in self._ends.values():
            ends.sort()

    def _read_set(
        self, at: int, items: dict[_Item, None], waiting_for: list[dict[int, list[tuple[_Item, Edge]]]]
    ) -> dict[_Item, None]:
        """Completes the items before a lexeme; returns those behind it."""
        onward: dict[_Item, None] = {}
        work = list(items)
        matched = self._lexemes[at].terminals if at < len(self._lexemes) else frozenset()

        def add(item: _Item) -> None:
            if item not in items:
                items[item] = None
                work.append(item)

        while work:
            self._spend()
            item = work.pop()
            if item.state in self._rules[item.rule].accepting:
                whole = Reading(~item.rule, item.origin, at)
                if whole not in self._found:
                    self._found[whole] = len(self._found)
                    self._ends.setdefault((item.rule, item.origin), []).append(at)
                    for waiting, edge in waiting_for[item.origin].get(item.rule, ()):
                        add(self._after(waiting, edge))
            for edge in self._edges[item.rule].get(item.state, ()):
                if not _allows(edge, item.counters):
                    continue
                if edge.symbol is EPSILON:
                    add(self._after(item, edge))
                elif edge.symbol >= 0:
                    if edge.symbol in matched:
                        onward[self._after(item, edge)] = None
                else:
                    rule = ~edge.symbol
                    waiting_for[at].setdefault(rule, []).append((item, edge))
                    add(self._begin(rule, at))
                    if Reading(edge.symbol, at, at) in self._found:
                        add(self._after(item, edge))
        return onward

    def _begin(self, rule: int, at: int) -> _Item:
        return _Item(rule, 0, tuple(0 for _ in self._rules[rule].slots), at)

    def _after(self, item: _Item, edge: Edge) -> _Item:
        return item._replace(state=edge.target, counters=self._counted(item.rule, item.counters, edge))

    def _counted(self, rule: int, counters: _Counters, edge: Edge) -> _Counters:
        if not edge.actions:
            return counters
        changed = list(counters)
        for action, slot in edge.actions:
            if action is Action.INCREMENT:
                changed[slot] = min(changed[slot] + 1, self._rules[rule].slots[slot])
        return tuple(changed)

    # The way from left to right

    def _parts(self, whole: Reading) -> list[Reading]:
        """Returns what a rule reads, in order. A part as long as the rule was found before it: no way is a circle."""
        rule = self._rules[~whole.symbol]
        start = _Node(0, tuple(0 for _ in rule.slots), whole.start)
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
            for edge in self._edges[~whole.symbol].get(each.state, ())
            if edge.symbol is not EPSILON and _allows(edge, each.counters)
        ]
        return merge(*ways, key=lambda step: -step[0].end)

    def _steps(self, whole: Reading, edge: Edge, node: _Node) -> Iterator[tuple[Reading, _Node]]:
        """Yields the ways to take one edge, the longest first."""
        symbol, at = edge.symbol, node.at
        assert symbol is not None
        counters = self._counted(~whole.symbol, node.counters, edge)
        if symbol >= 0:
            if at < whole.end and symbol in self._lexemes[at].terminals:
                yield Reading(symbol, at, at + 1), _Node(edge.target, counters, at + 1)
            return
        ends = self._ends.get((~symbol, at), [])
        for number in range(bisect_right(ends, whole.end) - 1, -1, -1):
            self._spend()
            part = Reading(symbol, at, ends[number])
            if part.start != whole.start or part.end != whole.end or self._found[part] < self._found[whole]:
                yield part, _Node(edge.target, counters, part.end)

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
                _Node(edge.target, self._counted(rule, each.counters, edge), each.at)
                for edge in reversed(self._edges[rule].get(each.state, ()))
                if edge.symbol is EPSILON and _allows(edge, each.counters)
            )
        return list(found)


def _by_source(rule: Rule) -> dict[int, list[Edge]]:
    found: dict[int, list[Edge]] = {}
    for edge in rule.edges:
        found.setdefault(edge.source, []).append(edge)
    return found


def _allows(edge: Edge, counters: _Counters) -> bool:
    """Returns whether the conditions of an edge hold."""
    return all(
        minimum <= counters[slot] and (maximum is None or counters[slot] <= maximum)
        for slot, minimum, maximum in edge.conditions
    )
