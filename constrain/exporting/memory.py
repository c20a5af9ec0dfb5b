"""Memory of rules, written out: a state for each state and each value of its counters and sets.

A set of texts or values can be written out only while it stays small: as long as all that must differ is a few texts,
or cannot be equal. Anything else no context-free language says, and is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from constrain import kernel
from constrain.errors import LimitError
from constrain.exporting.arcs import Arc, Automaton
from constrain.exporting.nodes import Name
from constrain.exporting.terminals import MAX_WRITTEN_STATES
from constrain.language.grammar import Action
from constrain.language.tree import ANY_BYTES, ByteClass, Complement, Concatenation, Intersection, Literal, LiteralSet
from constrain.work import asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.language.grammar import Condition, Grammar, Terminal
    from constrain.language.tree import Expression

LISTED_TEXTS = 12
"""Most texts of a terminal, such as the values of an enumeration, that an exported grammar tells apart when they must
not repeat."""

_NUMBERS = Concatenation((ByteClass(((0x2D, 0x2D), (0x30, 0x39))), ANY_BYTES))
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_GROUP = "group"
"""Stands for any group that was read, such as an array."""

Read: TypeAlias = "bytes | int | str | tuple[str, object]"
"""Something that was read: a text, a number by its value, any text of a terminal (its index), or any group."""

Memory: TypeAlias = "tuple[int | frozenset[Read], ...]"


class DifferenceError(Exception):
    """Texts that must differ are too many to write out; whoever exports the rule says where.

    Attributes:
        are_items: whether they are items (values) and not keys.
    """

    def __init__(self, *, are_items: bool) -> None:
        super().__init__()
        self.are_items = are_items


def write_memory_out(rule: Automaton, grammar: Grammar, terminals: list[Terminal], *, repeated_keys: bool) -> Automaton:
    """Returns the rule without memory. New terminals are added to the list.

    ``repeated_keys``: whether keys that must differ may be equal all the same.

    Raises DifferenceError, and LimitError for more than MAX_WRITTEN_STATES states.
    """
    if not rule.slots and not any(arc.has_memory for arc in rule.arcs):
        return rule
    if repeated_keys:
        rule.arcs = [arc._replace(excluding=-1) for arc in rule.arcs]
    return _Writing(rule, grammar, terminals).automaton()


class _Writing:
    def __init__(self, rule: Automaton, grammar: Grammar, terminals: list[Terminal]) -> None:
        self._rule = rule
        self._grammar = grammar
        self._terminals = terminals
        self._out = rule.out()
        self._live = _live_slots(rule)
        self._numbers: dict[tuple[int, Memory], int] = {}
        self._waiting: list[tuple[int, Memory]] = []
        self._made: dict[tuple[int, frozenset[Read]], int | None] = {}
        self._disjoint: dict[tuple[int, int], bool] = {}

    def automaton(self) -> Automaton:
        start: Memory = tuple(0 if slot >= 0 else frozenset() for slot in self._rule.slots)
        self._number(0, start)
        arcs: list[Arc] = []
        accepting = set()
        while self._waiting:
            state, memory = self._waiting.pop()
            source = self._numbers[state, memory]
            if state in self._rule.accepting:
                accepting.add(source)
            for arc in self._out.get(state, ()):
                if all(_holds(condition, memory) for condition in arc.conditions):
                    for label, after in self._read(arc, memory):
                        arcs.append(Arc(source, label, self._number(arc.target, after)))
        made = Automaton(self._rule.name, list(dict.fromkeys(arcs)), accepting)
        made.trim()
        return made

    def _number(self, state: int, memory: Memory) -> int:
        """Returns the new state for a state with memory; slots that nothing asks about any more are forgotten."""
        live = self._live.get(state, frozenset())
        key = state, tuple(value if slot in live else _start(value) for slot, value in enumerate(memory))
        if key not in self._numbers:
            if len(self._numbers) >= MAX_WRITTEN_STATES:
                raise LimitError(
                    "written out, the counts and the order of keys or items here take more than "
                    f"MAX_WRITTEN_STATES = {MAX_WRITTEN_STATES} states"
                )
            self._numbers[key] = len(self._numbers)
            self._waiting.append(key)
        return self._numbers[key]

    def _read(self, arc: Arc, memory: Memory) -> Iterator[tuple[Expression | None, Memory]]:
        """Yields what an edge reads, and the memory after it, for each way to tell the texts apart."""
        after = list(memory)
        remembering = []
        for action, slot in arc.actions:
            if action is Action.INCREMENT:
                value = after[slot]
                assert isinstance(value, int)
                after[slot] = min(value + 1, self._rule.slots[slot])
            else:
                remembering.append(slot)
        slots = {slot for slot in (*remembering, arc.excluding, arc.distinct) if slot >= 0}
        if not slots:
            yield arc.label, tuple(after)
            return
        by_value = arc.distinct >= 0
        excluded = {read for slot in {arc.excluding, arc.distinct} - {-1} for read in memory[slot]}  # type: ignore[union-attr]
        live = self._live.get(arc.target, frozenset())
        adding = [slot for slot in (*remembering, arc.distinct) if slot in live]
        for label, read in self._ways(arc, excluded, by_value=by_value, listed=bool(adding)):
            for slot in adding:
                known = memory[slot]
                assert isinstance(known, frozenset)
                after[slot] = known | {read}
            yield label, tuple(after)

    def _ways(
        self, arc: Arc, excluded: set[Read], *, by_value: bool, listed: bool
    ) -> Iterator[tuple[Expression | None, Read]]:
        """Yields the nodes that an edge reads without what is excluded; one for each text if they are ``listed``."""
        assert isinstance(arc.label, Name)
        kind, index = arc.label.key
        if kind == "rule":
            if _GROUP in excluded:
                raise DifferenceError(are_items=True)
            yield arc.label, _GROUP
            return
        expression = self._terminals[index].expression
        texts = asked(kernel.list_matches, expression, LISTED_TEXTS) if listed or excluded else None
        if texts is None or self._grammar.strings_by_value:
            without = self._without(index, excluded, by_value=by_value)
            if without is not None:
                yield Name(("terminal", without)), index
            return
        for text in texts:
            read = self._value(text) if by_value else text
            if any(self._may_equal(read, text, other, by_value=by_value) for other in excluded):
                continue
            yield Name(("terminal", self._terminal(index, Literal(text)))), read

    def _may_equal(self, read: Read, text: bytes, other: Read, *, by_value: bool) -> bool:
        """Returns whether a text equals something read before. Raises DifferenceError if it might."""
        if isinstance(other, int):
            both_numbers = by_value and asked(kernel.matches, _NUMBERS, text) and self._has_numbers(other)
            if both_numbers or asked(kernel.matches, self._terminals[other].expression, text):
                raise DifferenceError(are_items=by_value)
            return False
        return read == other

    def _without(self, index: int, excluded: set[Read], *, by_value: bool) -> int | None:
        """Returns a terminal without what is excluded; None if nothing is left."""
        texts = set()
        for other in excluded:
            if isinstance(other, bytes):
                texts.add(other)
            elif isinstance(other, int):
                if not self._are_disjoint(index, other, by_value=by_value):
                    raise DifferenceError(are_items=by_value)
            elif other != _GROUP and self._has_numbers(index):
                raise DifferenceError(are_items=by_value)
        if not texts:
            return index
        if self._grammar.strings_by_value:
            raise DifferenceError(are_items=by_value)
        key = index, frozenset(texts)
        if key not in self._made:
            rest = Intersection((self._terminals[index].expression, Complement(LiteralSet(tuple(sorted(texts))))))
            self._made[key] = None if asked(kernel.is_empty, rest) else self._terminal(index, rest)
        return self._made[key]

    def _are_disjoint(self, index: int, other: int, *, by_value: bool) -> bool:
        key = min(index, other), max(index, other)
        if key not in self._disjoint:
            both = Intersection((self._terminals[index].expression, self._terminals[other].expression))
            self._disjoint[key] = asked(kernel.is_empty, both)
        return self._disjoint[key] and not (by_value and self._has_numbers(index) and self._has_numbers(other))

    def _has_numbers(self, index: int) -> bool:
        return not asked(kernel.is_empty, Intersection((self._terminals[index].expression, _NUMBERS)))

    def _value(self, text: bytes) -> Read:
        """Returns the text, or the value of a number."""
        if _NUMBER.fullmatch(text) is None:
            return text
        return "number", float(text) if self._grammar.numbers_by_double else Decimal(text.decode())

    def _terminal(self, index: int, expression: Expression) -> int:
        """Returns the number of a terminal with other texts than one that is known."""
        if isinstance(expression, Literal):
            for at, terminal in enumerate(self._terminals):
                if terminal.expression == expression:
                    return at
        self._terminals.append(replace(self._terminals[index], expression=expression))
        return len(self._terminals) - 1


def _start(value: int | frozenset[Read]) -> int | frozenset[Read]:
    return 0 if isinstance(value, int) else frozenset()


def _holds(condition: Condition, memory: Memory) -> bool:
    value = memory[condition.slot]
    assert isinstance(value, int)
    return condition.minimum <= value and (condition.maximum is None or value <= condition.maximum)


def _live_slots(rule: Automaton) -> dict[int, frozenset[int]]:
    """Returns the slots that some edge may ask about from each state on."""
    found: dict[int, frozenset[int]] = {}
    before: dict[int, set[int]] = {}
    for arc in rule.arcs:
        before.setdefault(arc.target, set()).add(arc.source)
        asked = {condition.slot for condition in arc.conditions} | ({arc.excluding, arc.distinct} - {-1})
        found[arc.source] = found.get(arc.source, frozenset()) | asked
    waiting = list(found)
    while waiting:
        state = waiting.pop()
        for source in before.get(state, ()):
            if not found[state] <= found[source]:
                found[source] |= found[state]
                waiting.append(source)
    return found
