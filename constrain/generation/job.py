"""The stages of a request: ``Plan`` (checked), ``Job`` (compiled), ``Writing`` (one answer in progress).

A ``Run`` is a ``Writing`` on a model's scheduler, where several are written at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from constrain.chat.reading.text_tokens import TextTokens
from constrain.engine import constraint as _constraint
from constrain.generation.completion import Completion, Timings, Usage
from constrain.language.policies import CompileOptions
from constrain.llama.decoding.ranges import seed_of
from constrain.llama.scheduling.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.progress import Progress
    from constrain.engine.cache import Directory
    from constrain.engine.constraint import Constraint, Matcher
    from constrain.generation.options import AnswerSettings
    from constrain.llama.decoding.answer import Answer, Fork
    from constrain.llama.decoding.sampler import Sampling
    from constrain.llama.model import Model
    from constrain.vocabulary.vocabulary import Vocabulary

SCHEMA, TOOLS = "the schema of the answer", "the tools"
"""What a prompt may show besides the caller's text, as errors name it."""


@dataclass(frozen=True, slots=True)
class Language:
    """What is compiled for an answer: what ``compile`` takes, and its keywords."""

    schema: object
    policies: CompileOptions = field(default_factory=CompileOptions)

    def compile(self, vocabulary: Vocabulary, *, cache: Directory = None) -> Constraint:
        """The constraint."""
        return _constraint._compile(self.schema, vocabulary, close_objects=True, cache=cache, **self.policies)


@dataclass(frozen=True, slots=True)
class Plan:
    """A request whose options are checked and whose prompt is ready, before its language is compiled.

    Attributes:
        model: that answers.
        language: of the answer; None for any text.
        tokens: the prompt's.
        progress: makes the record of what one answer says, from its number among several answers to the prompt, and
            what finds the tokens of its text, where these are wanted.
        sampling: how tokens are chosen.
        settings: the other options.
        fork: makes the adjustment of the choices of one answer until it is content or a call.
        shown: returns the texts that the prompt shows besides the caller's own, by what they are.
    """

    model: Model
    language: Language | None
    tokens: list[int]
    progress: Callable[[int, TextTokens | None], Progress]
    sampling: Sampling
    settings: AnswerSettings
    fork: Callable[[Sampling], Fork] | None = None
    shown: Callable[[], dict[str, str]] = dict

    def job(self, constraint: Constraint | None, compile_seconds: float) -> Job:
        """The request with its constraint."""
        return Job(self, constraint, compile_seconds)

    def describe_shown(self, hint: str) -> str:
        """About how many tokens of the prompt are texts that the model is shown; empty where there are none.

        ``hint``: how the caller leaves the schema out.
        """
        encode = self.model.vocabulary.encode
        assert encode is not None
        described = [
            f"about {len(encode(text.encode(errors='replace')))} of which are {what}"
            for what, text in self.shown().items()
            if text
        ]
        if not described:
            return ""
        left_out = f" ({hint})" if self.shown().get(SCHEMA) else ""
        return f", {' and '.join(described)} that the model is shown{left_out}"


@dataclass(frozen=True, slots=True)
class Job:
    """A plan with its constraint: a model can begin to answer it.

    Attributes:
        plan: the request.
        constraint: its language, compiled; None for any text.
        compile_seconds: how long that took.
        number: of the answer, among several to one prompt.
    """

    plan: Plan
    constraint: Constraint | None
    compile_seconds: float
    number: int = 0

    def sample(self, number: int) -> Job:
        """The same for the answer of a number, with a seed of its own: that of the job plus the number, if any."""
        sampling = self.plan.sampling
        own_seed = None if sampling.seed is None else seed_of(sampling.seed, number)
        return replace(self, plan=replace(self.plan, sampling=replace(sampling, seed=own_seed)), number=number)

    def begin(self) -> Writing:
        """An answer, before its first token."""
        from constrain.llama.decoding.answer import Answer
        from constrain.llama.decoding.logprobs import Logprobs
        from constrain.llama.decoding.sampler import Chain

        plan, settings = self.plan, self.plan.settings
        vocabulary = plan.model.vocabulary
        assert vocabulary.encode is not None
        logprobs = Logprobs(settings.top_logprobs, self._describe_token) if settings.logprobs else None
        text_tokens = None if logprobs is None else TextTokens(logprobs.tokens)
        progress = plan.progress(self.number, text_tokens)
        answer = Answer(
            plan.tokens,
            Chain(plan.sampling, vocabulary.n_vocab, plan.model.n_ctx),
            self._start(),
            eos=frozenset(vocabulary.eos),
            encode=vocabulary.encode,
            token_bytes=vocabulary.token_bytes,
            special_tokens=vocabulary.special_tokens,
            max_tokens=settings.max_tokens,
            wants_stop=lambda token: progress.feed(vocabulary.marked_bytes(token)),
            fork=None if plan.fork is None else plan.fork(plan.sampling),
            logprobs=logprobs,
            about_prompt=partial(plan.describe_shown, "show_schema=False leaves the schema out"),
        )
        return Writing(self, answer, progress, text_tokens)

    def _describe_token(self, token: int) -> tuple[str, bytes]:
        """The text and the bytes of a token."""
        model = self.plan.model
        data = model.vocabulary.token_bytes(token)
        return data.decode("utf-8", "backslashreplace") if data else model.tokenizer.name(token), data

    def _start(self) -> Callable[[int], Matcher] | None:
        """Makes the matcher for a number of tokens."""
        if self.constraint is None:
            return None
        settings = self.plan.settings
        return partial(
            self.constraint.matcher,
            max_string_tokens=settings.max_string_tokens,
            max_number_tokens=settings.max_number_tokens,
            max_reasoning_tokens=settings.max_reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class Writing:
    """One answer to a job, while it is written; ``progress`` is fed the tokens that ``answer`` takes."""

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
            usage=Usage(len(job.plan.tokens), cached_tokens, len(answer.tokens)),
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


class Run:
    """One answer on a model's scheduler, beside others. ``request.done`` is set when the answer is complete.

    ``show`` is called with events as they come, from the thread that drives the model. ``partition``: requests of equal
    partitions share evaluated prompts.
    """

    def __init__(self, job: Job, show: Callable[[StreamEvent], None] | None = None, *, partition: str = "") -> None:
        self._writing = job.begin()
        self._show = show
        self.request = Request(self._writing.answer, self._receive, job.plan.settings.timeout, partition)

    def submit(self) -> None:
        """Queues it. Raises ``BudgetError`` and ``ModelError``."""
        self._writing.job.plan.model.scheduler.submit(self.request)

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
