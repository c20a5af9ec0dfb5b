"""The scheduler with a scripted model: who is served when, what is evaluated once, and how sequences end."""

from __future__ import annotations

import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.engine.constraint import Constraint
from constrain.llama.binding import Candidates
from constrain.llama.contexts.batch import Piece
from constrain.llama.contexts.stored_states import StoredStates
from constrain.llama.costs.table import ASSUMED, estimate
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.llama.scheduling.deciding import Decision, await_all
from constrain.llama.scheduling.grouping import Group, Grouping
from constrain.llama.scheduling.request import Request
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.regex.parsing.parser import parse_pattern
from tests.support import for_each
from tests.support.llama.scripted import EOS, N_VOCAB, TOKENS, Scripted, expected, request, run
from tests.support.waiting import wait_until


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[Scheduler, Scripted]]]:
    made: list[tuple[Scheduler, Scripted]] = []

    def make(*, batch_invariant: bool = True, **options: Any) -> tuple[Scheduler, Scripted]:
        model = Scripted(**options)
        scheduler = Scheduler(model, batch_invariant=batch_invariant, clock=lambda: model.seconds)
        made.append((scheduler, model))
        return made[-1]

    yield make
    for scheduler, model in made:
        if model.gate is not None:
            model.gate.release(10**4)
        scheduler.join()
        if not scheduler.has_failed:
            for slot in scheduler.slots:
                assert not slot.busy
                assert slot.tokens.tolist() == model.cells[slot.index]
        scheduler.close()
        assert model.closed


def prompt_of(rng: random.Random, length: int) -> list[int]:
    return [rng.randrange(N_VOCAB - 1) for _ in range(length)]


