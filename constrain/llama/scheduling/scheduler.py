"""Several answers at once: continuous batching on the slots of one model.

    submit --> waiting --slot--> active --tokens--> llama_decode --logits--> choose --> receive
                                   ^                                           |
                                   +-------------------------------------------+

Sequences join and leave between steps. In each step every answer that is being written gets its next tokens evaluated,
together with the others, and then pieces of the prompts, first come first served. What a prompt has in common with one
of its partition that is just being read is waited for and copied.

One thread drives the model while there is work, and ends with it; so nothing is left running when the program ends.
A choice that takes long is made in another thread (``deciding``), and its answer goes on when it is made: what is
difficult about one answer does not keep the others waiting.

An error that concerns one answer ends that answer alone. A failed evaluation ends all that are being written; those
that wait go on. Any other error is the end of the scheduler: all its requests end with a ``ModelError``, its evaluator
is closed, and ``has_failed`` tells the model to make another one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from constrain.errors import ModelError
from constrain.llama.binding import Candidates
from constrain.llama.contexts.aside import ALWAYS_EVALUATED, reusable_prefix
from constrain.llama.contexts.slots import Slots
from constrain.llama.scheduling.deciding import Decision, await_all, await_any
from constrain.llama.scheduling.request import Scheduled
from constrain.llama.threads.openmp import release_workers
from constrain.llama.threads.preparing import while_preparing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from constrain.llama.contexts.slots import Evaluator
    from constrain.llama.decoding.answer import Answer
    from constrain.llama.scheduling.request import Request

_SHORT = 64
"""Tokens to evaluate up to which a sequence is served before the prompts: the next token, and forced ones."""

_RUNS = 4
"""So often an answer may get forced tokens evaluated before the others go on."""

_PATIENCE = 0.02
"""Seconds that others wait for choices: about what the evaluation of a token or two takes."""

_LOOK_SECONDS = 0.02
"""While there is nothing but choices to wait for, others may come, or be cancelled: so often that is looked for."""

_PROMPT_SHARE = 4
"""While answers are being written, prompts get this part (one fourth) of a batch, so that no answer stands still."""


class Scheduler:
    """Runs requests on an evaluator, as many at once as it has sequences. Safe to use from any thread.

    Without ``keep_prompts`` every prompt is evaluated from its beginning, whatever the others are. Without
    ``batch_invariant`` runs of tokens are evaluated in the company that costs least; with it, as they would be alone.

    Attributes:
        n_ctx: the most tokens of a prompt and its answer.
        slots: the sequences of the evaluator.
        has_failed: whether an error has ended the scheduler. ``close`` then waits until its evaluator is closed.
    """

    def __init__(self, evaluator: Evaluator, *, keep_prompts: bool = True, batch_invariant: bool = True) -> None:
        self.n_ctx = evaluator.n_ctx
        self.slots = Slots(evaluator, keep_prompts=keep_prompts)
        self._keep_prompts = keep_prompts
        self._batch_invariant = batch_invariant
        self._evaluator = evaluator
        self._candidates = Candidates(evaluator.n_vocab)
        self._decisions: list[Decision[tuple[int, ...]]] = []  # that may be under way
        self._lock = threading.Lock()
        self._waiting: deque[Scheduled] = deque()
        self._active: list[Scheduled] = []  # in the order they came; of the driving thread alone
        self._unended: set[Scheduled] = set()  # wherever they are on their way
        self._closed = False
        self._thread: threading.Thread | None = None
        self.has_failed = False
        self._freeing = threading.Lock()
        self._is_freed = False

    def submit(self, request: Request) -> None:
        """Queues a request.

        Raises ``ModelError`` and ``BudgetError`` as ``Answer.begin`` does; ``ModelError`` if the scheduler is closed or
        has failed, or the system has no thread for it.
        """
        release_workers()  # of this thread: another one evaluates
        answer = request.answer
        sequence = Scheduled(request, answer.begin(self.n_ctx), np.zeros(self.n_ctx, np.intc))
        sequence.append(answer.prompt)
        with self._lock:
            if self.has_failed:
                raise ModelError("an error has just ended all generations of this model; ask again")
            if self._closed:
                raise ModelError("the model is closed")
            if self._thread is None:
                self._start()
            self._unended.add(sequence)
            self._waiting.append(sequence)

    def _start(self) -> None:
        """Starts the thread that drives the model, which waits for the lock. Raises ``ModelError``."""
        # No daemon: at exit the interpreter waits for its end, and takes nothing away that llama.cpp uses.
        self._thread = threading.Thread(target=self._drive, name="constrain-scheduler", daemon=False)
        try:
            self._thread.start()
        except BaseException as error:
            self._thread = None  # if it has begun nevertheless, it ends at once
            if isinstance(error, RuntimeError | MemoryError):
                raise ModelError(f"the system has no thread to run the model in: {error}") from error
            raise

    def close(self) -> None:
        """Ends all requests with a ``ModelError`` and frees the evaluator, once. Not from within a callback."""
        self.require_other_thread()
        with self._lock:
            self._closed = True
        self.join()
        self._free()

    def _free(self) -> None:
        """Closes the evaluator, once nothing uses it; returns when that is done, by whichever thread."""
        with self._freeing:
            if self._is_freed:
                return
            for decision in self._decisions:  # also of answers that were cancelled: they ask the model's tokenizer
                decision.join()
            self.slots.forget()
            self._evaluator.close()
            self._is_freed = True

    def require_other_thread(self) -> None:
        """Raises ``ModelError`` in the thread that drives the model, which cannot wait for itself."""
        if self._thread is threading.current_thread():
            raise ModelError("a model cannot be closed by a callback of its own generation")

    def join(self) -> None:
        """Waits until there is nothing left to do."""
        while (thread := self._driver()) is not None:
            thread.join()

    def _driver(self) -> threading.Thread | None:
        """The thread that drives the model, which has been started."""
        with self._lock:
            return self._thread

    def _drive(self) -> None:
        if self._driver() is not threading.current_thread():
            return
        try:
            self._work()
        except BaseException as error:
            if not self._fail(error):
                raise
        finally:
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _fail(self, error: BaseException) -> bool:
        """The end of the scheduler, by an error that is not any one answer's; whether somebody was told of it."""
        with self._lock:
            self.has_failed = self._closed = True
            left, self._unended = self._unended, set()
            self._waiting.clear()
        self._active.clear()
        for sequence in left:
            sequence.slot = sequence.leader = None
            sequence.settle(_failure(error))
        self._free()
        return bool(left)

    def _work(self) -> None:
        """Works until nothing is left to do."""
        while True:
            self._dismiss()
            self._admit()
            if self._active:
                self._step()
                continue
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return

    def _dismiss(self) -> None:
        """Takes out what was cancelled, or everything if the scheduler is closed."""
        with self._lock:
            closed = self._closed
            gone = [one for one in self._waiting if closed or one.request.done.cancelled()]
            for sequence in gone:
                self._waiting.remove(sequence)
        gone += [one for one in self._active if closed or one.request.done.cancelled()]
        for sequence in gone:
            self._end(sequence, ModelError("the model was closed") if closed else None)

    def _admit(self) -> None:
        """Lets sequences in, in the order they came, while there are slots for them."""
        while self._waiting:
            sequence = self._waiting[0]
            try:
                if not sequence.request.answer.is_complete:
                    sequence.slot = self.slots.take(sequence.wanted, sequence.request.partition)
                    if sequence.slot is None:
                        return
                    self._active.append(sequence)
                    self._follow(sequence)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the answer
                self._waiting.popleft()
                self._end(sequence, error)
                continue
            self._waiting.popleft()  # Other threads only append.
            self._begin(sequence)

    def _begin(self, sequence: Scheduled) -> None:
        request, answer = sequence.request, sequence.request.answer
        sequence.begun = True
        request.begun.set_result(None)
        request.queue_seconds = sequence.lap()
        if sequence.slot is not None:
            request.cached_tokens = min(sequence.slot.length, len(answer.prompt))
        if request.timeout is not None:
            answer.end_by(time.monotonic() + request.timeout)
        self._advance(sequence, lambda: sequence.first)

    def _follow(self, sequence: Scheduled) -> None:
        """Looks for an earlier sequence that is about to read the same tokens, to take them over from it."""
        sequence.leader, sequence.shared = None, sequence.place.length + self.slots.worth_copying - 1
        if not self._keep_prompts:
            return
        for other in self._active[: self._active.index(sequence)]:
            if other.request.partition != sequence.request.partition:
                continue
            shared = reusable_prefix(other.wanted, sequence.reusable)
            if shared > sequence.shared and not (self._evaluator.one_state and other.place.length > shared):
                sequence.leader, sequence.shared = other, shared

    def _take_over(self) -> None:
        """Gives sequences what they waited for, once it is there; lets them look again if it never will be."""
        for sequence in list(self._active):
            leader = sequence.leader
            if leader is None:
                continue
            gone = leader.slot is None
            if not gone and leader.place.length < sequence.shared:
                continue
            try:
                self.slots.fill(sequence.place, sequence.reusable)
                sequence.leader = None
                if gone:
                    self._follow(sequence)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the answer
                self._end(sequence, error)
                continue
            if not sequence.chosen:
                sequence.request.cached_tokens = min(sequence.place.length, len(sequence.request.answer.prompt))

    def _step(self) -> None:
        """Evaluates the next tokens of all active sequences, and lets them choose.

        llama.cpp evaluates only sequences of the same number of tokens together, and of these only neighbours. So runs
        of tokens, forced ones mostly, go first, and then all are ready for one token more.
        """
        for sequence in [one for one in self._active if one.is_late]:
            self._choose_late(sequence)
        self._take_decisions()
        self._take_over()
        writing = False
        for _ in range(_RUNS):
            if not (runs := self._runs()):
                break
            self._evaluate(runs)
            writing = True
        if singles := [(one, 1) for one, count in self._short() if count == 1 or not self._batch_invariant]:
            self._evaluate([singles])
            writing = True
        self._evaluate(self._prompts(beside=writing))
        self._take_over()

    def _evaluate(self, batches: list[list[tuple[Scheduled, int]]]) -> None:
        """Evaluates so many tokens of each sequence, a batch at a time, and lets those choose that have no more."""
        for batch in batches:
            try:
                places = self._evaluate_batch(batch)
            except ModelError as error:  # All slots are empty now.
                for sequence in list(self._active):
                    self._end(sequence, _failure(error))
                return
            for (sequence, _), place in zip(batch, places, strict=True):
                if sequence.pending:
                    continue
                if sequence.goal == sequence.end:
                    self._choose(sequence, place)
                else:
                    self._advance(sequence, partial(self._score, sequence, place))
            if decisions := _under_way([sequence for sequence, _ in batch]):
                await_all(decisions, _PATIENCE)
                self._take_decisions()

    def _evaluate_batch(self, batch: list[tuple[Scheduled, int]]) -> list[int]:
        """Meanwhile, the answers that choose afterwards prepare that, if there is a core for it."""
        evaluate = partial(self.slots.evaluate, [one.piece(count) for one, count in batch])
        if not self._evaluator.leaves_a_core:
            return evaluate()
        answers = [one.request.answer for one, count in batch if count == one.pending]
        return while_preparing(answers, evaluate, _PATIENCE)

    def _in_order(self) -> list[Scheduled]:
        """Sequences that wait for nothing, in the order of their slots."""
        return sorted((one for one in self._active if not one.waits), key=lambda one: one.place.index)

    def _short(self) -> list[tuple[Scheduled, int]]:
        """Sequences with few tokens to be evaluated, and how many."""
        most = min(_SHORT, self._evaluator.n_batch)
        return [(one, count) for one in self._in_order() if 0 < (count := self._count(one)) <= most]

    def _runs(self) -> list[list[tuple[Scheduled, int]]]:
        """Sequences with a run of tokens, by its length.

        A token costs the less the more are evaluated at once, whether they follow one another or not. So where answers
        need not be ``batch_invariant``, a run goes by itself only if it has as many tokens as there are sequences, and
        otherwise along with the others, token by token.
        """
        room = self._evaluator.n_batch
        runs: dict[int, list[tuple[Scheduled, int]]] = {}
        short = self._short()
        least = 2 if self._batch_invariant else max(2, len(short))
        for sequence, count in short:
            if count >= least:
                runs.setdefault(count, []).append((sequence, count))
        return [
            run[start : start + room // count]
            for count, run in runs.items()
            for start in range(0, len(run), room // count)
        ]

    def _prompts(self, *, beside: bool) -> list[list[tuple[Scheduled, int]]]:
        """Pieces of prompts, first come first served; small ones ``beside`` answers that are being written."""
        room = self._evaluator.n_batch
        share = max(1, room // _PROMPT_SHARE) if beside else room
        pieces = []
        for sequence in self._active:
            if not sequence.waits and (count := self._count(sequence)) > min(_SHORT, room) and share:
                count = min(count, share)
                pieces.append([(sequence, count)])
                share -= count
        return pieces

    def _count(self, sequence: Scheduled) -> int:
        """How many tokens of a sequence can be evaluated now.

        The end of a long prompt, which is evaluated also where all of it is known (``reusable_prefix``), goes by
        itself where flash attention may be used: that rounds otherwise in pieces of ``_SHORT`` tokens or more. Where
        there is one state for each sequence only, it stops where others are to take that over.
        """
        length = sequence.place.length
        stops = [sequence.goal]
        if self._keep_prompts and not self._batch_invariant and sequence.pending >= _SHORT:
            known = len(sequence.request.answer.prompt) - ALWAYS_EVALUATED
            stops += [known] if known > length else []
        if self._evaluator.one_state:
            stops += [one.shared for one in self._active if one.leader is sequence]
        return min(stops) - length

    def _choose(self, sequence: Scheduled, place: int) -> None:
        """Lets an answer choose its next tokens."""
        answer = sequence.request.answer
        if not sequence.chosen:
            sequence.chosen = True
            sequence.request.prompt_seconds = sequence.lap()
        if answer.start is None:
            self._advance(sequence, partial(self._sample, sequence, place))
        elif answer.may_take_long:
            self._decide(sequence, lambda: self._evaluator.logits(place).copy())
        else:
            self._advance(sequence, lambda: _chosen(answer, self._evaluator.logits(place), self._candidates))

    def _choose_late(self, sequence: Scheduled) -> None:
        """Brings an answer to its end whose time is up; what the model says does not matter."""
        answer = sequence.request.answer
        if answer.start is None:
            self._advance(sequence, partial(answer.take, _NO_TOKEN))
        else:
            self._decide(sequence, lambda: _NO_LOGITS)

    def _sample(self, sequence: Scheduled, place: int) -> tuple[int, ...]:
        answer = sequence.request.answer
        tokens = answer.take(self._evaluator.sample(place, answer.chain))
        if answer.unscored:
            self._score(sequence, place)
        return tokens

    def _decide(self, sequence: Scheduled, logits: Callable[[], NDArray[np.float32]]) -> None:
        """Lets an answer choose in a thread of its own. An error in preparing that is the end of this answer alone."""
        try:
            candidates = Candidates(self._evaluator.n_vocab)
            sequence.decision = Decision(partial(_chosen, sequence.request.answer, logits(), candidates))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the answer
            self._end(sequence, error)
            return
        self._decisions = [one for one in self._decisions if not one.outcome.done()]
        self._decisions.append(sequence.decision)

    def _take_decisions(self) -> None:
        """Lets sequences go on whose decisions are made; waits for one if there is nothing else to do."""
        decisions = _under_way(self._active)
        if decisions and len(decisions) == len(self._active):
            await_any(decisions, _LOOK_SECONDS)
        for sequence in list(self._active):
            decision = sequence.decision
            if decision is not None and decision.outcome.done():
                sequence.decision = None
                self._advance(sequence, decision.outcome.result)

    def _score(self, sequence: Scheduled, place: int) -> tuple[int, ...]:
        """Tells an answer what the model says before a token that it has taken already."""
        sequence.request.answer.score(self._evaluator.logits(place))
        return ()

    def _advance(self, sequence: Scheduled, choose: Callable[[], tuple[int, ...]]) -> None:
        """Lets an answer take tokens and hands them on. An error there is the end of this sequence alone."""
        answer = sequence.request.answer
        try:
            taken = choose()
            if answer.n_taken_back:
                self._forget(sequence, answer.n_taken_back)
                answer.n_taken_back = 0
            sequence.append(taken)
            if answer.n_doubtful:
                sequence.held += taken
            elif unscored := answer.unscored:
                sequence.goal -= unscored
                sequence.held += taken
            elif tokens := sequence.held + taken:
                sequence.held = ()
                sequence.request.receive(tokens)
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the answer
            self._end(sequence, error)
            return
        if answer.is_complete:
            self._end(sequence)

    def _forget(self, sequence: Scheduled, count: int) -> None:
        """Takes back the last tokens of a sequence. Those before them are evaluated once more."""
        sequence.forget(count)
        self.slots.cut(sequence.place, sequence.end - ALWAYS_EVALUATED)

    def _end(self, sequence: Scheduled, error: BaseException | None = None) -> None:
        """The end of a request: complete, cancelled, or with an error."""
        if sequence.slot is not None:
            self.slots.release(sequence.slot)
            self._active.remove(sequence)
            sequence.slot = sequence.leader = None
        with self._lock:
            self._unended.discard(sequence)
        sequence.settle(error)


def _failure(error: BaseException) -> ModelError:
    """What one of many requests is told of an error that ended them all: each raises an exception of its own."""
    message = error.message if isinstance(error, ModelError) else f"an error ended all generations: {error!r}"
    told = ModelError(message)
    told.__cause__ = error
    return told


def _under_way(sequences: Sequence[Scheduled]) -> list[Decision[tuple[int, ...]]]:
    """The decisions that these wait for."""
    return [one.decision for one in sequences if one.decision is not None]


def _chosen(answer: Answer, logits: NDArray[np.float32], candidates: Candidates) -> tuple[int, ...]:
    tokens = answer.choose(logits, candidates)
    if answer.unscored and not answer.n_taken_back:
        answer.score(logits)
    return tokens


_NO_TOKEN = -1
_NO_LOGITS = np.zeros(0, np.float32)
