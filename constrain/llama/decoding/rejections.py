"""Values that were rejected, and an answer that goes back and writes another one in their place.

The answer goes back to the token in which the value begins, and chooses again. Sampling is that of the model, given
that it does not write a rejected value: where tokens lead to one, the probability of a token is reduced by the share of
its continuations that end in a rejected value. These shares are known, because the value was just written.

    P(next token | no rejected value)  ~  P(next token) * (1 - P(rest of a rejected value | next token))

Shares are those at the temperature, before samplers that leave tokens out, penalties and biases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_CERTAIN = 1 - 1e-6
"""Share of continuations from which on all of them count as rejected: the rest is rounding."""


class AnswerCheck(Protocol):
    """Judges the parts of one answer while it is written (``Answer.check``)."""

    @property
    def is_due(self) -> bool:
        """Whether ``judge`` has something to judge, which may take long."""

    def judge(self, *, is_final: bool, may_go_back: bool = True) -> int | None:
        """Judges what is complete; returns how many tokens of the answer are kept, ``None`` for all.

        ``is_final``: whether the answer would end here. Raises an error if the answer may not go back (any more).
        """

    def adjust(self, tokens: Sequence[int], candidates: NDArray[Any], temperature: float | None) -> None:
        """Called before each choice with the answer so far; may change the logits of the candidates."""

    def chose(self, tokens: Sequence[int], token: int) -> None:
        """Called after each choice, with the chosen token."""


@dataclass(slots=True)
class _Branch:
    """Rejected continuations behind one token: their share of all of its continuations, and where they go on."""

    share: float = 0.0
    after: dict[int, _Branch] = field(default_factory=dict)


class Rejections:
    """The values that were rejected at one place, as a tree of their tokens."""

    def __init__(self) -> None:
        self._first: dict[int, _Branch] = {}

    def add(self, tokens: Sequence[int], probabilities: Sequence[float]) -> None:
        """Adds the tokens of a rejected value; ``probabilities``: of each of them, after those before it."""
        branches = self._first
        for number, token in enumerate(tokens):
            branch = branches.setdefault(token, _Branch())
            branch.share = min(1.0, branch.share + math.prod(probabilities[number + 1 :]))
            branches = branch.after

    def shares(self, path: Sequence[int]) -> Mapping[int, float]:
        """Returns the share of rejected continuations of each token that leads to one, behind the tokens ``path``."""
        branches = self._first
        for token in path:
            branch = branches.get(token)
            if branch is None:
                return {}
            branches = branch.after
        return {token: branch.share for token, branch in branches.items()}


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


class Weights:
    """The probabilities of the candidates of one choice at a temperature (0: at 1), before rejections and samplers."""

    def __init__(self, candidates: NDArray[Any], temperature: float) -> None:
        self._ids = candidates["id"].copy()
        self._logits = candidates["logit"] / (temperature or 1.0)

    def of(self, token: int) -> float:
        """Returns the probability of a candidate."""
        weights = np.exp(self._logits - self._logits.max())
        return float(weights[self._ids == token].sum() / weights.sum(dtype=np.float64))
