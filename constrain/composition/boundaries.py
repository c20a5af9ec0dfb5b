"""Proof that every lexeme of a composition of schemas ends by itself, so that the longest match never decides.

Within one schema, every lexeme ends by itself. JSON is the same in all schemas: a whole value of one schema is never
the beginning of a longer value of another, except for numbers, and keys separate from their colons end at the same
place. So the proof covers the texts that may be usable at a time, and the last lexemes of values: none of these may go
on with a byte that may follow it. Texts and values at one place must begin with different bytes. The test is
sufficient, not necessary: if it fails, the kernel's own proof decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain import kernel
from constrain.errors import LimitError
from constrain.language.emptiness import silent_rules
from constrain.language.grammar import EPSILON
from constrain.language.tree import (
    ANY_BYTES,
    Alternation,
    ByteClass,
    Concatenation,
    Expression,
    Intersection,
    Repetition,
    Window,
    with_parts,
)
from constrain.regex.anchors import sequence, union
from constrain.work import asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constrain.language.grammar import Edge, Grammar
    from constrain.language.tree import Ranges

PROOF_WORK = 500_000
"""Derivatives that all questions of one proof may take; beyond it, the kernel's own proof decides."""

MAX_PAIRS = 10_000
"""Pairs of edges, and of places, that one proof compares; beyond it, the kernel's own proof decides."""


SHORT_COUNT = 16
"""Repetition count up to which the first attempt at a proof keeps counts; larger counts are kept only in the second."""


def lexemes_end_by_themselves(grammar: Grammar) -> bool:
    """Returns whether this is proved. The first rule reads texts and schemas; all other rules belong to schemas."""
    return any(
        _holds(grammar, [read(each.expression) for each in grammar.terminals]) for read in (_without_counts, _as_is)
    )


def _holds(grammar: Grammar, expressions: list[Expression]) -> bool:
    try:
        return _Proof(grammar, expressions).holds()
    except LimitError:
        return False


def _as_is(expression: Expression) -> Expression:
    return expression


def _without_counts(expression: Expression) -> Expression:
    """Returns a superset of the expression without counts; a proof for it is a proof for the expression."""
    match expression:
        case Concatenation() | Alternation() | Intersection():
            return with_parts(expression, _without_counts)
        case Repetition(part, minimum, maximum):
            inner = _without_counts(part)
            if max(minimum, maximum or 0) <= SHORT_COUNT:
                return Repetition(inner, minimum, maximum)
            return Repetition(inner, min(minimum, 1), None)
        case Window(part, _, _, _):
            return _without_counts(part)
    return expression


