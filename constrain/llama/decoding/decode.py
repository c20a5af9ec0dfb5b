"""The decode loop of a single sequence: an answer decides, a context evaluates.

    prompt --prefill--> logits --choose--> tokens --decode--> logits ...
                                           mask  --compute-->

Another thread computes the mask while llama.cpp computes (``preparing``). Log-probabilities need the logits before
every token: forced tokens are then evaluated together, too, but with logits after each.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from constrain.llama.threads.preparing import while_preparing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.llama.binding import Candidates
    from constrain.llama.decoding.answer import Answer
    from constrain.llama.decoding.sampler import Chain

T = TypeVar("T")


class SequenceEvaluator(Protocol):
    """The methods of a model that the loop of one sequence needs (``llama.contexts.context.Context``)."""

    @property
    def n_ctx(self) -> int:
        """Size of the context in tokens, prompt and answer together."""

    @property
    def candidates(self) -> Candidates:
        """A buffer for one candidate per token of the vocabulary."""

    @property
    def leaves_a_core(self) -> bool:
        """Whether a core is free for another thread during an evaluation."""

    def prefill(self, tokens: Sequence[int], deadline: float | None = None) -> int:
        """Evaluates a prompt; returns how many of its tokens were known."""

    def decode(self, tokens: Sequence[int]) -> None:
        """Evaluates further tokens."""

    def decode_each(self, tokens: Sequence[int]) -> int:
        """Evaluates tokens with logits after each; returns how many, if there are too many for one evaluation."""

    def logits(self, index: int = -1) -> NDArray[np.float32]:
        """The logits after the last token, or after a token of ``decode_each``: float32 of shape (n_vocab,)."""

    def sample(self, chain: Chain) -> int:
        """Samples from the whole vocabulary and updates the chain."""


@dataclass(slots=True)
class Decoding:
    """Runs an answer on a model. ``steps`` is the loop; the attributes hold final values once it is exhausted.

    Attributes:
        cached_tokens: tokens of the prompt that were evaluated before.
        prompt_seconds, generation_seconds: wall-clock time spent in the loop.
    """

    evaluator: SequenceEvaluator
    answer: Answer

    cached_tokens: int = field(default=0, init=False)
    prompt_seconds: float = field(default=0.0, init=False)
    generation_seconds: float = field(default=0.0, init=False)

    def steps(self) -> Iterator[int]:
        """Generates the tokens of the answer, without the end of generation; before them, those of a draft.

        Raises ``ModelError`` and ``BudgetError`` as ``Answer.begin`` does, before the first token.
        """
        answer = self.answer
        tokens = answer.begin(self.evaluator.n_ctx)
        if answer.is_complete:  # no token is left for the model to choose
            yield from tokens
            return
        started = time.perf_counter()
        held = list(tokens)
        if answer.logprobs is None:
            self._prefill([*answer.prompt, *tokens], answer.deadline)
            pending: tuple[int, ...] = ()
        else:
            self._prefill(answer.prompt, None)  # the logits are needed even after the deadline
            self._score_first()
            pending = tokens
        self.prompt_seconds = time.perf_counter() - started
        while True:
            if not answer.n_doubtful and not answer.unscored:
                yield from held
                held.clear()
            if self.answer.is_complete:
                return
            started = time.perf_counter()
            self._evaluate(pending)
            pending = () if answer.is_done else self._next(held)
            self.generation_seconds += time.perf_counter() - started

    def _next(self, held: list[int]) -> tuple[int, ...]:
        """Lets the answer take its next tokens, adds them to those not delivered, and scores the first of them."""
        answer, evaluator = self.answer, self.evaluator
        if answer.start is None:
            tokens = answer.take(evaluator.sample(answer.chain))
        else:
            tokens = answer.choose(evaluator.logits(), evaluator.candidates)
        if answer.n_taken_back:
            held.clear()
            if not answer.is_complete:
                self._again([*answer.preceding, *answer.tokens[: len(answer.tokens) - len(tokens)]])
        self._score_first()
        held += tokens
        return tokens

    def _evaluate(self, tokens: tuple[int, ...]) -> None:
        """Evaluates tokens that the answer took, and scores the unscored ones after the first of them."""
        answer, evaluator = self.answer, self.evaluator
        if tokens and not answer.unscored:
            self._preparing(lambda: evaluator.decode(tokens))
            return
        if answer.is_done:
            tokens = tokens[:-1]  # the logits after the last one are not needed
        while tokens:
            count = self._preparing(partial(evaluator.decode_each, tokens))
            for index in range(min(count, answer.unscored)):
                answer.score(evaluator.logits(index))
            tokens = tokens[count:]

    def _score_first(self) -> None:
        """Gives the answer the logits before the first unscored token, if there is one."""
        if self.answer.unscored:
            self.answer.score(self.evaluator.logits())

    def _prefill(self, tokens: Sequence[int], deadline: float | None) -> None:
        known = self._preparing(lambda: self.evaluator.prefill(tokens, deadline))
        self.cached_tokens = min(known, len(self.answer.prompt))

    def _again(self, tokens: Sequence[int]) -> None:
        """Evaluates the last of the known tokens again, to get the logits after them."""
        self._preparing(lambda: self.evaluator.prefill(tokens))

    def _preparing(self, evaluate: Callable[[], T]) -> T:
        """Evaluates while the answer prepares its next mask."""
        return while_preparing([self.answer], evaluate) if self.evaluator.leaves_a_core else evaluate()
