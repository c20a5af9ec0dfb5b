"""A slow, simple recognizer for grammars, independent of the kernel: sets of configurations over the rules' automata.

A configuration is a rule, a state, the memory of this activation and an interned return frame. All configurations at
one byte offset are closed over edges that read nothing and over calls; terminals are matched by the derivative
matcher of ``tests/regex`` and may end wherever their expression says. A grammar that calls itself self-delimiting is
held to that: it must accept the same where a lexeme is always read as far as any usable terminal can read.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from constrain.language.grammar import TEXT_SET, Action, Edge, Grammar
from tests.support.regex.derivative_matcher import _NOTHING, _Store

Memory = tuple[Any, ...]
Configuration = tuple[int, int, Memory, int]  # rule, state, memory, frame

NO_FRAME = -1


class Interpreter:
    """One grammar, with the derivatives its texts have needed so far."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._store = _Store()
        self._roots = [self._store.translate(terminal.expression) for terminal in grammar.terminals]
        self._edges: list[dict[int, list[Edge]]] = []
        for rule in grammar.rules:
            edges: dict[int, list[Edge]] = defaultdict(list)
            for edge in rule.edges:
                edges[edge.source].append(edge)
            self._edges.append(edges)

    def accepts(self, text: bytes) -> bool:
        """Is the whole text in the language? AssertionError if a self-delimiting grammar needs lexemes cut short."""
        accepted = self._run(text, longest=False)
        if self.grammar.self_delimiting:
            assert self._run(text, longest=True) == accepted, f"not self-delimiting: {text!r}"
        return accepted

    def _run(self, text: bytes, *, longest: bool) -> bool:
        """``longest``: a lexeme goes on for as long as any usable terminal can take the next byte."""
        frames: dict[tuple[int, int, Memory, int], int] = {}
        frame_list: list[tuple[int, int, Memory, int]] = []
        start: Configuration = (0, 0, self._fresh(0), NO_FRAME)
        pending: dict[int, set[Configuration]] = defaultdict(set)
        pending[0].add(start)
        accepted = False
        for offset in range(len(text) + 1):
            stack = list(pending.pop(offset, ()))
            seen = set(stack)
            uses: list[tuple[Edge, int, Memory, int]] = []

            def reach(configuration: Configuration) -> None:
                if configuration not in seen:  # noqa: B023
                    seen.add(configuration)  # noqa: B023
                    stack.append(configuration)  # noqa: B023

            while stack:
                rule, state, memory, frame = stack.pop()
                if state in self.grammar.rules[rule].accepting:
                    if frame == NO_FRAME:
                        accepted = accepted or offset == len(text)
                    else:
                        reach(frame_list[frame])
                for edge in self._edges[rule].get(state, ()):
                    if not self._open(memory, edge):
                        continue
                    if edge.symbol is None:
                        reach((rule, edge.target, self._after(rule, memory, edge, b""), frame))
                    elif edge.symbol < 0:
                        waiting = (rule, edge.target, self._after(rule, memory, edge, b""), frame)
                        number = frames.get(waiting)
                        if number is None:
                            number = frames[waiting] = len(frame_list)
                            frame_list.append(waiting)
                        callee = ~edge.symbol
                        reach((callee, 0, self._fresh(callee), number))
                    else:
                        uses.append((edge, rule, memory, frame))
            symbols = {edge.symbol for edge, *_ in uses if edge.symbol is not None}
            lexemes = {symbol: self._ends(symbol, text, offset) for symbol in symbols}
            least = max((stop for _, stop in lexemes.values()), default=0) if longest else 0
            for edge, rule, memory, frame in uses:
                assert edge.symbol is not None
                for end in lexemes[edge.symbol][0]:
                    lexeme = text[offset:end]
                    if end >= least and not (edge.excluding >= 0 and lexeme in memory[edge.excluding]):
                        pending[end].add((rule, edge.target, self._after(rule, memory, edge, lexeme), frame))
        return accepted

    def _fresh(self, rule: int) -> Memory:
        return tuple(frozenset() if slot == TEXT_SET else 0 for slot in self.grammar.rules[rule].slots)

    def _open(self, memory: Memory, edge: Edge) -> bool:
        return all(
            condition.minimum <= memory[condition.slot]
            and (condition.maximum is None or memory[condition.slot] <= condition.maximum)
            for condition in edge.conditions
        )

    def _after(self, rule: int, memory: Memory, edge: Edge, lexeme: bytes) -> Memory:
        if not edge.actions:
            return memory
        changed = list(memory)
        for action, slot in edge.actions:
            if action is Action.INCREMENT:
                changed[slot] = min(changed[slot] + 1, self.grammar.rules[rule].slots[slot])
            else:
                changed[slot] |= {lexeme}
        return tuple(changed)

    def _ends(self, terminal: int, text: bytes, offset: int) -> tuple[list[int], int]:
        """Where the terminal matches, and how far it can read at all."""
        store, node = self._store, self._roots[terminal]
        ends = []
        for position in range(offset, len(text)):
            matched = store.nullable[node]
            if matched and position > offset:
                ends.append(position)
            node = store.derivative(node, text[position])
            if node == _NOTHING:
                return ends, position
        if store.nullable[node] and len(text) > offset:
            ends.append(len(text))
        return ends, len(text)
