"""Asynchronous calls: many tasks at once, streams, cancellation."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

import constrain
from constrain.chat.reading.events import TextDelta
from constrain.generation.completion import Finished
from tests.support import LONG
from tests.support.llama.babbler import babbler
from tests.support.waiting import wait_until_async

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string", "maxLength": 20}, "year": {"type": "integer", "maximum": 2100}},
    "required": ["title", "year"],
}
QUESTIONS = [f"Make up a book about {what}." for what in ("a cat", "the sea", "two kings", "love", "Rome")]


@pytest.fixture(scope="module")
def shared() -> constrain.Model:
    return babbler(n_ctx=4096, parallel=3)


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def is_free(model: constrain.Model) -> bool:
    model.scheduler.join()
    evaluator: Any = model.scheduler._evaluator
    return all(not slot.busy and evaluator.length(slot.index) == slot.length for slot in model.scheduler.slots)


def is_answering(model: constrain.Model) -> bool:
    return any(slot.busy for slot in model.scheduler.slots)


@pytest.mark.slow
def test_tasks_share_the_model_and_get_the_answers_of_one_at_a_time(
    model: constrain.Model, shared: constrain.Model
) -> None:
    async def ask() -> list[constrain.Completion]:
        calls = [constrain.acomplete(shared, question, schema=SCHEMA, temperature=0) for question in QUESTIONS]
        return await asyncio.gather(*calls)

    alone = [constrain.complete(model, question, schema=SCHEMA, temperature=0).text for question in QUESTIONS]
    assert [completion.text for completion in run(ask())] == alone


@pytest.mark.slow
def test_values_are_of_the_type(shared: constrain.Model) -> None:
    assert run(constrain.agenerate(shared, "Yes?", schema=bool)) in (True, False)
    assert isinstance(run(constrain.agenerate(shared, "Hello", max_tokens=3)), str)


@pytest.mark.slow
@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_a_stream_is_the_answer_piece_by_piece(shared: constrain.Model, schema: Any) -> None:
    options: Any = {"schema": schema, "seed": 4, "max_tokens": 30}

    async def read() -> list[Any]:
        return [event async for event in constrain.astream(shared, QUESTIONS[0], **options)]

    *pieces, last = run(read())
    assert isinstance(last, Finished)
    assert all(isinstance(piece, TextDelta) for piece in pieces)
    assert len(pieces) > 3
    assert "".join(piece.text for piece in pieces) == last.completion.text
    assert last.completion.text == constrain.complete(shared, QUESTIONS[0], **options).text


@pytest.mark.slow
def test_other_tasks_go_on_while_a_stream_is_not_read(shared: constrain.Model) -> None:
    async def both() -> int:
        events = constrain.astream(shared, QUESTIONS[0], max_tokens=40)
        await anext(events)
        assert await constrain.agenerate(shared, "Yes?", schema=bool) in (True, False)
        return len([event async for event in events])

    assert run(both()) > 1


def test_a_stream_that_is_closed_leaves_the_model(shared: constrain.Model) -> None:
    async def leave() -> None:
        events = constrain.astream(shared, QUESTIONS[0], max_tokens=3000)
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]

    run(leave())
    assert is_free(shared)


def test_errors_come_to_whoever_waits(shared: constrain.Model) -> None:
    with pytest.raises(constrain.BudgetError):
        run(constrain.agenerate(shared, "x", schema=SCHEMA, max_tokens=2))
    with pytest.raises(constrain.SchemaError):
        run(constrain.agenerate(shared, "x", schema={"enum": []}))
    with pytest.raises(TypeError, match="max_token"):
        run(constrain.agenerate(shared, "x", max_token=2))  # type: ignore[misc]


@pytest.mark.slow
def test_votes_are_those_of_one_at_a_time(shared: constrain.Model) -> None:
    asked: dict[str, Any] = {"schema": SCHEMA, "n": 3, "vote": True, "seed": 1, "max_tokens": 40}
    found = asyncio.run(constrain.acomplete(shared, QUESTIONS[0], **asked))
    same = constrain.complete(shared, QUESTIONS[0], **asked)
    assert (found.value, found.agreement, len(found.votes)) == (same.value, same.agreement, 3)
    assert asyncio.run(constrain.agenerate(shared, QUESTIONS[0], **asked)) == same.value
    with pytest.raises(ValueError, match="vote=True needs n"):
        asyncio.run(constrain.acomplete(shared, "x", schema=SCHEMA, vote=True))
    with pytest.raises(constrain.BudgetError):
        asyncio.run(constrain.acomplete(shared, "x", **{**asked, "max_tokens": 1}))


def test_a_timeout_of_asyncio_cancels(shared: constrain.Model) -> None:
    async def impatient() -> None:
        await asyncio.wait_for(constrain.agenerate(shared, "Tell me a story.", max_tokens=3000), 0.1)

    with pytest.raises(asyncio.TimeoutError):
        run(impatient())
    assert is_free(shared)


@pytest.mark.slow
def test_cancellations_at_random_moments_leave_the_model_usable(
    model: constrain.Model, shared: constrain.Model
) -> None:
    rng = random.Random(12)

    async def many() -> None:
        for _ in range(50 if LONG else 10):
            tasks = [
                asyncio.create_task(constrain.agenerate(shared, question, schema=SCHEMA))
                for question in rng.sample(QUESTIONS, 4)
            ]
            for task in tasks:
                await asyncio.sleep(rng.random() / 100)  # any moment will do
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run(many())
    assert is_free(shared)
    options: Any = {"schema": SCHEMA, "temperature": 0}
    assert run(constrain.agenerate(shared, QUESTIONS[1], **options)) == constrain.generate(
        model, QUESTIONS[1], **options
    )


def test_a_loop_that_ends_cancels_what_it_left(shared: constrain.Model) -> None:
    async def leave() -> None:
        task = asyncio.create_task(constrain.agenerate(shared, "Tell me a story.", max_tokens=3000))
        await wait_until_async(lambda: is_answering(shared))
        assert not task.done()

    run(leave())
    assert is_free(shared)


@pytest.mark.slow
def test_closing_the_model_ends_tasks_with_an_error() -> None:
    model = babbler(n_ctx=4096, parallel=2)

    async def closed_meanwhile() -> None:
        task = asyncio.create_task(constrain.agenerate(model, "Tell me a story.", max_tokens=3000))
        await wait_until_async(lambda: is_answering(model))
        await asyncio.to_thread(model.close)
        await task

    with pytest.raises(constrain.ModelError, match="closed"):
        run(closed_meanwhile())
