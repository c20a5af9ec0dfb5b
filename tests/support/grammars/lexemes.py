"""The lexemes of a terminal, character by character: partial derivatives of Python's patterns (Antimirov 1996).

``re`` says which match it prefers; a lexer of longest matches also asks which matches there are, and how far a text is
still the beginning of one. The patterns are read by the parser of ``re`` itself.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    from re import _constants as kinds
    from re import _parser as parser
else:
    import sre_constants as kinds
    import sre_parse as parser

_CATEGORIES = {
    kinds.CATEGORY_DIGIT: r"\d",
    kinds.CATEGORY_NOT_DIGIT: r"\D",
    kinds.CATEGORY_SPACE: r"\s",
    kinds.CATEGORY_NOT_SPACE: r"\S",
    kinds.CATEGORY_WORD: r"\w",
    kinds.CATEGORY_NOT_WORD: r"\W",
}
_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT)
_DEAD = -1

Sequence = tuple[Any, ...]
"""Pairs of an operation and its argument, as ``re`` has them, but without groups and with tuples for lists."""


class Reading(NamedTuple):
    """The ends of the lexemes that begin at a place of a text, and of the longest beginning of one."""

    ends: frozenset[int]
    reach: int


class Lexemes:
    """An automaton of a pattern, built as far as texts go. A state is a set of sequences: what may follow."""

    def __init__(self, pattern: str) -> None:
        tree = parser.parse(pattern)
        if tree.state.flags & ~re.UNICODE:
            raise ValueError(f"flags are not supported: {pattern}")
        first = frozenset({_sequence(tree)})
        self._states = [first]
        self._ids = {first: 0}
        self._matching = [any(map(_nullable, first))]
        self._moves: dict[tuple[int, str], int] = {}

    def read(self, text: str, start: int) -> Reading:
        state, at, ends = 0, start, set()
        while True:
            if self._matching[state]:
                ends.add(at)
            state = self._move(state, text[at]) if at < len(text) else _DEAD
            if state == _DEAD:
                return Reading(frozenset(ends), at)
            at += 1

    def _move(self, state: int, char: str) -> int:
        if (state, char) not in self._moves:
            following = frozenset(rest for sequence in self._states[state] for rest in _after(sequence, char))
            if following and following not in self._ids:
                self._ids[following] = len(self._states)
                self._states.append(following)
                self._matching.append(any(map(_nullable, following)))
            self._moves[state, char] = self._ids.get(following, _DEAD)
        return self._moves[state, char]


def _sequence(items: Any) -> Sequence:
    found: list[Any] = []
    for kind, argument in items:
        if kind is kinds.SUBPATTERN:
            _, added, removed, part = argument
            if added or removed:
                raise ValueError("flags are not supported")
            found.extend(_sequence(part))
        elif kind is kinds.BRANCH:
            found.append((kind, tuple(map(_sequence, argument[1]))))
        elif kind in _REPEATS:
            low, high, part = argument
            found.append((kinds.MAX_REPEAT, (low, high, _sequence(part))))
        elif kind in (kinds.LITERAL, kinds.NOT_LITERAL, kinds.ANY, kinds.IN):
            found.append((kind, tuple(argument) if kind is kinds.IN else argument))
        else:
            raise ValueError(f"{kind} is not supported")
    return tuple(found)


def _nullable(sequence: Sequence) -> bool:
    for kind, argument in sequence:
        if kind is kinds.BRANCH:
            if not any(map(_nullable, argument)):
                return False
        elif kind is not kinds.MAX_REPEAT or (argument[0] and not _nullable(argument[2])):
            return False
    return True


def _after(sequence: Sequence, char: str) -> set[Sequence]:
    """What may follow the character."""
    if not sequence:
        return set()
    (kind, argument), rest = sequence[0], sequence[1:]
    if kind is kinds.BRANCH:
        return {following for part in argument for following in _after(part + rest, char)}
    if kind is not kinds.MAX_REPEAT:
        return {rest} if _takes(kind, argument, char) else set()
    low, high, part = argument
    found = _after(rest, char) if not low or _nullable(part) else set()
    if high:
        fewer = high if high is kinds.MAXREPEAT else high - 1
        again = (kind, (max(low - 1, 0), fewer, part))
        found |= {(*following, again, *rest) for following in _after(part, char)}
    return found


@cache
def _takes(kind: Any, argument: Any, char: str) -> bool:
    if kind is kinds.IN:
        negated = argument[0][0] is kinds.NEGATE
        return negated != any(_takes(*item, char) for item in argument[negated:])
    if kind is kinds.RANGE:
        return argument[0] <= ord(char) <= argument[1]
    if kind is kinds.CATEGORY:
        return re.match(_CATEGORIES[argument], char) is not None
    if kind is kinds.ANY:
        return char != "\n"
    return (ord(char) == argument) == (kind is kinds.LITERAL)
