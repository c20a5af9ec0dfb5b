"""``derive``: one way to read a text by the rules of a grammar, as steps that a checker can follow.

The reader is the engine's. Its items have the whole memory of a rule here (counters, texts, values), so every way that
it finds obeys the memory. Each item remembers how it was first reached, which gives the steps backwards.

A step is a number: the edge to take in the rule that is being read, or ``END``: the rule ends. Of an edge that reads a
lexeme it is a pair: the edge and the offset where the lexeme ends. An ignored lexeme is the pair (``~terminal``, end).
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.engine.earley import Earley, Item, Tables
from constrain.language.grammar import EPSILON, Action, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from constrain.engine.earley import Lexemes
    from constrain.language.grammar import Edge

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


class _Reading(Earley):
    """A reader that obeys the whole memory of rules, and limits on tokens."""

    def __init__(self, tables: Tables, text: bytes, lexemes: Lexemes, starts: Sequence[int]) -> None:
        beyond = f"this text takes too many steps to derive ({CERTIFICATE_LIMIT})"
        super().__init__(tables, lexemes, MAX_CERTIFICATE_WORK, beyond)
        self._grammar = tables.grammar
        self._text = text
        self._number = {start: number for number, start in enumerate(starts)}

    def remember(self, item: Item, edge: Edge, begin: int, end: int, inner: Item | None) -> tuple[Any, ...] | None:
        symbol, memory = edge.symbol, item.memory
        limit = self._grammar.terminals[symbol].max_tokens if symbol is not EPSILON and symbol >= 0 else None
        if limit is not None and sum(begin <= start < end for start in self._number) > limit:
            return None
        if edge.excluding < 0 and edge.distinct < 0 and not edge.actions:
            return memory
        text = self._text[begin:end]
        if edge.excluding >= 0 and self._label(text) in memory[edge.excluding]:
            return None
        if edge.distinct >= 0:
            value = self._scalar(text) if inner is None else self._value_of(inner)
            if value in memory[edge.distinct]:
                return None
            memory = _with(memory, edge.distinct, value)
        for action, slot in edge.actions:
            if action is Action.REMEMBER:
                memory = _with(memory, slot, self._label(text))
        return self.after(item.rule, memory, edge)

    def fits(self, rule: int, origin: int, at: int) -> bool:
        limit = self._grammar.rules[rule].max_tokens
        if limit is None:
            return True
        first = self._number.get(self.lexemes.offsets[origin])
        last = self._number.get(self.lexemes.offsets[at])
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

    def _value_of(self, inner: Item) -> object:
        """Returns the value of the group that a rule has read."""
        groups: list[list[Any]] = [[Role.OPEN_ORDERED, None, []]]
        begin = self.lexemes.offsets[inner.origin]
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

    def _leaves(self, inner: Item) -> Iterable[tuple[int | None, int]]:
        """Returns terminals and ends of the lexemes of a rule, in order; None for an ignored one."""
        found: list[tuple[int | None, int]] = []
        stack = [inner]
        while stack:
            item: Item = stack.pop()
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

    def steps(self) -> list[Step]:
        """Returns the steps of one way to read all lexemes."""
        return self._written(self.read())

    def _written(self, last: Item) -> list[Step]:
        found: list[Step] = [END]
        stack: list[Item] = [last]
        while stack:
            item: Item = stack.pop()
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
    return (*memory[:slot], memory[slot] | {value}, *memory[slot + 1 :])


def _add(group: list[Any], value: object) -> None:
    group[2].append((group[1], value) if group[0] is Role.OPEN_LABELLED else value)
