"""Batches: the answers of one at a time, samples, errors, prefixes, and a model that is closed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from typing import Any, Literal

import jsonschema
import pydantic
import pytest

import constrain
from constrain.llama.contexts.sequences import Sequences
from tests.support.llama.babbler import babbler, babbler_file
from tests.support.waiting import wait_until

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 30},
        "year": {"type": "integer", "minimum": 1000, "maximum": 2100},
        "genres": {"type": "array", "items": {"enum": ["novel", "poem", "play"]}, "maxItems": 2},
    },
    "required": ["title", "year", "genres"],
}
QUESTIONS = [
    f"Make up a book about {what}." for what in ("a cat", "the sea", "two kings", "mathematics", "Rome", "love")
]


@pytest.fixture(scope="module")
def batched() -> constrain.Model:
    return babbler(n_ctx=512, parallel=4)


def positions(model: constrain.Model) -> list[tuple[int, int]]:
    """For each slot the tokens it should hold and those that llama.cpp holds; no slot may be busy."""
    scheduler = model.scheduler
    scheduler.join()
    evaluator = scheduler._evaluator
    assert isinstance(evaluator, Sequences)
    assert not any(slot.busy for slot in scheduler.slots)
    return [(slot.length, evaluator.length(slot.index)) for slot in scheduler.slots]


@pytest.mark.slow
def test_a_batch_gives_the_answers_of_one_at_a_time(model: constrain.Model, batched: constrain.Model) -> None:
    together = constrain.complete_batch(batched, QUESTIONS, schema=SCHEMA, temperature=0)
    alone = [constrain.complete(model, question, schema=SCHEMA, temperature=0) for question in QUESTIONS]
    assert [one.text for one in together] == [one.text for one in alone]
    assert len({one.text for one in together}) == len(QUESTIONS)
    free: Any = {"temperature": 0, "max_tokens": 12}
    assert constrain.generate_batch(batched, QUESTIONS[:4], **free) == [
        constrain.generate(model, question, **free) for question in QUESTIONS[:4]
    ]
    for one in together:
        jsonschema.validate(one.value, SCHEMA)
        assert one.finish_reason == "stop"
        assert one.usage.completion_tokens == len(one.tokens)
        assert min(one.timings.prompt, one.timings.generation) > 0


@pytest.mark.slow
def test_answers_one_at_a_time_reproduce_without_batch_invariance() -> None:
    """Also where the prompt is known the second time, and was read in one long piece the first time."""
    model = babbler(n_ctx=512, parallel=4, batch_invariant=False)
    options: Any = {"schema": SCHEMA, "temperature": 0.8, "seed": 3, "max_tokens": 60}
    said = "You know all books of the world, and you make up new ones. " * 8 + QUESTIONS[0]
    first, second, third = (constrain.complete_batch(model, [said], **options)[0] for _ in range(3))
    assert first.usage.cached_tokens == 0
    assert second.usage.cached_tokens == first.usage.prompt_tokens - 2 > 64
    assert first.text == second.text == third.text


@pytest.mark.slow
def test_prompts_may_come_from_any_iterable(batched: constrain.Model) -> None:
    listed = constrain.generate_batch(batched, QUESTIONS[:3], schema=bool, max_tokens=8, seed=1)
    for prompts in (tuple(QUESTIONS[:3]), iter(QUESTIONS[:3]), dict.fromkeys(QUESTIONS[:3])):
        assert constrain.generate_batch(batched, prompts, schema=bool, max_tokens=8, seed=1) == listed


@pytest.mark.slow
def test_seeds_reproduce_and_samples_differ(batched: constrain.Model) -> None:
    options: Any = {"schema": SCHEMA, "temperature": 1.5, "seed": 2**32 - 3}
    first = constrain.generate_batch(batched, QUESTIONS[:2], n=3, **options)
    assert first == constrain.generate_batch(batched, QUESTIONS[:2], n=3, **options)
    assert [len(samples) for samples in first] == [3, 3]
    assert len({json.dumps(value) for samples in first for value in samples}) == 6
    # Sample i is drawn with seed + i; seeds end at 2**32 - 2.
    alone = constrain.generate(batched, QUESTIONS[1], **{**options, "seed": 2**32 - 2})
    assert alone == first[1][1]
    assert constrain.generate(batched, QUESTIONS[1], **{**options, "seed": 0}) == first[1][2]


class Even(pydantic.BaseModel):
    number: Literal[1, 3]

    @pydantic.field_validator("number")
    @classmethod
    def even(cls, _: int) -> int:
        raise ValueError("not even")


@pytest.mark.slow
def test_the_first_error_ends_a_batch(batched: constrain.Model) -> None:
    with pytest.raises(constrain.BudgetError):
        constrain.generate_batch(batched, QUESTIONS, schema=SCHEMA, max_tokens=2)
    with pytest.raises(constrain.ModelError, match="the context holds 512"):
        constrain.generate_batch(batched, ["Hello", "word " * 600], schema=SCHEMA)
    with pytest.raises(constrain.OutputValidationError, match="not even"):
        constrain.generate_batch(batched, ["Hello", "Hi"], schemas=[bool, Even])
    assert all(recorded == held for recorded, held in positions(batched))


def test_a_rejected_answer_does_not_lose_the_others(batched: constrain.Model) -> None:
    with pytest.raises(constrain.OutputValidationError, match="not even") as caught:
        constrain.generate_batch(batched, ["Hello", "Hi", "x"], schemas=[bool, Even, bool])
    assert caught.value.outcomes is not None
    assert [type(value) for value in caught.value.outcomes] == [bool, constrain.OutputValidationError, bool]
    with pytest.raises(constrain.OutputValidationError) as caught:
        constrain.complete_batch(batched, ["Hello", "Hi"], schemas=[bool, Even], n=2)
    assert caught.value.outcomes is not None
    assert [[type(one) for one in samples] for samples in caught.value.outcomes] == [
        [constrain.Completion] * 2,
        [constrain.OutputValidationError] * 2,
    ]


def test_errors_may_take_the_place_of_answers(batched: constrain.Model) -> None:
    values = constrain.generate_batch(
        batched, ["Hello", "word " * 600, "Hi", "x"], schemas=[bool, bool, Even, bool], return_errors=True
    )
    kinds = [bool, constrain.ModelError, constrain.OutputValidationError, bool]
    assert [type(value) for value in values] == kinds


BAD_ARGUMENTS: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ("a single text", {}, TypeError, "list of prompts"),
    (["x"], {"n": 0}, ValueError, "n is 0"),
    (["x"], {"schemas": []}, ValueError, "schemas"),
    (["x"], {"schema": bool, "schemas": [bool]}, ValueError, "schemas"),
    (["x"], {"max_token": 3}, TypeError, r"unknown options: max_token \(did you mean max_tokens\?\)$"),
    (["x"], {"temprature": 0}, TypeError, r"unknown options: temprature \(did you mean temperature\?\)"),
    (["x"], {"schema": {"enum": []}}, constrain.SchemaError, "enum"),
]


@pytest.mark.parametrize(("prompts", "options", "error", "message"), BAD_ARGUMENTS)
def test_bad_arguments(batched: constrain.Model, prompts: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        constrain.generate_batch(batched, prompts, **options)


def test_no_prompts_no_answers(batched: constrain.Model) -> None:
    assert constrain.generate_batch(batched, [], schema=bool) == []


@pytest.mark.slow
def test_ctrl_c_leaves_the_model_usable(batched: constrain.Model) -> None:
    digits = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 200}
    for call in (
        lambda: constrain.generate_batch(batched, QUESTIONS, schema=digits, max_tokens=440),
        lambda: constrain.generate(batched, QUESTIONS[0], schema=digits, max_tokens=440),
    ):
        timer = threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            call()
        timer.join()
        assert all(recorded == held for recorded, held in positions(batched))
        assert constrain.generate_batch(batched, ["Yes?"], schema=bool)[0] in (True, False)
        assert constrain.generate(batched, "Yes?", schema=bool) in (True, False)


@pytest.mark.slow
def test_a_batch_runs_beside_a_stream_of_the_same_thread(batched: constrain.Model) -> None:
    events = constrain.stream(batched, "Tell me a story.", max_tokens=5, temperature=0)
    next(events)
    assert len(constrain.generate_batch(batched, QUESTIONS[:2], schema=bool)) == 2
    assert len(list(events)) > 1


@pytest.mark.slow
def test_a_closed_model_says_so() -> None:
    with babbler(n_ctx=256, parallel=2) as model:
        assert constrain.generate_batch(model, ["a", "b"], schema=bool)
        encode = model.vocabulary.encode
        constraint = constrain.compile(SCHEMA, model.vocabulary)
    assert model.is_closed
    assert encode is not None
    uses: list[Any] = [
        model.__enter__,
        lambda: constrain.generate(model, "x", schema=bool),
        lambda: next(iter(constrain.stream(model, "x"))),
        lambda: constrain.generate_batch(model, ["x"]),
        lambda: encode(b"x"),
        lambda: model.scheduler,
    ]
    for use in uses:
        with pytest.raises(constrain.ModelError, match="closed"):
            use()
    model.close()
    assert constraint.accepts('{"title":"a","year":1000,"genres":[]}')


@pytest.mark.slow
def test_closing_waits_for_a_stream_and_ends_what_is_queued() -> None:
    model = babbler(n_ctx=2048, parallel=2)
    events = constrain.stream(model, "Tell me a story.", max_tokens=100)
    next(events)
    with pytest.raises(constrain.ModelError, match="still reading a stream"):
        model.close()
    errors: list[str] = []

    def attempt(call: Any) -> None:
        try:
            call()
        except constrain.ModelError as error:
            errors.append(str(error))

    calls: list[Any] = [
        lambda: constrain.generate_batch(model, QUESTIONS, max_tokens=1500),
        model.close,
        lambda: constrain.generate(model, "Hi", schema=bool),
    ]
    begun: list[Any] = [
        lambda: any(slot.busy for slot in model.scheduler.slots),
        lambda: len(model._queue._callers) == 2,  # the stream, and what closes the model
        lambda: len(model._queue._callers) == 3,
    ]
    threads = [threading.Thread(target=attempt, args=(call,)) for call in calls]
    for thread, has_begun in zip(threads, begun, strict=True):
        thread.start()
        wait_until(has_begun)
    assert not model.is_closed
    events.close()
    for thread in threads:
        thread.join(60)
    assert model.is_closed
    assert sorted("closed" in error for error in errors) == [True, True]


@pytest.mark.slow
def test_a_llama_that_was_given_is_not_closed(model: constrain.Model) -> None:
    from constrain.llama.loading import Llama

    llama = Llama(model.llama.model_path, n_ctx=128, n_threads=1, verbose=False)
    for _ in range(2):
        wrapped = constrain.Model(llama, parallel=2)
        assert constrain.generate_batch(wrapped, ["Yes?"], schema=bool)
        wrapped.close()
    assert llama.create_completion("Hello", max_tokens=1)["choices"]


@pytest.mark.parametrize("parallel", [0, -1, 10**6])
def test_parallel_out_of_range(parallel: int) -> None:
    with pytest.raises(ValueError, match="parallel"):
        constrain.Model(parallel=parallel)


PROGRAM = """
import constrain
from constrain.generation.running import Run
from constrain.generation.planning import prepare
model = constrain.Model({path!r}, n_ctx=256, n_threads=1, parallel=2)
run = Run(prepare(model, "Tell me a story.", None, {{"max_tokens": 200}}))
run.submit()
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "del model, run"])
def test_programs_end_in_the_middle_of_a_generation(end: str) -> None:
    program = [sys.executable, "-c", PROGRAM.format(path=str(babbler_file())) + end]
    done = subprocess.run(program, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