class _Proof:
    """A proof: the states of the first rule are the places; a symbol is a text (0 and up) or a schema."""

    def __init__(self, grammar: Grammar, expressions: list[Expression]) -> None:
        self.grammar = grammar
        self.expressions = expressions
        self.silent = silent_rules(grammar.rules)
        self.allowance = kernel.Allowance(PROOF_WORK)
        self.usable = [list(self.edges_from(0, place)) for place in range(_states(grammar.rules[0].edges))]
        self.begins: dict[int, Ranges] = {}

    def holds(self) -> bool:
        beside = self.usable_together()
        if beside is None:
            return False
        texts = {symbol for symbol in beside if symbol >= 0}
        inside = union([each for index, each in enumerate(self.expressions) if index not in texts])
        for symbol, target in {(edge.symbol, edge.target) for edges in self.usable for edge in edges}:
            assert symbol is not None
            rivals = union([self.expression(other) for other in beside[symbol]]) if symbol >= 0 else inside
            lexemes = {symbol} if symbol >= 0 else self.outermost(~symbol, last=True)
            for follower in {edge.symbol for edge in self.usable[target]}:
                assert follower is not None
                behind = ByteClass(self.beginnings(follower))
                for lexeme in lexemes:
                    onward = sequence(self.expression(lexeme), behind, ANY_BYTES)
                    if not asked(kernel.is_empty, Intersection((onward, rivals)), self.allowance):
                        return False
        return True

    def usable_together(self) -> dict[int, set[int]] | None:
        """Returns the symbols usable together with each symbol; None if a text and a schema may begin alike."""
        beside: dict[int, set[int]] = {}
        overlapping: dict[tuple[int, int], bool] = {}
        work = [(0, 0)]
        for one_place, other_place in work:
            pairs = [(one, other) for one in self.usable[one_place] for other in self.usable[other_place]]
            if len(work) + len(overlapping) + len(pairs) > MAX_PAIRS:
                return None
            for one, other in pairs:
                assert one.symbol is not None
                assert other.symbol is not None
                key = one.symbol, other.symbol
                beside.setdefault(one.symbol, set()).add(other.symbol)
                beside.setdefault(other.symbol, set()).add(one.symbol)
                if key not in overlapping:
                    overlapping[key] = self.overlap(*key)
                if overlapping[key] and (one.symbol < 0) != (other.symbol < 0):
                    return None
                after = min(one.target, other.target), max(one.target, other.target)
                if overlapping[key] and after not in work:
                    work.append(after)
        return beside

    def overlap(self, one: int, other: int) -> bool:
        """Returns whether both may read one text: always for two schemas, by their first bytes for texts."""
        if one == other or (one < 0 and other < 0):
            return True
        if one >= 0 and other >= 0:
            both: tuple[Expression, ...] = self.expression(one), self.expression(other)
        else:
            both = ByteClass(self.beginnings(one)), ByteClass(self.beginnings(other))
        return not asked(kernel.is_empty, Intersection(both), self.allowance)

    def expression(self, symbol: int) -> Expression:
        return self.expressions[symbol]

    def beginnings(self, symbol: int) -> Ranges:
        """Returns the bytes that a symbol may begin with."""
        if symbol not in self.begins:
            first = {symbol} if symbol >= 0 else self.outermost(~symbol, last=False)
            self.begins[symbol] = _first_bytes(union([self.expression(each) for each in first]), self.allowance)
        return self.begins[symbol]

    def outermost(self, start: int, *, last: bool) -> set[int]:
        """Returns the terminals that a rule may begin with, or end in."""
        found: set[int] = set()
        rules = [start]
        for index in rules:
            rule = self.grammar.rules[index]
            for place in rule.accepting if last else (0,):
                for edge in self.edges_from(index, place, backwards=last):
                    assert edge.symbol is not None
                    if edge.symbol >= 0:
                        found.add(edge.symbol)
                    elif ~edge.symbol not in rules:
                        rules.append(~edge.symbol)
        return found

    def edges_from(self, index: int, place: int, *, backwards: bool = False) -> Iterator[Edge]:
        """Yields the next edges that read something, across edges that read nothing, from a state of a rule."""
        places = [place]
        for each in places:
            for edge in self.grammar.rules[index].edges:
                near, far = (edge.target, edge.source) if backwards else (edge.source, edge.target)
                if near != each:
                    continue
                if edge.symbol is not EPSILON:
                    yield edge
                if (edge.symbol is EPSILON or (edge.symbol < 0 and ~edge.symbol in self.silent)) and far not in places:
                    places.append(far)


def _states(edges: tuple[Edge, ...]) -> int:
    return 2 + max((max(edge.source, edge.target) for edge in edges), default=0)


def _first_bytes(expression: Expression, allowance: kernel.Allowance) -> Ranges:
    found: list[tuple[int, int]] = []
    waiting = [(0, 255)]
    while waiting:
        low, high = waiting.pop()
        if asked(
            kernel.is_empty, Intersection((expression, sequence(ByteClass(((low, high),)), ANY_BYTES))), allowance
        ):
            continue
        if low < high:
            middle = (low + high) // 2
            waiting += [(middle + 1, high), (low, middle)]
        elif found and found[-1][1] == low - 1:
            found[-1] = (found[-1][0], low)
        else:
            found.append((low, low))
    return tuple(found)
