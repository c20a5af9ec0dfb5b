"""Other values that a scalar of an answer might have had, with their probabilities.

Each likely token of a choice is followed as far as the constraint forces the text after it. Where this gives a whole
value, the token's probability belongs to that value; all tokens that lead to the same value add up. A token with which
several values begin does not say which of them follows. In enums and other parts with few values, the model is then
asked what would come next (``questions``). Tokens that remain unclear are left out.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from constrain.generation.observers.choices import COMPARED_TOKENS, likeliest
from constrain.notebooks import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from constrain.engine.constraint import Matcher
    from constrain.generation.observers.choices import Choice
    from constrain.llama.decoding.answer import Questions

_LEAST_TOLD_APART = 0.9
"""Probability that the values found must have together; otherwise the part has no alternatives."""

ALL_QUESTIONS = 32
"""The most times that the model is asked, for one answer, what would follow a token that alternatives share. Further
such tokens count towards no alternative."""

_QUESTIONS = 8
"""The most such questions about one part."""

_WORTH_ASKING = 0.01
"""Probability of a token from which on the model is asked what would follow it."""

_MOST_OPEN = 8
_MOST_OPEN_OF_NUMBERS = 2
"""Tokens worth asking about; with more of them, a part probably has countless values. Each digit of a number may be
followed by others, so fewer are asked about."""

_CONTEXT = 16
"""Tokens of the answer in front of a choice that tell how the text behind it is tokenized; more than are needed."""

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

    __repr__ = one_line


class Continuation(NamedTuple):
    """Where likely choices lead.

    Attributes:
        chosen: the token that stands in the place of a choice of the answer.
        probability: probability of the choices.
        groups: the tokens that the answer would take then, with forced ones, for each choice.
        text: the bytes that they lead to.
        may_go_on: whether a number at the end of these bytes may have further characters.
    """

    chosen: int
    probability: float
    groups: tuple[tuple[int, ...], ...]
    text: bytes
    may_go_on: bool

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of all groups."""
        return tuple(chain.from_iterable(self.groups))


@dataclass(frozen=True, slots=True)
class Replay:
    """A finished answer, to be walked through once more.

    Attributes:
        start: makes the matcher that the answer began with.
        bitmask: makes a mask, uint32 of shape (n_words,).
        tokens: token ids of the answer.
        token_bytes: returns the bytes of a token.
        eos: tokens that end a generation.
        take: returns the tokens that the answer would take if it chose one behind others, and moves the matcher
            (``Answer.follow``).
        evaluated: returns what is evaluated in front of a token, in groups (``Answer.evaluated``).
        starts: numbers of the tokens that were chosen; the tokens from one to the next were evaluated together.
    """

    start: Callable[[], Matcher]
    bitmask: Callable[[], Any]
    tokens: Sequence[int]
    token_bytes: Callable[[int], bytes]
    eos: Collection[int]
    take: Callable[[Matcher, int, Sequence[int]], list[int]]
    evaluated: Callable[[int, Iterable[int]], list[list[int]]]
    starts: Sequence[int]

    def groups(self, end: int, others: Iterable[Iterable[int]]) -> list[list[int]]:
        """Returns the prompt, the first ``end`` tokens of the answer and others, in groups as they were evaluated."""
        return [*self.evaluated(end, self.starts), *map(list, others)]

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
                found[index] = self._leads(matcher, index, wanted[index].likely)
            if not matcher.accept(self.tokens[index]):
                break  # a limit was met that the answer did not meet: what is behind is not told apart
        return found

    def after(self, index: int, asked: Continuation, logits: NDArray[np.float32]) -> list[Continuation]:
        """Returns where the tokens lead that are likely behind others in the place of token ``index``.

        ``logits``: those behind them, float32 of shape (n_vocab,).
        """
        matcher = self.start()
        before = [*self.tokens[:index], *asked.tokens]
        if matcher.accept_many(before) < len(before):
            return []
        allowed = self._allowed(matcher)
        if not 0 < len(allowed) <= COMPARED_TOKENS:
            return []
        likely, _ = likeliest(allowed, logits[allowed])
        return self._leads(matcher, index, likely, asked)

    def _leads(
        self, matcher: Matcher, index: int, likely: Iterable[tuple[int, float]], behind: Continuation | None = None
    ) -> list[Continuation]:
        """Returns where tokens lead in the place of token ``index``, or behind other ones in that place."""
        found = (self._lead(matcher, index, token, share, behind) for token, share in likely)
        return [each for each in found if each is not None]

    def _lead(
        self, matcher: Matcher, index: int, token: int, share: float, behind: Continuation | None
    ) -> Continuation | None:
        """Returns where a token leads, as ``_leads``; None if it is refused. ``share``: its probability there."""
        if behind is None:
            behind = Continuation(token, 1.0, (), b"", may_go_on=False)
        probability = behind.probability * share
        if token in self.eos:
            return behind._replace(probability=probability, may_go_on=False)
        fork = matcher.fork()
        taken = self.take(fork, token, [*self.tokens[max(0, index - _CONTEXT) : index], *behind.tokens])
        if not taken:
            return None
        groups = (*behind.groups, tuple(taken))
        spelled = self._bytes(taken)
        forced, _ = fork.forced_after(spelled)
        text = self._bytes(behind.tokens) + spelled + forced
        may_end_a_number = not forced and text[-1:] in _NUMBER_ENDS
        return Continuation(behind.chosen, probability, groups, text, may_end_a_number and self._may_go_on(fork))

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self.token_bytes, tokens))

    def _allowed(self, matcher: Matcher) -> NDArray[np.intp]:
        """Returns the tokens that a matcher allows."""
        mask = self.bitmask()
        matcher.fill_bitmask(mask)
        return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))

    def _may_go_on(self, matcher: Matcher) -> bool:
        """Returns whether a number that has just been written may have further characters."""
        if matcher.is_finished:
            return False
        allowed = self._allowed(matcher)
        if len(allowed) > COMPARED_TOKENS:
            return True
        return any(self.token_bytes(int(token))[:1] in _NUMBER_STARTS for token in allowed)


