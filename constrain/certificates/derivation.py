"""``derive``: one way to read a text by the rules of a grammar, as steps that a checker can follow.

The kernel says where lexemes begin and end, and which terminals match each. An Earley parser reads them; its items have
the whole memory of a rule (counters, texts, values), so every way that it finds obeys it. Each item remembers how it
was first reached, which gives the steps backwards.

A step is a number: the edge to take in the rule that is being read, or ``END``: the rule ends. Of an edge that reads a
lexeme it is a pair: the edge and the offset where the lexeme ends. An ignored lexeme is the pair (``~terminal``, end).
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.errors import LimitError
from constrain.language.grammar import EPSILON, TEXT_SET, VALUE_SET, Action, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from constrain.engine.derivation import Lexeme, Lexemes
    from constrain.language.grammar import Edge, Grammar

Step: TypeAlias = "int | list[int]"

END = -1
"""The step at the end of a rule."""

MAX_CERTIFICATE_WORK = 5_000_000
"""Items of the second reading of an answer, for its certificate. Beyond: LimitError; the answer of a model is complete,
but has no certificate."""

CERTIFICATE_LIMIT = f"{MAX_CERTIFICATE_WORK=}".partition("=")[0]
"""The name of this limit, for ``Completion.limits_met``."""

_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class _Item:
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
        before: _Item | None = None,
        edge: int = 0,
        read: _Item | int | None = None,
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
        self.edges: list[dict[int, list[tuple[int, Edge]]]] = []
        for rule in grammar.rules:
            by_source: dict[int, list[tuple[int, Edge]]] = {}
            for index, edge in enumerate(rule.edges):
                by_source.setdefault(edge.source, []).append((index, edge))
            self.edges.append(by_source)
        self.accepting = [frozenset(rule.accepting) for rule in grammar.rules]
        self.fresh: list[tuple[Any, ...]] = [
            tuple(frozenset() if slot < 0 else 0 for slot in rule.slots) for rule in grammar.rules
        ]
        self.first, self.nullable, self.follow = _look_ahead(grammar)


class _Place:
    """One place between lexemes: the items that stand there, and those still to be looked at."""

    __slots__ = ("after", "at", "completed", "empty", "is_ignored", "items", "offset", "terminals", "waiting", "work")

    def __init__(
        self,
        at: int,
        items: dict[tuple[Any, ...], _Item],
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
        self.waiting: dict[int, list[tuple[_Item, int, Edge]]] = {}
        self.empty: dict[int, _Item] = {}  # rules that read nothing here
        self.completed: set[tuple[int, int]] = set()

    def add(self, item: _Item) -> None:
        """Adds an item unless an equal one stands here."""
        key = item.rule, item.state, item.memory, item.origin
        if key not in self.items:
            self.items[key] = item
            self.work.append(item)


class _Reading:
    def __init__(self, tables: Tables, text: bytes, lexemes: Lexemes, starts: Sequence[int]) -> None:
        self._grammar = tables.grammar
        self._tables = tables
        self._text = text
        self._lexemes = lexemes
        self._ignored = frozenset(tables.grammar.ignored)
        self._number = {start: number for number, start in enumerate(starts)}
        self._starts = starts
        self._edges, self._fresh = tables.edges, tables.fresh
        self._first, self._nullable = tables.first, tables.nullable
        self._chosen: dict[tuple[int, int, frozenset[int]], list[tuple[int, Edge]]] = {}
        self._waiting: list[dict[int, list[tuple[_Item, int, Edge]]]] = []  # per place: items that wait for rules
        self._work = 0

    def steps(self) -> list[Step]:
        """Returns the steps of one way to read all lexemes."""
        return self._written(self._read())

    def _read(self) -> _Item:
        count = len(self._lexemes.offsets)
        sets: list[dict[tuple[Any, ...], _Item]] = [{} for _ in range(count)]
        last: _Item | None = None
        first = _Item(0, 0, self._fresh[0], 0)
        sets[0][0, 0, first.memory, 0] = first
        furthest = 0
        for at in range(count):
            furthest = self._lexemes.offsets[at] if sets[at] else furthest
            last = self._read_set(at, sets)
            sets[at] = {}
        if last is None:
            raise ValueError(f"the text is not one of the grammar: no derivation goes beyond byte {furthest}")
        return last

    def _read_set(self, at: int, sets: list[dict[tuple[Any, ...], _Item]]) -> _Item | None:
        """Completes the items of one place; returns one at which the whole grammar may end, if there is one."""
        after = self._lexemes.after[at]
        terminals = frozenset[int]().union(*(lexeme.terminals for lexeme in after))
        is_ignored = not self._ignored.isdisjoint(terminals)
        if at == len(sets) - 1:
            terminals |= {END}
        place = _Place(at, sets[at], after, self._lexemes.offsets[at], terminals, is_ignored=is_ignored)
        self._waiting.append(place.waiting)
        whole: _Item | None = None
        while place.work:
            self._work += 1
            if self._work > MAX_CERTIFICATE_WORK:
                raise LimitError(f"this text takes too many steps to derive ({CERTIFICATE_LIMIT})")
            item = place.work.pop()
            if self._may_end(place, item):
                if item.rule == 0 and item.origin == 0:
                    whole = whole or item
                self._complete(place, item)
            self._advance(place, item, sets)
            if is_ignored:
                self._skip(place, item, sets)
        return whole

    def _may_end(self, place: _Place, item: _Item) -> bool:
        """Returns whether the rule of an item may end in a place."""
        follows = place.is_ignored or not self._tables.follow[item.rule].isdisjoint(place.terminals)
        return (
            follows and item.state in self._tables.accepting[item.rule] and self._fits(item.rule, item.origin, place.at)
        )

    def _complete(self, place: _Place, item: _Item) -> None:
        """Goes on behind a rule that ends, once for each begin of the rule."""
        key = (item.rule, item.origin)
        if key in place.completed:
            return
        place.completed.add(key)
        if item.origin == place.at:
            place.empty[item.rule] = item
        for parent, index, edge in self._waiting[item.origin].get(item.rule, ()):
            self._return(place.add, parent, index, edge, item)

    def _advance(self, place: _Place, item: _Item, sets: list[dict[tuple[Any, ...], _Item]]) -> None:
        """Takes all edges that an item may take in a place."""
        rule, memory = item.rule, item.memory
        choice = self._chosen.get((rule, item.state, place.terminals))
        if choice is None or place.is_ignored:
            choice = self._choose(rule, item.state, place.terminals, all_rules=place.is_ignored)
        for index, edge in choice:
            if edge.conditions and not _allows(edge, memory):
                continue
            symbol = edge.symbol
            if symbol is EPSILON:
                place.add(_Item(rule, edge.target, self._after(rule, memory, edge), item.origin, item, index))
            elif symbol >= 0:
                for lexeme in place.after:
                    if symbol in lexeme.terminals:
                        self._scan(sets, item, index, edge, place.offset, lexeme.end)
            else:
                inner = ~symbol
                place.waiting.setdefault(inner, []).append((item, index, edge))
                place.add(_Item(inner, 0, self._fresh[inner], place.at))
                if inner in place.empty:
                    self._return(place.add, item, index, edge, place.empty[inner])

    def _skip(self, place: _Place, item: _Item, sets: list[dict[tuple[Any, ...], _Item]]) -> None:
        """Reads ignored text behind an item."""
        for lexeme in place.after:
            for terminal in self._ignored & lexeme.terminals:
                end = self._lexemes.offsets[lexeme.end]
                skipped = _Item(item.rule, item.state, item.memory, item.origin, item, ~terminal, end)
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
        self,
        sets: list[dict[tuple[Any, ...], _Item]],
        item: _Item,
        index: int,
        edge: Edge,
        begin: int,
        place: int,
    ) -> None:
        end = self._lexemes.offsets[place]
        symbol = edge.symbol
        assert symbol is not None
        limit = self._grammar.terminals[symbol].max_tokens
        if limit is not None and sum(begin <= start < end for start in self._starts) > limit:
            return
        memory = item.memory
        if edge.excluding >= 0 or edge.distinct >= 0 or edge.actions:
            text = self._text[begin:end]
            if edge.excluding >= 0 and self._label(text) in memory[edge.excluding]:
                return
            if edge.distinct >= 0:
                value = self._scalar(text)
                if value in memory[edge.distinct]:
                    return
                memory = _with(memory, edge.distinct, memory[edge.distinct] | {value})
            memory = self._after(item.rule, memory, edge, text)
        key = item.rule, edge.target, memory, item.origin
        if key not in sets[place]:
            sets[place][key] = _Item(item.rule, edge.target, memory, item.origin, item, index, end)

    def _return(self, add: Any, parent: _Item, index: int, edge: Edge, inner: _Item) -> None:
        """Goes on behind a rule that has been read."""
        memory = parent.memory
        if edge.distinct >= 0:
            value = self._value_of(inner)
            if value in memory[edge.distinct]:
                return
            memory = _with(memory, edge.distinct, memory[edge.distinct] | {value})
        if edge.actions:
            memory = self._after(parent.rule, memory, edge)
        add(_Item(parent.rule, edge.target, memory, parent.origin, parent, index, inner))

    def _after(self, rule: int, memory: tuple[Any, ...], edge: Edge, text: bytes = b"") -> tuple[Any, ...]:
        if not edge.actions:
            return memory
        slots = self._grammar.rules[rule].slots
        changed = list(memory)
        for action, slot in edge.actions:
            if action is Action.INCREMENT:
                changed[slot] = min(changed[slot] + 1, slots[slot])
            else:
                assert slots[slot] in (TEXT_SET, VALUE_SET)
                changed[slot] |= {self._label(text)}
        return tuple(changed)

    def _fits(self, rule: int, origin: int, at: int) -> bool:
        """Returns whether a rule keeps its limit on tokens between two places."""
        limit = self._grammar.rules[rule].max_tokens
        if limit is None:
            return True
        first = self._number.get(self._lexemes.offsets[origin])
        last = self._number.get(self._lexemes.offsets[at])
        return first is not None and last is not None and last - first <= limit

    # Values

    def _label(self, text: bytes) -> object:
        string = _STRING.match(text) if self._grammar.strings_by_value else None
        return (json.loads(string[0], strict=False), text[string.end() :]) if string else text

    def _scalar(self, text: bytes) -> object:
        if _NUMBER.fullmatch(text) is None:
            return self._label(text)
        number = float(text)
        if self._grammar.numbers_by_double and math.isfinite(number):
            return number
        mantissa, _, power = text.lower().partition(b"e")
        whole, _, fraction = mantissa.removeprefix(b"-").partition(b".")
        digits = (whole + fraction).lstrip(b"0")
        exponent = int(power or 0) - len(fraction) + len(digits) - len(digits.rstrip(b"0"))
        return ("decimal", text[:1] == b"-", digits.rstrip(b"0"), exponent) if digits else 0.0

    def _value_of(self, inner: _Item) -> object:
        """Returns the value of the group that a rule has read."""
        groups: list[list[Any]] = [[Role.OPEN_ORDERED, None, []]]
        begin = self._lexemes.offsets[inner.origin]
        for symbol, end in self._leaves(inner):
            text = self._text[begin:end]
            begin = end
            if symbol is None:
                continue
            terminal = self._grammar.terminals[symbol]
            group, role = groups[-1], terminal.role
            if role in (Role.OPEN_ORDERED, Role.OPEN_LABELLED):
                groups.append([role, None, []])
            elif role is Role.LABEL:
                group[1] = self._label(terminal.label or text)
            elif role is Role.CLOSE and len(groups) > 1:
                kind, _, members = groups.pop()
                closed = tuple(members) if kind is Role.OPEN_ORDERED else frozenset(members)
                _add(groups[-1], (kind, closed))
            elif role is Role.SCALAR:
                _add(group, self._scalar(text))
        return groups[0][2][-1]

    def _leaves(self, inner: _Item) -> Iterable[tuple[int | None, int]]:
        """Returns terminals and ends of the lexemes of a rule, in order; None for an ignored one."""
        found: list[tuple[int | None, int]] = []
        stack = [inner]
        while stack:
            item: _Item = stack.pop()
            while (before := item.before) is not None:
                read = item.read
                if isinstance(read, int):
                    edges = self._grammar.rules[item.rule].edges
                    found.append((None if item.edge < 0 else edges[item.edge].symbol, read))
                elif read is not None:
                    stack.append(before)
                    item = read
                    continue
                item = before
        return reversed(found)

    # The steps

    def _written(self, last: _Item) -> list[Step]:
        found: list[Step] = [END]
        stack: list[_Item] = [last]
        while stack:
            item: _Item = stack.pop()
            while (before := item.before) is not None:
                read = item.read
                if isinstance(read, int):
                    found.append([item.edge, read])
                elif read is None:
                    found.append(item.edge)
                else:
                    found.append(END)
                    stack.append(item)
                    item = read
                    continue
                item = before
            if stack:  # the begin of a rule: the edge that read it, and what stands before
                outer = stack.pop()
                found.append(outer.edge)
                assert outer.before is not None
                stack.append(outer.before)
        return found[::-1]


def derive(tables: Tables, text: bytes, lexemes: Lexemes, starts: Sequence[int] = ()) -> list[Step]:
    """Returns the steps of one way to read a text by the rules of a grammar.

    Args:
        tables: facts about the grammar.
        text: the text, with special tokens as the kernel reads them.
        lexemes: the lexemes of the text, by the terminals of this grammar.
        starts: the offsets where tokens begin, and the end of the text; for rules and terminals with ``max_tokens``.

    Raises ValueError for a text that is not one of the grammar, and LimitError.
    """
    return _Reading(tables, text, lexemes, starts).steps()


def _with(memory: tuple[Any, ...], slot: int, value: object) -> tuple[Any, ...]:
    return (*memory[:slot], value, *memory[slot + 1 :])


def _add(group: list[Any], value: object) -> None:
    group[2].append((group[1], value) if group[0] is Role.OPEN_LABELLED else value)


def _allows(edge: Edge, memory: tuple[Any, ...]) -> bool:
    return all(
        least <= memory[slot] and (most is None or memory[slot] <= most) for slot, least, most in edge.conditions
    )


def _look_ahead(grammar: Grammar) -> tuple[list[frozenset[int]], frozenset[int], list[frozenset[int]]]:
    """Returns the terminals with which each rule may begin, rules that may read nothing, and what may follow each.

    ``END`` follows where the text may end.
    """
    nullable: set[int] = set()
    first: list[set[int]] = [set() for _ in grammar.rules]
    edges: list[Mapping[int, list[Edge]]] = []
    callers: list[set[int]] = [set() for _ in grammar.rules]
    for index, rule in enumerate(grammar.rules):
        by_source: dict[int, list[Edge]] = {}
        for edge in rule.edges:
            by_source.setdefault(edge.source, []).append(edge)
            if edge.symbol is not EPSILON and edge.symbol < 0:
                callers[~edge.symbol].add(index)
        edges.append(by_source)
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


def _followers(
    grammar: Grammar, edges: list[Mapping[int, list[Edge]]], first: list[set[int]], nullable: set[int]
) -> list[set[int]]:
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
    edges: Mapping[int, list[Edge]],
    state: int,
    accepting: Sequence[int],
    first: list[set[int]],
    nullable: set[int],
) -> tuple[set[int], bool]:
    """Returns the terminals that a rule may read next from a state, and whether it may read nothing more."""
    seen, work = {state}, [state]
    begins: set[int] = set()
    while work:
        for edge in edges.get(work.pop(), ()):
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
