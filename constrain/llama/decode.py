"""The decode loop: one token after the other, chosen from the allowed ones only.

    prompt --prefill--> logits --allowed candidates--> sampler chain --token--> matcher
                          ^                                               |
                          +------------------ decode <--------------------+

A constrained answer always ends. With every token taken it is made sure that the shortest completion known from
there still fits into the tokens left; a token after which it would not is taken back, and the completion known
before is written instead. The same completion ends an answer whose time is up. It needs no evaluation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from constrain._errors import BudgetError, ModelError
from constrain.llama.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from constrain.llama.binding import Candidates
    from constrain.llama.sampler import Chain

FinishReason = Literal["stop", "length", "timeout"]
"""Why an answer ended: by itself or at a stop text; at ``max_tokens``; at the ``timeout``."""


class Matcher(Protocol):
    """What the loop needs of ``constrain.Matcher``."""

    @property
    def is_finished(self) -> bool:
        """Whether nothing can follow."""

    def fill_candidates(self, logits: Any, out: Any, /) -> int:
        """Writes the allowed tokens with their logits into ``out`` (``CANDIDATE``), by id; returns how many."""

    def accept(self, token_id: int, /) -> bool:
        """Takes a token; ``False`` if it is not allowed."""

    def rollback(self, n: int, /) -> None:
        """Takes back the last ``n`` tokens."""

    def shortest_completion(self) -> bytes:
        """Bytes after which the answer is complete."""


class Evaluator(Protocol):
    """What the loop needs of a model (``constrain.llama.context.Context``)."""

    @property
    def n_ctx(self) -> int:
        """Tokens of context, prompt and answer."""

    @property
    def candidates(self) -> Candidates:
        """A buffer for as many candidates as there are tokens."""

    def prefill(self, tokens: Sequence[int], deadline: float | None = None) -> int:
        """Evaluates a prompt; returns how much of it was known."""

    def decode(self, token: int) -> None:
        """Evaluates one more token."""

    def logits(self) -> NDArray[np.float32]:
        """The logits after the last token, float32 of shape (n_vocab,)."""

    def sample(self, chain: Chain) -> int:
        """Chooses from the whole vocabulary, and tells the chain."""


def _never(_: bytes) -> bool:
    return False


@dataclass(slots=True)
class Decoding:
    """One answer on its way. ``steps`` runs the loop; the rest is what is known of it so far.

    Attributes:
        max_tokens: the most tokens to generate, end of generation not counted; ``None`` for what the context holds.
        deadline: the ``time.monotonic()`` after which the answer is brought to its end.
        wants_stop: called with the bytes of each token as it is taken; ``True`` ends the answer.
        finish_reason, cached_tokens, prompt_seconds, generation_seconds: known once ``steps`` is exhausted; the
            tokens of the prompt that were evaluated before, and the wall-clock time spent in here.
    """

    evaluator: Evaluator
    prompt: Sequence[int]
    chain: Chain
    matcher: Matcher | None
    eos: Collection[int]
    encode: Callable[[bytes], list[int]]
    token_bytes: Callable[[int], bytes]
    max_tokens: int | None = None
    deadline: float | None = None
    wants_stop: Callable[[bytes], bool] = _never

    finish_reason: FinishReason = field(default="stop", init=False)
    cached_tokens: int = field(default=0, init=False)
    prompt_seconds: float = field(default=0.0, init=False)
    generation_seconds: float = field(default=0.0, init=False)
    _plan: Plan = field(default=Plan(b"", ()), init=False)

    def steps(self) -> Iterator[int]:
        """Generates the tokens of the answer, without the end of generation.

        Raises ``ModelError`` if the prompt leaves no room in the context, and ``BudgetError`` if ``max_tokens`` is
        too small for any answer, both before the first token.
        """
        room = self._room()
        source = self._free(room) if self.matcher is None else self._constrained(self.matcher, room)
        started = time.perf_counter()
        self.cached_tokens = self.evaluator.prefill(self.prompt, self.deadline)
        self.prompt_seconds = time.perf_counter() - started
        while True:
            started = time.perf_counter()
            token = next(source, None)
            self.generation_seconds += time.perf_counter() - started
            if token is None:
                return
            yield token

    def _room(self) -> int:
        """The most tokens that may be generated; checks that an answer fits."""
        n_ctx = self.evaluator.n_ctx
        room = n_ctx - len(self.prompt)
        if not self.prompt:
            raise ModelError("the prompt is empty, and the model has no token to begin a text with")
        if room < 1:
            raise ModelError(
                f"the prompt has {len(self.prompt)} tokens, but the context holds {n_ctx}, the answer included; "
                f"load the model with a larger n_ctx"
            )
        limit, name = room, f"the prompt of {len(self.prompt)} tokens leaves room for {room} in the context"
        if self.max_tokens is not None and self.max_tokens <= room:
            limit, name = self.max_tokens, f"max_tokens is {self.max_tokens}"
        if self.matcher is not None:
            text = self.matcher.shortest_completion()
            tokens = tuple(self.encode(text))
            self._plan, needed = Plan(text, tokens), len(tokens)
            if needed > limit:
                raise BudgetError(f"{name}, but the shortest answer takes {needed} tokens", needed=needed)
        return limit

    def _free(self, room: int) -> Iterator[int]:
        """Anything the model says, until it ends, is stopped, or ``room`` tokens are used up."""
        token = -1
        for position in range(room):
            if self._late():
                self.finish_reason = "timeout"
                return
            if position:
                self.evaluator.decode(token)
            token = self.evaluator.sample(self.chain)
            if token in self.eos:
                return
            stopped = self.wants_stop(self.token_bytes(token))
            yield token
            if stopped:
                return
        self.finish_reason = "length"

    def _constrained(self, matcher: Matcher, room: int) -> Iterator[int]:
        """What the matcher allows, always to a complete answer of at most ``room`` tokens."""
        token = -1
        for left in range(room - 1, -1, -1):
            if matcher.is_finished:
                return
            if self._late():
                self.finish_reason = "timeout"
                yield from self._close(matcher)
                return
            if token >= 0:
                self.evaluator.decode(token)
            token = self._choose(matcher)
            if token in self.eos:
                return
            if not (matcher.is_finished or self._keeps_within(matcher, left)):
                matcher.rollback(1)
                self.finish_reason = "length"
                yield from self._close(matcher)
                return
            self.chain.accept(token)
            stopped = self.wants_stop(self.token_bytes(token))
            yield token
            if stopped:
                yield from self._close(matcher)
                return
        if not matcher.is_finished:
            self.finish_reason = "length"

    def _choose(self, matcher: Matcher) -> int:
        """One of the allowed tokens, which the matcher is told of."""
        candidates = self.evaluator.candidates
        count = matcher.fill_candidates(self.evaluator.logits(), candidates.buffer)
        token = candidates.first() if count == 1 else self.chain.choose(candidates, count)
        self._take(matcher, token)
        return token

    def _keeps_within(self, matcher: Matcher, left: int) -> bool:
        """Whether the answer can be completed in ``left`` tokens from here, as far as is known; plans for it."""
        plan = self._plan.followed_by(matcher.shortest_completion(), left, self.encode, self.token_bytes)
        if plan is not None:
            self._plan = plan
        return plan is not None

    def _close(self, matcher: Matcher) -> Iterator[int]:
        """Writes the plan, which needs no evaluation."""
        for token in self._plan.tokens or self.encode(self._plan.text):
            self._take(matcher, token)
            self.wants_stop(self.token_bytes(token))
            yield token

    def _take(self, matcher: Matcher, token: int) -> None:
        if not matcher.accept(token):
            raise ModelError(f"the matcher refused the token {token} ({self.token_bytes(token)!r}), which it allowed")

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline
