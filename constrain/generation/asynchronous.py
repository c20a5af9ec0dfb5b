"""``agenerate``, ``acomplete`` and ``astream``: the asynchronous twins, which share one model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar, overload

from constrain.errors import ConstrainError
from constrain.generation.batch import decide_outcomes, outcome_of
from constrain.generation.completion import Completion, Finished
from constrain.generation.options import read_voters, takes_options
from constrain.generation.partial import PartialEvents
from constrain.generation.planning import prepare
from constrain.generation.running import Run
from constrain.llama.lookup import as_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from typing_extensions import Unpack

    from constrain.chat.prompt.messages import Prompt
    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.reply import Reply
    from constrain.generation.options import AnyTools, ChatOptions, VotedOptions
    from constrain.generation.plan import Plan
    from constrain.language.grammar import Grammar
    from constrain.language.source import Source
    from constrain.llama.lookup import AnyModel
    from constrain.partial.reader import FieldEvent

T = TypeVar("T")


@overload
async def agenerate(model: AnyModel, prompt: Prompt, *, schema: type[T], **options: Unpack[VotedOptions]) -> T: ...


@overload
async def agenerate(
    model: AnyModel, prompt: Prompt, *, schema: Grammar | Source | None = None, **options: Unpack[VotedOptions]
) -> str: ...


@overload
async def agenerate(
    model: AnyModel, prompt: Prompt, *, tools: AnyTools, schema: Any = None, **options: Unpack[VotedOptions]
) -> Reply: ...


@overload
async def agenerate(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    n: int | None = None,
    vote: bool = False,
    **options: Unpack[ChatOptions],
) -> Any: ...


@takes_options
async def agenerate(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    n: int | None = None,
    vote: bool = False,
    **options: Unpack[ChatOptions],
) -> Any:
    """``generate`` for asynchronous code: has a model answer a prompt, and returns the value.

    ``Model(..., parallel=...)`` sets how many answers are generated at once; further calls wait. A cancelled task stops
    the generation before the next token. Arguments and errors are those of ``complete``.

    >>> asyncio.run(agenerate(None, "Is the sky blue?", schema={"const": "yes"}))
    'yes'
    """
    return (await acomplete(model, prompt, schema=schema, n=n, vote=vote, **options)).value


@overload
async def acomplete(
    model: AnyModel, prompt: Prompt, *, schema: type[T], **options: Unpack[VotedOptions]
) -> Completion[T]: ...


@overload
async def acomplete(
    model: AnyModel, prompt: Prompt, *, schema: Grammar | Source | None = None, **options: Unpack[VotedOptions]
) -> Completion[str]: ...


@overload
async def acomplete(
    model: AnyModel, prompt: Prompt, *, tools: AnyTools, schema: Any = None, **options: Unpack[VotedOptions]
) -> Completion[Reply]: ...


@overload
async def acomplete(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    n: int | None = None,
    vote: bool = False,
    **options: Unpack[ChatOptions],
) -> Completion: ...


@takes_options
async def acomplete(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    n: int | None = None,
    vote: bool = False,
    **options: Unpack[ChatOptions],
) -> Completion:
    """``complete`` for asynchronous code: has a model answer, and returns a ``Completion``; see ``agenerate``."""
    if (voters := read_voters(options, n, vote=vote)) is not None:
        return await _vote(await asyncio.to_thread(_prepare, model, prompt, schema, options), voters)
    run = Run(await asyncio.to_thread(_prepare, model, prompt, schema, options))
    try:
        await asyncio.to_thread(run.submit)
        await asyncio.wrap_future(run.request.done)
    finally:
        run.request.done.cancel()  # reached when the task is cancelled
    return run.finish()[1]


async def _vote(plan: Plan, voters: int) -> Completion:
    """Returns the answer that several answers to a prompt agree on. Raises the first error if all of them fail."""
    samples = plan.samples(voters)
    runs = [Run(each) for each in samples]
    try:
        for run in runs:
            await asyncio.to_thread(run.submit)
        await asyncio.gather(*(asyncio.wrap_future(run.request.done) for run in runs), return_exceptions=True)
    finally:
        for run in runs:
            run.request.done.cancel()  # reached when the task is cancelled
    decided = await asyncio.to_thread(decide_outcomes, samples[0], [outcome_of(run) for run in runs])
    if isinstance(decided, ConstrainError):
        raise decided
    return decided


@takes_options
async def astream(
    model: AnyModel, prompt: Prompt, *, schema: Any = None, partial: bool = False, **options: Unpack[ChatOptions]
) -> AsyncIterator[StreamEvent | FieldEvent | Finished]:
    """``stream`` for asynchronous code: yields pieces of an answer while a model writes it; see ``agenerate``.

    Closing the iterator ends the generation. The model does not wait for the reader, because other answers are
    generated at the same time. ``partial`` has the meaning that it has for ``stream``.
    """
    read_voters(options)
    plan = await asyncio.to_thread(_prepare, model, prompt, schema, options)
    fields = PartialEvents(plan) if partial else None
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()

    def show(event: StreamEvent) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    def end_events(future: asyncio.Future[None]) -> None:
        if not future.cancelled():
            future.exception()  # Marks the exception as retrieved: a caller that has left never asks for it.
        events.put_nowait(None)

    run = Run(plan, show)
    try:
        await asyncio.to_thread(run.submit)
        done = asyncio.wrap_future(run.request.done)
        done.add_done_callback(end_events)
        while (event := await events.get()) is not None:
            for read in [event] if fields is None else fields.read(event):
                yield read
        await done
        last, completion = run.finish()
        for event in last:
            for read in [event] if fields is None else fields.read(event):
                yield read
        for read in [] if fields is None else fields.finish():
            yield read
        yield Finished(completion)
    finally:
        run.request.done.cancel()  # reached when the caller closes the iterator


def _prepare(model: AnyModel, prompt: Prompt, schema: Any, options: ChatOptions) -> Plan:
    plan = prepare(as_model(model), prompt, schema, options)
    _ = plan.model.scheduler  # Makes the context here, not in the thread of the event loop.
    return plan
