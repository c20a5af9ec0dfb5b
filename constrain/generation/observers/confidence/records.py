"""What ``confidence`` reports: the parts of an answer, and the other values that each might have had."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from constrain.notebooks import cut, one_line


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


@dataclass(frozen=True, slots=True, repr=False)
class FieldConfidence:
    """A part of an answer, with its probabilities. All logarithms are natural ones.

    A token that spells the end of one part and the beginning of the next counts for both.

    Attributes:
        value: JSON value of the part; the text of an answer that is not JSON.
        begin, end: span of the part in the text of the answer, in characters.
        tokens: numbers of its tokens in ``Completion.tokens``.
        logprob: logarithm of the probability of the tokens in the model's own distribution.
        constrained_logprob: logarithm of the probability of the choices among what the constraint allows. Forced text
            counts as certain. Of a number, the choice to end it counts, too.
        log_mass: logarithm of the share of the probability that the constraint has left: the sum, over the tokens, of
            the logarithms of the probabilities that the model gives to all allowed tokens together.
        choices: number of tokens that were chosen among several; 0 for a part that was forced.
        alternatives: values that the part might have had, the likeliest first, its own among them: of enums, booleans,
            null and short numbers. Empty where they cannot be told apart.
    """

    value: Any
    begin: int
    end: int
    tokens: range
    logprob: float
    constrained_logprob: float
    log_mass: float
    choices: int
    alternatives: tuple[Alternative, ...] = ()

    def __repr__(self) -> str:
        return f"FieldConfidence(value={cut(self.value)}, probability={self.probability:.4f}, mass={self.mass:.4f})"

    @property
    def probability(self) -> float:
        """The probability of the part, as it was spelled, among what the constraint allows; 1 if it was forced."""
        return math.exp(self.constrained_logprob)

    @property
    def mass(self) -> float:
        """The share of the probability that the constraint left; if it is small, the model wanted something else."""
        return math.exp(min(0.0, self.log_mass))  # rounding may leave a sum slightly above 0

    @property
    def is_forced(self) -> bool:
        """Whether no token of the part was chosen among several."""
        return self.choices == 0
