"""One request, made ready: prompt, constraint and sampling for a model. Whoever runs it gets its answer written."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from constrain import constraint as _constraint
from constrain._completion import Completion, Timings, Usage
from constrain._options import asks_for_chat, compile_options, split_options
from constrain._progress import TextProgress
from constrain._result import result_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain._completion import StreamEvent
    from constrain._models import Prompt
    from constrain._options import Options, Request
    from constrain._progress import Outcome, Progress
    from constrain.constraint import Constraint, Matcher
    from constrain.llama import scheduler
    from constrain.llama.answer import Answer
    from constrain.llama.model import Model
    from constrain.llama.sampler import Sampling


@dataclass(frozen=True, slots=True)
class Job:
    """A request that a model can begin with.

    ``tokens``: the prompt's. ``progress`` makes what follows one answer, of its number: ``number``, if several are
    wanted. ``compile_seconds``: for the schema.
    """

    model: Model
    tokens: list[int]
    constraint: Constraint | None
    progress: Callable[[int], Progress]
    sampling: Sampling
    request: Request
    compile_seconds: float
    number: int = 0

    def sample(self, number: int) -> Job:
        """The same for the answer of a number; its seed, if the job has one, is that of the job plus ``number``."""
        from llama_cpp import LLAMA_DEFAULT_SEED

        seed = self.sampling.seed
        own_seed = None if seed is None else (seed + number) % LLAMA_DEFAULT_SEED
        return replace(self, sampling=replace(self.sampling, seed=own_seed), number=number)

    def answer(self, progress: Progress) -> Answer:
        """The answer, before its first token; ``progress`` hears of its tokens."""
        from constrain.llama.answer import Answer
        from constrain.llama.sampler import Chain

        vocabulary = self.model.vocabulary
        assert vocabulary.encode is not None
        return Answer(
            self.tokens,
            Chain(self.sampling, vocabulary.n_vocab),
            self._start(),
            eos=frozenset(vocabulary.eos),
            encode=vocabulary.encode,
            token_bytes=vocabulary.token_bytes,
            special_tokens=vocabulary.special_tokens,
            max_tokens=self.request.max_tokens,
            wants_stop=lambda token: progress.feed(vocabulary.marked_bytes(token)),
        )

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

    def completion(self, answer: Answer, outcome: Outcome, cached_tokens: int, timings: Timings) -> Completion:
        """The finished answer."""
        return Completion(
            value=outcome.value,
            text=outcome.text,
            tokens=tuple(answer.tokens),
            usage=Usage(len(self.tokens), cached_tokens, len(answer.tokens)),
            timings=timings,
            finish_reason=answer.finish_reason,
            report=None if self.constraint is None else self.constraint.report,
            shortened=0 if answer.matcher is None else answer.matcher.n_shortened,
            reasoning=outcome.reasoning,
        )


def prepare(model: Model, prompt: Prompt, schema: Any, options: Options) -> Job:
    """Checks the options, compiles the schema and tokenizes the prompt. Raises as ``complete`` does."""
    from constrain.chat.families import may_reason
    from constrain.llama.prompt import is_plain

    if asks_for_chat(options) or not is_plain(prompt) or may_reason(model.chat_template):
        from constrain.chat.request import prepare_chat

        return prepare_chat(model, prompt, schema, options)
    sampling, request = split_options(options)
    policies = compile_options(options, schema)
    result = result_type(schema)
    started = time.perf_counter()
    constraint = None
    if schema is not None:
        constraint = _constraint._compile(schema, model.vocabulary, close_objects=True, **policies)
    compile_seconds = time.perf_counter() - started
    shown = request.shown(result)
    tokens = model.prompt_tokens(prompt, shown=shown, constrained=constraint is not None)

    def progress(_: int) -> Progress:
        return TextProgress(result, request.stops, cuts=constraint is None)

    return Job(model, tokens, constraint, progress, sampling, request, compile_seconds)


class Run:
    """A job on a model's scheduler, beside others. ``request.done`` is set when its answer is complete.

    ``show`` is called with events as they come, from the thread that drives the model.
    """

    def __init__(self, job: Job, show: Callable[[StreamEvent], None] | None = None) -> None:
        from constrain.llama.scheduler import Request

        self._job = job
        self._progress = job.progress(job.number)
        self._show = show
        self.request: scheduler.Request = Request(job.answer(self._progress), self._receive, job.request.timeout)

    def submit(self) -> None:
        """Queues it. Raises ``BudgetError`` and ``ModelError``."""
        self._job.model.scheduler.submit(self.request)

    def finish(self) -> tuple[list[StreamEvent], Completion]:
        """The last events, and the answer, once it is complete. Raises ``OutputValidationError``."""
        request = self.request
        seconds = (request.queue_seconds, request.prompt_seconds, request.generation_seconds)
        timings = Timings(self._job.compile_seconds, *seconds)
        last = self._progress.finish()
        return last, self._job.completion(request.answer, self._progress.outcome(), request.cached_tokens, timings)

    def _receive(self, _: tuple[int, ...]) -> None:
        if self._show is not None:
            for event in self._progress.take():
                self._show(event)
