"""Requests to the scheduler, and what it keeps of each while it is on its way."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.llama.contexts.sequences import Tokens
    from constrain.llama.contexts.slots import Slot
    from constrain.llama.decoding.answer import Answer
    from constrain.llama.scheduling.deciding import Decision


def _ignore(_: tuple[int, ...]) -> None:
    pass


@dataclass(eq=False, slots=True)
class Request:
    """One answer to be generated.

    Attributes:
        answer: decides its tokens.
        receive: called with tokens as they are taken, from the thread that drives the model; what it raises ends this
            request alone.
        timeout: seconds from its first step on, after which the answer is brought to its end.
        partition: requests of one partition share what the model has read of their prompts; no other one learns of it.
        begun: set when it is its turn.
        done: set when the answer is complete, or to the error that ended it. Cancelling it, from any thread, takes the
            request out of the model before the next step.
        cached_tokens: tokens of the prompt that were known.
        queue_seconds, prompt_seconds, generation_seconds: wall-clock time until the first step, until the first token
            was chosen, and from there to the end.
    """

    answer: Answer
    receive: Callable[[tuple[int, ...]], None] = _ignore
    timeout: float | None = None
    partition: str = ""
    begun: Future[None] = field(default_factory=Future, init=False)
    done: Future[None] = field(default_factory=Future, init=False)
    cached_tokens: int = field(default=0, init=False)
    queue_seconds: float = field(default=0.0, init=False)
    prompt_seconds: float = field(default=0.0, init=False)
    generation_seconds: float = field(default=0.0, init=False)


@dataclass(eq=False, slots=True)
class Scheduled:
    """A request on its way through the scheduler.

    Attributes:
        first: tokens of the answer that are known without asking the model.
        buffer: prompt and answer so far are the first ``end`` of these tokens; int32 of shape (n_ctx,).
        goal: how many of these are evaluated when logits are wanted next: all, or those before one that is not scored.
        held: tokens that were taken, but are not handed on before they are scored.
        slot: where it is evaluated; ``None`` while it waits.
        leader: another sequence whose slot will hold the first ``shared`` tokens of this one: it is waited for.
        decision: what it takes next, while that is being decided in a thread of its own.
        since: ``time.perf_counter()`` when it was queued, begun, or chose its first token.
    """

    request: Request
    first: tuple[int, ...]
    buffer: Tokens
    end: int = 0
    goal: int = 0
    held: tuple[int, ...] = ()
    slot: Slot | None = None
    leader: Scheduled | None = None
    shared: int = 0
    decision: Decision[tuple[int, ...]] | None = None
    since: float = field(default_factory=time.perf_counter)
    begun: bool = False
    chosen: bool = False

    @property
    def wanted(self) -> Tokens:
        """Prompt and answer so far: a view."""
        return self.buffer[: self.end]

    @property
    def reusable(self) -> Tokens:
        """What others may have evaluated for it: no tokens for which the logits before them are wanted."""
        return self.buffer[: self.goal]

    @property
    def place(self) -> Slot:
        """The slot of an active sequence."""
        assert self.slot is not None
        return self.slot

    @property
    def pending(self) -> int:
        """How many tokens are to be evaluated before the next one can be chosen or scored."""
        return self.goal - self.place.length

    @property
    def waits(self) -> bool:
        """Whether there is nothing to be evaluated until something else has happened."""
        return self.leader is not None or self.decision is not None

    @property
    def is_late(self) -> bool:
        """Whether the answer is to be brought to its end without evaluation, which nothing of it needs any more."""
        answer = self.request.answer
        if self.decision is not None:
            return False
        return answer.deadline is not None and answer.logprobs is None and time.monotonic() > answer.deadline

    def piece(self, count: int) -> tuple[Slot, Tokens, bool]:
        """The next ``count`` tokens to be evaluated."""
        slot = self.place
        return slot, self.buffer[slot.length : slot.length + count], count == self.pending

    def append(self, tokens: Sequence[int]) -> None:
        """Adds tokens that are to be evaluated."""
        self.buffer[self.end : self.end + len(tokens)] = tokens
        self.end += len(tokens)
        self.goal = self.end

    def forget(self, count: int) -> None:
        """Takes back the last ``count`` tokens, which were not handed on."""
        self.end -= count
        self.goal = self.end
        self.held = ()

    def settle(self, error: BaseException | None = None) -> None:
        """Tells whoever waits that the request has ended: complete, with an error, or cancelled before."""
        request = self.request
        if self.chosen:
            request.generation_seconds = self.lap()
        elif self.begun:
            request.prompt_seconds = self.lap()
        if not request.done.set_running_or_notify_cancel():
            return
        if error is None:
            request.done.set_result(None)
        else:
            request.done.set_exception(error)

    def lap(self) -> float:
        """Seconds since the last lap."""
        before, self.since = self.since, time.perf_counter()
        return self.since - before
