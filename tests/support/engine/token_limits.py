"""A slow judge of limits on the tokens of lexemes, by their definition.

A grammar of one rule is read byte by byte: each terminal is a deterministic automaton, and a lexeme is the longest that
any of them can read. A token counts for the lexeme in which its first byte is. After each token, a terminal is no
longer read if its text cannot be completed, alone, in the tokens that its limit leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from constrain import kernel
from constrain.language.grammar import Grammar, Terminal

MAX_STATES = 1_000


@dataclass(frozen=True)
class Position:
    """The states of the rule before the current lexeme, the terminals that it may become, and its tokens.

    ``ended``: terminals that are no longer read; they still take bytes.
    """

    states: frozenset[int]
    lexeme: tuple[tuple[int, int], ...]
    ended: frozenset[int] = frozenset()
    used: int = 0
    is_fresh: bool = True


class Automaton:
    """The deterministic automaton of a terminal, and the fewest tokens from each state to a match."""

    def __init__(self, terminal: Terminal, tokens: Sequence[bytes]) -> None:
        found = kernel.automaton(terminal.expression, MAX_STATES)
        assert found is not None
        self.accepting = [accepting for accepting, _ in found]
        self.steps: list[dict[int, int]] = [
            {byte: target for target, ranges in edges for first, last in ranges for byte in range(first, last + 1)}
            for _, edges in found
        ]
        self.fewest = self._fewest(tokens)

    def read(self, state: int, text: bytes) -> int | None:
        for byte in text:
            if byte not in self.steps[state]:
                return None
            state = self.steps[state][byte]
        return state

    def _fewest(self, tokens: Sequence[bytes]) -> list[float]:
        fewest = [0 if accepting else float("inf") for accepting in self.accepting]
        after = [{self.read(state, token) for token in tokens if token} - {None} for state in range(len(fewest))]
        changed = True
        while changed:
            changed = False
            for state, ends in enumerate(after):
                least = min((fewest[end] + 1 for end in ends if end is not None), default=float("inf"))
                if least < fewest[state]:
                    fewest[state], changed = least, True
        return fewest


class Judge:
    """Reads tokens under the limits of a grammar of one rule, whose edges read terminals."""

    def __init__(self, grammar: Grammar, tokens: Sequence[bytes]) -> None:
        (self.rule,) = grammar.rules
        self.tokens = tokens
        self.automata = [Automaton(terminal, tokens) for terminal in grammar.terminals]
        self.limits: Mapping[int, int] = {
            index: terminal.max_tokens
            for index, terminal in enumerate(grammar.terminals)
            if terminal.max_tokens is not None
        }
        self.after = cache(self._after)

    def start(self) -> Position:
        return self._at(frozenset({0}))

    def _at(self, states: frozenset[int]) -> Position:
        usable = {edge.symbol for edge in self.rule.edges if edge.source in states and edge.symbol is not None}
        return Position(states, tuple((terminal, 0) for terminal in sorted(usable)))

    def _end(self, at: Position) -> Position | None:
        """Behind the lexeme, if it may end here."""
        matched = {
            terminal
            for terminal, state in at.lexeme
            if self.automata[terminal].accepting[state] and terminal not in at.ended
        }
        targets = {e.target for e in self.rule.edges if e.source in at.states and e.symbol in matched}
        return self._at(frozenset(targets)) if targets and not at.is_fresh else None

    def may_end(self, at: Position) -> bool:
        behind = at if at.is_fresh else self._end(at)
        return behind is not None and not behind.states.isdisjoint(self.rule.accepting)

    def _after(self, at: Position, token: int) -> Position | None:
        """The position after a token; None if the token is not allowed."""
        used = at.used
        counts = True  # the token begins in the lexeme
        for place, byte in enumerate(self.tokens[token]):
            longer = self._longer(at, byte)
            if not longer:
                behind = self._end(at)
                if behind is None or not (longer := self._longer(behind, byte)):
                    return None
                at, used, counts = behind, 0, place == 0
            at = Position(at.states, longer, at.ended, used, is_fresh=False)
        return self._settled(at, used + counts)

    def _longer(self, at: Position, byte: int) -> tuple[tuple[int, int], ...]:
        steps = ((terminal, self.automata[terminal].steps[state].get(byte)) for terminal, state in at.lexeme)
        return tuple((terminal, state) for terminal, state in steps if state is not None)

    def _settled(self, at: Position, used: int) -> Position | None:
        ended = {
            terminal
            for terminal, state in at.lexeme
            if terminal in self.limits and self.automata[terminal].fewest[state] > self.limits[terminal] - used
        } | (at.ended & {terminal for terminal, _ in at.lexeme})
        if len(ended) == len(at.lexeme):
            return None
        return Position(at.states, at.lexeme, frozenset(ended), used, is_fresh=False)

    def mask(self, at: Position, eos: int) -> list[bool]:
        """Of every token: is it allowed?"""
        return [
            self.may_end(at) if token == eos else bool(text) and self.after(at, token) is not None
            for token, text in enumerate(self.tokens)
        ]
