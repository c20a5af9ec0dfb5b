"""The choices of an answer: how likely each chosen token was among the allowed ones, and what else was likely.

A choice is a place where the mask allows several tokens. Probabilities are those of the model's own distribution,
before biases, penalties and the temperature, restricted to the allowed tokens. Other observers read them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from constrain.generation.observers.observer import Observer
from constrain.llama.decoding.answer import TokenObserver
from constrain.llama.decoding.distribution import log_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constrain.generation.observers.observer import Observers, Written
    from constrain.llama.decoding.answer import Answer
    from constrain.llama.decoding.distribution import Distribution

COMPARED_TOKENS = 4096
"""Allowed tokens of a choice that are looked at one by one; a choice among more is one in the middle of free text."""

Origin = Literal["chosen", "forced", "healed", "given", "closing"]
"""Where a token comes from: see ``TokenTrace``."""

_KEPT = 16
"""Likeliest allowed tokens that a choice keeps."""

_LEAST_KEPT = 1e-4
"""Probability below which a token is not kept."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of an answer.

    Attributes:
        index: number of the chosen token in the answer. Where forced text follows, the tokens that stand there in the
            end may be others with the same beginning.
        token: id of the chosen token.
        logprob: natural logarithm of its probability among the allowed tokens.
        mass: natural logarithm of the probability that the model gives to all allowed tokens together.
        likely: ids of the likeliest allowed tokens, with their probabilities among the allowed ones; the likeliest
            first. Empty where more than ``COMPARED_TOKENS`` are allowed.
    """

    index: int
    token: int
    logprob: float
    mass: float
    likely: tuple[tuple[int, float], ...]


class Choices(Observer, TokenObserver):
    """Records the choices of one answer; reports ``log_mass``.

    Attributes:
        made: the choices so far, in order.
        logprobs: the logarithms of the model's own probabilities of the tokens.
    """

    needs_logits = True

    def __init__(self) -> None:
        self.made: list[Choice] = []
        self.logprobs: list[float] = []
        self._mass = self._allowed = 0.0
        self._likely: tuple[tuple[int, float], ...] = ()

    def on_mask(self, allowed: NDArray[Any], distribution: Distribution) -> None:
        """Takes the allowed tokens of a choice with their logits, before a sampler does."""
        logits = np.ascontiguousarray(allowed["logit"])
        if 1 < len(logits) <= COMPARED_TOKENS:
            self._likely, self._allowed = likeliest(allowed["id"], logits)
        else:
            self._likely, self._allowed = (), log_sum(logits)
        self._mass = min(0.0, self._allowed - distribution.total)

    def on_choice(self, number: int, token: int, distribution: Distribution) -> None:
        """Records a choice."""
        logprob = min(0.0, float(distribution.logits[token]) - self._allowed)
        self.made.append(Choice(number, token, logprob, self._mass, self._likely))

    def on_token(self, answer: Answer, number: int, distribution: Distribution) -> None:
        """Records how likely a token was."""
        self.logprobs.append(distribution.logprob(answer.tokens[number]))

    def on_cut(self, length: int) -> None:
        """Removes what stands behind the first ``length`` tokens of the answer."""
        del self.logprobs[length:]
        while self.made and self.made[-1].index >= length:
            self.made.pop()

    def at(self, index: int) -> Choice | None:
        """Returns the choice of the token with this number; ``None`` if it was not chosen. Finds late ones soon."""
        for choice in reversed(self.made):
            if choice.index <= index:
                return choice if choice.index == index else None
        return None

    def origin(self, answer: Answer, number: int) -> Origin:
        """Returns where a token of the answer comes from."""
        if number < len(answer.prefix):
            return "given"
        if answer.closing is not None and number >= answer.closing:
            return "closing"
        if answer.start is None:
            return "chosen"
        choice = self.at(number)
        return "forced" if choice is None else "chosen" if choice.token == answer.tokens[number] else "healed"

    def origins(self, answer: Answer) -> list[Origin]:
        """Returns where the tokens of the answer come from."""
        return [self.origin(answer, number) for number in range(len(answer.tokens))]

    def finished(self, answer: Answer) -> list[Choice]:
        """Returns the choices of the finished answer. In free text, each token is one, among all tokens."""
        if answer.start is not None:
            return self.made
        pairs = zip(answer.tokens, self.logprobs, strict=True)
        return [Choice(index, token, logprob, 0.0, ()) for index, (token, logprob) in enumerate(pairs)]

    def finish(self, written: Written) -> dict[str, Any]:
        """Returns the logarithm of the share of the model's probability that the constraint has left of the answer.

        Where a token was chosen, that is the probability of all allowed tokens; of other tokens, it is their own.
        """
        choices = self.finished(written.answer)
        chosen = {choice.index for choice in choices}
        forced = sum(logprob for number, logprob in enumerate(self.logprobs) if number not in chosen)
        return {"log_mass": forced + sum(choice.mass for choice in choices)}


def find_choices(others: Observers) -> Choices:
    """Returns the choices that an observer needs."""
    found = others["unbias"]  # the option that asks for nothing else
    assert isinstance(found, Choices)
    return found


def likeliest(tokens: NDArray[Any], logits: NDArray[np.float32]) -> tuple[tuple[tuple[int, float], ...], float]:
    """Returns the likeliest of some tokens, with their probabilities among these, and the ``log_sum`` of the logits.

    ``tokens``, ``logits``: ids and logits of all that are allowed, of one length.
    """
    total = log_sum(logits)
    found = np.flatnonzero(logits >= total + math.log(_LEAST_KEPT))
    order = found[np.argsort(-logits[found], kind="stable")[:_KEPT]]
    return tuple((int(tokens[place]), math.exp(float(logits[place]) - total)) for place in order), total
