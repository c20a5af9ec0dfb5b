"""Values that were rejected, and an answer that goes back and writes another one in their place.

The answer goes back to the token in which the value begins, and chooses again. Sampling is that of the model, given
that it does not write a rejected value: where tokens lead to one, the probability of a token is reduced by the share of
its continuations that end in a rejected value. These shares are known, because the value was just written.

    P(next token | no rejected value)  ~  P(next token) * (1 - P(rest of a rejected value | next token))

Other tokens can write the same value. Those behind which only rejected values can follow count with it.

Shares are those at the temperature, before samplers that leave tokens out, penalties and biases.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from constrain.llama.decoding.answer_matcher import AnswerMatcher
    from constrain.vocabulary.vocabulary import Vocabulary

_CERTAIN = 1 - 1e-12
"""Share of continuations from which on all of them count as rejected: the rest is rounding."""

_FEW = 256
"""Tokens of one choice up to which their probabilities are kept while a value is written."""

_IN_NUMBERS = b"0123456789.eE+-"


class AnswerCheck(Protocol):
    """Judges the parts of one answer while it is written (``Answer.check``)."""

    @property
    def is_due(self) -> bool:
        """Whether ``judge`` has something to judge, which may take long."""

    def judge(self, *, is_final: bool, may_go_back: bool = True) -> int | None:
        """Judges what is complete; returns how many tokens of the answer are kept, ``None`` for all.

        ``is_final``: whether the answer would end here. Raises an error if the answer may not go back (any more).
        """

    def adjust(
        self, tokens: Sequence[int], candidates: NDArray[Any], temperature: float | None, matcher: AnswerMatcher
    ) -> None:
        """Called before each choice with the answer so far; may change the logits of the candidates."""

    def chose(self, tokens: Sequence[int], token: int) -> None:
        """Called after each choice, with the chosen token."""


class Step(NamedTuple):
    """One choice while a value was written.

    Attributes:
        before: tokens of the answer between the place where the value begins and this choice.
        token: the chosen token. The answer may have written its text in other tokens.
        probability: probability of the token.
        choice: the probabilities of all candidates, if these were few.
    """

    before: Sequence[int]
    token: int
    probability: float
    choice: Weights | None


class Rejections:
    """The values that were rejected at one place: shares of what is rejected behind each token, by those before it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._shares: dict[tuple[int, ...], dict[int, float]] = {}
        self._texts: list[bytes] = []
        self._new: Sequence[Step] = ()

    def add(self, steps: Sequence[Step], text: bytes) -> None:
        """Adds a rejected value: the choices that wrote it, and its text from the place on."""
        if steps:
            self._add(steps)
        self._texts.append(text)
        self._new = steps

    def _add(self, steps: Sequence[Step]) -> None:
        """Makes the share of the last token 1, and adds its part to those of the tokens before it."""
        part = 1.0 - self.shares(steps[-1].before).get(steps[-1].token, 0.0)
        for step in reversed(steps):
            shares = self._shares.setdefault(tuple(step.before), {})
            shares[step.token] = min(1.0, shares.get(step.token, 0.0) + part)
            part *= step.probability

    def _text(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self._vocabulary.token_bytes, tokens))

    def shares(self, before: Sequence[int]) -> Mapping[int, float]:
        """Returns the share of rejected continuations of each token that leads to one, behind some tokens."""
        return self._shares.get(tuple(before), {})

    def settle(self, matcher: AnswerMatcher) -> None:
        """Adds tokens behind which only rejected values can follow, by the grammar and the budget.

        They are searched among those of the last rejected value, and where few others could be chosen, among these.
        ``matcher``: at the place where the value begins.
        """
        steps, self._new = self._new, ()
        known: dict[bytes, bool] = {}
        for number, step in enumerate(steps):
            taken = matcher.accept_many(step.before)
            if taken == len(step.before):  # it is not behind the value, where the budget has no room for it
                others = {} if step.choice is None else dict(step.choice.all())
                for token, probability in {**others, step.token: step.probability}.items():
                    if self._is_lost(matcher, self._text(step.before), token, known):
                        self._add([*steps[:number], Step(step.before, token, probability, None)])
            matcher.rollback(taken)

    def _is_lost(self, matcher: AnswerMatcher, before: bytes, token: int, known: dict[bytes, bool]) -> bool:
        """Returns whether only rejected values follow a token. ``known``: answers, by the text."""
        written = before + self._vocabulary.token_bytes(token)
        if any(_has_value(written, text, is_end=written == before) for text in self._texts):
            return True
        if written == before or not any(text.startswith(written) for text in self._texts):
            return False
        if written not in known:
            known[written] = False
            if matcher.accept(token):
                mask = np.zeros(-(-self._vocabulary.n_vocab // 32), np.uint32)
                matcher.fill_bitmask(mask)
                following = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
                known[written] = all(self._is_lost(matcher, written, each, known) for each in following)
                matcher.rollback(1)
        return known[written]


def reduce(candidates: NDArray[Any], shares: Mapping[int, float], temperature: float) -> bool:
    """Reduces the logits of candidates (``CANDIDATE``) by the shares of what is rejected behind them.

    Returns ``False`` if nothing is left.
    """
    places = np.flatnonzero(np.isin(candidates["id"], list(shares)))
    for place in places.tolist():
        share = shares[int(candidates["id"][place])]
        less = -math.inf if share >= _CERTAIN else math.log1p(-share) * (temperature or 1.0)
        candidates["logit"][place] += less
    return bool(np.isfinite(candidates["logit"]).any())


def _has_value(written: bytes, text: bytes, *, is_end: bool) -> bool:
    """Returns whether a text begins with that of a value, which is complete there."""
    if not written.startswith(text):
        return False
    return is_end or text[-1] not in _IN_NUMBERS or (len(written) > len(text) and written[len(text)] not in _IN_NUMBERS)


class Weights:
    """The probabilities of the candidates of one choice at a temperature (0: at 1), before rejections and samplers."""

    def __init__(self, candidates: NDArray[Any], temperature: float) -> None:
        self._ids = candidates["id"].copy()
        self._logits = candidates["logit"] / (temperature or 1.0)

    @property
    def are_few(self) -> bool:
        """Whether they are so few that they can be kept."""
        return len(self._ids) <= _FEW

    def of(self, token: int) -> float:
        """Returns the probability of a candidate."""
        return float(self._probabilities()[self._ids == token].sum())

    def all(self) -> Iterator[tuple[int, float]]:
        """Yields the candidates with their probabilities."""
        yield from zip(self._ids.tolist(), self._probabilities().tolist(), strict=True)

    def _probabilities(self) -> NDArray[np.float64]:
        weights = np.exp(self._logits.astype(np.float64) - self._logits.max())
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares
