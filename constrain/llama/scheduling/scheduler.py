"""Several answers at once: continuous batching on the slots of one model.

    submit --> waiting --slot--> active --tokens--> llama_decode --logits--> choose --> receive
                                   ^                                           |
                                   +-------------------------------------------+

Sequences join and leave between steps. Each step evaluates the next tokens of every answer in progress, all of them
together, and then pieces of prompts, first come first served. A prompt that shares its beginning with another prompt of
its partition, under evaluation at that moment, waits for it and copies the result.

One thread drives the model while there is work and ends with it, so nothing keeps running when the program ends.
``deciding`` makes slow choices in other threads: an answer waits for its own choice, and the other answers go on.

A complete answer may want logits after other tokens in place of its own (``Answer.ask``): they are evaluated in its
slot before its request ends.

An error of one answer ends that answer only. A failed evaluation ends all answers in progress; waiting requests go on.
Any other error ends the scheduler: all its requests end with a ``ModelError``, the evaluator is closed, and
``has_failed`` tells the model to make another scheduler.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from constrain.errors import ModelError
from constrain.llama.binding import Candidates
from constrain.llama.contexts.batch import next_group
from constrain.llama.contexts.slots import Slots
from constrain.llama.contexts.stored_states import ALWAYS_EVALUATED, reusable_prefix
from constrain.llama.costs.table import ASSUMED, estimate
from constrain.llama.scheduling.deciding import Decision, await_all, await_any
from constrain.llama.scheduling.grouping import Grouping
from constrain.llama.scheduling.request import Evaluation, Scheduled
from constrain.llama.threads.openmp import release_workers
from constrain.llama.threads.preparing import while_preparing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from constrain.llama.contexts.slots import BatchEvaluator
    from constrain.llama.costs.table import Costs
    from constrain.llama.prompt_cache.prompts import ContextPrompts
    from constrain.llama.scheduling.request import Request

T = TypeVar("T")

_SHORT = 64
"""Greatest number of tokens to evaluate (the next and forced ones) with which a sequence goes before the prompts."""

_RUNS = 4
"""Times per step that an answer may have forced tokens evaluated before the others go on."""

_PATIENCE = 0.02
"""Seconds that other sequences wait for choices: about the time to evaluate a token or two."""

_LOOK_SECONDS = 0.02
"""Seconds between two looks for new and cancelled requests while all sequences wait for choices."""

_PROMPT_TIME = 0.3
"""Time that a long prompt may take while answers are in progress, as a share of theirs, so that they take at most 1.3
times as long. Several, n, take n * n shares: the more of the slots wait for their prompts, the less a step yields."""

_PROMPT_SHARE = 4
"""The part of a batch that prompts get at once while answers are in progress: one fourth, so that answers go on."""


class Scheduler:
    """Runs requests on an evaluator, as many at once as it has sequences. Safe to use from any thread.

    Without ``keep_prompts`` every prompt is evaluated from its beginning. With ``batch_invariant`` runs of tokens are
    evaluated as they would be alone; without it, in the combination that costs least. ``prompts`` are the evaluated
    prompts on disk; ``None`` for none. ``costs`` are those of the evaluator; ``clock`` returns seconds.

    Attributes:
        n_ctx: the most tokens of a prompt and its answer.
        slots: the sequences of the evaluator.
        has_failed: whether an error has ended the scheduler. ``close`` then waits until the evaluator is closed.
    """

    def __init__(
        self,
        evaluator: BatchEvaluator,
        *,
        keep_prompts: bool = True,
        batch_invariant: bool = True,
        prompts: ContextPrompts | None = None,
        costs: Costs = ASSUMED,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.n_ctx = evaluator.n_ctx
        self.slots = Slots(evaluator, keep_prompts=keep_prompts, prompts=prompts)
        self._keep_prompts = keep_prompts
        self._batch_invariant = batch_invariant
        self._evaluator = evaluator
        self._costs = costs
        self._grouping = Grouping(costs.together)
        self._clock = clock
        self._owed = 0.0  # seconds that the last piece of a long prompt took, less the share of the time since then
        self._candidates = Candidates(evaluator.n_vocab)
        self._decisions: list[Decision[Any]] = []  # some may have finished
        self._lock = threading.Lock()
        self._waiting: deque[Scheduled] = deque()
        self._active: list[Scheduled] = []  # in order of arrival; used by the driving thread only
        self._unended: set[Scheduled] = set()  # waiting or active
        self._closed = False
        self._thread: threading.Thread | None = None
        self.has_failed = False
        self._freeing = threading.Lock()
        self._is_freed = False

    def tokens_in_progress(self) -> int:
        """Returns the number of tokens written so far in answers that are not complete yet."""
        with self._lock:
            return sum(len(each.request.answer.tokens) for each in self._unended)

    def submit(self, request: Request) -> None:
        """Queues a request.

        Raises ``ModelError`` and ``BudgetError`` as ``Answer.begin`` does, and ``ModelError`` if the scheduler is
        closed or has failed, or if the system has no thread for it.
        """
        release_workers()  # OpenMP workers of this thread; another thread evaluates
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
        """Starts the thread that drives the model; the thread first waits for the lock. Raises ``ModelError``."""
        # Not a daemon: the interpreter waits for the thread at exit and keeps everything that llama.cpp uses.
        self._thread = threading.Thread(target=self._drive, name="constrain-scheduler", daemon=False)
        try:
            self._thread.start()
        except BaseException as error:
            self._thread = None  # a thread that started nevertheless sees this and ends at once
            if isinstance(error, RuntimeError | MemoryError):
                raise ModelError(f"the system has no thread to run the model in: {error}") from error
            raise

    def close(self) -> None:
        """Ends all requests with a ``ModelError`` and frees the evaluator. Must not be called from a callback."""
        self.require_other_thread()
        with self._lock:
            self._closed = True
        self.join()
        self._free()

    def _free(self) -> None:
        """Closes the evaluator once it is unused; returns after that, even if another thread closes it."""
        with self._freeing:
            if self._is_freed:
                return
            for decision in self._decisions:  # also of cancelled answers: they use the model's tokenizer
                decision.join()
            self.slots.forget()
            self._evaluator.close()
            self._is_freed = True

    def require_other_thread(self) -> None:
        """Raises ``ModelError`` in the thread that drives the model, which cannot wait for itself."""
        if self._thread is threading.current_thread():
            raise ModelError("a model cannot be closed by a callback of its own generation")

    def join(self) -> None:
        """Waits until no work is left."""
        while (thread := self._driver()) is not None:
            thread.join()

    def _driver(self) -> threading.Thread | None:
        """The running thread that drives the model, or ``None``."""
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
        """Ends the scheduler after an error that belongs to no single answer; returns whether any request got it."""
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
        """Runs steps until no work is left."""
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
        """Removes cancelled requests, or all requests if the scheduler is closed."""
        with self._lock:
            closed = self._closed
            gone = [one for one in self._waiting if closed or one.request.done.cancelled()]
            for sequence in gone:
                self._waiting.remove(sequence)
        gone += [one for one in self._active if closed or one.request.done.cancelled()]
        for sequence in gone:
            sequence.request.answer.end_by(0)  # stops a mask that another thread is computing
            self._end(sequence, ModelError("the model was closed") if closed else None)

    def _admit(self) -> None:
        """Gives free slots to waiting sequences, in order of arrival."""
        while self._waiting:
            sequence = self._waiting[0]
            try:
                if not sequence.request.answer.is_complete:
                    request = sequence.request
                    on_disk = request.shared is not None
                    sequence.slot = self.slots.take(sequence.wanted, request.partition, on_disk=on_disk)
                    if sequence.slot is None:
                        return
                    self._active.append(sequence)
                    self._follow(sequence)
                    known = sequence.slot.length if sequence.leader is None else sequence.shared
                    sequence.kept_end = self.slots.end_to_keep(
                        sequence.wanted, known, request.shared, request.partition
                    )
            except Exception as error:  # noqa: BLE001 - ends this request only
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
        """Looks for an earlier sequence that is about to evaluate the same tokens, and makes it the leader."""
        sequence.leader, sequence.shared = None, sequence.active_slot.length + self.slots.worth_copying - 1
        if not self._keep_prompts:
            return
        for other in self._active[: self._active.index(sequence)]:
            if other.request.partition != sequence.request.partition:
                continue
            shared = reusable_prefix(other.wanted, sequence.reusable)
            if shared > sequence.shared and not (self._evaluator.one_state and other.active_slot.length > shared):
                sequence.leader, sequence.shared = other, shared

    def _take_over(self) -> None:
        """Copies shared tokens from leaders that have evaluated them; looks for a new leader if the old one ended."""
        for sequence in list(self._active):
            leader = sequence.leader
            if leader is None:
                continue
            gone = leader.slot is None
            if not gone and leader.active_slot.length < sequence.shared:
                continue
            try:
                self.slots.fill(sequence.active_slot, sequence.reusable)
                sequence.leader = None
                if gone:
                    self._follow(sequence)
            except Exception as error:  # noqa: BLE001 - ends this request only
                self._end(sequence, error)
                continue
            if not sequence.chosen:
                sequence.request.cached_tokens = min(sequence.active_slot.length, len(sequence.request.answer.prompt))

    def _step(self) -> None:
        """Evaluates the next tokens of all active sequences and lets their answers choose.

        llama.cpp evaluates sequences together only if they have equally many new tokens and adjacent slots
        (``grouping``). So runs of several tokens (mostly forced ones) go first; then every sequence is ready for one
        more token.
        """
        for sequence in [one for one in self._active if one.is_late]:
            self._choose_late(sequence)
        self._take_decisions()
        self._take_over()
        begun = self._clock()
        writing = False
        for _ in range(_RUNS):
            if not (runs := self._runs()):
                break
            self._evaluate(runs)
            writing = True
        if singles := [(one, 1) for one, count in self._short() if count == 1 or not self._batch_invariant]:
            self._evaluate(self._grouped(singles, padded=True))
            writing = True
        self._evaluate_prompts(self._clock() - begun if writing else None)
        self._take_over()

    def _evaluate(self, evaluations: list[Evaluation]) -> None:
        """Evaluates one after the other; answers with nothing left to evaluate choose."""
        for evaluation in evaluations:
            members = evaluation.members
            outputs = [one.outputs(count) for one, count in members]
            try:
                rows = self._evaluate_together(evaluation)
            except ModelError as error:  # all slots are empty now
                for sequence in list(self._active):
                    self._end(sequence, _failure(error))
                return
            for (sequence, _), read, row in zip(members, outputs, rows, strict=True):
                if sequence.slot is not None and not sequence.chosen:
                    sequence.tell_progress()
                if sequence.request.answer.unscored:
                    self._advance(sequence, partial(self._score, sequence, range(row + 1 - read, row + 1)))
                if sequence.slot is not None and not sequence.pending and sequence.decision is None:
                    self._choose(sequence, row)
            for sequence, _ in members:
                if sequence.slot is not None and sequence.slot.length == sequence.kept_end:
                    sequence.kept_end = 0
                    self.slots.keep(sequence.slot)
            if decisions := _under_way([sequence for sequence, _ in members]):
                await_all(decisions, _PATIENCE)
                self._take_decisions()

    def _evaluate_together(self, evaluation: Evaluation) -> list[int]:
        """Evaluates tokens; meanwhile, if a core is free, the answers that choose afterwards prepare their masks."""
        members = evaluation.members
        evaluate = partial(self.slots.evaluate, [one.piece(count) for one, count in members], evaluation.along)
        if not self._evaluator.leaves_a_core:
            return evaluate()
        answers = [one.request.answer for one, count in members if count == one.pending]
        return while_preparing(answers, evaluate, _PATIENCE)

    def _in_order(self) -> list[Scheduled]:
        """The sequences that wait for nothing, in the order of their slots."""
        return sorted((one for one in self._active if not one.waits), key=lambda one: one.active_slot.index)

    def _short(self) -> list[tuple[Scheduled, int]]:
        """Returns the sequences with few tokens to evaluate, each with the number of these tokens."""
        most = min(_SHORT, self._evaluator.n_batch)
        return [(one, count) for one in self._in_order() if 0 < (count := self._count(one)) <= most]

    def _runs(self) -> list[Evaluation]:
        """Returns the sequences with several tokens to evaluate, those with equally many together.

        Without ``batch_invariant`` a run of fewer tokens than there are sequences goes along with these, one token a
        step, if that costs no more. Longer ones, such as the ends of prompts, would take too many steps.
        """
        runs: dict[int, list[tuple[Scheduled, int]]] = {}
        short = self._short()
        for sequence, count in short:
            if count > 1 and (self._batch_invariant or self._goes_apart(count, len(short))):
                runs.setdefault(count, []).append((sequence, count))
        return [each for run in runs.values() for each in self._grouped(run)]

    def _goes_apart(self, count: int, n_sequences: int) -> bool:
        """Whether a run is long, or costs less than its tokens would as parts of steps of all sequences."""
        if count >= n_sequences:
            return True
        one, together = (estimate(self._costs.together, number) for number in (1, n_sequences))
        return estimate(self._costs.last, count) < count * (together - one) / (n_sequences - 1)

    def _grouped(self, run: list[tuple[Scheduled, int]], *, padded: bool = False) -> list[Evaluation]:
        """Divides sequences with equally many tokens into evaluations that cost least, and that have room for them.

        ``padded``: whether idle slots may take a token along.
        """
        count = run[0][1]
        spare = self.slots.spare(max(one.active_slot.length for one, _ in run)) if padded else ()
        groups = self._grouping.groups(tuple(one.active_slot.index for one, _ in run), spare, count)
        left = iter(run)
        found = []
        for group in groups:
            members = list(islice(left, group.members))
            used = {one.active_slot.index for one, _ in members}
            along = tuple(number for number in range(group.first, group.last + 1) if number not in used)
            found += [Evaluation(part, along) for part in self._parts(members)]
        return found

    def _parts(self, run: list[tuple[Scheduled, int]]) -> list[list[tuple[Scheduled, int]]]:
        """Divides sequences with equally many tokens, so that one evaluation has room for their tokens and logits."""
        parts: list[list[tuple[Scheduled, int]]] = []
        tokens = outputs = 0
        for sequence, count in run:
            tokens += count
            outputs += sequence.outputs(count)
            if not parts or tokens > self._evaluator.n_batch or outputs > self._evaluator.n_outputs:
                parts.append([])
                tokens, outputs = count, sequence.outputs(count)
            parts[-1].append((sequence, count))
        return parts

    def _evaluate_prompts(self, written: float | None) -> None:
        """Evaluates pieces of prompts, first come first served.

        ``written``: seconds of this step in which answers were written; ``None`` if none were. While answers are
        written, the first piece of a prompt is evaluated at once; the next ones wait, so that answers go on.
        """
        room = self._evaluator.n_batch
        waiting = [one for one in self._active if not one.waits and self._count(one) > min(_SHORT, room)]
        if written is None:
            self._evaluate(self._prompts(waiting, room))
            return
        share = max(1, room // _PROMPT_SHARE)
        long = [one for one in waiting if one.read >= share]
        first = self._prompts([one for one in waiting if one.read < share], share)
        self._evaluate(first)
        self._owed = max(0.0, self._owed - _PROMPT_TIME * len(long) ** 2 * written)
        if not self._owed and not first:
            begun = self._clock()
            self._evaluate(self._prompts(long, share))
            self._owed = self._clock() - begun

    def _prompts(self, waiting: list[Scheduled], room: int) -> list[Evaluation]:
        """Returns pieces of prompts, of at most ``room`` tokens together."""
        pieces = []
        for sequence in waiting:
            if room <= 0:
                break
            count = self._count(sequence)
            left = count - min(count, room)
            count -= left
            count -= left == 1 and count > 1  # one token alone would be rounded differently
            pieces.append(Evaluation([(sequence, count)]))
            sequence.read += count
            room -= count
        return pieces

    def _count(self, sequence: Scheduled) -> int:
        """The number of tokens of a sequence that can be evaluated now.

        Where flash attention may be used, the end of a long prompt is evaluated separately: pieces of ``_SHORT`` tokens
        or more are rounded differently; a fully cached prompt evaluates only its end (``reusable_prefix``).
        Recurrent models have one state per sequence, so evaluation stops where followers are to copy the state. It also
        stops where the state is to be kept on disk.
        """
        length = sequence.active_slot.length
        stops = [length + next_group(length, sequence.goal, sequence.first_read)]
        if self._keep_prompts and not self._batch_invariant and sequence.pending >= _SHORT:
            known = len(sequence.request.answer.prompt) - ALWAYS_EVALUATED
            stops += [known] if known > length else []
        if sequence.kept_end > length:
            stops.append(sequence.kept_end)
        if self._evaluator.one_state:
            stops += [one.shared for one in self._active if one.leader is sequence]
        return min(stops) - length

    def _choose(self, sequence: Scheduled, row: int) -> None:
        """Lets an answer choose its next tokens, in a thread of its own if that may take long."""
        answer = sequence.request.answer
        if answer.is_complete:
            self._finish(sequence, row)
            return
        if not sequence.chosen:
            sequence.chosen = True
            sequence.request.prompt_seconds = sequence.lap()
        if answer.start is None:
            self._advance(sequence, partial(self._sample, sequence, row))
        elif answer.may_take_long:
            self._decide(sequence, lambda: self._evaluator.logits(row).copy())
        else:
            self._advance(sequence, lambda: answer.choose(self._evaluator.logits(row), self._candidates))

    def _choose_late(self, sequence: Scheduled) -> None:
        """Ends an answer whose time is up; needs no logits."""
        answer = sequence.request.answer
        if answer.start is None:
            self._advance(sequence, partial(answer.take, _NO_TOKEN))
        else:
            self._decide(sequence, lambda: _NO_LOGITS)

    def _sample(self, sequence: Scheduled, row: int) -> tuple[int, ...]:
        answer = sequence.request.answer
        tokens = answer.take(self._evaluator.sample(row, answer.chain))
        if answer.unscored:
            answer.score(self._evaluator.logits(row))
        return tokens

    def _decide(self, sequence: Scheduled, logits: Callable[[], NDArray[np.float32]]) -> None:
        """Lets an answer choose in a thread of its own. An error before the thread starts ends this answer only."""
        choose = sequence.request.answer.choose
        self._start_decision(
            sequence,
            lambda: partial(choose, logits(), Candidates(self._evaluator.n_vocab)),
            partial(self._advance, sequence),
        )

    def _start_decision(
        self, sequence: Scheduled, make: Callable[[], Callable[[], T]], go_on: Callable[[Callable[[], T]], None]
    ) -> None:
        """Runs what ``make`` returns in a thread of its own, then ``go_on`` in this one.

        An error before the thread starts ends this answer only.
        """
        try:
            sequence.decision = Decision(make())
        except Exception as error:  # noqa: BLE001 - ends this request only
            self._end(sequence, error)
            return
        sequence.go_on = go_on
        self._decisions = [one for one in self._decisions if not one.outcome.done()]
        self._decisions.append(sequence.decision)

    def _take_decisions(self) -> None:
        """Continues sequences whose next token is chosen; if all sequences wait for a choice, first waits for one."""
        decisions = _under_way(self._active)
        if decisions and len(decisions) == len(self._active):
            await_any(decisions, _LOOK_SECONDS)
        for sequence in list(self._active):
            decision = sequence.decision
            if decision is not None and decision.outcome.done():
                assert sequence.go_on is not None
                sequence.decision = None
                sequence.go_on(decision.outcome.result)

    def _score(self, sequence: Scheduled, rows: range) -> tuple[int, ...]:
        """Gives an answer the logits before tokens that it has already taken."""
        answer = sequence.request.answer
        for row in rows[: answer.unscored]:
            answer.score(self._evaluator.logits(row))
        return ()

    def _advance(self, sequence: Scheduled, choose: Callable[[], tuple[int, ...]]) -> None:
        """Lets an answer take tokens and delivers them. An error ends this sequence only."""
        answer = sequence.request.answer
        try:
            taken = choose()
            if answer.n_taken_back:
                self._forget(sequence, answer.n_taken_back)
                answer.n_taken_back = 0
            sequence.append(taken)
            sequence.goal -= answer.is_done
            sequence.held += () if answer.is_inserting else taken
            n_settled = 0 if answer.unscored else len(sequence.held) - answer.n_doubtful
            if n_settled:
                settled, sequence.held = sequence.held[:n_settled], sequence.held[n_settled:]
                sequence.request.receive(settled)
        except BaseException as error:  # noqa: BLE001 - ends this request only
            self._end(sequence, error)
            return
        if answer.is_complete:
            self._finish(sequence)

    def _finish(self, sequence: Scheduled, row: int | None = None) -> None:
        """Has the model evaluate what a complete answer still asks for; ends the request if that is nothing.

        ``row``: index of the logits that it asked for last.
        """
        answer, evaluator = sequence.request.answer, self._evaluator
        if sequence.next_group():
            return
        if answer.questions is None or sequence.slot is None or evaluator.one_state:
            self._end(sequence)  # with one state, every question would evaluate the whole prompt
            return
        self._start_decision(
            sequence,
            lambda: partial(answer.ask, None if row is None else evaluator.logits(row).copy()),
            partial(self._replace, sequence),
        )

    def _replace(self, sequence: Scheduled, wanted: Callable[[], list[list[int]] | None]) -> None:
        """Has other tokens evaluated in place of the end of a complete answer. An error ends this sequence only."""
        try:
            groups = wanted()
            if groups is not None:
                self.slots.cut(sequence.active_slot, sequence.replace(groups))
                return
        except BaseException as error:  # noqa: BLE001 - ends this request only
            self._end(sequence, error)
            return
        self._end(sequence)

    def _forget(self, sequence: Scheduled, count: int) -> None:
        """Removes the last tokens of a sequence; the last two tokens before them will be evaluated again."""
        sequence.forget(count)
        self.slots.cut(sequence.active_slot, sequence.end - ALWAYS_EVALUATED)

    def _end(self, sequence: Scheduled, error: BaseException | None = None) -> None:
        """Ends a request: complete, cancelled, or with an error."""
        if sequence.slot is not None:
            self.slots.release(sequence.slot)
            self._active.remove(sequence)
            sequence.slot = sequence.leader = None
        with self._lock:
            self._unended.discard(sequence)
        sequence.settle(error)


def _failure(error: BaseException) -> ModelError:
    """A separate exception for each of several requests that one error has ended."""
    message = error.message if isinstance(error, ModelError) else f"an error ended all generations: {error!r}"
    failure = ModelError(message)
    failure.__cause__ = error
    return failure


def _under_way(sequences: Sequence[Scheduled]) -> list[Decision[Any]]:
    """The decisions that the sequences wait for."""
    return [one.decision for one in sequences if one.decision is not None]


_NO_TOKEN = -1
_NO_LOGITS = np.zeros(0, np.float32)
