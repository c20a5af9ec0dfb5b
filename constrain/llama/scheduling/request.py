"""Requests to the scheduler, and the scheduler's record of each."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from constrain.llama.contexts.batch import Tokens
    from constrain.llama.contexts.slots import Slot
    from constrain.llama.decoding.answer import Answer
    from constrain.llama.scheduling.deciding import Decision


def _ignore(*_: object) -> None:
    pass


@dataclass(eq=False, slots=True)
class Request:
    """One answer to be generated.

    Attributes:
        answer: decides the tokens.
        receive: called with new tokens, from the thread that drives the model; an error it raises ends this request
            only.
        timeout: seconds after its first step at which the answer is brought to its end; ``None`` for no limit.
        partition: requests of one partition share evaluated prompts; other partitions cannot tell what was asked.
        shared: function that returns how many tokens other prompts begin with, too; their evaluation is kept on disk.
            ``None`` neither uses nor keeps anything there.
        tell_progress: called after each piece of the prompt, from the thread that drives the model, with the number of
            tokens of the prompt that are evaluated, and the seconds since the first step.
        begun: set when the request gets a slot.
        done: set when the answer is complete, or to the error that ended it. Cancelling it, from any thread, takes the
            request out of the model before the next step.
        cached_tokens: tokens of the prompt that needed no evaluation.
        queue_seconds, prompt_seconds, generation_seconds: wall-clock time until the first step, from there until the
            first token is chosen, and from there to the end.
    """

    answer: Answer
    receive: Callable[[tuple[int, ...]], None] = _ignore
    timeout: float | None = None
    partition: str = ""
    shared: Callable[[], int] | None = None
    tell_progress: Callable[[int, float], None] = field(default=_ignore, init=False)
    begun: Future[None] = field(default_factory=Future, init=False)
    done: Future[None] = field(default_factory=Future, init=False)
    cached_tokens: int = field(default=0, init=False)
    queue_seconds: float = field(default=0.0, init=False)
    prompt_seconds: float = field(default=0.0, init=False)
    generation_seconds: float = field(default=0.0, init=False)


@dataclass(eq=False, slots=True)
class Scheduled:
    """A request in the scheduler.

    Attributes:
        first: forced tokens at the start of the answer; the model is not asked for them.
        buffer: int32 of shape (n_ctx,); its first ``end`` tokens are the prompt and the answer so far.
        goal: number of these tokens to evaluate: all, but not the last one of a complete answer.
        first_read: number of the first token after which logits may be read: the one before the tokens added last.
        group_ends: where each group ends that is still to be evaluated for a complete answer (``replace``).
        held: tokens taken but not delivered yet, because they are not scored or may be taken back.
        slot: the slot in which the sequence is evaluated; ``None`` while it waits.
        kept_end: number of tokens after which the state is kept on disk; 0 for none.
        read: number of tokens of the prompt that were evaluated in pieces.
        leader: another sequence that is about to evaluate the first ``shared`` tokens of this one, which waits for it.
        decision: the choice of the next tokens, or of what to ask, while a thread of its own makes it.
        go_on: called with a function that returns the decision, or raises its error.
        since: ``time.perf_counter()`` when the request was queued, began, or chose its first token.
    """

    request: Request
    first: tuple[int, ...]
    buffer: Tokens
    end: int = 0
    goal: int = 0
    first_read: int = 0
    group_ends: list[int] = field(default_factory=list)
    held: tuple[int, ...] = ()
    slot: Slot | None = None
    kept_end: int = 0
    read: int = 0
    leader: Scheduled | None = None
    shared: int = 0
    decision: Decision[Any] | None = None
    go_on: Callable[[Callable[[], Any]], None] | None = None
    since: float = field(default_factory=time.perf_counter)
    begun: bool = False
    chosen: bool = False

    @property
    def wanted(self) -> Tokens:
        """Prompt and answer so far, as a view."""
        return self.buffer[: self.end]

    @property
    def reusable(self) -> Tokens:
        """Tokens that may be taken over from other sequences: none after a position whose logits are needed."""
        return self.buffer[: self.end - self.request.answer.unscored]

    @property
    def active_slot(self) -> Slot:
        """The slot of an active sequence."""
        assert self.slot is not None
        return self.slot

    @property
    def pending(self) -> int:
        """Number of tokens to evaluate before the next choice, or before the end of a complete answer."""
        return self.goal - self.active_slot.length

    @property
    def waits(self) -> bool:
        """Whether the sequence waits for its leader or for a decision."""
        return self.leader is not None or self.decision is not None

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed and no evaluation is needed to end the answer."""
        answer = self.request.answer
        if self.decision is not None:
            return False
        return answer.deadline is not None and not answer.needs_logits and time.monotonic() > answer.deadline

    def outputs(self, count: int) -> int:
        """After how many of the next ``count`` tokens logits are read, for scores or the next choice: the last ones."""
        first = self.end - 1 - self.request.answer.unscored
        return max(0, min(count, self.active_slot.length + count - first))

    def piece(self, count: int) -> tuple[Slot, Tokens, int]:
        """The next ``count`` tokens to evaluate, as ``Slots.evaluate`` takes them."""
        slot = self.active_slot
        return slot, self.buffer[slot.length : slot.length + count], self.outputs(count)

    def append(self, tokens: Sequence[int]) -> None:
        """Adds tokens to evaluate: the prompt, or tokens that the answer took."""
        if len(tokens):
            self.first_read = max(self.end, len(self.request.answer.prompt)) - 1
        self.buffer[self.end : self.end + len(tokens)] = tokens
        self.end += len(tokens)
        self.goal = self.end

    def forget(self, count: int) -> None:
        """Removes the last ``count`` tokens, which were not delivered."""
        self.end -= count
        self.goal = self.end
        self.held = self.held[: len(self.held) - count]

    def replace(self, groups: Sequence[Sequence[int]]) -> int:
        """Has other tokens evaluated in place of the answer's, group by group; returns how many need no evaluation."""
        from constrain.llama.contexts.stored_states import match_groups  # it needs llama.cpp, and few answers need it

        tokens, known, self.group_ends = match_groups(self.active_slot.tokens, groups)
        self.buffer[: len(tokens)] = tokens
        self.first_read = known - 1
        self.next_group()
        return known

    def next_group(self) -> bool:
        """Has the next group of other tokens evaluated; returns whether there is one."""
        if self.group_ends:
            self.end = self.goal = self.group_ends.pop(0)
            return True
        return False

    def settle(self, error: BaseException | None = None) -> None:
        """Sets ``done``: complete, or with an error; does nothing for a cancelled request."""
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

    def tell_progress(self) -> None:
        """Tells how much of the prompt is evaluated."""
        done = min(self.active_slot.length, len(self.request.answer.prompt))
        self.request.tell_progress(done, time.perf_counter() - self.since)

    def lap(self) -> float:
        """Returns the seconds since the last call and restarts the clock."""
        before, self.since = self.since, time.perf_counter()
        return self.since - before


class Evaluation(NamedTuple):
    """Sequences to evaluate together.

    Attributes:
        members: the sequences in the order of their slots, with the number of their tokens.
        along: numbers of idle slots that take as many tokens along.
    """

    members: list[tuple[Scheduled, int]]
    along: tuple[int, ...] = ()
