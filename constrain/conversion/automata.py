"""Regular expressions as rules over single characters: one rule for each state of an automaton."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from constrain.engine import core
from constrain.regex.classes import normalize

if TYPE_CHECKING:
    from constrain.language.tree import Expression, Ranges

    _Steps = list[list[tuple[int, Ranges]]]

MAX_EXCEPTION_STATES = 500
"""States of an exception of an EBNF grammar that is written as rules. Beyond: GrammarError."""

_LEADS = ((0xC2, 0xDF, 1), (0xE0, 0xEF, 2), (0xF0, 0xF4, 3))
"""Bytes that begin a character, and how many follow (Unicode, table 3-7)."""


class State(NamedTuple):
    """A state between characters: whether a text may end there, and the characters that lead to other states."""

    is_end: bool
    ways: dict[int, Ranges]


def character_states(expression: Expression) -> dict[int, State] | None:
    """Returns the states of an expression whose texts are UTF-8; 0 is the start. None if there are too many."""
    automaton = core.automaton(expression, MAX_EXCEPTION_STATES)
    if automaton is None:
        return None
    steps: _Steps = [[(target, tuple(ranges)) for target, ranges in ways] for _, ways in automaton]
    found: dict[int, State] = {}
    waiting = [0]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found[at] = State(automaton[at][0], _ways(steps, at))
            waiting.extend(found[at].ways)
    return found


def _ways(steps: _Steps, at: int) -> dict[int, Ranges]:
    ways: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for target, ranges in steps[at]:
        for low, high in ranges:
            if low < 0x80:
                ways[target].append((low, min(high, 0x7F)))
            for first, last, following in _LEADS:
                for lead in range(max(low, first), min(high, last) + 1):
                    base = (lead & (0x3F >> following)) << 6 * following
                    for end, codes in _endings(steps, target, following).items():
                        ways[end] += [(base + least, base + most) for least, most in codes]
    return {target: normalize(ranges) for target, ranges in ways.items()}


def _endings(steps: _Steps, at: int, following: int) -> dict[int, Ranges]:
    """Returns the states behind a begun character, with the bits of the bytes that lead there."""
    if not following:
        return {at: ((0, 0),)}
    ways: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for target, ranges in steps[at]:
        endings = _endings(steps, target, following - 1)
        for low, high in ranges:
            for byte in range(max(low, 0x80), min(high, 0xBF) + 1):
                base = (byte & 0x3F) << 6 * (following - 1)
                for end, codes in endings.items():
                    ways[end] += [(base + least, base + most) for least, most in codes]
    return {target: normalize(ranges) for target, ranges in ways.items()}