@pytest.mark.parametrize("batch_invariant", [False, True])
@pytest.mark.parametrize("one_state", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_answer_is_the_one_it_would_be_alone(
    start: Any, seed: int, one_state: bool, batch_invariant: bool
) -> None:
    rng = random.Random(seed)
    sizes = {"count": rng.choice([1, 3, 8]), "n_batch": rng.choice([8, 128])}
    scheduler, _ = start(**sizes, one_state=one_state, batch_invariant=batch_invariant)
    shared = prompt_of(rng, 60)
    prompts = [shared[: rng.randrange(61)] + prompt_of(rng, rng.randrange(1, 150)) for _ in range(30)]
    requests = [request(prompt) for prompt in prompts]
    run(scheduler, *requests)
    for prompt, one in zip(prompts, requests, strict=True):
        assert one.answer.tokens == expected(prompt), f"seed {seed}"
        assert one.answer.finish_reason == "length"


@pytest.mark.parametrize("one_state", [False, True])
@pytest.mark.parametrize("length", [1, 20])
def test_samples_of_one_prompt_evaluate_it_once(start: Any, one_state: bool, length: int) -> None:
    scheduler, model = start(count=5, one_state=one_state)
    model.gate = threading.Semaphore(0)
    prompt = prompt_of(random.Random(1), 100)
    requests = [request(prompt, max_tokens=length) for _ in range(4)]
    run(scheduler, request([1, 2], max_tokens=1), *requests)  # the first keeps the model busy until all are there
    assert all(one.answer.tokens == expected(prompt, length) for one in requests)
    # The prompt once and its last two tokens for each of the other three; the last token of an answer is not evaluated.
    assert model.evaluated == 2 + 100 + 3 * 2 + 4 * (length - 1)
    assert sorted(one.cached_tokens for one in requests) == [0, 98, 98, 98]


def test_a_prompt_of_another_partition_is_not_waited_for(start: Any) -> None:
    scheduler, model = start(count=5)
    model.gate = threading.Semaphore(0)
    prompt = prompt_of(random.Random(1), 100)
    requests = [request(prompt, max_tokens=1, partition=partition) for partition in "abab"]
    run(scheduler, request([1, 2], max_tokens=1), *requests)  # the first keeps the model busy until all are there
    assert all(one.answer.tokens == expected(prompt, 1) for one in requests)
    assert [one.cached_tokens for one in requests] == [0, 0, 98, 98]
    pieces = [count for batch in model.batches for _, _, count in batch if count > 2]
    assert sum(pieces) == 2 * 100
    assert any(one + other == model.n_batch for one, other in itertools.pairwise(pieces)), (
        "the second prompt begins in what the end of the first leaves of a batch"
    )


@pytest.mark.parametrize("forgets", [False, True])
def test_more_conversations_than_slots_keep_what_they_said(start: Any, forgets: bool) -> None:
    scheduler, model = start(count=2)
    model.forgets = forgets
    rng = random.Random(4)
    talks = [[number, *prompt_of(rng, 60)] for number in range(4)]
    for turn in range(3):
        for number, talk in enumerate(talks):
            run(scheduler, one := request(talk, max_tokens=5))
            assert one.answer.tokens == expected(talk, 5)
            known = len(talk) - 11 if turn and not forgets else 0  # the last token of an answer is not evaluated
            assert one.cached_tokens == known
            talks[number] = [*talk, *one.answer.tokens, *prompt_of(rng, 10)]


def test_prompts_that_are_not_kept_are_evaluated_from_their_beginning() -> None:
    model = Scripted(count=1)
    scheduler = Scheduler(model, keep_prompts=False)
    prompt = prompt_of(random.Random(4), 100)
    evaluated = []
    for other in ([], prompt[:50], prompt, [*prompt, 7]):
        for tokens in filter(None, (other, prompt)):
            model.batches.clear()
            run(scheduler, one := request(tokens))
            assert one.cached_tokens == 0
        evaluated.append(list(model.batches))
    assert all(batches == evaluated[0] for batches in evaluated)
    scheduler.close()


@pytest.mark.parametrize("one_state", [False, True])
@pytest.mark.parametrize("count", [2, 5])
def test_a_prompt_of_another_partition_is_not_known(start: Any, count: int, one_state: bool) -> None:
    """Neither from a slot, idle or overwritten since, nor from main memory; and a partition loses nothing by others."""
    scheduler, model = start(count=count, one_state=one_state)
    prompts = dict.fromkeys("abcd", prompt_of(random.Random(6), 40))
    known = dict.fromkeys("abcd", 0)
    for partition in "aabbabcabdcdab":
        prompt, before = prompts[partition], model.evaluated
        run(scheduler, one := request(prompt, max_tokens=1, partition=partition))
        assert one.answer.tokens == expected(prompt, 1)
        assert (one.cached_tokens, model.evaluated - before) == (known[partition], len(prompt) - known[partition])
        known[partition] = len(prompt)
        prompts[partition] = [*prompt, *one.answer.tokens, 1, 2, 3]


def test_a_state_that_does_all_of_another_replaces_it() -> None:
    model = Scripted(count=1)
    states = StoredStates(model, 100, one_state=False)  # no room for all three
    prompt, none = np.array(prompt_of(random.Random(7), 60), np.intc), np.zeros(0, np.intc)
    other = (prompt + 1) % (N_VOCAB - 1)
    for tokens in (other[:30], prompt[:40], prompt):
        model.cells[0] = tokens.tolist()
        states.exchange(0, tokens, none)
    found = [len(states.exchange(0, none, np.append(tokens, [1, 2]))) for tokens in (prompt, prompt, other)]
    assert found == [60, 0, 30]


def test_a_state_of_another_partition_neither_replaces_one_nor_is_taken_back() -> None:
    model = Scripted(count=1)
    states = StoredStates(model, 200, one_state=False)
    prompt, none = np.array(prompt_of(random.Random(7), 60), np.intc), np.zeros(0, np.intc)
    for length, owner in ((40, "a"), (60, "b")):
        model.cells[0] = prompt[:length].tolist()
        states.exchange(0, prompt[:length], none, owner=owner, partition="c")
    wanted = np.append(prompt, [1, 2])
    found = [len(states.exchange(0, none, wanted, partition=partition)) for partition in "cabab"]
    assert found == [0, 40, 60, 0, 0]


def test_a_conversation_that_goes_on_stays_in_its_slot_and_a_short_beginning_is_not_copied(start: Any) -> None:
    scheduler, model = start(count=4)
    prompt = [1, 2, 3] * 10
    for _ in range(3):
        run(scheduler, one := request(prompt, max_tokens=4))
        prompt = [*prompt, *one.answer.tokens[:-2], 7, 8]  # the end of an answer is often spelled otherwise
    assert model.copied == []
    assert [len(cells) > 0 for cells in model.cells] == [True, False, False, False]
    run(scheduler, one := request([1, 2, 3, *[5] * 20], max_tokens=1))
    assert (one.cached_tokens, model.copied) == (0, [])


def test_more_requests_than_slots_come_in_order(start: Any) -> None:
    scheduler, model = start(count=2)
    model.gate = threading.Semaphore(0)
    begun: dict[int, None] = {}  # in the order of first tokens
    rng = random.Random(3)
    receivers = [lambda _, number=number: begun.setdefault(number) for number in range(8)]
    run(scheduler, *(request(prompt_of(rng, 9), receive=receive) for receive in receivers))
    assert list(begun) == list(range(8))


def test_answers_are_written_while_a_long_prompt_is_read(start: Any) -> None:
    scheduler, model = start(count=2, n_batch=128)
    model.gate = threading.Semaphore(0)
    writing = request([1, 2, 3], max_tokens=50)
    scheduler.submit(writing)
    model.gate.release(5)
    wait_until(lambda: len(writing.answer.tokens) >= 5)
    run(scheduler, request(prompt_of(random.Random(4), 320)))
    writing.done.result(30)
    reads = [(index, batch[0][2]) for index, batch in enumerate(model.batches) if batch[0][2] > 3]
    meanwhile = [length for index, length in reads if index < model.batches.index([(0, 51, 1)])]
    # While the answer is written, a fourth of a batch at once, and another one when the answer has had its time: 32
    # tokens cost 8 times as much as one by the assumed costs, which is 0.3 times as much as 27 tokens.
    assert meanwhile == [32, 32, 32]
    assert [later[0] - earlier[0] for earlier, later in itertools.pairwise(reads[:3])] == [2, 28]
    assert [length for _, length in reads[3:]] == [128, 96]


def run_with(together: dict[int, float], prompts: list[list[int]], *, count: int = 8) -> Scripted:
    """Runs requests that come together on a model with these costs; checks answers and what is left in the slots."""
    model = Scripted(count=count)
    scheduler = Scheduler(model, costs=replace(ASSUMED, together=together), clock=lambda: model.seconds)
    model.gate = threading.Semaphore(0)
    requests = [request(prompt) for prompt in prompts]
    run(scheduler, *requests)
    assert [one.answer.tokens for one in requests] == [expected(prompt) for prompt in prompts]
    scheduler.join()
    for slot in scheduler.slots:
        assert slot.tokens.tolist() == model.cells[slot.index]
    scheduler.close()
    return model


def test_an_idle_sequence_takes_a_token_along_where_four_cost_less_than_three() -> None:
    rng = random.Random(8)
    model = run_with({1: 1.0, 2: 1.4, 3: 1.9, 4: 1.5, 8: 2.3}, [prompt_of(rng, 9 + extra) for extra in range(3)])
    sizes = [len(batch) for batch in model.batches]
    assert sizes.count(4) > 10  # all steps in which three answers are written
    assert 3 not in sizes


def test_sequences_are_evaluated_apart_where_that_costs_less() -> None:
    rng = random.Random(9)
    model = run_with({1: 1.0, 2: 2.5, 8: 10.0}, [prompt_of(rng, 9 + extra) for extra in range(3)])
    assert {len(batch) for batch in model.batches} == {1}


def test_an_idle_sequence_with_tokens_of_its_own_keeps_them() -> None:
    rng = random.Random(10)
    first = prompt_of(rng, 5)
    model = Scripted(count=4)
    costs = replace(ASSUMED, together={1: 1.0, 2: 1.4, 3: 1.9, 4: 1.5})
    scheduler = Scheduler(model, costs=costs, clock=lambda: model.seconds)
    run(scheduler, earlier := request(first, max_tokens=4))
    model.gate = threading.Semaphore(0)
    run(scheduler, *(request(prompt_of(rng, 20)) for _ in range(3)))
    run(scheduler, again := request([*first, *earlier.answer.tokens, 1]))
    assert again.cached_tokens == len(first) + 3
    assert max(map(len, model.batches)) == 4
    scheduler.close()


@pytest.mark.parametrize(("batch_invariant", "lengths"), [(True, [5, 1]), (False, [1])])
def test_short_runs_go_along_where_answers_need_not_be_batch_invariant(
    start: Any, batch_invariant: bool, lengths: list[int]
) -> None:
    scheduler, model = start(count=8, batch_invariant=batch_invariant)
    model.gate = threading.Semaphore(0)
    writing = request([1, 2, 3], max_tokens=30)
    scheduler.submit(writing)
    model.gate.release(5)
    wait_until(lambda: len(writing.answer.tokens) >= 5)
    rng = random.Random(5)
    prompts = [prompt_of(rng, 5) for _ in range(7)]
    requests = [request(prompt, max_tokens=6) for prompt in prompts]
    run(scheduler, *requests)  # they come together: the model waits for the gate
    assert [one.answer.tokens for one in requests] == [expected(prompt, 6) for prompt in prompts]
    writing.done.result(30)
    assert {length for _, _, length in model.batches[0]} == {3}  # it was alone
    assert sorted({length for batch in model.batches[1:] for _, _, length in batch}, reverse=True) == lengths


def test_long_prompts_end_with_two_tokens_where_flash_attention_may_be_used(start: Any) -> None:
    scheduler, model = start(count=2, batch_invariant=False)
    prompt = prompt_of(random.Random(6), 100)
    for _ in range(2):
        run(scheduler, request(prompt, max_tokens=1))
    assert [batch[0][2] for batch in model.batches] == [98, 2, 2]


def test_a_cancelled_request_is_out_before_the_next_step(start: Any) -> None:
    scheduler, model = start(count=1)
    model.gate = threading.Semaphore(0)
    gone, queued, kept = request([1, 2], max_tokens=300), request([5], max_tokens=300), request([3, 4], max_tokens=3)
    for one in (gone, queued, kept):
        scheduler.submit(one)
    model.gate.release(5)
    wait_until(lambda: len(gone.answer.tokens) >= 5)
    assert gone.done.cancel()
    assert queued.done.cancel()
    written = len(gone.answer.tokens)
    model.gate.release(10**4)
    kept.done.result(30)
    assert len(gone.answer.tokens) <= written + 1
    assert queued.answer.tokens == []
    assert gone.answer.deadline == queued.answer.deadline == 0, "a mask that is being computed is given up"
    with pytest.raises(CancelledError):
        gone.done.result()


@pytest.mark.slow
def test_random_cancellations_leave_nothing_behind(start: Any) -> None:
    scheduler, model = start(count=3)
    rng = random.Random(5)
    shared = prompt_of(rng, 50)
    for round_number in range(60):
        requests = [request(shared[: rng.randrange(50)] + prompt_of(rng, 9), max_tokens=200) for _ in range(4)]
        for one in requests:
            scheduler.submit(one)
        for one in rng.sample(requests, 4):
            if rng.random() < 0.5:
                time.sleep(rng.random() / 1000)  # any moment will do
            one.done.cancel()
        scheduler.join()
        for slot in scheduler.slots:
            assert not slot.busy, round_number
            assert slot.tokens.tolist() == model.cells[slot.index], round_number
    run(scheduler, one := request(shared))
    assert one.answer.tokens == expected(shared)


def test_an_error_in_a_callback_ends_that_sequence_alone(start: Any) -> None:
    scheduler, _ = start(count=4)

    def fail(_: Any) -> bool:
        raise RuntimeError("mine")

    in_receive, in_stop = request([1, 2], receive=fail), request([1, 3], wants_stop=fail)
    others = [request([5, number]) for number in range(4)]
    for one in (others[0], in_receive, others[1], in_stop, *others[2:]):
        scheduler.submit(one)
    for number, one in enumerate(others):
        one.done.result(30)
        assert one.answer.tokens == expected([5, number])
    for one in (in_receive, in_stop):
        with pytest.raises(RuntimeError, match="mine"):
            one.done.result(30)


def test_a_failed_evaluation_ends_what_was_in_it_and_no_more(start: Any) -> None:
    scheduler, model = start(count=2)
    model.gate = threading.Semaphore(0)
    model.fails_at = 3
    requests = [request([number, 9]) for number in range(3)]
    for one in requests:
        scheduler.submit(one)
    model.gate.release(10**4)
    for one in requests[:2]:
        with pytest.raises(constrain.ModelError, match="evaluation failed"):
            one.done.result(30)
    requests[2].done.result(30)
    assert requests[2].answer.tokens == expected([2, 9])


def test_an_error_that_nobody_foresaw_leaves_nobody_waiting(start: Any) -> None:
    scheduler, model = start(count=1)
    model.gate = threading.Semaphore(0)
    requests = [request([1, 2]), request([3])]
    for one in requests:
        scheduler.submit(one)
    model.evaluate = lambda _: 1 / 0  # type: ignore[method-assign]
    model.gate.release(10**4)
    for one in requests:
        with pytest.raises(constrain.ModelError, match="division by zero") as caught:
            one.done.result(30)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    scheduler.join()
    assert scheduler.has_failed
    assert model.closed
    with pytest.raises(constrain.ModelError, match="ask again"):
        scheduler.submit(request([1]))


def test_requests_that_waited_for_a_sequence_that_fails_evaluate_the_prompt_themselves(start: Any) -> None:
    scheduler, model = start(count=4, n_batch=64)
    model.gate = threading.Semaphore(0)
    prompt = prompt_of(random.Random(6), 300)
    requests = [request(prompt), request(prompt), request(prompt)]
    for one in requests:
        scheduler.submit(one)
    model.gate.release(2)
    wait_until(lambda: len(model.batches) >= 2)
    requests[0].done.cancel()
    model.gate.release(10**4)
    for one in requests[1:]:
        one.done.result(30)
        assert one.answer.tokens == expected(prompt)
    assert model.evaluated < 2 * 300 + 100


def test_a_timeout_counts_from_the_first_step_and_ends_the_answer(start: Any) -> None:
    scheduler, model = start(count=1)
    model.gate = threading.Semaphore(0)
    first, late = request([1, 2], max_tokens=5), request([3, 4], max_tokens=300, timeout=0.0)
    scheduler.submit(first)
    scheduler.submit(late)
    model.gate.release(10**4)
    late.done.result(30)
    assert first.answer.finish_reason == "length"
    assert late.answer.finish_reason == "timeout"
    assert len(late.answer.tokens) == 0


def test_a_context_is_filled_to_the_last_token_and_requests_that_cannot_be_answered_are_refused(start: Any) -> None:
    scheduler, model = start(n_ctx=50)
    with pytest.raises(constrain.ModelError, match="the context holds 50"):
        scheduler.submit(request([1] * 50))
    with pytest.raises(constrain.ModelError, match="empty"):
        scheduler.submit(request([]))
    run(scheduler, nothing := request([1], max_tokens=0))
    assert nothing.answer.tokens == []
    assert model.evaluated == 0
    run(scheduler, one := request([0, 1, 2], max_tokens=10**6))
    assert one.answer.tokens == expected([0, 1, 2], 47)
    assert max(map(len, model.cells)) == 49


def test_closing_ends_everything_and_refuses_more(start: Any) -> None:
    scheduler, model = start(count=1)
    model.gate = threading.Semaphore(0)
    requests = [request([1, 2], max_tokens=300), request([3, 4])]
    for one in requests:
        scheduler.submit(one)
    closing = threading.Thread(target=scheduler.close)
    closing.start()
    wait_until(lambda: scheduler._closed)
    model.gate.release(10**4)
    closing.join(30)
    assert model.closed
    for one in requests:
        with pytest.raises(constrain.ModelError, match="closed"):
            one.done.result(30)
    with pytest.raises(constrain.ModelError, match="closed"):
        scheduler.submit(request([1]))


def test_closing_from_a_callback_is_refused(start: Any) -> None:
    scheduler, model = start()
    one = request([1, 2], receive=lambda _: scheduler.close())
    scheduler.submit(one)
    with pytest.raises(constrain.ModelError, match="own generation"):
        one.done.result(30)
    assert not model.closed


def test_masks_are_prepared_while_the_model_computes() -> None:
    builder = constrain.grammars.GrammarBuilder()
    word = builder.terminal("word", parse_pattern("[A-Z]{12}", "rust"))
    builder.define(builder.rule("start"), [[word]])
    vocabulary = constrain.Vocabulary.from_tokens(TOKENS, eos=[EOS])
    constraint = constrain.compile(builder.build(), vocabulary, cache=False)
    answers = [
        Answer(
            [number],
            Chain(Sampling(temperature=0), N_VOCAB, 400),
            constraint.matcher,
            eos={EOS},
            encode=lambda text: [TOKENS.index(bytes([byte])) for byte in text],
            token_bytes=TOKENS.__getitem__,
        )
        for number in range(3)
    ]

    class Waiting(Scripted):
        """A model that computes until the masks are there."""

        def evaluate(self, pieces: Sequence[Piece]) -> list[int]:
            end = time.monotonic() + 20
            firsts = [(self.cells[piece.sequence] or piece.tokens)[0] for piece in pieces]
            while not all(answers[first].is_prepared for first in firsts):
                assert time.monotonic() < end, "nobody prepares the masks"
            return super().evaluate(pieces)

    scheduler = Scheduler(Waiting())
    run(scheduler, *map(Request, answers))
    scheduler.close()
    assert [len(answer.tokens) for answer in answers] == [12, 12, 12]


FOURS = {1: 1.0, 2: 1.4, 3: 1.9, 4: 1.5, 6: 2.6, 8: 2.3}
"""Four rows at a time: three tokens cost more than four, six more than eight."""

DEAR = {1: 1.0, 2: 2.5, 8: 10.0}
"""Two tokens cost more than two evaluations."""


@for_each(
    "costs, needed, spare, groups",
    (FOURS, (0, 1, 2), (3, 4), [Group(0, 3, 3)]),
    (FOURS, (1, 2, 3), (0,), [Group(0, 3, 3)]),
    (FOURS, (0, 1, 2), (), [Group(0, 2, 3)]),
    (FOURS, (0, 2, 4, 6), (1, 3, 5, 7), [Group(0, 7, 4)]),
    (FOURS, (0, 7), (1, 2, 3, 4, 5, 6), [Group(0, 0, 1), Group(7, 7, 1)]),
    (DEAR, (0, 1, 2), (), [Group(0, 0, 1), Group(1, 1, 1), Group(2, 2, 1)]),
)
def test_groups(costs: dict[int, float], needed: tuple[int, ...], spare: tuple[int, ...], groups: list[Group]) -> None:
    assert list(Grouping(costs).groups(needed, spare)) == groups


def test_measurements_that_differ_by_noise_change_nothing() -> None:
    assert Grouping({1: 1.0, 2: 2.02, 3: 3.0, 4: 2.98}).groups((0, 1, 2), (3,)) == (Group(0, 2, 3),)


def least(costs: dict[int, float], needed: tuple[int, ...], spare: tuple[int, ...]) -> float:
    """The least cost of all divisions, each group as wide as it may be: found by trying all."""
    best = float("inf")
    usable = {*needed, *spare}
    for ends in product([False, True], repeat=len(needed) - 1):
        cost, begin = 0.0, 0
        for end, is_end in enumerate([*ends, True]):
            if not is_end:
                continue
            first, last = needed[begin], needed[end]
            begin = end + 1
            if not usable.issuperset(range(first, last + 1)):
                cost = float("inf")
                break
            lower, upper = first, last
            while lower - 1 in spare:
                lower -= 1
            while upper + 1 in spare:
                upper += 1
            cost += min(estimate(costs, size) for size in range(last - first + 1, upper - lower + 2))
        best = min(best, cost)
    return best


@for_each("seed", range(200))
def test_no_other_division_costs_less(seed: int) -> None:
    rng = random.Random(seed)
    costs = {size: rng.uniform(0.5, 2) * size**0.7 for size in (1, 2, 3, 4, 6, 8)}
    numbers = list(range(8))
    rng.shuffle(numbers)
    needed = tuple(sorted(numbers[: rng.randint(1, 7)]))
    spare = tuple(
        sorted(rng.sample([each for each in range(8) if each not in needed], rng.randint(0, 8 - len(needed))))
    )
    grouping = Grouping(costs)
    groups = grouping.groups(needed, spare)
    assert grouping.seconds(groups) <= least(costs, needed, spare) / 0.95 + 1e-9
    covered = [number for group in groups for number in range(group.first, group.last + 1)]
    assert {*needed} <= {*covered} <= {*needed, *spare}
    assert [sum(group.first <= each <= group.last for each in needed) for group in groups] == [
        group.members for group in groups
    ]


LENGTH = 12


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(Scripted())
    yield made
    made.close()
    assert "constrain-decide" not in [thread.name for thread in threading.enumerate()]


@pytest.fixture(scope="module")
def constraint() -> Constraint:
    builder = constrain.grammars.GrammarBuilder()
    word = builder.terminal("word", parse_pattern(f"[A-Z]{{{LENGTH}}}", "rust"))
    builder.define(builder.rule("start"), [[word]])
    return constrain.compile(builder.build(), constrain.Vocabulary.from_tokens(TOKENS, eos=[EOS]), cache=False)


def answer_of(prompt: list[int], constraint: Constraint, kind: type[Answer] = Answer) -> Answer:
    return kind(
        prompt,
        Chain(Sampling(temperature=0), N_VOCAB, 400),
        constraint.matcher,
        eos={EOS},
        encode=lambda text: [TOKENS.index(bytes([byte])) for byte in text],
        token_bytes=TOKENS.__getitem__,
    )


def difficult(prompt: list[int], constraint: Constraint, gate: threading.Event, **options: Any) -> Request:
    """A request whose choices are made when the gate is open."""

    class Difficult(Answer):
        may_take_long = True

        def choose(self, *args: Any) -> tuple[int, ...]:
            assert gate.wait(30)
            return super().choose(*args)

    return Request(answer_of(prompt, constraint, Difficult), **options)


@pytest.mark.parametrize("batch_invariant", [False, True])
def test_others_go_on_while_a_choice_is_made(constraint: Constraint, batch_invariant: bool) -> None:
    scheduler = Scheduler(Scripted(), batch_invariant=batch_invariant)
    gate = threading.Event()
    slow = difficult([1, 2], constraint, gate)
    scheduler.submit(slow)
    slow.begun.result(30)
    for number in range(3):
        run(scheduler, one := request([3, number]))
        assert one.answer.tokens == expected([3, number])
    assert not slow.done.done()
    gate.set()
    slow.done.result(30)
    run(scheduler, quick := difficult([1, 2], constraint, gate))
    assert slow.answer.tokens == quick.answer.tokens
    assert len(slow.answer.tokens) == LENGTH
    scheduler.close()


def test_a_request_is_cancelled_while_its_choice_is_made(scheduler: Scheduler, constraint: Constraint) -> None:
    gate = threading.Event()
    slow = difficult([1, 2], constraint, gate)
    scheduler.submit(slow)
    slow.begun.result(30)
    assert slow.done.cancel()
    scheduler.join()  # it waits for nothing
    assert not any(slot.busy for slot in scheduler.slots)
    gate.set()


def test_closing_waits_for_choices_of_cancelled_requests(constraint: Constraint) -> None:
    gate, asked = threading.Event(), threading.Event()

    class Asked(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            asked.set()
            return gate.wait(timeout)

    model = Scripted()
    scheduler = Scheduler(model)
    slow = difficult([1, 2], constraint, Asked())
    scheduler.submit(slow)
    assert asked.wait(30)
    slow.done.cancel()
    closing = threading.Thread(target=scheduler.close)
    closing.start()
    scheduler.join()
    assert not model.closed
    gate.set()
    closing.join(30)
    assert model.closed


def test_answers_whose_time_is_up_end_beside_one_that_cannot(scheduler: Scheduler, constraint: Constraint) -> None:
    gate, opened = threading.Event(), threading.Event()
    opened.set()
    slow = difficult([1, 2], constraint, gate)
    late = difficult([6, 7], constraint, opened, timeout=0.0)
    for one in (slow, late):
        scheduler.submit(one)
    late.done.result(30)
    assert late.answer.finish_reason == "timeout"
    assert len(late.answer.tokens) == LENGTH
    assert not slow.done.done()
    gate.set()


def test_choices_that_take_more_than_they_may_end_the_answer(scheduler: Scheduler, constraint: Constraint) -> None:
    gate = threading.Event()
    gate.set()
    slow = difficult([1, 2], constraint, gate)
    slow.answer.max_choice_seconds = 0.0
    run(scheduler, slow)
    assert slow.answer.finish_reason == "timeout"
    assert len(slow.answer.tokens) == LENGTH


def test_choices_may_take_long_where_masks_are_new_or_searches_not_known_to_be_easy(constraint: Constraint) -> None:
    fresh = constrain.compile(constraint.grammar, constraint.vocabulary, cache=False)
    assert all(judged(answer_of([1], fresh)))
    assert not any(judged(answer_of([1], fresh)))
    tight = answer_of([1], fresh)
    tight.max_tokens = LENGTH + 1  # what is left has a say
    seen = judged(tight)
    assert seen[0]
    assert not seen[-1]


def judged(answer: Answer) -> list[bool]:
    """What is expected of every choice."""
    answer.begin(400)
    candidates, logits, seen = Candidates(N_VOCAB), np.zeros(N_VOCAB, np.float32), []
    while not answer.is_done:
        seen.append(answer.may_take_long)
        answer.choose(logits, candidates)
    return seen


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of single threads are Linux's")
def test_a_decision_that_is_not_made_in_time_steps_back() -> None:
    gate = threading.Event()
    priorities: list[int] = []

    def decide() -> int:
        gate.wait(30)
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return 7

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    decision = Decision(decide)
    await_all([decision], 0.0)
    gate.set()
    assert decision.outcome.result(30) == 7
    decision.join()
    assert priorities == [10]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
