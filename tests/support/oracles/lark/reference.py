"""What a Lark grammar means, read from its data alone: Earley's algorithm with positions over the bodies of rules.

A state is the whole history, one set of items for each end of a lexeme; nothing is merged. The lexing rule: a lexeme is
read while some usable terminal can take the next byte; when none can, or the text ends, what was read must match a
usable terminal, all that match count, and there is no going back. A lexeme with a suffix, or a lazy one, ends where it
first matches, and then only such lexemes count. Ignored text may stand before every lexeme but the first. It is a
sequence of ignored lexemes, each read while any ignored terminal can take the next byte, and belongs to the lexeme
behind it: what may be read as the one or the other is read as both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tests.support.oracles import expressions as rx
from tests.support.oracles.lark.syntax import (
    Alias,
    Alt,
    Chars,
    LarkGrammar,
    Lexeme,
    Name,
    Node,
    Pattern,
    Rep,
    Seq,
    Text,
)

ENDLESS = float("inf")


class Item(NamedTuple):
    """A rule that began at the lexeme boundary ``origin`` and has ``place`` before it."""

    place: int
    origin: int


class Place(NamedTuple):
    """A place in a rule's body: what may come next there, each with the place behind it. Only what can be finished.

    ``least``: the least number of bytes from here to the end of the rule.
    """

    rule: str
    ends: bool
    calls: tuple[tuple[str, int], ...]
    reads: tuple[tuple[Node, int], ...]
    least: float


@dataclass(frozen=True)
class State:
    """After some text: item sets at the lexeme boundaries, and the unfinished lexeme, as all that it may become.

    ``gap``: what is left of an unfinished ignored lexeme before it; ``readings``: terminals, and what is left of each.
    """

    sets: tuple[frozenset[Item], ...]
    unfinished: bool
    gap: rx.Node | None
    readings: frozenset[tuple[Node, rx.Node]]


class Reference:
    def __init__(self, grammar: LarkGrammar) -> None:
        self.grammar = grammar
        self.expression = cache(self._expression)
        self.usable = cache(self._usable)
        self.gap_can_end = cache(self._gap_can_end)
        self.ignored = rx.alternation(map(self.expression, grammar.ignored))
        self.alphabet = self._alphabet()
        self.rule_lengths = dict.fromkeys(grammar.rules, ENDLESS)
        self.least = cache(self._least)
        while (lengths := {name: self.least(body) for name, body in grammar.rules.items()}) != self.rule_lengths:
            self.rule_lengths = lengths
            self.least.cache_clear()
        self.numbers: dict[tuple[str, tuple[Node, ...]], int] = {}
        self.rests: list[tuple[str, tuple[Node, ...]]] = []
        self.place = cache(self._place)
        self.first_place = cache(lambda rule: self.number(rule, (grammar.rules[rule],)))
        self.finish = cache(self._finish)

    @property
    def is_empty(self) -> bool:
        return self.rule_lengths["start"] == ENDLESS

    # Terminals

    def _expression(self, node: Node, *, any_case: bool = False) -> rx.Node:
        """What a terminal, or a part of one, matches."""
        match node:
            case Text(value, insensitive):
                return _concatenation([_character(char, any_case=any_case or insensitive) for char in value])
            case Chars(members, _):
                return rx.alternation(_character(char, any_case=any_case) for char in members)
            case Pattern(body, insensitive):
                return self._expression(body, any_case=insensitive)
            case Name(name):
                return self.expression(self.grammar.terminals[name])
            case Seq(parts):
                return _concatenation([self._expression(part, any_case=any_case) for part in parts])
            case Alt(parts):
                return rx.alternation(self._expression(part, any_case=any_case) for part in parts)
            case Rep(part, low, high, _):
                return rx.repetition(self._expression(part, any_case=any_case), low, high)
            case Lexeme(body, suffix):
                parts = [self._expression(part) for part in (body, suffix) if part is not None]
                return rx.EMPTY if all(map(rx.nullable, parts)) else _concatenation(parts)
        raise TypeError(node)

    def _alphabet(self) -> tuple[int, ...]:
        """All bytes that terminals tell apart."""
        nodes = [self.ignored, *map(self.expression, self.grammar.terminals.values())]
        nodes += [self.expression(leaf) for body in self.grammar.rules.values() for leaf in _leaves(body)]
        return tuple(sorted(set().union(*map(rx.bytes_of, nodes))))

    # Places and items

    def number(self, rule: str, rest: tuple[Node, ...]) -> int:
        """The place in a rule before what is left of its body."""
        key = rule, rest
        if key not in self.numbers:
            self.numbers[key] = len(self.rests)
            self.rests.append(key)
        return self.numbers[key]

    def _place(self, number: int) -> Place:
        rule, whole = self.rests[number]
        calls: set[tuple[str, int]] = set()
        reads: set[tuple[Node, int]] = set()
        seen, waiting = {whole}, [whole]
        for rest in waiting:
            if not rest:
                continue
            first, *others = rest
            behind = tuple(others)
            if isinstance(first, Name) and not first.is_terminal:
                calls.add((first.name, self.number(rule, behind)))
            elif _is_terminal(first):
                reads.add((first, self.number(rule, behind)))
            for following in self._ways(first, behind):
                if following not in seen and self._sum(following) < ENDLESS:
                    seen.add(following)
                    waiting.append(following)
        return Place(rule, () in seen, tuple(calls), tuple(reads), self._sum(whole))

    def _ways(self, first: Node, behind: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
        """What is left once ``first`` has been opened, or left out as it may be empty."""
        match first:
            case Seq(parts):
                yield (*parts, *behind)
            case Alt(parts):
                for part in parts:
                    yield (part, *behind)
            case Alias(part, _):
                yield (part, *behind)
            case Rep(part, low, high, written):
                if low == 0:
                    yield behind
                if high != 0:
                    yield (part, Rep(part, max(low - 1, 0), None if high is None else high - 1, written), *behind)
            case _:
                if _is_terminal(first) and rx.nullable(self.expression(first)):
                    yield behind

    def close(self, kernel: Iterable[Item], sets: tuple[frozenset[Item], ...]) -> frozenset[Item]:
        """All items at a boundary: ``kernel``, rules that are called, and what waits for rules that have ended."""
        here = len(sets)
        items = set(kernel)
        waiting = list(items)
        silent: set[str] = set()  # rules that have been read here with the empty text

        def add(place: int, origin: int) -> None:
            item = Item(place, origin)
            if item not in items:
                items.add(item)
                waiting.append(item)

        for item in waiting:
            rule, ends, calls, _, _ = self.place(item.place)
            for called, behind in calls:
                if self.rule_lengths[called] < ENDLESS:
                    add(self.first_place(called), here)
                if called in silent:
                    add(behind, item.origin)
            if not ends:
                continue
            if item.origin == here:
                silent.add(rule)
            for other in tuple(items) if item.origin == here else sets[item.origin]:
                for called, behind in self.place(other.place).calls:
                    if called == rule:
                        add(behind, other.origin)
        return frozenset(items)

    def _usable(self, items: frozenset[Item]) -> tuple[Node, ...]:
        leaves = {leaf for item in items for leaf, _ in self.place(item.place).reads}
        return tuple(leaf for leaf in leaves if not rx.is_empty(self.expression(leaf)))

    # States

    def start(self) -> State:
        return self._boundary((self.close([Item(self.first_place("start"), 0)], ()),))

    def _boundary(self, sets: tuple[frozenset[Item], ...]) -> State:
        """Before the next lexeme: only the first byte tells whether ignored text comes first."""
        readings = frozenset((leaf, self.expression(leaf)) for leaf in self.usable(sets[-1]))
        return State(sets, unfinished=False, gap=None, readings=readings)

    def step(self, state: State, byte: int) -> State | None:
        """The state after one more byte; None if there is none."""
        longer = self._lengthen(state, byte)
        if longer is None and state.unfinished and (boundary := self.finish(state)) is not None:
            longer = self._lengthen(boundary, byte)
        return longer

    def _lengthen(self, state: State, byte: int) -> State | None:
        usable = self.usable(state.sets[-1])
        readings = {(leaf, rx.derivative(node, byte)) for leaf, node in state.readings}
        gap = rx.NOTHING
        if state.gap is not None:
            gap = rx.derivative(state.gap, byte)
            if rx.is_empty(gap) and rx.nullable(state.gap):  # the ignored lexeme ends here, and something begins
                gap = rx.derivative(self.ignored, byte)
                readings |= {(leaf, rx.derivative(self.expression(leaf), byte)) for leaf in usable}
        elif not state.unfinished and len(state.sets) > 1:
            gap = rx.derivative(self.ignored, byte)
        alive = frozenset((leaf, node) for leaf, node in readings if not rx.is_empty(node))
        going_on = None if rx.is_empty(gap) or not self.gap_can_end(gap, usable) else gap
        if first := {leaf for leaf, node in alive if isinstance(leaf, Lexeme) and rx.nullable(node)}:
            alive, going_on = frozenset((leaf, rx.EMPTY) for leaf in first), None
        return State(state.sets, True, going_on, alive) if alive or going_on is not None else None

    def _gap_can_end(self, gap: rx.Node, usable: tuple[Node, ...]) -> bool:
        """Whether some way through ignored text leads to a byte at which one of the terminals begins."""
        seen, waiting = {gap}, [gap]
        for node in waiting:
            for byte in self.alphabet:
                after = rx.derivative(node, byte)
                if rx.is_empty(after):
                    if not rx.nullable(node):
                        continue
                    if any(not rx.is_empty(rx.derivative(self.expression(leaf), byte)) for leaf in usable):
                        return True
                    after = rx.derivative(self.ignored, byte)
                if after not in seen and not rx.is_empty(after):
                    seen.add(after)
                    waiting.append(after)
        return False

    def _finish(self, state: State) -> State | None:
        """The state after the lexeme read so far."""
        matched = {leaf for leaf, node in state.readings if rx.nullable(node)}
        kernel = {
            Item(behind, item.origin)
            for item in state.sets[-1]
            for leaf, behind in self.place(item.place).reads
            if leaf in matched
        }
        return self._boundary((*state.sets, self.close(kernel, state.sets))) if kernel else None

    def accepts_at(self, state: State) -> bool:
        """Whether the text may end here."""
        if state.unfinished:
            finished = self.finish(state)
            return finished is not None and self.accepts_at(finished)
        places = (self.place(item.place) for item in state.sets[-1] if item.origin == 0)
        return any(place.rule == "start" and place.ends for place in places)

    # Least number of bytes left: guides the search for completions, and tells what can never be finished

    def _least(self, node: Node) -> float:
        if _is_terminal(node):
            shortest = rx.shortest(self.expression(node))
            return ENDLESS if shortest is None else shortest
        match node:
            case Name(name):
                return self.rule_lengths[name]
            case Seq(parts):
                return self._sum(parts)
            case Alt(parts):
                return min(map(self.least, parts), default=ENDLESS)
            case Alias(part, _):
                return self.least(part)
            case Rep(part, low, _, _):
                return low * self.least(part) if low else 0
        raise TypeError(node)

    def _sum(self, parts: tuple[Node, ...]) -> float:
        return sum(map(self.least, parts))

    def least_bytes_left(self, state: State) -> float:
        """At least so many; what ignored text takes is not counted."""
        above: dict[tuple[str, int], float] = {("start", 0): 0}  # (rule, origin) -> what its callers still need
        changed = True
        while changed:
            changed = False
            for position, items in enumerate(state.sets):
                for item in items:
                    place = self.place(item.place)
                    outside = above.get((place.rule, item.origin), ENDLESS)
                    for called, behind in place.calls:
                        need = outside + self.place(behind).least
                        if need < above.get((called, position), ENDLESS):
                            above[called, position] = need
                            changed = True

        def left(place: Place, item: Item) -> float:
            return place.least + above.get((place.rule, item.origin), ENDLESS)

        last = [(self.place(item.place), item) for item in state.sets[-1]]
        if not state.unfinished or state.gap is not None:
            return min((left(place, item) for place, item in last), default=ENDLESS)
        return min(
            rx.shortest(node) + left(self.place(behind), item)
            for leaf, node in state.readings
            for place, item in last
            for read, behind in place.reads
            if read == leaf
        )


def _character(char: str, *, any_case: bool) -> rx.Node:
    return rx.alternation(rx.literal(each.encode()) for each in ({char.lower(), char.upper()} if any_case else {char}))


def _concatenation(parts: list[rx.Node]) -> rx.Node:
    whole = rx.EMPTY
    for part in reversed(parts):
        whole = rx.concatenation(part, whole)
    return whole


def _is_terminal(node: Node) -> bool:
    return isinstance(node, Text | Chars | Pattern | Lexeme) or (isinstance(node, Name) and node.is_terminal)


def _leaves(node: Node) -> Iterator[Node]:
    if _is_terminal(node):
        yield node
        return
    match node:
        case Seq(parts) | Alt(parts):
            for part in parts:
                yield from _leaves(part)
        case Rep(part, _, _, _) | Alias(part, _):
            yield from _leaves(part)
