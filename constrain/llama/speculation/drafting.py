"""Guesses of a draft model: a small model with the same tokens, which a large one is likely to agree with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import numpy as np

from constrain.errors import ModelError
from constrain.llama.binding import CANDIDATE
from constrain.llama.contexts.batch import FORCED_TOGETHER
from constrain.llama.contexts.context import Context
from constrain.llama.prompt_cache.identity import ModelFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import llama_cpp
    from numpy.typing import NDArray

    from constrain.llama.decoding.answer_matcher import AnswerMatcher
    from constrain.vocabulary.vocabulary import Vocabulary


_SMOOTHING = 0.1
"""Weight of the last choice in the mean of the seconds that choices take."""


class Drafter(Protocol):
    """Guesses one token after the other (``DraftModel``)."""

    @property
    def n_vocab(self) -> int:
        """Number of its tokens: it cannot read those beyond."""

    @property
    def seconds(self) -> float:
        """Seconds that a guess takes."""

    def follow(self, tokens: Sequence[int], deadline: float | None) -> bool:
        """Reads a text, whose beginning may be known; returns whether all of it was read before the deadline."""

    def extend(self, token: int, deadline: float | None) -> bool:
        """Reads one more token, likewise."""

    def likeliest(self, matcher: AnswerMatcher | None) -> tuple[int, float]:
        """Returns the likeliest next token that the matcher allows, and its probability."""


class DraftModel:
    """A small model that guesses tokens for another one. Its context keeps what it evaluated, for the next guess.

    Args:
        llama: the small model, with as large a context as the other.
        n_vocab: number of tokens of the other model: those beyond are never guessed.

    Attributes:
        n_vocab: number of tokens that both models have.
        evaluation_seconds: seconds of the evaluation of one token, to be set once they are known.
        llama: the ``llama_cpp.Llama``.
        context: its context.
        facts: what its costs depend on.

    Raises ``ModelError`` if the model cannot remove tokens: recurrent models have only one state.
    """

    def __init__(self, llama: llama_cpp.Llama, n_vocab: int) -> None:
        self.llama = llama
        self.context = Context(llama)
        self.facts = ModelFacts(llama)
        if not self.context.can_remove:
            raise ModelError(
                f"{llama.model_path}: a draft model must be able to remove tokens; take a model without "
                "recurrent layers and sliding windows"
            )
        self.n_vocab = min(n_vocab, self.context.n_vocab)
        self._logits = np.full(n_vocab, -np.inf, np.float32)
        self._candidates = np.empty(n_vocab, CANDIDATE)
        self._known: list[int] = []
        self.evaluation_seconds = 0.0
        self._choosing_seconds = 0.0

    @property
    def seconds(self) -> float:
        """Seconds that a guess takes: the evaluation of a token, and lately the choice."""
        return self.evaluation_seconds + self._choosing_seconds

    def follow(self, tokens: Sequence[int], deadline: float | None) -> bool:
        """Reads a text; returns whether all of it was read before ``deadline`` (``time.monotonic()``).

        What it has in common with the last one is known. Raises ``ModelError`` if llama.cpp fails.
        """
        known, self._known = self._known, []  # none if the evaluation fails
        same = min(_common(known, tokens), len(tokens) - 1)
        if same == 0 or len(tokens) - same > FORCED_TOGETHER:
            self.context.prefill(tokens, deadline)
        else:
            if same < len(known):
                self.context.remove(len(known) - same)
            self.context.decode(tokens[same:])
        self._known = list(tokens[: self.llama.n_tokens])
        return len(self._known) == len(tokens)

    def extend(self, token: int, deadline: float | None) -> bool:
        """Reads one more token; returns whether there was time."""
        if deadline is not None and time.monotonic() > deadline:
            return False
        known, self._known = self._known, []  # none if the evaluation fails
        self.context.decode([token])
        known.append(token)
        self._known = known
        return True

    def likeliest(self, matcher: AnswerMatcher | None) -> tuple[int, float]:
        """Returns the likeliest next token that the matcher allows, and its probability among those allowed.

        The probability is 0 if only tokens are allowed that the draft model does not have.
        """
        started = time.perf_counter()
        self._logits[: self.n_vocab] = self.context.logits()[: self.n_vocab]
        if matcher is None:
            logits = self._logits
            best = token = int(logits.argmax())
        else:
            count = matcher.fill_candidates(self._logits, self._candidates)
            logits = self._candidates["logit"][:count]
            best = int(logits.argmax())
            token = int(self._candidates["id"][best])
        probability = _probability(logits, best)
        self._choosing_seconds += _SMOOTHING * (time.perf_counter() - started - self._choosing_seconds)
        return token, probability


def require_same_tokens(draft: Vocabulary, model: Vocabulary, path: str) -> None:
    """Raises ``ModelError`` unless both vocabularies give the same tokens the same numbers.

    Families pad their vocabularies to different lengths; only the common part is compared.
    """
    shared = min(draft.n_vocab, model.n_vocab)
    ours, theirs = ([each.marked_bytes(number) for number in range(shared)] for each in (model, draft))
    if ours != theirs:
        number = next(number for number in range(shared) if ours[number] != theirs[number])
        raise ModelError(
            f"{path}: a draft model must have the tokens of the model, but token {number} is {theirs[number]!r} there "
            f"and {ours[number]!r} here; take a smaller model of the same family"
        )


def _probability(logits: NDArray[np.float32], number: int) -> float:
    """The probability of the candidate with the largest logit; 0 if the draft model has none of the candidates."""
    largest = logits[number]
    return 0.0 if largest == -np.inf else float(1 / np.exp(logits - largest).sum())


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of tokens with which both begin."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(number for number in range(length) if one[number] != other[number])
