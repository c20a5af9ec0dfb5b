"""One request, made ready: prompt, constraint and sampling for a model. Whoever runs it gets its answer written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from constrain.chat.reading.text_tokens import TextTokens
from constrain.engine import constraint as _constraint
from constrain.generation.completion import Completion, Timings, Usage
from constrain.language.policies import CompileOptions
from constrain.llama.scheduling.request import Request as Queued

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.progress import Progress
    from constrain.engine.cache import Directory
    from constrain.engine.constraint import Constraint, Matcher, Packed
    from constrain.generation.options import Request
    from constrain.llama.decoding.answer import Answer, Fork
    from constrain.llama.decoding.sampler import Sampling
    from constrain.llama.model import Model
    from constrain.vocabulary.vocabulary import Vocabulary

SCHEMA, TOOLS = "the schema of the answer", "the tools"
"""What a prompt may show besides the caller's text, as errors name it."""


@dataclass(frozen=True, slots=True)
class Job:
    """A request that a model can begin with.

    ``tokens``: the prompt's. ``progress`` makes what follows one answer, of its number (``number``, of several to one
    prompt), and finds the tokens of its text where these are wanted. ``compile_seconds``: for the schema. ``fork``
    makes what has a say in the choices of one answer. ``shown`` returns the texts that the prompt shows the model
    besides the caller's own, by what they are.
    """

    model: Model
    tokens: list[int]
    constraint: Constraint | None
    progress: Callable[[int, TextTokens | None], Progress]
    sampling: Sampling
    request: Request
    compile_seconds: float
    fork: Callable[[Sampling], Fork] | None = None
    shown: Callable[[], dict[str, str]] = dict
    number: int = 0

    def sample(self, number: int) -> Job:
        """The same for the answer of a number, with a seed of its own: that of the job plus the number, if any."""
        from llama_cpp import LLAMA_DEFAULT_SEED

        seed = self.sampling.seed
        own_seed = None if seed is None else (seed + number) % LLAMA_DEFAULT_SEED
        return replace(self, sampling=replace(self.sampling, seed=own_seed), number=number)

    def begin(self) -> Writing:
        """An answer, before its first token."""
        from constrain.llama.decoding.answer import Answer
        from constrain.llama.decoding.logprobs import Logprobs
        from constrain.llama.decoding.sampler import Chain

        vocabulary = self.model.vocabulary
        assert vocabulary.encode is not None
        logprobs = Logprobs(self.request.top_logprobs, self._described) if self.request.logprobs else None
        text_tokens = None if logprobs is None else TextTokens(logprobs.tokens)
        progress = self.progress(self.number, text_tokens)
        answer = Answer(
            self.tokens,
            Chain(self.sampling, vocabulary.n_vocab, self.model.n_ctx),
            self._start(),
            eos=frozenset(vocabulary.eos),
            encode=vocabulary.encode,
            token_bytes=vocabulary.token_bytes,
            special_tokens=vocabulary.special_tokens,
            max_tokens=self.request.max_tokens,
            wants_stop=lambda token: progress.feed(vocabulary.marked_bytes(token)),
            fork=None if self.fork is None else self.fork(self.sampling),
            logprobs=logprobs,
            about_prompt=partial(self.about_shown, "show_schema=False leaves the schema out"),
        )
        return Writing(self, answer, progress, text_tokens)

    def about_shown(self, hint: str) -> str:
        """About how many tokens of the prompt are texts that the model is shown; empty where there are none.

        ``hint``: how the caller leaves the schema out.
        """
        encode = self.model.vocabulary.encode
        assert encode is not None
        told = [
            f"about {len(encode(text.encode(errors='replace')))} of which are {what}"
            for what, text in self.shown().items()
            if text
        ]
        if not told:
            return ""
        return f", {' and '.join(told)} that the model is shown" + (f" ({hint})" if self.shown().get(SCHEMA) else "")

    def _described(self, token: int) -> tuple[str, bytes]:
        """The text and the bytes of a token."""
        data = self.model.vocabulary.token_bytes(token)
        return data.decode("utf-8", "backslashreplace") if data else self.model.tokenizer.name(token), data

    def _start(self) -> Callable[[int], Matcher] | None:
        """What makes the matcher for a number of tokens."""
        if self.constraint is None:
            return None
        return partial(
            self.constraint.matcher,
            max_string_tokens=self.request.max_string_tokens,
            max_number_tokens=self.request.max_number_tokens,
            max_reasoning_tokens=self.request.max_reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class Writing:
    """One answer to a job, while it is written.

    ``progress`` hears of the tokens that ``answer`` takes; ``text_tokens`` finds those of its text.
    """

    job: Job
    answer: Answer
    progress: Progress
    text_tokens: TextTokens | None

    def completion(self, cached_tokens: int, timings: Timings) -> Completion:
        """The finished answer, after ``progress.finish``. Raises ``OutputValidationError``."""
        job, answer, outcome = self.job, self.answer, self.progress.outcome()
        return Completion(
            value=outcome.value,
            text=outcome.text,
            tokens=tuple(answer.tokens),
            usage=Usage(len(job.tokens), cached_tokens, len(answer.tokens)),
            timings=timings,
            finish_reason=answer.finish_reason,
            report=None if job.constraint is None else job.constraint.report,
            shortened=0 if answer.matcher is None else answer.matcher.n_shortened,
            limited_masks=0 if answer.matcher is None else answer.matcher.limited_masks,
            limits_met=() if answer.matcher is None else answer.matcher.limits_met,
            reasoning=outcome.reasoning,
            logprobs=None if answer.logprobs is None else tuple(answer.logprobs.tokens),
            text_logprobs=None if self.text_tokens is None else tuple(self.text_tokens.told),
        )


@dataclass(frozen=True, slots=True)
class Language:
    """What is compiled for an answer: what ``compile`` takes, and its keywords."""

    schema: object
    policies: CompileOptions = field(default_factory=CompileOptions)

    def compile(
        self, vocabulary: Vocabulary, elsewhere: Callable[[], Packed] | None = None, *, cache: Directory = None
    ) -> Constraint:
        """The constraint. ``elsewhere``: compiles what is neither remembered nor kept, in place of this process."""
        return _constraint._compile(
            self.schema, vocabulary, close_objects=True, cache=cache, elsewhere=elsewhere, **self.policies
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A request that lacks its constraint.

    ``language``: None for any text. ``tokens`` makes those of the prompt; it raises ``ValueError`` and ``ModelError``.
    ``shown``: as for ``Job``.
    """

    model: Model
    language: Language | None
    tokens: Callable[[], list[int]]
    progress: Callable[[int, TextTokens | None], Progress]
    sampling: Sampling
    request: Request
    fork: Callable[[Sampling], Fork] | None = None
    shown: Callable[[], dict[str, str]] = dict

    def job(self, constraint: Constraint | None, compile_seconds: float) -> Job:
        """The request with its constraint."""
        tokens = self.tokens()
        return Job(
            self.model,
            tokens,
            constraint,
            self.progress,
            self.sampling,
            self.request,
            compile_seconds,
            self.fork,
            self.shown,
        )


class Run:
    """A job on a model's scheduler, beside others. ``request.done`` is set when its answer is complete.

    ``show`` is called with events as they come, from the thread that drives the model. ``partition``: of the requests
    with which it shares what the model has read.
    """

    def __init__(self, job: Job, show: Callable[[StreamEvent], None] | None = None, *, partition: str = "") -> None:
        self._writing = job.begin()
        self._show = show
        self.request = Queued(self._writing.answer, self._receive, job.request.timeout, partition)

    def submit(self) -> None:
        """Queues it. Raises ``BudgetError`` and ``ModelError``."""
        self._writing.job.model.scheduler.submit(self.request)

    def finish(self) -> tuple[list[StreamEvent], Completion]:
        """The last events, and the answer, once it is complete. Raises ``OutputValidationError``."""
        request = self.request
        seconds = (request.queue_seconds, request.prompt_seconds, request.generation_seconds)
        timings = Timings(self._writing.job.compile_seconds, *seconds)
        last = self._writing.progress.finish()
        return last, self._writing.completion(request.cached_tokens, timings)

    def _receive(self, _: tuple[int, ...]) -> None:
        if self._show is not None:
            for event in self._writing.progress.take():
                self._show(event)
