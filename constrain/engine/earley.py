"""``Earley``: reads the lexemes of a text by the rules of a grammar, and finds which rules read which lexemes.

The kernel says where lexemes begin and end, and which terminals match each. Where a token may count as itself or as its
text, there are several ways to divide the text into lexemes. Items have the counters of a rule. Texts and values that a
rule remembers do not matter for captures, as the kernel has compared them already; certificates prove them, too, and
extend the reader. ``derivation`` takes the way that captures follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.errors import LimitError
from constrain.language.grammar import EPSILON, Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from constrain.language.grammar import Edge, Grammar

    _Edges = list[dict[int, list[tuple[int, Edge]]]]

END = -1
"""The end of the text, among the terminals that may follow a rule."""


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


class Item:
    """A state of a rule that is being read, and how it was first reached.

    ``before``: the item before the last step; None at the begin of a rule. ``edge``: index of the edge, or
    ``~terminal`` for ignored text. ``read``: the item at the end of the rule that the edge read, or the offset behind
    the lexeme.
    """

    __slots__ = ("before", "edge", "memory", "origin", "read", "rule", "state")

    def __init__(
        self,
        rule: int,
        state: int,
        memory: tuple[Any, ...],
        origin: int,
        before: Item | None = None,
        edge: int = 0,
        read: Item | int | None = None,
    ) -> None:
        self.rule = rule
        self.state = state
        self.memory = memory
        self.origin = origin
        self.before = before
        self.edge = edge
        self.read = read


class Tables:
    """Facts about the rules of a grammar that every derivation needs; made once for a grammar.

    Attributes:
        grammar: the grammar.
        edges: for each rule, its edges with their numbers, by the state in which they begin.
        accepting: for each rule, the states in which it may end.
        fresh: for each rule, its memory at the begin.
        first, nullable, follow: terminals that begin each rule; rules that may read nothing; terminals behind each.
    """

    __slots__ = ("accepting", "edges", "first", "follow", "fresh", "grammar", "nullable")

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.edges: _Edges = []
        for rule in grammar.rules:
            by_source: dict[int, list[tuple[int, Edge]]] = {}
            for index, edge in enumerate(rule.edges):
                by_source.setdefault(edge.source, []).append((index, edge))
            self.edges.append(by_source)
        self.accepting = [frozenset(rule.accepting) for rule in grammar.rules]
        self.fresh: list[tuple[Any, ...]] = [
            tuple(frozenset() if slot < 0 else 0 for slot in rule.slots) for rule in grammar.rules
        ]
        self.first, self.nullable, self.follow = _look_ahead(grammar, self.edges)


class _Place:
    """One place between lexemes: the items that stand there, and those still to be looked at."""

    __slots__ = ("after", "at", "empty", "is_ignored", "items", "offset", "terminals", "waiting", "work")

    def __init__(
        self,
        at: int,
        items: dict[tuple[Any, ...], Item],
        after: Sequence[Lexeme],
        offset: int,
        terminals: frozenset[int],
        *,
        is_ignored: bool,
    ) -> None:
        self.at = at
        self.items = items
        self.after = after
        self.offset = offset
        self.terminals = terminals
        self.is_ignored = is_ignored
        self.work = list(items.values())
        self.waiting: dict[int, list[tuple[Item, int, Edge]]] = {}
        self.empty: dict[int, Item] = {}  # rules that read nothing here

    def add(self, item: Item) -> None:
        """Adds an item unless an equal one stands here."""
        key = item.rule, item.state, item.memory, item.origin
        if key not in self.items:
            self.items[key] = item
            self.work.append(item)


class Earley:
    """A reader of lexemes.

    Attributes:
        found: the rules that were read, from place to place, in the order in which they were found:
            ``(~rule, start, end)``.
    """

    def __init__(self, tables: Tables, lexemes: Lexemes, most: int, beyond: str) -> None:
        """``most``: steps that may be taken; ``beyond``: message of the error beyond them."""
        self.tables = tables
        self.lexemes = lexemes
        self.found: dict[tuple[int, int, int], int] = {}
        self._ignored = frozenset(tables.grammar.ignored)
        self._edges, self._fresh = tables.edges, tables.fresh
        self._first, self._nullable = tables.first, tables.nullable
        self._chosen: dict[tuple[int, int, frozenset[int]], list[tuple[int, Edge]]] = {}
        self._waiting: list[dict[int, list[tuple[Item, int, Edge]]]] = []  # per place: items that wait for rules
        self._work, self._most, self._beyond = 0, most, beyond

    def spend(self) -> None:
        """Counts a step. Raises LimitError."""
        self._work += 1
        if self._work > self._most:
            raise LimitError(self._beyond)

    def fits(self, rule: int, origin: int, at: int) -> bool:  # noqa: ARG002 - of readers that know the tokens
        """Returns whether a rule keeps its limit on tokens between two places."""
        return True

    def after(self, rule: int, memory: tuple[Any, ...], edge: Edge) -> tuple[Any, ...]:
        """Returns the counters of a rule behind an edge."""
        if not edge.actions:
            return memory
        slots = self.tables.grammar.rules[rule].slots
        changed = list(memory)
        for action, slot in edge.actions:
            if action is Action.INCREMENT:
                changed[slot] = min(changed[slot] + 1, slots[slot])
        return tuple(changed)

    def remember(self, item: Item, edge: Edge, begin: int, end: int, inner: Item | None) -> tuple[Any, ...] | None:  # noqa: ARG002
        """Returns the memory behind an edge that reads a lexeme, or ``inner``; None if the memory forbids the edge."""
        return self.after(item.rule, item.memory, edge)

    def read(self) -> Item:
        """Reads all lexemes; returns the end of one way. Raises ValueError if there is none, and LimitError."""
        offsets = self.lexemes.offsets
        sets: list[dict[tuple[Any, ...], Item]] = [{} for _ in offsets]
        last: Item | None = None
        first = Item(0, 0, self._fresh[0], 0)
        sets[0][0, 0, first.memory, 0] = first
        furthest = 0
        for at, offset in enumerate(offsets):
            furthest = offset if sets[at] else furthest
            last = self._read_set(at, sets)
            sets[at] = {}
        if last is None:
            raise ValueError(f"the text is not one of the grammar: no derivation goes beyond byte {furthest}")
        return last

    def _read_set(self, at: int, sets: list[dict[tuple[Any, ...], Item]]) -> Item | None:
        """Completes the items of one place; returns one at which the whole grammar may end, if there is one."""
        after = self.lexemes.after[at]
        terminals = frozenset[int]().union(*(lexeme.terminals for lexeme in after))
        is_ignored = not self._ignored.isdisjoint(terminals)
        if at == len(sets) - 1:
            terminals |= {END}
        place = _Place(at, sets[at], after, self.lexemes.offsets[at], terminals, is_ignored=is_ignored)
        self._waiting.append(place.waiting)
        whole: Item | None = None
        while place.work:
            self.spend()
            item = place.work.pop()
            if self._may_end(place, item):
                if item.rule == 0 and item.origin == 0:
                    whole = whole or item
                self._complete(place, item)
            self._advance(place, item, sets)
            if is_ignored:
                self._skip(place, item, sets)
        return whole

    def _may_end(self, place: _Place, item: Item) -> bool:
        """Returns whether the rule of an item may end in a place."""
        follows = place.is_ignored or not self.tables.follow[item.rule].isdisjoint(place.terminals)
        return (
            follows and item.state in self.tables.accepting[item.rule] and self.fits(item.rule, item.origin, place.at)
        )

    def _complete(self, place: _Place, item: Item) -> None:
        """Goes on behind a rule that ends, once for each begin of the rule."""
        key = ~item.rule, item.origin, place.at
        if key in self.found:
            return
        self.found[key] = len(self.found)
        if item.origin == place.at:
            place.empty[item.rule] = item
        for parent, index, edge in self._waiting[item.origin].get(item.rule, ()):
            self._return(place.add, parent, index, edge, item)

    def _advance(self, place: _Place, item: Item, sets: list[dict[tuple[Any, ...], Item]]) -> None:
        """Takes all edges that an item may take in a place."""
        rule, memory = item.rule, item.memory
        choice = self._chosen.get((rule, item.state, place.terminals))
        if choice is None or place.is_ignored:
            choice = self._choose(rule, item.state, place.terminals, all_rules=place.is_ignored)
        for index, edge in choice:
            if edge.conditions and not allows(edge, memory):
                continue
            symbol = edge.symbol
            if symbol is EPSILON:
                place.add(Item(rule, edge.target, self.after(rule, memory, edge), item.origin, item, index))
            elif symbol >= 0:
                for lexeme in place.after:
                    if symbol in lexeme.terminals:
                        self._scan(item, index, edge, place.offset, lexeme.end, sets[lexeme.end])
            else:
                inner = ~symbol
                place.waiting.setdefault(inner, []).append((item, index, edge))
                place.add(Item(inner, 0, self._fresh[inner], place.at))
                if inner in place.empty:
                    self._return(place.add, item, index, edge, place.empty[inner])

    def _skip(self, place: _Place, item: Item, sets: list[dict[tuple[Any, ...], Item]]) -> None:
        """Reads ignored text behind an item."""
        for lexeme in place.after:
            for terminal in self._ignored & lexeme.terminals:
                end = self.lexemes.offsets[lexeme.end]
                skipped = Item(item.rule, item.state, item.memory, item.origin, item, ~terminal, end)
                sets[lexeme.end].setdefault((item.rule, item.state, item.memory, item.origin), skipped)

    def _choose(self, rule: int, state: int, terminals: frozenset[int], *, all_rules: bool) -> list[tuple[int, Edge]]:
        """Returns the edges that can be taken before one of some terminals."""
        found = []
        for index, edge in self._edges[rule].get(state, ()):
            symbol = edge.symbol
            if (
                symbol is EPSILON
                or (symbol >= 0 and symbol in terminals)
                or (
                    symbol < 0
                    and (all_rules or ~symbol in self._nullable or not self._first[~symbol].isdisjoint(terminals))
                )
            ):
                found.append((index, edge))
        self._chosen[rule, state, terminals] = found
        return found

    def _scan(
        self, item: Item, index: int, edge: Edge, begin: int, place: int, items: dict[tuple[Any, ...], Item]
    ) -> None:
        """Goes on behind a lexeme."""
        end = self.lexemes.offsets[place]
        memory = self.remember(item, edge, begin, end, None)
        key = item.rule, edge.target, memory, item.origin
        if memory is not None and key not in items:
            items[key] = Item(item.rule, edge.target, memory, item.origin, item, index, end)

    def _return(self, add: Any, parent: Item, index: int, edge: Edge, inner: Item) -> None:
        """Goes on behind a rule that has been read."""
        memory = self.remember(parent, edge, 0, 0, inner)
        if memory is not None:
            add(Item(parent.rule, edge.target, memory, parent.origin, parent, index, inner))


def allows(edge: Edge, memory: tuple[Any, ...]) -> bool:
    """Returns whether the conditions of an edge hold."""
    return all(
        least <= memory[slot] and (most is None or memory[slot] <= most) for slot, least, most in edge.conditions
    )


def _look_ahead(grammar: Grammar, edges: _Edges) -> tuple[list[frozenset[int]], frozenset[int], list[frozenset[int]]]:
    """Returns the terminals with which each rule may begin, rules that may read nothing, and what may follow each.

    ``END`` follows where the text may end.
    """
    nullable: set[int] = set()
    first: list[set[int]] = [set() for _ in grammar.rules]
    callers: list[set[int]] = [set() for _ in grammar.rules]
    for index, rule in enumerate(grammar.rules):
        for edge in rule.edges:
            if edge.symbol is not EPSILON and edge.symbol < 0:
                callers[~edge.symbol].add(index)
    waiting = dict.fromkeys(range(len(grammar.rules)))
    while waiting:
        index, _ = waiting.popitem()
        begins, may_end = _begin(edges[index], 0, grammar.rules[index].accepting, first, nullable)
        if begins <= first[index] and may_end <= (index in nullable):
            continue
        first[index] |= begins
        if may_end:
            nullable.add(index)
        waiting.update(dict.fromkeys(callers[index]))
    follow = _followers(grammar, edges, first, nullable)
    return [frozenset(each) for each in first], frozenset(nullable), [frozenset(each) for each in follow]


def _followers(grammar: Grammar, edges: _Edges, first: list[set[int]], nullable: set[int]) -> list[set[int]]:
    """Returns the terminals that may follow each rule."""
    follow: list[set[int]] = [set() for _ in grammar.rules]
    follow[0].add(END)
    last: list[set[int]] = [set() for _ in grammar.rules]  # rules with which each rule may end
    for index, rule in enumerate(grammar.rules):
        called: dict[int, set[int]] = {}
        for edge in rule.edges:
            if edge.symbol is not EPSILON and edge.symbol < 0:
                called.setdefault(edge.target, set()).add(~edge.symbol)
        for target, inner in called.items():
            begins, may_end = _begin(edges[index], target, rule.accepting, first, nullable)
            for each in inner:
                follow[each] |= begins
            if may_end:
                last[index] |= inner
    waiting = dict.fromkeys(range(len(grammar.rules)))
    while waiting:
        index, _ = waiting.popitem()
        for inner_rule in last[index]:
            if not follow[index] <= follow[inner_rule]:
                follow[inner_rule] |= follow[index]
                waiting[inner_rule] = None
    return follow


def _begin(
    edges: dict[int, list[tuple[int, Edge]]],
    state: int,
    accepting: Sequence[int],
    first: list[set[int]],
    nullable: set[int],
) -> tuple[set[int], bool]:
    """Returns the terminals that a rule may read next from a state, and whether it may read nothing more."""
    seen, work = {state}, [state]
    begins: set[int] = set()
    while work:
        for _, edge in edges.get(work.pop(), ()):
            symbol = edge.symbol
            if symbol is not EPSILON and symbol >= 0:
                begins.add(symbol)
                continue
            if symbol is not EPSILON:
                begins |= first[~symbol]
                if ~symbol not in nullable:
                    continue
            if edge.target not in seen:
                seen.add(edge.target)
                work.append(edge.target)
    return begins, not seen.isdisjoint(accepting)
