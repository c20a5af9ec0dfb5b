"""One way to read a text by the rules of a grammar: which rule reads which lexemes.

The kernel says where lexemes begin and end, and which terminals match each. Where a token may count as itself or as its
text, there are several ways to divide the text into lexemes. ``Derivation`` then reads the lexemes with an Earley
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
    from collections.abc import Iterable, Iterator, Sequence

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
    """A lexeme of a text: the number of the place behind it, and the terminals that match it."""

    end: int
    terminals: frozenset[int]


class Lexemes(NamedTuple):
    """The lexemes of a text, and the places between them: the first is the text's beginning, the last its end.

    Attributes:
        offsets: offset of each place in the text, in bytes, ascending.
        after: the lexemes that begin at each place, the longest first.
    """

    offsets: list[int]
    after: list[list[Lexeme]]


def in_a_row(lexemes: Iterable[tuple[int, list[int]]]) -> Lexemes:
    """Returns lexemes that follow one another, given the offset of each one's end and its terminals."""
    found = Lexemes([0], [[]])
    for number, (end, terminals) in enumerate(lexemes):
        found.after[number].append(Lexeme(number + 1, frozenset(terminals)))
        found.offsets.append(end)
        found.after.append([])
    return found


def as_graph(offsets: list[int], lexemes: Iterable[tuple[int, int, list[int]]]) -> Lexemes:
    """Returns lexemes, given the places where each begins and ends and its terminals, that are on a way to the end."""
    after: list[list[Lexeme]] = [[] for _ in offsets]
    for begin, end, terminals in sorted(lexemes, key=lambda lexeme: -lexeme[1]):
        after[begin].append(Lexeme(end, frozenset(terminals)))
    last = len(offsets) - 1
    leads_on = [False] * last + [True]
    for number in reversed(range(last)):
        after[number] = [lexeme for lexeme in after[number] if leads_on[lexeme.end]]
        leads_on[number] = bool(after[number])
    return Lexemes(offsets, after)


class Reading(NamedTuple):
    """A rule, or a terminal, and the lexemes that it reads: from place ``start`` to place ``end``."""

    symbol: int
    start: int
    end: int


class _Item(NamedTuple):
    rule: int
    state: int
    counters: _Counters
    origin: int


class _Node(NamedTuple):
    """A state of a rule that is being read, at a place between lexemes."""

    state: int
    counters: _Counters
    at: int


class Derivation:
    """The ways to read some lexemes by the rules of a grammar. Raises LimitError if there are too many."""

    def __init__(self, rules: Sequence[Rule], lexemes: Lexemes) -> None:
        self._rules = rules
        self._lexemes = lexemes
        self._edges = [_by_source(rule) for rule in rules]
        self._work = 0
        self._found: dict[Reading, int] = {}  # whole rules, by the order in which they were found
        self._ends: dict[tuple[int, int], list[int]] = {}  # by rule and start, ascending
        self._contained: dict[int, set[int]] = {}  # by rule
        self._read()

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

    def _spend(self) -> None:
        self._work += 1
        if self._work > MAX_CAPTURE_WORK:
            raise LimitError(TOO_MUCH_WORK)

    # Earley's algorithm

    def _read(self) -> None:
        waiting_for: list[dict[int, list[tuple[_Item, Edge]]]] = []  # by place and rule: items that need the rule there
        sets: list[dict[_Item, None]] = [{} for _ in self._lexemes.offsets]
        sets[0][self._begin(0, 0)] = None
        for at in range(len(sets)):
            waiting_for.append({})
            self._read_set(at, sets, waiting_for)
            sets[at] = {}
        for ends in self._ends.values():
            ends.sort()

    def _read_set(
        self, at: int, sets: list[dict[_Item, None]], waiting_for: list[dict[int, list[tuple[_Item, Edge]]]]
    ) -> None:
        """Completes the items at a place, and adds those behind the lexemes that begin there."""
        items, lexemes = sets[at], self._lexemes.after[at]
        work = list(items)

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
                    for lexeme in lexemes:
                        if edge.symbol in lexeme.terminals:
                            sets[lexeme.end][self._after(item, edge)] = None
                else:
                    rule = ~edge.symbol
                    waiting_for[at].setdefault(rule, []).append((item, edge))
                    add(self._begin(rule, at))
                    if Reading(edge.symbol, at, at) in self._found:
                        add(self._after(item, edge))

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
        """Returns what a rule reads, in order.

        A part as long as the rule, of a rule that may contain this one, was found before it: no way is a circle.
        """
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
        return merge(*ways, key=lambda step: -self._lexemes.offsets[step[0].end])

    def _steps(self, whole: Reading, edge: Edge, node: _Node) -> Iterator[tuple[Reading, _Node]]:
        """Yields the ways to take one edge, the longest first."""
        symbol, at = edge.symbol, node.at
        assert symbol is not None
        counters = self._counted(~whole.symbol, node.counters, edge)
        if symbol >= 0:
            for lexeme in self._lexemes.after[at]:
                if lexeme.end <= whole.end and symbol in lexeme.terminals:
                    yield Reading(symbol, at, lexeme.end), _Node(edge.target, counters, lexeme.end)
            return
        ends = self._ends.get((~symbol, at), [])
        for number in range(bisect_right(ends, whole.end) - 1, -1, -1):
            self._spend()
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
