"""What fails beneath the scheduler ends requests with an error, and the next one is answered."""

from __future__ import annotations

import mmap
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import constrain
from constrain.llama import embedding
from constrain.llama import model as model_module
from constrain.llama.contexts import sequences, stored_states
from constrain.llama.contexts.sequences import Sequences
from constrain.llama.scheduling import deciding
from constrain.llama.scheduling import scheduler as scheduler_module
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.llama.threads import preparing
from constrain.llama.threads.threads import Threads
from tests.support.llama.scripted import Scripted, expected, request

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0
NAMES = ("constrain-scheduler", "constrain-decide", "constrain-mask_0")


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Names of threads that the system cannot start."""
    names: set[str] = set()
    start = threading.Thread.start

    def start_or_fail(thread: threading.Thread) -> None:
        if thread.name in names:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_fail)
    preparing._helper.cache_clear()
    yield names
    preparing._helper.cache_clear()


@pytest.fixture
def small() -> Iterator[constrain.Model]:
    with constrain.Model(n_ctx=256, n_threads=1, parallel=2) as model:
        yield model


def ask(model: constrain.Model, **options: Any) -> str:
    (text,) = constrain.generate_batch(model, ["Say hello."], **{"temperature": 0, "max_tokens": 8, **options})
    return str(text)


# Threads that cannot be started


def test_a_scheduler_without_a_thread_refuses_that_request_alone(no_thread: set[str]) -> None:
    model = Scripted()
    scheduler = Scheduler(model)
    no_thread.add("constrain-scheduler")
    refused = request([1, 2])
    with pytest.raises(constrain.ModelError, match="no thread to run the model in: can't start"):
        scheduler.submit(refused)
    scheduler.join()
    no_thread.clear()
    one = request([3, 4])
    scheduler.submit(one)
    one.done.result(SECONDS)
    assert one.answer.tokens == expected([3, 4])
    assert refused.answer.tokens == []
    scheduler.close()
    assert model.closed


def test_a_start_that_is_interrupted_leaves_one_thread_to_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    scheduler = Scheduler(Scripted())
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scheduler.submit(request([1, 2]))
    requests = [request([number, 4]) for number in range(3)]
    for one in requests:
        scheduler.submit(one)
    for number, one in enumerate(requests):
        one.done.result(SECONDS)
        assert one.answer.tokens == expected([number, 4])
    scheduler.close()


@pytest.mark.slow
def test_masks_without_a_thread_are_computed_by_the_choices(
    small: constrain.Model, no_thread: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = {"enum": ["red", "green"]}
    usual = ask(small, schema=schema)
    monkeypatch.setattr(Threads, "leave_a_core", True)
    no_thread.add("constrain-mask_0")
    other = {"enum": ["red", "green"], "title": "compiled anew"}
    again = {**other, "title": "again"}
    for call in (
        lambda: ask(small, schema=other),
        lambda: constrain.generate(small, "Say hello.", schema=again, temperature=0),
    ):
        preparing._helper.cache_clear()
        assert call() == usual
        assert preparing._helper.cache_info().misses == 1  # a thread was asked for


@pytest.mark.slow
def test_a_decision_without_a_thread_ends_that_answer_alone(small: constrain.Model, no_thread: set[str]) -> None:
    no_thread.add("constrain-decide")
    asked: Any = {"temperature": 0, "max_tokens": 40, "return_errors": True}
    hard = {"type": "string", "pattern": "^(a|b)*a(a|b){12}$"}
    found = constrain.generate_batch(small, ["Say a.", "Say b."], schemas=[hard, None], **asked)
    assert isinstance(found[0], constrain.ModelError)
    assert "no thread" in str(found[0])
    assert isinstance(found[1], str)
    no_thread.clear()
    (text,) = constrain.generate_batch(small, ["Say a."], schema=hard, **asked)
    assert text[-13] == "a"


# Errors in a step


@pytest.mark.slow
@pytest.mark.parametrize("error", [ValueError("a bug"), MemoryError()])
def test_the_next_request_gets_another_scheduler(
    small: constrain.Model, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    usual = ask(small)
    dead: Any = small.scheduler
    evaluator: Any = dead._evaluator
    submit, submitted = dead.submit, threading.Semaphore(0)

    def note(one: Any) -> None:
        submit(one)
        submitted.release()

    def fail(_: Any) -> Any:
        for _ in range(4):
            assert submitted.acquire(timeout=SECONDS)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(dead, "submit", note)
        patch.setattr(evaluator, "evaluate", fail)
        found = constrain.generate_batch(small, ["a", "b", "c", "d"], max_tokens=8, return_errors=True)
    assert [type(one) for one in found] == [constrain.ModelError] * 4
    assert len(set(map(id, found))) == 4
    assert all(repr(error) in str(one) for one in found)
    assert ask(small) == usual
    assert small.scheduler is not dead
    assert evaluator._context.ctx is None  # freed before the other one was made


def test_a_dead_scheduler_frees_its_context_before_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    model = constrain.Model(n_ctx=256, n_threads=1, parallel=2)
    order: list[str] = []
    evaluator: Any = model.scheduler._evaluator
    close, close_llama = evaluator.close, model.llama.close
    monkeypatch.setattr(evaluator, "close", lambda: (order.append("context"), close()))
    monkeypatch.setattr(model.llama, "close", lambda: (order.append("weights"), close_llama()))
    monkeypatch.setattr(evaluator, "evaluate", lambda _: 1 / 0)
    with pytest.raises(constrain.ModelError, match="division by zero"):
        ask(model)
    model.close()
    model.close()
    assert order == ["context", "weights", "weights"]


def test_decisions_are_over_before_a_dead_scheduler_frees_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Scripted()
    scheduler = Scheduler(model)
    gate, deciding_now = threading.Event(), threading.Event()

    def decide() -> tuple[int, ...]:
        deciding_now.set()
        assert gate.wait(SECONDS)
        assert not model.closed
        return ()

    decision = deciding.Decision(decide)
    assert deciding_now.wait(SECONDS)
    scheduler._decisions.append(decision)
    monkeypatch.setattr(model, "evaluate", lambda _: 1 / 0)
    one = request([1, 2])
    scheduler.submit(one)
    with pytest.raises(constrain.ModelError):
        one.done.result(SECONDS)  # is told at once, and does not wait for the decision
    assert not model.closed
    gate.set()
    scheduler.close()
    assert decision.outcome.result(SECONDS) == ()
    assert model.closed


@pytest.mark.parametrize("name", ["cut", "copy", "save", "restore", "clear", "sample"])
def test_an_error_about_one_sequence_ends_that_one_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model = Scripted(count=2)
    scheduler = Scheduler(model)
    talks = [[7] * 60 + [number] * 40 for number in range(3)] + [[20] * 100]
    method = getattr(model, name)
    left = [1]

    def fail_once(*arguments: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise MemoryError
        return method(*arguments)

    monkeypatch.setattr(model, name, fail_once)
    failed = 0
    for turn in range(8):
        requests = [request(talk[: len(talk) - 7 * (turn % 3)], max_tokens=5) for talk in talks]
        for one in requests:
            scheduler.submit(one)
        for one in requests:
            failed += one.done.exception(SECONDS) is not None
            if one.done.exception() is None:
                assert one.answer.tokens == expected(one.answer.prompt, 5)
            else:
                assert isinstance(one.done.exception(), MemoryError)
    assert left[0] <= 0, f"{name} is never called"
    assert failed == 1
    assert not scheduler.has_failed
    scheduler.close()


@pytest.mark.slow
def test_a_failed_evaluation_of_a_real_model_is_an_error_and_the_next_one_is_none(
    small: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, alone = ask(small), constrain.generate(small, "Say hello.", temperature=0, max_tokens=8)
    with monkeypatch.context() as patch:
        patch.setattr(sequences.llama_cpp, "llama_decode", lambda *_: -3)
        with pytest.raises(constrain.ModelError, match="llama_decode returned -3"):
            ask(small)
        with pytest.raises(constrain.ModelError, match="llama_decode returned -3"):
            constrain.generate(small, "Say hello.", temperature=0, max_tokens=8)
    assert ask(small) == usual
    assert constrain.generate(small, "Say hello.", temperature=0, max_tokens=8) == alone


# No memory


@pytest.mark.slow
def test_a_sequence_that_cannot_be_set_aside_is_evaluated_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [f"{number}: What do you know of the moon and the sun and the stars?" for number in range(2)]
    options: Any = {"max_tokens": 2, "temperature": 0}
    failures: list[int] = []

    def fail(*_: Any, **__: Any) -> Any:
        failures.append(1)
        raise OSError(12, "Cannot allocate memory")

    with constrain.Model(n_ctx=256, n_threads=1, parallel=1) as model:
        for call in (
            lambda prompt: constrain.complete_batch(model, [prompt], **options)[0],
            lambda prompt: constrain.complete(model, prompt, **options),
        ):
            usual = [call(prompt).text for prompt in prompts]
            with monkeypatch.context() as patch:
                patch.setattr(mmap, "mmap", fail)
                assert [call(prompt).text for prompt in prompts] == usual
            assert len(failures) == 2
            failures.clear()
            assert call(prompts[0]).text == usual[0]


def test_a_state_whose_size_llama_cpp_does_not_know_is_not_set_aside(
    small: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_states.llama_cpp, "llama_state_seq_get_size", lambda *_: 0)
    assert stored_states.ContextStates(small.context.pointer).save(0) is None


def test_what_is_dropped_is_freed_before_the_next_sequence_is_set_aside() -> None:
    kept: list[int] = []

    class Counting(Scripted):
        def save(self, sequence: int) -> Any:
            kept.append(sum(len(one.tokens) for one in slots._kept))
            return super().save(sequence)

    model = Counting(count=1)
    slots = stored_states.StoredStates(model, 100, one_state=False)
    for number in range(4):
        present, wanted = np.full(60, number, np.intc), np.full(60, 9, np.intc)
        slots.exchange(0, present, wanted)
    assert kept == [0, 0, 0, 0]


@pytest.mark.slow
def test_a_scheduler_that_cannot_be_made_leaves_no_context(
    small: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Noted(Sequences):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            made.append(self)
            super().__init__(*arguments, **options)

    def fail(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(model_module, "Sequences", Noted)
    for module, name in ((scheduler_module, "Candidates"), (sequences, "Batch")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(MemoryError):
                ask(small)
    assert [one._context.ctx for one in made] == [None, None]
    assert ask(small)


@pytest.mark.slow
def test_a_model_that_cannot_be_made_leaves_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []
    load = model_module.load

    def noted(*arguments: Any, **options: Any) -> Any:
        loaded.append(load(*arguments, **options))
        return loaded[-1]

    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(model_module, "load", noted)
    for name in ("Tokenizer", "Context"):
        with monkeypatch.context() as patch:
            patch.setattr(model_module, name, fail)
            with pytest.raises(MemoryError):
                constrain.Model(n_ctx=64, n_threads=1)
    assert [one._model.model for one in loaded] == [None, None]


# Closing


@pytest.mark.slow
def test_a_closing_that_was_interrupted_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model = constrain.Model(n_ctx=64, n_threads=1, parallel=1)
    ask(model, max_tokens=2)
    assert len(model.embedder.embed([1, 2])) == model.embedder.size

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    for owner, name in ((embedding.Embedder, "close"), (Scheduler, "join")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                model.close()
        assert model.is_closed
        assert model.llama._model.model is not None
    model.close()
    assert model.llama._model.model is None


@pytest.mark.slow
def test_several_threads_may_close_a_model_at_once(small: constrain.Model) -> None:
    ask(small)

    def close(_: int) -> bool:
        small.close()
        return small.llama._model.model is None

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(close, range(4), timeout=SECONDS)) == [True] * 4
