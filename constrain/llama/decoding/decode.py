"""The decode loop of a single sequence: an answer decides, a context evaluates.

    prompt --prefill--> logits --choose--> tokens --decode--> logits ...
                                           mask  --compute-->

Another thread computes the mask while llama.cpp computes (``preparing``). Observers may need the logits before every
token: forced tokens are then evaluated in the same groups, with logits after each.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol, TypeVar

from constrain.llama.threads.preparing import while_preparing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.llama.binding import Candidates
    from constrain.llama.decoding.answer import Answer
    from constrain.llama.decoding.answer_matcher import AnswerMatcher
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

    @property
    def one_state(self) -> bool:
        """Whether the sequence has only one state, after its last token (recurrent models)."""

    def prefill(
        self,
        tokens: Sequence[int],
        deadline: float | None = None,
        *,
        n_forced: int = 0,
        read: Callable[[NDArray[np.float32]], None] | None = None,
        shared: Callable[[], int] | None = None,
    ) -> int:
        """Evaluates a prompt and ``n_forced`` tokens of the answer; returns how many tokens were known.

        ``read``: called with the logits before each of these forced tokens. ``shared``: see ``Decoding``.
        """

    def decode(self, tokens: Sequence[int], read: Callable[[NDArray[np.float32]], None] | None = None) -> None:
        """Evaluates further tokens. ``read``: called with the logits before each of them but the first."""

    def replace(self, groups: Sequence[Sequence[int]]) -> bool:
        """Makes the sequence consist of these tokens, for the logits after the last one; evaluates the new groups.

        Returns whether any group was kept.
        """

    def decode_with(self, tokens: Sequence[int], guesses: Sequence[int]) -> None:
        """Evaluates tokens and guesses together, for the logits after the last of the tokens and after each guess."""

    def remove(self, count: int) -> None:
        """Removes the last tokens."""

    def logits(self, row: int = -1) -> NDArray[np.float32]:
        """The logits after a token of the last evaluation (-1: the last), float32 of shape (n_vocab,)."""

    def sample(self, chain: Chain, row: int = -1) -> int:
        """Samples from the whole vocabulary and updates the chain."""


class Guesser(Protocol):
    """Guesses tokens for one answer (``llama.speculation.guesses.Speculation``)."""

    def extend(self, tokens: Sequence[int]) -> None:
        """Adds tokens that the answer took."""

    def restart(self, tokens: Sequence[int]) -> None:
        """Forgets all tokens, for those of a prompt and an answer."""

    def guess(self, n_tokens: int, room: int, matcher: AnswerMatcher | None) -> list[int]:
        """Returns at most ``room`` tokens that may follow, to be evaluated with ``n_tokens`` others."""

    def learn(self, n_guessed: int, n_right: int) -> None:
        """Counts how many of the last guesses came true."""


@dataclass(slots=True)
class Decoding:
    """Runs an answer on a model. ``steps`` is the loop; the attributes hold final values once it is exhausted.

    ``shared`` returns how many tokens other prompts begin with, too; their evaluation is kept on disk. ``None`` neither
    uses nor keeps anything there. ``speculation`` guesses tokens, which are evaluated along with the chosen ones;
    ``None`` for none. Not with ``needs_logits`` or questions.

    Attributes:
        n_guessed, n_right: number of guesses that were evaluated, and of the right ones.
        cached_tokens: tokens of the prompt that were evaluated before.
        prompt_seconds, generation_seconds: wall-clock time spent in the loop.
    """

    evaluator: SequenceEvaluator
    answer: Answer
    shared: Callable[[], int] | None = None
    speculation: Guesser | None = None

    n_guessed: int = field(default=0, init=False)
    n_right: int = field(default=0, init=False)
    _ahead: list[int] = field(default_factory=list, init=False)  # evaluated guesses that the answer has not taken yet
    _n_ahead: int = field(default=0, init=False)  # guesses that were evaluated with them
    _row: int = field(default=-1, init=False)  # of the logits for the next choice
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
        self._begin(tokens)
        pending: tuple[int, ...] = ()
        self.prompt_seconds = time.perf_counter() - started
        if self.speculation is not None:
            self.speculation.extend(tokens)
        yield from tokens
        held: list[int] = []
        while not answer.is_done:
            started = time.perf_counter()
            if pending:
                self._evaluate(pending)
            tokens = self._next()
            if answer.n_taken_back:
                del held[len(held) - answer.n_taken_back :]
                self._row, self._ahead, self._n_ahead = -1, [], 0
                if not answer.is_complete:
                    known = [*chain.from_iterable(answer.evaluated(len(answer.tokens) - len(tokens)))]
                    self._again(known)
                    if self.speculation is not None:
                        self.speculation.restart(known)
            pending = self._score(tokens) if answer.unscored else tokens
            self.generation_seconds += time.perf_counter() - started
            held += () if answer.is_inserting else tokens
            n_settled = len(held) - answer.n_doubtful
            yield from held[:n_settled]
            del held[:n_settled]
        self._answer_questions()

    def _evaluate(self, tokens: tuple[int, ...]) -> None:
        """Evaluates tokens that the answer took, unless they were guessed; evaluates guesses along with them."""
        speculation = self.speculation
        if speculation is None:
            self._preparing(partial(self.evaluator.decode, tokens))
            return
        speculation.extend(tokens)
        tokens = self._without_guessed(tokens)
        if not tokens:
            return
        if self._n_ahead:
            speculation.learn(self._n_ahead, self._n_ahead - len(self._ahead))
        if self._ahead:
            self.evaluator.remove(len(self._ahead))
        answer = self.answer
        self._ahead = speculation.guess(len(tokens), answer.limit - len(answer.tokens), answer.matcher)
        self._n_ahead = len(self._ahead)
        self.n_guessed += self._n_ahead
        if self._ahead:
            self._preparing(partial(self.evaluator.decode_with, tokens, self._ahead))
            self._row = len(tokens) - 1
        else:
            self._preparing(partial(self.evaluator.decode, tokens))
            self._row = -1

    def _without_guessed(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Removes the beginning that was guessed, whose logits are known; moves to the logits after it."""
        right = 0
        while right < min(len(tokens), len(self._ahead)) and tokens[right] == self._ahead[right]:
            right += 1
        self.n_right += right
        self._row += right
        self._ahead = self._ahead[right:]
        return tokens[right:]

    def _answer_questions(self) -> None:
        """Evaluates what the finished answer asks for."""
        if self.answer.questions is None or self.evaluator.one_state:
            return
        started = time.perf_counter()
        is_cheap, wanted = True, self.answer.ask()
        while wanted is not None and is_cheap:  # not if every question evaluates the whole prompt
            is_cheap = self.evaluator.replace(wanted)
            wanted = self.answer.ask(self.evaluator.logits())
        self.generation_seconds += time.perf_counter() - started

    def _begin(self, tokens: tuple[int, ...]) -> None:
        """Evaluates the prompt and the forced tokens that begin the answer."""
        answer, prefill = self.answer, self.evaluator.prefill
        if self.shared is not None:
            prefill = partial(prefill, shared=self.shared)
        if not answer.needs_logits:
            evaluate = partial(prefill, [*answer.prompt, *tokens], answer.deadline, n_forced=len(tokens))
        else:  # the logits are needed even after the deadline
            forced = tokens[:-1] if answer.is_done else tokens
            evaluate = partial(prefill, [*answer.prompt, *forced], n_forced=len(forced), read=answer.score)
        self.cached_tokens = min(self._preparing(evaluate), len(answer.prompt))
        if answer.unscored:
            answer.score(self.evaluator.logits())

    def _again(self, tokens: Sequence[int]) -> None:
        """Evaluates the last of the known tokens again, to get the logits after them."""
        self._preparing(partial(self.evaluator.prefill, tokens))

    def _preparing(self, evaluate: Callable[[], T]) -> T:
        """Evaluates while the answer prepares its next mask."""
        return while_preparing([self.answer], evaluate) if self.evaluator.leaves_a_core else evaluate()

    def _score(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Gives the answer the logits before each unscored token; returns the tokens still to be evaluated."""
        answer, evaluator = self.answer, self.evaluator
        if answer.unscored == len(tokens):  # also the first one
            answer.score(evaluator.logits())
        if not answer.unscored:
            return tokens
        together = tokens[:-1] if answer.is_done else tokens  # the logits after the last token would not be needed
        self._preparing(partial(evaluator.decode, together, answer.score))
        if answer.unscored:
            answer.score(evaluator.logits())
        return ()

    def _next(self) -> tuple[int, ...]:
        evaluator = self.evaluator
        if self.answer.start is None:
            return self.answer.take(evaluator.sample(self.answer.chain, self._row))
        return self.answer.choose(evaluator.logits(self._row), evaluator.candidates)
