"""Other values that a scalar of an answer might have had, with their probabilities.

Each likely token of a choice is followed as far as the constraint forces the text after it. Where this gives a whole
value, the token's probability belongs to that value; all tokens that lead to the same value add up. What cannot be
told apart in this way, without asking the model again, is left out.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from constrain.engine.constraint import Matcher
    from constrain.llama.decoding.chosen import Choice

_LEAST_TOLD_APART = 0.9
"""Probability that the values found must have together; otherwise the part has no alternatives."""

_MOST_LOOKED_AT = 4096
"""Allowed tokens that are looked at to find out whether a number may go on. Beyond: it may."""

_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|true|false|null|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?')
_NUMBER_BYTES = frozenset(b"0123456789.eE+-")
_BLANKS = b" \t\n\r"


@dataclass(frozen=True, slots=True)
class Alternative:
    """A value that a part of an answer might have had.

    Attributes:
        value: JSON value.
        probability: probability of the value among what the constraint allows, given the answer before it. Spellings
            that differ in their tokens add up.
    """

    value: Any
    probability: float


class Continuation(NamedTuple):
    """A likely token of a choice: its probability, the bytes that it leads to, and whether a number may go on there."""

    token: int
    probability: float
    text: bytes
    may_go_on: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """A finished answer, to be walked through once more.

    Attributes:
        start: makes the matcher that the answer began with.
        bitmask: makes a mask, uint32 of shape (n_words,).
        tokens: token ids of the answer.
        token_bytes: returns the bytes of a token.
        eos: tokens that end a generation.
    """

    start: Callable[[], Matcher]
    bitmask: Callable[[], Any]
    tokens: Sequence[int]
    token_bytes: Callable[[int], bytes]
    eos: Collection[int]

    def follow(self, choices: Collection[Choice]) -> dict[int, list[Continuation]]:
        """Returns, by number of the token, where the likely tokens of some choices lead."""
        wanted = {choice.index: choice for choice in choices if choice.likely}
        found: dict[int, list[Continuation]] = {}
        if not wanted:
            return found
        matcher = self.start()
        last = max(wanted)
        for index in range(last + 1):
            if index in wanted:
                found[index] = [self._lead(matcher, *each) for each in wanted[index].likely]
            if index < last:
                matcher.accept(self.tokens[index])
        return found

    def _lead(self, matcher: Matcher, token: int, probability: float) -> Continuation:
        if token in self.eos:
            return Continuation(token, probability, b"", may_go_on=False)
        fork = matcher.fork()
        fork.accept(token)
        spelled = self.token_bytes(token)
        forced, _ = fork.forced_after(spelled)
        may_end_a_number = not forced and spelled[-1:] in _NUMBER_ENDS
        return Continuation(token, probability, spelled + forced, may_end_a_number and self._may_go_on(fork))

    def _may_go_on(self, matcher: Matcher) -> bool:
        """Returns whether a number that has just been written may have further characters."""
        if matcher.is_finished:
            return False
        mask = self.bitmask()
        matcher.fill_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if len(allowed) > _MOST_LOOKED_AT:
            return True
        return any(self.token_bytes(int(token))[:1] in _NUMBER_STARTS for token in allowed)


_NUMBER_STARTS = frozenset(bytes([byte]) for byte in _NUMBER_BYTES)
_NUMBER_ENDS = frozenset(bytes([byte]) for byte in b"0123456789")


def find_alternatives(
    data: bytes,
    span: tuple[int, int],
    choices: Sequence[Choice],
    positions: Sequence[int],
    leads: Mapping[int, list[Continuation]],
) -> tuple[Alternative, ...]:
    """Returns the values that a scalar might have had, with its own; none if they cannot be told apart.

    Args:
        data: bytes of the answer.
        span: where the scalar begins and ends in them.
        choices: choices that decided on the scalar, in order.
        positions: where each token of the answer begins in ``data``.
        leads: where the likely tokens of each choice lead (``Replay.follow``).
    """
    if not choices:
        return ()
    begin, end = span
    own = read_scalar(data[begin:end], may_go_on=False)
    if own is None:
        return ()
    totals: dict[str, float] = {}
    before = 1.0
    for choice in choices:
        at = positions[choice.index]
        for each in leads.get(choice.index, ()):
            if each.token == choice.token:
                continue
            text = data[begin:at] + each.text if at >= begin else _behind(each.text, data[at:begin])
            value = None if text is None else read_scalar(text, may_go_on=each.may_go_on)
            if value is not None:
                totals[value] = totals.get(value, 0.0) + before * each.probability
        before *= math.exp(choice.logprob)
    totals[own] = totals.get(own, 0.0) + before
    if sum(totals.values()) < _LEAST_TOLD_APART:
        return ()
    ordered = sorted(totals.items(), key=lambda item: -item[1])
    return tuple(Alternative(json.loads(value), probability) for value, probability in ordered)


def read_scalar(text: bytes, *, may_go_on: bool) -> str | None:
    """Returns the spelling of the scalar that a JSON text begins with, in one form for equal values.

    None if the text begins with no whole scalar. ``may_go_on``: whether a number at the end of the text may go on.
    """
    written = text.decode("utf-8", "replace")
    match = _SCALAR.match(written)
    if match is None:
        return None
    spelled = match[0]
    is_number = spelled[0] in "-0123456789"
    rest = written[match.end() :]
    if is_number and (may_go_on if not rest else rest[0].encode()[0] in _NUMBER_BYTES):
        return None
    try:
        return json.dumps(json.loads(spelled))
    except ValueError:
        return None


def _behind(text: bytes, gap: bytes) -> bytes | None:
    """Returns what stands behind a gap in a text that begins with it, but for white space; None if it does not."""
    if text.startswith(gap):
        return text[len(gap) :]
    if b'"' in gap:
        return None
    for mark in gap.strip(_BLANKS):
        text = text.lstrip(_BLANKS)
        if text[:1] != bytes([mark]):
            return None
        text = text[1:]
    return text.lstrip(_BLANKS)
