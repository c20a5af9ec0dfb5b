"""``generate``, ``complete`` and ``stream``: from a prompt and a schema to a value."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, overload

from constrain import constraint as _constraint
from constrain._result import ResultType, result_type

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from llama_cpp import Llama
    from typing_extensions import Unpack

    from constrain.constraint import Constraint, Report
    from constrain.llama.answer import FinishReason
    from constrain.llama.model import Model
    from constrain.llama.prompt import Message
    from constrain.llama.sampler import Sampling

    AnyModel: TypeAlias = Model | Llama | str | os.PathLike[str] | None
    Prompt: TypeAlias = str | Sequence[Message]

T = TypeVar("T")


class Options(TypedDict, total=False):
    """The keywords that ``generate``, ``complete`` and ``stream`` share; all may be left out.

    Attributes:
        max_tokens: the most tokens to generate, end of generation not counted; by default what is left of the
            context. An answer with a schema is always complete: where the limit comes near, it is brought to its
            shortest end.
        temperature: divides the logits (0.8); 0 takes the most likely allowed token, and the next four do nothing.
        top_p: sample from the most likely tokens that together have this probability (0.95); 1 for all.
        top_k: sample from this many of the most likely tokens (40); 0 for all.
        min_p: sample from the tokens that are at least this times as likely as the most likely one (0.05).
        seed: makes sampling reproducible; 0 to 2**32 - 2.
        stop: a text or texts that end the answer. Without a schema the answer is cut before them. With one it goes
            on to its shortest end, since it could not be valid otherwise.
        logit_bias: added to the logits of these token ids; may be infinite.
        repeat_penalty: divides the logits of tokens among the last 64 of the answer; 1 (the default) for none.
        timeout: seconds from the model's turn on after which the answer is brought to its shortest end (or just
            ends, without a schema).
        show_schema: whether the prompt says what to fill in (``True``), as a short text at the end of the user's
            last message; or a text of your own for that, with ``{schema}`` in it.
    """

    max_tokens: int | None
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    seed: int | None
    stop: str | Sequence[str]
    logit_bias: Mapping[int, float]
    repeat_penalty: float
    timeout: float | None
    show_schema: bool | str


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens: of the prompt, how many of these were known from the call before, and of the answer."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall-clock seconds: compiling the schema, waiting for the model, reading the prompt, writing the answer."""

    compile: float
    queue: float
    prompt: float
    generation: float


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished answer.

    Attributes:
        value: the answer as the type asked for; parsed JSON for a JSON Schema; the text if there is no schema.
        text: the answer as the model wrote it.
        tokens: the ids of its tokens, without the end of generation.
        usage: numbers of tokens.
        timings: where the time went.
        finish_reason: ``"stop"`` (the answer ended by itself or at a ``stop`` text), ``"length"`` (it was brought to
            its end to keep within ``max_tokens``) or ``"timeout"``.
        report: ``Constraint.report`` of the schema, ``None`` without one.
    """

    value: Any
    text: str
    tokens: tuple[int, ...]
    usage: Usage
    timings: Timings
    finish_reason: FinishReason
    report: Report | None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text; all pieces together are the text."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream: the whole answer."""

    completion: Completion


@overload
def generate(model: AnyModel, prompt: Prompt, *, schema: type[T], **options: Unpack[Options]) -> T: ...


@overload
def generate(model: AnyModel, prompt: Prompt, *, schema: None = None, **options: Unpack[Options]) -> str: ...


@overload
def generate(model: AnyModel, prompt: Prompt, *, schema: Any, **options: Unpack[Options]) -> Any: ...


def generate(model: AnyModel, prompt: Prompt, *, schema: Any = None, **options: Unpack[Options]) -> Any:
    """Has a model answer a prompt, in exactly the shape asked for, and returns the value.

    Arguments and errors are those of ``complete``.

    >>> generate(None, "Is the sky blue on a clear day?", schema=bool, seed=1) in (True, False)
    True
    """
    return complete(model, prompt, schema=schema, **options).value


def complete(model: AnyModel, prompt: Prompt, *, schema: Any = None, **options: Unpack[Options]) -> Completion:
    """Has a model answer a prompt, and returns the answer with all that is known of it.

    Args:
        model: a ``Model``, a ``llama_cpp.Llama``, the path of a GGUF file, or ``None`` for the small model of the
            ``demo`` extra. A path is loaded once and kept until another one is named; a ``Model`` of your own has
            more options and lives as long as you keep it.
        prompt: a text, or a list of messages ``{"role": ..., "content": ...}``. It goes through the model's chat
            template, if it has one. Text never becomes special tokens.
        schema: what the answer must be: a type (whatever ``pydantic.TypeAdapter`` takes: Pydantic models,
            dataclasses, ``TypedDict``, ``Literal``, enums, unions, ``list[...]``), a JSON Schema as ``dict`` or JSON
            text, or a ``Grammar``. ``None`` lets the model say anything. Objects are closed: keys that the schema
            does not declare are left out, unless it says ``additionalProperties`` itself.
        options: see ``Options``.

    Raises ``SchemaError`` and ``LimitError`` for a schema that cannot be used, ``BudgetError`` if ``max_tokens`` is
    too small for any answer, ``ModelError`` if the model cannot be loaded or the prompt does not fit,
    ``OutputValidationError`` if the type's own validators reject the answer, ``ValueError`` for an option out of
    range.
    """
    *_, last = stream(model, prompt, schema=schema, **options)
    assert isinstance(last, Finished)
    return last.completion


