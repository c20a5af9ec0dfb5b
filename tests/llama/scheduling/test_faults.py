"""What fails beneath the scheduler ends requests with an error, and the next one is answered."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.llama import embedding
from constrain.llama import model as model_module
from constrain.llama.contexts import sequences
from constrain.llama.contexts.sequences import Sequences
from constrain.llama.scheduling import scheduler as scheduler_module
from constrain.llama.scheduling.scheduler import Scheduler
from constrain.llama.threads import preparing
from tests.support.llama.scripted import Scripted, expected, request, run

SECONDS = 60.0


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
def small(tiny: Path) -> Iterator[constrain.Model]:
    with constrain.Model(tiny, n_ctx=256, n_threads=1, parallel=2) as model:
        yield model


def ask(model: constrain.Model, **options: Any) -> str:
    (text,) = constrain.generate_batch(model, ["Say hello."], **{"temperature": 0, "max_tokens": 8, **options})
    return str(text)


def fail(*_: Any, **__: Any) -> Any:
    raise MemoryError


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
    run(scheduler, one := request([3, 4]))
    assert one.answer.tokens == expected([3, 4])
    assert refused.answer.tokens == []
    scheduler.close()
    assert model.closed


# Errors in a step


@pytest.mark.parametrize("error", [ValueError("a bug"), MemoryError()])
def test_the_next_request_gets_another_scheduler(
    small: constrain.Model, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    usual = ask(small)
    dead: Any = small.scheduler
    evaluator: Any = dead._evaluator

    def fail(_: Any) -> Any:
        raise error

    monkeypatch.setattr(evaluator, "evaluate", fail)
    (found,) = constrain.generate_batch(small, ["a"], max_tokens=8, return_errors=True)
    assert isinstance(found, constrain.ModelError)
    assert repr(error) in str(found)
    assert ask(small) == usual
    assert small.scheduler is not dead
    assert evaluator._context.ctx is None  # freed before the other one was made


def test_a_dead_scheduler_frees_its_context_before_the_weights(
    small: constrain.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small
    order: list[str] = []
    evaluator: Any = model.scheduler._evaluator
    close, close_llama = evaluator.close, model.llama.close
    monkeypatch.setattr(evaluator, "close", lambda: (order.append("context"), close()))
    monkeypatch.setattr(model.llama, "close", lambda: (order.append("weights"), close_llama()))
    monkeypatch.setattr(evaluator, "evaluate", lambda _: 1 / 0)
    with pytest.raises(constrain.ModelError, match="division by zero"):
        ask(model)
    model.close()
    assert order == ["context", "weights"]


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


def test_a_sequence_that_cannot_be_set_aside_is_evaluated_anew(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = [f"{number}: What do you know of the moon and the sun and the stars?" for number in range(2)]
    options: Any = {"max_tokens": 2, "temperature": 0}
    failures: list[int] = []

    def fail(*_: Any, **__: Any) -> Any:
        failures.append(1)
        raise OSError(12, "Cannot allocate memory")

    with constrain.Model(tiny, n_ctx=256, n_threads=1, parallel=1, prompt_cache=False) as model:
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


# Closing


def test_a_closing_that_was_interrupted_goes_on(small: constrain.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small
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


@pytest.mark.parametrize("name", ["Tokenizer", "Context"])
def test_a_model_that_cannot_be_made_leaves_no_weights(tiny: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    loaded: list[Any] = []
    load = model_module.load

    def noted(*arguments: Any, **options: Any) -> Any:
        loaded.append(load(*arguments, **options))
        return loaded[-1]

    monkeypatch.setattr(model_module, "load", noted)
    monkeypatch.setattr(model_module, name, fail)
    with pytest.raises(MemoryError):
        constrain.Model(tiny, n_ctx=64, n_threads=1)
    assert [one._model.model for one in loaded] == [None]


@pytest.mark.parametrize(("module", "name"), [(scheduler_module, "Candidates"), (sequences, "Batch")])
def test_a_scheduler_that_cannot_be_made_leaves_no_context(
    small: constrain.Model, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    made: list[Any] = []

    class Noted(Sequences):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            made.append(self)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(model_module, "Sequences", Noted)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fail)
        with pytest.raises(MemoryError):
            ask(small)
    assert [one._context.ctx for one in made] == [None]
    assert ask(small)
