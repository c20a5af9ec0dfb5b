"""``generate``, ``complete`` and ``stream``: from a prompt and a schema to a value."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from constrain.arguments import model_then_prompt
from constrain.generation.completion import Completion, Finished, HoldsAnswer, Timings
from constrain.generation.options import read_voters, takes_options
from constrain.llama.lookup import as_model

if TYPE_CHECKING:
    from collections.abc import Generator

    from typing_extensions import Unpack

    from constrain.chat.prompt.messages import Prompt
    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.reply import Reply
    from constrain.generation.options import AnyTools, ChatOptions, VotedOptions
    from constrain.generation.partial import PartialEvents
    from constrain.generation.plan import Plan
    from constrain.generation.running import Running
    from constrain.language.grammar import Grammar
    from constrain.language.source import Source
    from constrain.llama.decoding.decode import Decoding
    from constrain.llama.lookup import AnyModel
    from constrain.partial.reader import FieldEvent

T = TypeVar("T")


@overload
def generate(model: AnyModel, prompt: Prompt, *, schema: type[T], **options: Unpack[VotedOptions]) -> T: ...


@overload
def generate(
    model: AnyModel, prompt: Prompt, *, schema: Grammar | Source | None = None, **options: Unpack[VotedOptions]
) -> str: ...


@overload
def generate(
    model: AnyModel, prompt: Prompt, *, tools: AnyTools, schema: Any = None, **options: Unpack[VotedOptions]
) -> Reply: ...


@overload
def generate(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    n: int | None = None,
    vote: bool = False,
    **options: Unpack[ChatOptions],
) -> Any: ...


@takes_options
@model_then_prompt
def generate(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    n: int | None = None,
    vote: bool = False,
    **options: Unpack[ChatOptions],
) -> Any:
    """Has a model answer a prompt in exactly the shape of ``schema``, and returns the value.

    Arguments and errors are those of ``complete``.

    >>> generate(None, "Is the sky blue on a clear day?", schema=bool, seed=1) in (True, False)
    True
    """
    return complete(model, prompt, schema=schema, n=n, vote=vote, **options).value


@overload
def complete(model: AnyModel, prompt: Prompt, *, schema: type[T], **options: Unpack[VotedOptions]) -> Completion[T]: ...


@overload
def complete(
    model: AnyModel, prompt: Prompt, *, schema: Grammar | Source | None = None, **options: Unpack[VotedOptions]
) -> Completion[str]: ...


@overload
def complete(
    model: AnyModel, prompt: Prompt, *, tools: AnyTools, schema: Any = None, **options: Unpack[VotedOptions]
) -> Completion[Reply]: ...


@overload
def complete(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    n: int | None = None,
    vote: bool = False,
    **options: Unpack[ChatOptions],
) -> Completion: ...


@takes_options
@model_then_prompt
def complete(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    n: int | None = None,
    vote: bool = False,
    **options: Unpack[ChatOptions],
) -> Completion:
    """Has a model answer a prompt, and returns a ``Completion``: the value with its text, tokens, timings and more.

    Args:
        model: a ``Model``, a ``llama_cpp.Llama``, the path of a GGUF file, or ``None`` for the small model of the
            ``demo`` extra. A path is loaded at first use and kept until another path is passed. A ``Model`` has more
            options and stays loaded as long as you keep it.
        prompt: a text, or a list of messages ``{"role": ..., "content": ...}``. The model's chat template is applied if
            it has one. Names of special tokens in the prompt are plain text.
        schema: shape of the answer: a type (anything that ``pydantic.TypeAdapter`` takes: Pydantic models, dataclasses,
            ``TypedDict``, ``Literal``, enums, unions, ``list[...]``), a JSON Schema (``dict``, JSON text, or in
            one line: ``"name, age int, level: low|high"``), a ``Regex``, a ``Lark``, a ``Grammar``, or a composition.
            ``None`` stands for free text. Answers have only keys that the schema declares, unless it sets
            ``additionalProperties`` itself.
        n: with ``vote``, the number of answers that vote; the model writes several of them at once.
        vote: whether the answer is what ``n`` samples agree on, field by field; see ``complete_batch``.
        options: length of the answer, sampling, tools and more. ``help(constrain.complete)`` lists them with their
            meaning; docs/reference/options.md has them with types and defaults.

    Raises ``SchemaError``, ``GrammarError``, ``PatternError`` and ``LimitError`` for a schema that cannot be used;
    ``BudgetError`` if ``max_tokens`` is too small for any answer; ``ModelError`` if the model cannot be loaded or the
    prompt does not fit into the context; ``OutputValidationError`` if the type's own validators reject the answer;
    ``ToolError`` for functions that cannot be tools; ``TypeError`` for unknown options and ``ValueError`` for values
    out of range.
    """
    if (voters := read_voters(options, n, vote=vote)) is not None:
        return _vote(model, prompt, schema, voters, options)
    *_, last = stream(model, prompt, schema=schema, **options)
    assert isinstance(last, Finished)
    return last.completion


def _vote(model: AnyModel, prompt: Prompt, schema: Any, n: int, options: ChatOptions) -> Completion:
    from constrain.generation.batch import complete_batch

    (completion,) = complete_batch(model, [prompt], schema=schema, n=n, vote=True, **options)
    assert isinstance(completion, Completion)
    return completion


@takes_options
@model_then_prompt
def stream(
    model: AnyModel, prompt: Prompt, *, schema: Any = None, partial: bool = False, **options: Unpack[ChatOptions]
) -> Iterator[StreamEvent | FieldEvent | Finished]:
    """Has a model answer a prompt, and yields events while it writes: pieces of the answer, then ``Finished``.

    Arguments and errors are those of ``complete``. The schema is compiled at once. The answer begins when the first
    event is read, and other callers of the model wait until the last event was read or the iterator is closed.

    With ``partial=True``, the answer's pieces of text, and those of the arguments of calls, are read as they come: a
    ``FieldEvent`` in their place says which part of the value begins, grows or is complete, and has the value so far,
    an instance of the type. It needs a type, a JSON Schema or tools; ``ValueError`` otherwise.

    >>> events = list(stream(None, "Name a colour.", schema={"enum": ["red", "blue"]}, temperature=0))
    >>> "".join(event.text for event in events[:-1]) == events[-1].completion.text
    True
    """
    # Imported here: prompts and tools take long to import.
    from constrain.generation.planning import prepare

    read_voters(options)
    plan = prepare(as_model(model), prompt, schema, options)
    if not partial:
        return Stream(_run(plan))
    from constrain.generation.partial import PartialEvents

    return Stream(_fields(PartialEvents(plan), _run(plan)))


class Stream(HoldsAnswer, Iterator[Any]):
    """The events of ``stream``; ``close`` ends the answer."""

    _cure = "it yields events, and the last one has the answer: .completion.value; complete(...) has it at .value"

    def __init__(self, events: Generator[StreamEvent | FieldEvent | Finished]) -> None:
        self._events = events

    def __next__(self) -> StreamEvent | FieldEvent | Finished:
        return next(self._events)

    def close(self) -> None:
        """Ends the answer; other callers of the model go on."""
        self._events.close()


def _fields(
    fields: PartialEvents, events: Iterator[StreamEvent | Finished]
) -> Generator[StreamEvent | FieldEvent | Finished]:
    for event in events:
        if isinstance(event, Finished):
            yield from fields.finish()
            yield event
        else:
            yield from fields.read(event)


def _run(plan: Plan) -> Generator[StreamEvent | Finished]:
    from constrain.generation.running import Running

    running = Running(plan)
    decoding, queue_seconds = yield from decode(running)
    yield from running.finish()
    timings = Timings(plan.compile_seconds, queue_seconds, decoding.prompt_seconds, decoding.generation_seconds)
    yield Finished(running.completion(decoding.cached_tokens, timings))


def decode(running: Running) -> Generator[StreamEvent, None, tuple[Decoding, float]]:
    """Writes an answer in this thread, and yields its events; returns the decoding, and the seconds of waiting."""
    from constrain.llama.decoding.decode import Decoding

    plan, answer = running.plan, running.answer
    waiting = time.perf_counter()
    with plan.model.turn() as context:
        queue_seconds = time.perf_counter() - waiting
        # Not where a matcher would have to read the whole answer again to leave out the guesses.
        can_guess = plan.constraint is None or not plan.constraint.has_limited_rules
        speculation = plan.model.speculation(answer) if can_guess else None  # the first one measures the model
        if plan.settings.timeout is not None:
            answer.deadline = time.monotonic() + plan.settings.timeout
        decoding = Decoding(context, answer, plan.shared, speculation)
        for _ in decoding.steps():
            yield from running.take()
    return decoding, queue_seconds