def stream(
    model: AnyModel, prompt: Prompt, *, schema: Any = None, **options: Unpack[Options]
) -> Iterator[TextDelta | Finished]:
    """Has a model answer a prompt, and yields the text as it is written and last the finished answer.

    Arguments and errors are those of ``complete``. The schema is compiled at once; the model is taken when the first
    event is asked for, and other callers wait until the last one was read or the iterator is closed.

    >>> events = list(stream(None, "Name a colour.", schema={"enum": ["red", "blue"]}, temperature=0))
    >>> "".join(event.text for event in events[:-1]) == events[-1].completion.text
    True
    """
    # Imported here: llama_cpp takes long.
    from constrain.llama.sampler import Sampling

    given: dict[str, Any] = dict(options)
    if unknown := given.keys() - Options.__annotations__.keys():
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}")
    sampling = Sampling(**{key: given.pop(key) for key in _SAMPLING_KEYS & given.keys()})
    request = _Request(**given)
    result = result_type(schema)
    loaded = as_model(model)
    started = time.perf_counter()
    constraint = None
    if schema is not None:
        constraint = _constraint._compile(schema, loaded.vocabulary, close_objects=True)
    compile_seconds = time.perf_counter() - started
    shown = request.shown(result)
    tokens = loaded.prompt_tokens(prompt, shown=shown, constrained=constraint is not None)
    return _run(loaded, tokens, constraint, result, sampling, request, compile_seconds)


_SAMPLING_KEYS = frozenset(("temperature", "top_p", "top_k", "min_p", "seed", "logit_bias", "repeat_penalty"))


@dataclass(frozen=True, slots=True)
class _Request:
    """The options that are not about sampling."""

    max_tokens: int | None = None
    stop: str | Sequence[str] = ()
    timeout: float | None = None
    show_schema: bool | str = True
    stops: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 0:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must be 0 or more")
        if self.timeout is not None and not self.timeout >= 0:
            raise ValueError(f"timeout is {self.timeout}; it must be 0 seconds or more")
        stops = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        if "" in stops:
            raise ValueError("an empty text in stop would end every answer at once")
        object.__setattr__(self, "stops", stops)
        if isinstance(self.show_schema, str) and "{schema}" not in self.show_schema:
            raise ValueError("show_schema is a text without {schema} in it")

    def shown(self, result: ResultType) -> str:
        """What the prompt says about the schema."""
        from constrain.llama.schema_text import describe, render

        if result.document is None or self.show_schema is False:
            return ""
        if self.show_schema is True:
            return describe(result.document)
        return self.show_schema.replace("{schema}", render(result.document))


def _run(
    model: Model,
    tokens: list[int],
    constraint: Constraint | None,
    result: ResultType,
    sampling: Sampling,
    request: _Request,
    compile_seconds: float,
) -> Iterator[TextDelta | Finished]:
    from constrain.llama.answer import Answer
    from constrain.llama.decode import Decoding
    from constrain.llama.sampler import Chain
    from constrain.llama.text import TextStream

    vocabulary = model.vocabulary
    encode = vocabulary.encode
    assert encode is not None
    text = TextStream(request.stops, cuts=constraint is None)
    waiting = time.perf_counter()
    with model.turn() as context:
        queue_seconds = time.perf_counter() - waiting
        answer = Answer(
            tokens,
            Chain(sampling, vocabulary.n_vocab),
            None if constraint is None else constraint.matcher(),
            eos=frozenset(vocabulary.eos),
            encode=encode,
            token_bytes=vocabulary.token_bytes,
            max_tokens=request.max_tokens,
            deadline=None if request.timeout is None else time.monotonic() + request.timeout,
            wants_stop=text.feed,
        )
        decoding = Decoding(context, answer)
        for _ in decoding.steps():
            if piece := text.take():
                yield TextDelta(piece)
    if piece := text.finish():
        yield TextDelta(piece)
    yield Finished(
        Completion(
            value=result.parse(text.text),
            text=text.text,
            tokens=tuple(answer.tokens),
            usage=Usage(len(tokens), decoding.cached_tokens, len(answer.tokens)),
            timings=Timings(compile_seconds, queue_seconds, decoding.prompt_seconds, decoding.generation_seconds),
            finish_reason=answer.finish_reason,
            report=None if constraint is None else constraint.report,
        )
    )


_loading = threading.Lock()
_loaded: dict[Path, Model] = {}


def as_model(model: AnyModel) -> Model:
    """The ``Model`` for whatever a caller names one by. Raises ``ModelError``."""
    from llama_cpp import Llama

    from constrain.llama.model import Model, default_model_path

    if isinstance(model, Model):
        return model
    with _loading:
        if isinstance(model, Llama):
            # Kept in the Llama itself, so that both live equally long.
            known: Model | None = model.__dict__.get("_constrain_model")
            if known is None:
                known = model.__dict__["_constrain_model"] = Model(model)
            return known
        path = Path(default_model_path() if model is None else model).resolve()
        if path not in _loaded:
            _loaded.clear()
            _loaded[path] = Model(path)
        return _loaded[path]