_NUMBER_STARTS = frozenset(bytes([byte]) for byte in _NUMBER_BYTES)
_NUMBER_ENDS = frozenset(bytes([byte]) for byte in b"0123456789")


class Scalar(NamedTuple):
    """A scalar of an answer, and what decided on it.

    Attributes:
        data: bytes of the answer.
        span: where the scalar begins and ends in them.
        choices: choices that decided on the scalar, in order.
        positions: where each token of the answer begins in ``data``.
    """

    data: bytes
    span: tuple[int, int]
    choices: Sequence[Choice]
    positions: Sequence[int]


class Reading(NamedTuple):
    """What other tokens in the place of a choice would make of a scalar.

    Attributes:
        number: number of the token that was chosen.
        continuation: the other tokens; their probability is that behind the answer before them.
        probability: theirs, given the answer before the scalar.
        value: spelling of the value that they lead to; None if that is not known yet.
    """

    number: int
    continuation: Continuation
    probability: float
    value: str | None


def read_others(scalar: Scalar, leads: Mapping[int, list[Continuation]]) -> Iterator[Reading]:
    """Yields what else the scalar might have become; nothing for tokens that do not belong to it.

    ``leads``: where the likely tokens of each choice lead (``Replay.follow``).
    """
    data, (begin, _), choices, positions = scalar
    before = 1.0
    for choice in choices:
        at = positions[choice.index]
        for each in leads.get(choice.index, ()):
            if each.chosen == choice.token:
                continue
            text = data[begin:at] + each.text if at >= begin else _behind(each.text, data[at:begin])
            if text is not None and text[:1] not in (b"{", b"["):
                value = read_scalar(text, may_go_on=each.may_go_on)
                yield Reading(choice.index, each, before * each.probability, value)
        before *= math.exp(choice.logprob)


def find_alternatives(scalar: Scalar, leads: Mapping[int, list[Continuation]]) -> tuple[Alternative, ...]:
    """Returns the values that a scalar might have had, with its own; none if they cannot be told apart."""
    if not scalar.choices:
        return ()
    own = read_scalar(scalar.data[slice(*scalar.span)], may_go_on=False)
    if own is None:
        return ()
    totals = {own: math.exp(sum(choice.logprob for choice in scalar.choices))}
    for each in read_others(scalar, leads):
        if each.value is not None:
            totals[each.value] = totals.get(each.value, 0.0) + each.probability
    if sum(totals.values()) < _LEAST_TOLD_APART:
        return ()
    ordered = sorted(totals.items(), key=lambda item: -item[1])
    return tuple(Alternative(json.loads(value), probability) for value, probability in ordered)


def questions(scalar: Scalar, leads: dict[int, list[Continuation]], replay: Replay, most: int) -> Questions[int]:
    """Asks what would follow the tokens with which several values of a scalar begin; adds the answers to ``leads``.

    Asks at most ``most`` times, and never about free text or numbers with too many digits. Returns how often it asked.
    """
    if not scalar.choices or not all(choice.likely for choice in scalar.choices):
        return 0
    is_number = scalar.data[scalar.span[0] : scalar.span[0] + 1] in _NUMBER_STARTS
    own = math.exp(sum(choice.logprob for choice in scalar.choices))
    most_open = _MOST_OPEN_OF_NUMBERS if is_number else _MOST_OPEN
    most = min(most, _QUESTIONS)
    for asked_before in range(most):
        others = list(read_others(scalar, leads))
        reachable = own + sum(each.probability for each in others)
        if reachable < _LEAST_TOLD_APART or find_alternatives(scalar, leads):
            return asked_before
        unknown = [each for each in others if each.value is None]
        worth = [each for each in unknown if each.probability >= _WORTH_ASKING and each.continuation.text]
        if not 0 < len(worth) <= most_open:
            return asked_before
        number, asked, _, _ = max(worth, key=lambda each: each.probability)
        logits = yield replay.groups(number, asked.groups)
        place = leads[number].index(asked)
        leads[number][place : place + 1] = replay.after(number, asked, logits)
    return most


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
