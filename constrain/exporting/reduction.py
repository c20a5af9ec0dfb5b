"""From automata to nodes: a rule for each state where ways meet, or one regular expression for the whole."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from constrain.errors import LimitError
from constrain.exporting.nodes import EMPTY, choice, depth, repeat, sequence, size
from constrain.language.emptiness import reached
from constrain.work import MAX_PATTERN_NESTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from constrain.exporting.arcs import Arc
    from constrain.exporting.characters import CharacterArc
    from constrain.exporting.nodes import Name
    from constrain.language.tree import Expression

MAX_PATTERN_LEAVES = 20_000
"""Characters, classes and names of one regular expression that is made of a grammar. Beyond: LimitError."""

_INLINED_LEAVES = 2
"""Leaves of the rest of a rule that is written again wherever it is needed; a longer one becomes a rule."""

_INLINED_LEVELS = 10
"""Choices inside one another in one rule; what is deeper becomes a rule of its own."""


class Graph:
    """The automaton of a rule, with one start (0), one end, and at most one edge between two states."""

    def __init__(self, arcs: Iterable[Arc | CharacterArc], accepting: Iterable[int]) -> None:
        listed = list(arcs)
        ends = set(accepting)
        merged = _merge_silent_circles(listed)
        self.end = 1 + max([0, *ends, *(state for arc in listed for state in (arc.source, arc.target))])
        self.start = merged.get(0, 0)
        self.out: dict[int, dict[int, Expression]] = {self.start: {}, self.end: {}}
        self._into: dict[int, set[int]] = {self.start: set(), self.end: set()}
        labels: dict[tuple[int, int], list[Expression]] = {}
        for arc in listed:
            source, target = merged.get(arc.source, arc.source), merged.get(arc.target, arc.target)
            if arc.label is not None or source != target:
                labels.setdefault((source, target), []).append(EMPTY if arc.label is None else arc.label)
        for state in sorted(ends):
            labels.setdefault((merged.get(state, state), self.end), [EMPTY])
        for (source, target), parts in labels.items():
            self._set(source, target, choice(parts))

    def _set(self, source: int, target: int, label: Expression) -> None:
        self.out.setdefault(source, {})[target] = label
        self.out.setdefault(target, {})
        self._into.setdefault(target, set()).add(source)
        self._into.setdefault(source, set())

    def into(self, state: int) -> int:
        """Returns the number of other states with an edge to this one."""
        return len(self._into[state] - {state})

    def drop(self, state: int) -> set[int]:
        """Leads all ways through a state around it; returns the states that had an edge to it or from it."""
        sources = [source for source in self._into[state] if source != state]
        onward = {target: label for target, label in self.out[state].items() if target != state}
        loop = repeat(self.out[state].get(state, EMPTY), 0, None)
        for target in self.out.pop(state):
            self._into[target].discard(state)
        for source in sources:
            label = self.out[source].pop(state)
            for target, after in onward.items():
                way = sequence(label, loop, after)
                known = self.out[source].get(target)
                self._set(source, target, way if known is None else choice((known, way)))
        del self._into[state]
        return {*sources, *onward}

    def drop_chains(self) -> None:
        """Drops states with one way in and one way out, until none is left."""
        waiting = list(self.out)
        while waiting:
            state = waiting.pop()
            if state in (self.start, self.end) or state not in self.out or self.into(state) != 1:
                continue
            onward = [target for target in self.out[state] if target != state]
            if len(onward) == 1:
                waiting += self.drop(state)

    def weight(self, state: int) -> int:
        """Returns the leaves that dropping a state adds."""
        before = sum(size(self.out[source][state]) for source in self._into[state] if source != state)
        after = sum(size(label) for target, label in self.out[state].items() if target != state)
        onward = sum(target != state for target in self.out[state])
        loop = size(self.out[state].get(state, EMPTY))
        return before * (onward - 1) + after * (self.into(state) - 1) + loop * (self.into(state) * onward - 1)


def _merge_silent_circles(arcs: list[Arc | CharacterArc]) -> dict[int, int]:
    """Returns a common state for each state on a circle of edges that read nothing."""
    onward: dict[int, set[int]] = {}
    for arc in arcs:
        if arc.label is None and arc.source != arc.target:
            onward.setdefault(arc.source, set()).add(arc.target)
    reach = {state: reached(onward, onward[state]) for state in onward}
    return {
        state: min(other for other in reach[state] if state in reach.get(other, ()))
        for state in reach
        if state in reach[state]
    }


def as_expression(graph: Graph) -> Expression:
    """Returns the texts of a graph as one node. Raises LimitError if it is too long or too deep."""
    graph.drop_chains()
    total = sum(size(label) for onward in graph.out.values() for label in onward.values())
    left = [(graph.weight(state), state) for state in graph.out if state not in (graph.start, graph.end)]
    heapify(left)
    while left:
        weight, state = heappop(left)
        if state not in graph.out or weight != graph.weight(state):
            continue  # a later entry has its present weight
        total += weight
        if total > MAX_PATTERN_LEAVES:
            raise _too_long()
        for neighbour in graph.drop(state):
            if neighbour not in (graph.start, graph.end):
                heappush(left, (graph.weight(neighbour), neighbour))
    loop = repeat(graph.out[graph.start].get(graph.start, EMPTY), 0, None)
    node = sequence(loop, graph.out[graph.start].get(graph.end, EMPTY))
    require_short(node)
    return node


def require_short(node: Expression) -> None:
    """Raises LimitError for a regular expression that is too long or too deep."""
    if size(node) > MAX_PATTERN_LEAVES:
        raise _too_long()
    if depth(node) > MAX_PATTERN_NESTING:  # other programs' parsers have such limits, too
        raise LimitError(
            f"the regular expression nests groups more than MAX_PATTERN_NESTING = {MAX_PATTERN_NESTING} deep"
        )


def _too_long() -> LimitError:
    return LimitError(
        f"the regular expression has more than MAX_PATTERN_LEAVES = {MAX_PATTERN_LEAVES} characters and classes"
    )


def as_rules(
    graph: Graph, itself: Expression, name_of: Callable[[int], Name]
) -> tuple[Expression, list[tuple[Name, Expression]]]:
    """Returns the texts of a graph as a node, and further rules that it needs; ``itself``: the name of the node.

    ``name_of`` returns the name of the rule for a state. There is one for each state in which several ways meet.
    """
    graph.drop_chains()
    rules = _Rules(graph, itself, name_of)
    body = rules.body(graph.start, 0)
    return body, [(name_of(state), rules.body(state, 0)) for state in rules.waiting]  # which grows meanwhile


class _Rules:
    def __init__(self, graph: Graph, itself: Expression, name_of: Callable[[int], Name]) -> None:
        self._graph = graph
        self._name_of = name_of
        self._rests: dict[int, Expression] = {graph.start: itself, graph.end: EMPTY}
        self.waiting: list[int] = []

    def body(self, state: int, level: int) -> Expression:
        """Returns the texts from a state to the end."""
        onward = self._graph.out[state]
        loop = repeat(onward.get(state, EMPTY), 0, None)
        ways = [sequence(label, self._rest(target, level)) for target, label in onward.items() if target != state]
        return sequence(loop, choice(ways))

    def _rest(self, state: int, level: int) -> Expression:
        if state in self._rests:
            return self._rests[state]
        if self._graph.into(state) == 1 and level < _INLINED_LEVELS:
            return self.body(state, level + 1)
        onward = self._graph.out[state]
        if onward.keys() <= {self._graph.end} and sum(map(size, onward.values())) <= _INLINED_LEAVES:
            self._rests[state] = choice(onward.values())
        else:
            self._rests[state] = self._name_of(state)
            self.waiting.append(state)
        return self._rests[state]
