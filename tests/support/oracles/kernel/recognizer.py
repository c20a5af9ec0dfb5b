"""Reads texts by a grammar, one byte at a time: Earley's algorithm with positions, the lexing rule, plain memory.

The oracle's own reading of ``constrain.language.grammar``. A state is the whole history (one item set for each lexeme
boundary), and nothing is merged.

The lexing rule: a lexeme is read while some usable terminal can take the next byte; when none can, or the text ends,
what was read must match a usable terminal. There is no going back, and all terminals that match count. A lazy terminal
ends the lexeme where it matches, and then only lazy ones count. Usable are the
terminals of edges that lie on some way to the end of the text, memory aside.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from constrain.language.grammar import COUNTER_UNBOUNDED, EPSILON, TEXT_SET, VALUE_SET, Action, Edge, Grammar, Rule
from tests.support.oracles import expressions as rx
from tests.support.oracles.kernel import values


class Item(NamedTuple):
    rule: int
    state: int
    memory: tuple[int | frozenset, ...]
    origin: int


class Reading(NamedTuple):
    """A terminal that may be read here, less the texts it must not be."""

    terminal: int
    excluded: frozenset[bytes]
    used: frozenset = frozenset()  # values


@dataclass(frozen=True)
class State:
    """After some text: item sets at the lexeme boundaries, the unfinished lexeme, and what it may become."""

    sets: tuple[frozenset[Item], ...]
    read: tuple[values.Lexeme, ...]
    lexeme: bytes
    readings: tuple[tuple[Reading, rx.Node], ...]


class Recognizer:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.expressions = [rx.from_tree(terminal.expression) for terminal in grammar.terminals]
        self.rules, self.productive = self._without_useless_edges()
        self._edges = [edges_by_state(rule) for rule in self.rules]
        self._callers: dict[frozenset[Item], dict[int, list[tuple[Item, Edge]]]] = {}
        self._rest: dict[tuple[int, int, tuple], float] = {}
        self._lengths = self._shortest_lengths()

    @property
    def is_empty(self) -> bool:
        return 0 not in self.productive

    def _without_useless_edges(self) -> tuple[list[Rule], set[int]]:
        """Leaves out edges that lie on no path to an accepting state, memory aside."""
        productive: set[int] = set()

        def usable(edge: Edge) -> bool:
            if edge.symbol is EPSILON:
                return True
            if edge.symbol >= 0:
                return not rx.is_empty(self.expressions[edge.symbol])
            return ~edge.symbol in productive

        def ending(rule: Rule) -> set[int]:
            states = set(rule.accepting)
            while more := {e.source for e in rule.edges if e.target in states and usable(e)} - states:
                states |= more
            return states

        while more := {i for i, rule in enumerate(self.grammar.rules) if 0 in ending(rule)} - productive:
            productive |= more
        trimmed = []
        for rule in self.grammar.rules:
            states = ending(rule)
            edges = tuple(e for e in rule.edges if e.target in states and usable(e))
            trimmed.append(Rule(rule.name, edges, rule.accepting, rule.slots))
        return trimmed, productive

    # Items

    def first_item(self, rule: int, position: int) -> Item:
        memory = tuple(frozenset() if slot in (TEXT_SET, VALUE_SET) else 0 for slot in self.rules[rule].slots)
        return Item(rule, 0, memory, position)

    def open_edges(self, item: Item) -> Iterator[Edge]:
        for edge in self._edges[item.rule].get(item.state, ()):
            if all(
                c.minimum <= item.memory[c.slot] and (c.maximum is None or item.memory[c.slot] <= c.maximum)
                for c in edge.conditions
            ):
                yield edge

    def along(self, item: Item, edge: Edge, lexeme: bytes = b"", value: values.Value | None = None) -> Item:
        memory = list(item.memory)
        if value is not None:
            memory[edge.distinct] = memory[edge.distinct] | {value}
        for action, slot in edge.actions:
            if action == Action.REMEMBER:
                memory[slot] = memory[slot] | {lexeme}
            else:
                cap = self.rules[item.rule].slots[slot]
                memory[slot] += 1 if cap == COUNTER_UNBOUNDED or memory[slot] < cap else 0
        return Item(item.rule, edge.target, tuple(memory), item.origin)

    def is_complete(self, item: Item) -> bool:
        return item.state in self.rules[item.rule].accepting

    def close(
        self, kernel: frozenset[Item], sets: tuple[frozenset[Item], ...], read: tuple[values.Lexeme, ...] = ()
    ) -> frozenset[Item]:
        """Predicts and completes until nothing changes; ``sets`` are those before this position."""
        items: set[Item] = set()
        pending = list(kernel)
        callers: dict[int, list[tuple[Item, Edge]]] = {}  # at this position, by the rule they wait for
        empty: dict[int, list[Item]] = {}  # complete items that begin at this position, by rule

        def advance(parent: Item, edge: Edge, part: Item) -> None:
            value = values.group(read[part.origin :]) if edge.distinct >= 0 else None
            if value is None or value not in parent.memory[edge.distinct]:
                pending.append(self.along(parent, edge, value=value))

        while pending:
            item = pending.pop()
            if item in items:
                continue
            items.add(item)
            for edge in self.open_edges(item):
                if edge.symbol is EPSILON:
                    pending.append(self.along(item, edge))
                elif edge.symbol < 0:
                    pending.append(self.first_item(~edge.symbol, len(sets)))
                    callers.setdefault(~edge.symbol, []).append((item, edge))
                    for part in empty.get(~edge.symbol, ()):
                        advance(item, edge, part)
            if self.is_complete(item):
                is_empty = item.origin == len(sets)
                if is_empty:
                    empty.setdefault(item.rule, []).append(item)
                waiting = callers if is_empty else self._callers_in(sets[item.origin])
                for parent, edge in waiting.get(item.rule, ()):
                    advance(parent, edge, item)
        return frozenset(items)

    def _callers_in(self, items: frozenset[Item]) -> dict[int, list[tuple[Item, Edge]]]:
        """The items of a set that wait for a rule, by rule, with their edges."""
        if items not in self._callers:
            found: dict[int, list[tuple[Item, Edge]]] = {}
            for item in items:
                for edge in self.open_edges(item):
                    if edge.symbol is not EPSILON and edge.symbol < 0:
                        found.setdefault(~edge.symbol, []).append((item, edge))
            self._callers[items] = found
        return self._callers[items]

    # States

    def start(self) -> State:
        return self._at_boundary((self.close(frozenset([self.first_item(0, 0)]), ()),), ())

    def _at_boundary(self, sets: tuple[frozenset[Item], ...], read: tuple[values.Lexeme, ...]) -> State:
        readings = {Reading(terminal, frozenset()) for terminal in self.grammar.ignored}
        for item in sets[-1]:
            for edge in self.open_edges(item):
                if edge.symbol is not EPSILON and edge.symbol >= 0:
                    readings.add(self._reading(item, edge))
        return State(
            sets, read, b"", tuple((reading, self._expression(reading)) for reading in sorted(readings, key=str))
        )

    def _reading(self, item: Item, edge: Edge) -> Reading:
        excluded = item.memory[edge.excluding] if edge.excluding >= 0 else frozenset()
        used = item.memory[edge.distinct] if edge.distinct >= 0 else frozenset()
        return Reading(edge.symbol, excluded, frozenset(value for value in used if values.is_scalar(value)))

    def _expression(self, reading: Reading) -> rx.Node:
        excluded = [rx.literal(text) for text in reading.excluded] + [values.spelled(value) for value in reading.used]
        return rx.intersection([self.expressions[reading.terminal], rx.complement(rx.alternation(excluded))])

    def step(self, state: State, byte: int) -> State | None:
        """The state after one more byte; None if there is none."""
        longer = self._lengthen(state, byte)
        if longer is None and state.lexeme and (boundary := self._finish(state)) is not None:
            longer = self._lengthen(boundary, byte)
        return longer

    def _lengthen(self, state: State, byte: int) -> State | None:
        readings = [(reading, rx.derivative(node, byte)) for reading, node in state.readings]
        alive = tuple((reading, node) for reading, node in readings if not rx.is_empty(node))
        lazy = [reading for reading, node in alive if self._is_lazy(reading) and rx.nullable(node)]
        if lazy:
            alive = tuple((reading, rx.EMPTY) for reading in lazy)
        return State(state.sets, state.read, state.lexeme + bytes([byte]), alive) if alive else None

    def _is_lazy(self, reading: Reading) -> bool:
        return self.grammar.terminals[reading.terminal].lazy

    def _finish(self, state: State) -> State | None:
        """The state after the lexeme read so far."""
        matched = {reading for reading, node in state.readings if rx.nullable(node)}
        kernel: set[Item] = set()
        for item in state.sets[-1]:
            for edge in self.open_edges(item):
                if edge.symbol is not EPSILON and self._reading(item, edge) in matched:
                    value = values.scalar(state.lexeme) if edge.distinct >= 0 else None
                    kernel.add(self.along(item, edge, state.lexeme, value))
        if any(
            reading.terminal in self.grammar.ignored and reading == (reading.terminal, frozenset(), frozenset())
            for reading in matched
        ):
            kernel |= state.sets[-1]
        if not kernel:
            return None
        terminals = [self.grammar.terminals[reading.terminal] for reading in matched]
        read = (*state.read, values.Lexeme(terminals[0].role, terminals[0].label or state.lexeme))
        return self._at_boundary((*state.sets, self.close(frozenset(kernel), state.sets, read)), read)

    def accepts_at(self, state: State) -> bool:
        """Whether the text may end here."""
        if state.lexeme:
            finished = self._finish(state)
            return finished is not None and self.accepts_at(finished)
        return any(item.rule == 0 and item.origin == 0 and self.is_complete(item) for item in state.sets[-1])

    def accepts(self, text: bytes) -> bool:
        state: State | None = self.start()
        for byte in text:
            state = self.step(state, byte)
            if state is None:
                return False
        return self.accepts_at(state)

    # Least number of bytes left: guides the search for completions, decides nothing

    def _shortest_lengths(self) -> list[float]:
        """The least length of each rule's texts."""
        lengths = [float("inf")] * len(self.rules)
        self._lengths = lengths
        while True:
            self._rest.clear()
            now = [self.rest(self.first_item(index, 0)) for index in range(len(self.rules))]
            if now == lengths:
                return lengths
            self._lengths = lengths = now

    def least_length(self, rule: int) -> float:
        """The least length of a rule's texts; infinite where its counters, or those of its parts, allow none."""
        return self._lengths[rule]

    def rest(self, item: Item) -> float:
        """The least length from an item to the end of its rule, texts remembered aside."""
        start = (item.state, tuple(0 if isinstance(value, frozenset) else value for value in item.memory))
        key = (item.rule, *start)
        if key not in self._rest:
            best, queue = {start: 0.0}, [(0.0, start)]
            self._rest[key] = float("inf")
            while queue:
                cost, (state, memory) = heapq.heappop(queue)
                here = Item(item.rule, state, memory, 0)
                if self.is_complete(here):
                    self._rest[key] = cost
                    break
                for edge in self.open_edges(here):
                    plain = edge._replace(
                        actions=tuple(a for a in edge.actions if a[0] != Action.REMEMBER), distinct=-1
                    )
                    after = self.along(here, plain)
                    total = cost + self._edge_length(edge)
                    if total < best.get((after.state, after.memory), float("inf")):
                        best[after.state, after.memory] = total
                        heapq.heappush(queue, (total, (after.state, after.memory)))
        return self._rest[key]

    def _edge_length(self, edge: Edge) -> float:
        if edge.symbol is EPSILON:
            return 0
        if edge.symbol >= 0:
            return rx.shortest(self.expressions[edge.symbol])
        return self.least_length(~edge.symbol)

    def least_bytes_left(self, state: State) -> float:
        above: dict[tuple[int, int], float] = {(0, 0): 0.0}  # (rule, origin) -> what its callers still need
        changed = True
        while changed:
            changed = False
            for position, items in enumerate(state.sets):
                for item in items:
                    outside = above.get((item.rule, item.origin), float("inf"))
                    for edge in self.open_edges(item):
                        if edge.symbol is not EPSILON and edge.symbol < 0:
                            need = outside + self.rest(self.along(item, edge))
                            if need < above.get((~edge.symbol, position), float("inf")):
                                above[~edge.symbol, position] = need
                                changed = True

        def left(item: Item) -> float:
            return self.rest(item) + above.get((item.rule, item.origin), float("inf"))

        if not state.lexeme:
            return min(map(left, state.sets[-1]), default=float("inf"))
        best = float("inf")
        for reading, node in state.readings:
            needs = [
                left(self.along(item, edge, b"" if edge.symbol is EPSILON else state.lexeme))
                for item in state.sets[-1]
                for edge in self.open_edges(item)
                if edge.symbol is not EPSILON and self._reading(item, edge) == reading
            ]
            if reading.terminal in self.grammar.ignored:
                needs += map(left, state.sets[-1])
            best = min(best, rx.shortest(node) + min(needs, default=float("inf")))
        return best


def edges_by_state(rule: Rule) -> dict[int, tuple[Edge, ...]]:
    """The edges of a rule, by the state they leave."""
    found: dict[int, tuple[Edge, ...]] = {}
    for edge in rule.edges:
        found[edge.source] = (*found.get(edge.source, ()), edge)
    return found
