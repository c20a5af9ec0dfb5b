"""Choices that take long: other answers go on, and what becomes of one whose choice is not made yet."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.engine.constraint import Constraint
from constrain.llama.binding import Candidates
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.llama.scheduling.deciding import Decision, await_all
from constrain.llama.scheduling.request import Request
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.regex.parsing.parser import parse_pattern
from tests.support.llama.scripted import EOS, N_VOCAB, TOKENS, Scripted, expected, request, run

LENGTH = 12


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(Scripted())
    yield made
    made.close()
    assert "constrain-decide" not in [thread.name for thread in threading.enumerate()]


@pytest.fixture(scope="module")
def constraint() -> Constraint:
    builder = constrain.GrammarBuilder()
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
