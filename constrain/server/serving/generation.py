"""Answers on a model's scheduler.

A request is admitted if there is room (else 429), prepared in threads next to the event loop, and queued; until then,
it can be refused with a 400. Then the events of its answers are reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from constrain.chat.tools.kinds import FunctionTool
from constrain.errors import (
    BudgetError,
    CertificateError,
    ConstrainError,
    DraftError,
    LimitError,
    ModelError,
    OutputValidationError,
    PrefixError,
    ToolError,
)
from constrain.fields.values import FieldError, array, invalid
from constrain.generation.completion import Finished
from constrain.generation.options import add_defaults
from constrain.generation.planning import add_constraint, make_plan, plan_continuation
from constrain.generation.running import Run
from constrain.generation.voting import decide
from constrain.given import may_name_tables
from constrain.server.http.account import current
from constrain.server.http.errors import ApiError, context_overflow, too_busy, unavailable
from constrain.server.requests.limits import RANGES
from constrain.server.requests.texts import text_tokens
from constrain.server.sandbox.compiling import compile_for
from constrain.server.sandbox.parts import answer_error
from constrain.server.sandbox.reporting import make_reports
from constrain.server.sandbox.session import Pool, Session
from constrain.server.sandbox.worker import Limits
from constrain.server.serving.extension import log_warnings
from constrain.server.serving.prefill import Prefill
from constrain.server.serving.progress import PromptProgress
from constrain.server.serving.sizes import longest_token, text_size
from constrain.server.serving.waiting import any_done
from constrain.thread_pools import start_pool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.engine.constraint import Constraint
    from constrain.generation.completion import Completion
    from constrain.generation.observers.observer import Later
    from constrain.generation.plan import Plan
    from constrain.llama.model import Model
    from constrain.llama.scheduling.request import Request
    from constrain.server.requests.question import Question
    from constrain.server.serving.metrics import Metrics
    from constrain.server.serving.models import ServedModel
    from constrain.server.settings import Settings

T = TypeVar("T")

_WAITING_SHARE = 0.5
"""Share of a request's time that it may wait for other requests to be compiled; then it gets status 429."""

_PREPARING = 4
"""Requests that are prepared at the same time. Others wait for a thread, without blocking the event loop."""


class Generator:
    """Runs models for requests. Only the thread of the event loop may use it.

    Args:
        parallel: answers that the models write at the same time.
        settings: settings of the server.
        metrics: counters to update.

    Attributes:
        room: number of answers that are admitted at the same time.
    """

    def __init__(self, parallel: int, settings: Settings, metrics: Metrics) -> None:
        self.room = parallel + settings.queue
        self._parallel = parallel
        self._max_bodies_bytes = settings.max_bodies_bytes
        self._bodies_bytes = 0
        self._limits = Limits(settings.compile_seconds, settings.compile_memory_bytes)
        self._pool = Pool(settings.timeout * _WAITING_SHARE)
        self._metrics = metrics
        self._threads = start_pool(_PREPARING, "constrain-prepare")
        self._admitted = 0
        self._live: dict[Run, float] = {}
        self._deadline: float | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether new requests are refused."""
        return self._deadline is not None

    @contextlib.contextmanager
    def admit(self, count: int) -> Iterator[None]:
        """Reserves room for answers. Raises ``ApiError`` if there is not enough."""
        if self._admitted + count > self.room:
            self._metrics.refused.inc()
            raise too_busy(f"it takes {self.room} answers at once", self.estimate_wait(count))
        self._take(count)
        try:
            yield
        finally:
            self._take(-count)

    @contextlib.contextmanager
    def admit_body(self, size: int) -> Iterator[None]:
        """Reserves room for a large body, from before it is read to the end of its request.

        Raises ``ApiError`` if there is not enough. ``size``: bytes.
        """
        size = min(size, self._max_bodies_bytes)
        if self._bodies_bytes + size > self._max_bodies_bytes:
            self._metrics.refused.inc()
            raise too_busy("the large bodies of other requests take all its memory for them", self.estimate_wait(0))
        self._bodies_bytes += size
        try:
            yield
        finally:
            self._bodies_bytes -= size

    def estimate_wait(self, count: int) -> float:
        """Returns the seconds after which as many new answers would be written, as far as recent answers tell."""
        now = time.monotonic()
        ages = [now - at - run.request.queue_seconds for run, at in self._live.items() if run.request.begun.done()]
        each = max(self._metrics.pace.seconds, sum(ages) / max(1, len(ages)))
        return each * max(1, self._admitted + count - self._parallel) / self._parallel

    def _take(self, count: int) -> None:
        self._admitted += count
        self._metrics.admitted.set(self._admitted)

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Runs slow work in a thread. Raises ``ApiError`` for values that are nested too deeply."""
        try:
            run = partial(contextvars.copy_context().run, work)
            return await asyncio.get_running_loop().run_in_executor(self._threads, run)
        except RecursionError as error:
            raise ApiError(
                "A schema, a grammar or a message in the request is nested too deeply.", code="invalid_value"
            ) from error

    def session(self) -> contextlib.closing[Session]:
        """Returns a context with a sandbox process for one request; leaving it ends the process."""
        return contextlib.closing(Session(self._pool, self._limits))

    async def start(
        self, served: ServedModel, questions: Sequence[Question], session: Session, *, tells_progress: bool = False
    ) -> Answers:
        """Prepares questions, queues their answers, and waits until the model begins the first.

        ``tells_progress``: whether events tell how much of the prompts is read.
        Questions of one request differ only in their prompts. Raises ``ApiError`` if they cannot be answered.
        """
        account, plans = current.get(), await self.prepare(served, questions, session)
        if (constraint := plans[0].constraint) is not None and constraint.warnings:
            log_warnings(constraint.warnings)
        samples = [sample for plan in plans for sample in plan.samples(questions[0].n)]
        prefills = await self.run_in_thread(partial(_prefills, served.model, questions[0], samples))
        answers = Answers(samples, questions[0].n, self._live, self._metrics, account.partition, session, prefills)
        try:
            await self.run_in_thread(answers.make_runs)
            if tells_progress:
                answers.tell_progress()
            answers.enlist()
            until = account.until if self._deadline is None else min(account.until, self._deadline)
            answers.limit(until, self._limits.seconds)
            room = served.model.n_ctx - max(plan.prompt_tokens for plan in plans)
            await self.run_in_thread(partial(_submit, answers, questions[0], plans[0].settings.max_tokens, room))
            await answers.begun()
        except BaseException:
            answers.close()
            raise
        account.has_answer = True
        account.asked_tokens = sum(plan.prompt_tokens for plan in plans)
        return answers

    async def prepare(self, served: ServedModel, questions: Sequence[Question], session: Session) -> list[Plan]:
        """Returns the plans of questions, ready for the model; see ``start``. Ends the process of the session."""
        plans = [await self.run_in_thread(partial(_make_plan, served, question)) for question in questions]
        constraint, seconds = await compile_for(plans[0], questions[0], session, self.run_in_thread)
        session.close()
        return [
            await self.run_in_thread(partial(_add_constraint, served, question, plan, constraint, seconds))
            for question, plan in zip(questions, plans, strict=True)
        ]

    async def prompt(self, served: ServedModel, question: Question) -> Sequence[int]:
        """Returns the tokens of a question's prompt. Raises ``ApiError`` if the question is invalid."""
        plan = await self.run_in_thread(partial(_make_plan, served, question))
        return plan.tokens

    async def count(self, served: ServedModel, question: Question) -> int:
        """Returns the number of tokens of a question's prompt. Raises ``ApiError`` if the question is invalid."""
        plan = await self.run_in_thread(partial(_make_plan, served, question))
        return plan.prompt_tokens + (len(plan.prefix) if question.prefill else 0)

    async def decide(self, answers: Answers) -> list[Completion]:
        """Returns the answers to questions with a vote: for each, the one that its finished answers agree on.

        Answers that clients cannot parse do not vote. Raises ``ApiError`` for a question that has no others, and the
        error that ended an answer.
        """
        size, outcomes = answers.per_question, await answers.outcomes()
        groups: list[tuple[Plan, list[Completion]]] = []
        for begin in range(0, len(outcomes), size):
            samples = outcomes[begin : begin + size]
            voters = [each for each in samples if not isinstance(each, ApiError)]
            if not voters:
                raise next(each for each in samples if isinstance(each, ApiError))
            groups.append((answers.plans[begin], voters))
        return [await self.run_in_thread(partial(decide, plan, voters)) for plan, voters in groups]

    def end_by(self, seconds: float) -> None:
        """Refuses new requests, and ends the running answers within a time."""
        self._deadline = time.monotonic() + seconds
        for run in self._live:
            run.request.answer.end_by(self._deadline)

    def close(self) -> None:
        """Stops the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Answers:
    """The answers to one request, numbered from 0.

    Read ``events`` to the end, or call ``close``.

    Args:
        plans: plans of the answers; those of one question follow each other.
        per_question: number of answers to each question.
        live: all running answers and the times at which they were queued; these are added.
        metrics: counters to update.
        partition: name of the prompt cache; requests with the same name share evaluated prompts.
        session: the session of the request, for work on finished answers.
        prefills: given beginnings of the answers, or ``None`` for each without one.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        per_question: int,
        live: dict[Run, float],
        metrics: Metrics,
        partition: str,
        session: Session,
        prefills: Sequence[Prefill | None],
    ) -> None:
        self.plans = plans
        self._prefills = prefills
        self.per_question = per_question
        self._session = session
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[tuple[int, StreamEvent | PromptProgress | None]] = asyncio.Queue()
        self._runs: list[Run] = []
        self._partition = partition
        self._live = live

    def make_runs(self) -> None:
        """Makes the answers; any thread may call it, since their samplers may count a long prompt first."""
        make = partial(Run, partition=self._partition)
        self._runs = [make(plan, partial(self._show, number)) for number, plan in enumerate(self.plans)]

    def tell_progress(self) -> None:
        """Has the events tell how much of the prompts is read."""
        for number, run in enumerate(self._runs):
            run.request.tell_progress = partial(self._show_progress, number, run.request)

    def enlist(self) -> None:
        """Adds the answers to those that are running."""
        self._live.update(dict.fromkeys(self._runs, time.monotonic()))
        for number, run in enumerate(self._runs):
            run.request.done.add_done_callback(partial(self._note_end, number))

    def submit(self) -> None:
        """Queues the answers; any thread may call it. Raises ``BudgetError`` and ``ModelError``."""
        for run in self._runs:
            run.submit()

    def limit(self, deadline: float, seconds: float) -> None:
        """Ends answers early that are unfinished at a time (``time.monotonic()``), or take too many CPU seconds.

        ``seconds``: CPU seconds that masks and sampling of one may take.
        """
        for run in self._runs:
            run.request.answer.end_by(deadline)
            run.request.answer.max_choice_seconds = seconds

    async def begun(self) -> None:
        """Waits until the first answer is being written, or has ended."""
        request = self._runs[0].request
        await any_done(request.begun, request.done)

    def close(self) -> None:
        """Cancels the answers that are not finished; the model drops them before its next step."""
        for run in self._runs:
            run.request.done.cancel()
            self._live.pop(run, None)

    async def events(self) -> AsyncGenerator[tuple[int, StreamEvent | PromptProgress | Finished], None]:
        """Yields all events with the number of their answer; the last event of each answer is ``Finished``.

        Raises the error that ended an answer, and ``ApiError`` for an answer that clients cannot parse.
        """
        async with contextlib.aclosing(self._ended_events()) as events:
            async for number, event in events:
                if isinstance(event, ApiError):
                    raise event
                yield number, event

    async def _ended_events(
        self,
    ) -> AsyncGenerator[tuple[int, StreamEvent | PromptProgress | Finished | ApiError], None]:
        """Yields events as ``events`` does, with the error in place of ``Finished`` for answers that it refuses."""
        try:
            left = len(self._runs)
            while left:
                number, event = await self._events.get()
                prefill = self._prefills[number]
                if event is not None:
                    if isinstance(event, PromptProgress):
                        yield number, event
                        continue
                    shown = event if prefill is None else prefill.cut_event(event)
                    if shown is not None:
                        yield number, shown
                    continue
                run = self._runs[number]
                left -= 1
                try:
                    run.request.done.result()
                    self._metrics.add_masks(run.request.answer)
                    last, completion, later = _finish(run)
                except LimitError as error:
                    message = f"The answer cannot go on with the values that it has: {error}."
                    yield number, ApiError(message, code="invalid_value")
                    continue
                except ApiError as error:
                    yield number, error
                    continue
                for each in last:
                    shown = each if prefill is None else prefill.cut_event(each)
                    if shown is not None:
                        yield number, shown
                completion = await make_reports(completion, later, run.vocabulary, self._session)
                yield number, Finished(completion if prefill is None else prefill.cut(completion))
        finally:
            self.close()

    async def completions(self) -> list[Completion]:
        """Returns the finished answers, by number, and counts them in the metrics. Raises the errors of ``events``."""
        found: dict[int, Completion] = {}
        async with contextlib.aclosing(self.events()) as events:
            async for number, event in events:
                if isinstance(event, Finished):
                    found[number] = event.completion
        completions = [found[number] for number in range(len(found))]
        self._count(completions)
        return completions

    async def outcomes(self) -> list[Completion | ApiError]:
        """Returns what ``completions`` returns, but with errors in place of answers that clients cannot parse."""
        found: dict[int, Completion | ApiError] = {}
        async with contextlib.aclosing(self._ended_events()) as events:
            async for number, event in events:
                if isinstance(event, Finished | ApiError):
                    found[number] = event.completion if isinstance(event, Finished) else event
        outcomes = [found[number] for number in range(len(found))]
        self._count(outcomes)
        return outcomes

    def _count(self, outcomes: Sequence[Completion | ApiError]) -> None:
        """Counts finished answers in the metrics."""
        for begin in range(0, len(outcomes), self.per_question):
            question = outcomes[begin : begin + self.per_question]
            for number, each in enumerate(each for each in question if not isinstance(each, ApiError)):
                self._metrics.add(each, is_first=number == 0)

    def _show(self, number: int, event: StreamEvent) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, (number, event))

    def _show_progress(self, number: int, request: Request, read: int, seconds: float) -> None:
        event = PromptProgress(len(request.answer.prompt), request.cached_tokens, read, seconds)
        with contextlib.suppress(RuntimeError):  # the loop is closed, and no task waits any more
            self._loop.call_soon_threadsafe(self._events.put_nowait, (number, event))

    def _note_end(self, number: int, _: Any) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed, and no task waits any more.
            self._loop.call_soon_threadsafe(self._events.put_nowait, (number, None))


def _finish(run: Run) -> tuple[list[StreamEvent], Completion, list[Later]]:
    """Returns the end of an answer; see ``Run.finish_without_later``.

    Raises ``ApiError`` for an answer that clients cannot parse: see ``MAX_ANSWER_NESTING``.
    """
    try:
        return run.finish_without_later()
    except OutputValidationError as error:
        raise ApiError(f"The answer cannot be read: {error.message}.", code="invalid_value") from error


def _make_plan(served: ServedModel, question: Question) -> Plan:
    """Returns the plan of a question. Raises ``ApiError``."""
    model, prompt = served.model, question.prompt
    unknown = [token for token in question.options.get("logit_bias", ()) if token >= model.vocabulary.n_vocab]
    if unknown:
        problem = f"{unknown[0]}. The model has {model.vocabulary.n_vocab} tokens."
        raise FieldError(f"Invalid key in 'logit_bias': {problem}", param="logit_bias")
    refuse_endless(question, model)
    options = add_defaults(served.defaults, question.options)
    if not _may_name_tables(question):
        options["tables"] = None
    with _convert_errors(served, question):
        if isinstance(prompt, list):
            return make_plan(model, prompt, question.schema, options, question.prefill)
        return plan_continuation(model, text_tokens(model, prompt, question.places.prompt), question.schema, options)


def _may_name_tables(question: Question) -> bool:
    """Returns whether a schema of the question may name a table of the server."""
    schema, tools = question.schema, question.options.get("tools") or ()
    texts = [schema] if isinstance(schema, str) else []
    texts += [tool.schema_text for tool in tools if isinstance(tool, FunctionTool)]
    return any(map(may_name_tables, texts))


def _prefills(model: Model, question: Question, plans: Sequence[Plan]) -> list[Prefill | None]:
    """Returns the beginning of each answer that its request gave; ``None`` for none."""
    if not question.prefill:
        return [None] * len(plans)
    assert model.vocabulary.encode is not None
    count = len(model.vocabulary.encode(question.prefill.encode()))
    return [Prefill(len(question.prefill), count, len(plan.prefix)) for plan in plans]


def refuse_endless(question: Question, model: Model) -> None:
    """Raises ``ApiError`` for a prompt that is too long to fit, before its tokens are counted."""
    prompt, place = question.prompt, question.places.prompt
    if isinstance(prompt, list):
        array(prompt, place, RANGES["messages"][1])
    longest = longest_token(model.vocabulary)
    if (size := text_size(prompt) + len(question.prefill.encode())) > model.n_ctx * longest:
        there = f"there are {size} bytes of text in your {place}"
        raise context_overflow(place, f"it has {model.n_ctx} tokens of at most {longest} bytes, and {there}")


def _add_constraint(
    served: ServedModel, question: Question, plan: Plan, constraint: Constraint | None, seconds: float
) -> Plan:
    """Returns a plan that is ready for the model. Raises ``ApiError``."""
    with _convert_errors(served, question):
        try:
            plan = add_constraint(plan, constraint, seconds)
        except ModelError as error:  # its file cannot be read, for the hash in a certificate
            raise unavailable(str(error)) from error
    n_ctx = served.model.n_ctx
    if plan.prompt_tokens >= n_ctx:
        about = plan.describe_shown("the request leaves the schema out with 'show_schema': false")
        read = f"your {question.places.prompt} resulted in {plan.prompt_tokens} tokens{about}"
        raise context_overflow(question.places.prompt, f"it has {n_ctx} tokens, and {read}")
    return plan


@contextlib.contextmanager
def _convert_errors(served: ServedModel, question: Question) -> Iterator[None]:
    """Converts errors in a question to ``ApiError`` and ``FieldError``."""
    places = question.places
    try:
        yield
    except ModelError as error:
        if served.model.is_closed:
            raise unavailable("The model was closed.") from error
        raise FieldError(f"The model's chat template refuses the messages: {error}", param=places.prompt) from error
    except ToolError as error:
        raise FieldError(str(error), param=places.tools) from error
    except ConstrainError as error:
        tools = places.tools if question.options.get("tools") else ""
        raise answer_error(question.content, error, tools=tools) from error
    except (CertificateError, DraftError, PrefixError) as error:
        own = {CertificateError: "certificate", DraftError: "draft", PrefixError: "prefix"}[type(error)]
        raise invalid(places.prompt if own == "prefix" and question.prefill else own, f"{error}.") from error
    except FieldError:
        raise
    except ValueError as error:
        raise FieldError(str(error), param=places.prompt) from error


def _submit(answers: Answers, question: Question, most: int | None, room: int) -> None:
    """Queues the answers. ``most``: tokens per answer; ``room``: tokens left in the context. Raises ``ApiError``."""
    try:
        answers.submit()
    except BudgetError as error:
        after = " after a draft" if question.options.get("draft") else ""
        if error.needed > room:
            raise context_overflow(
                question.places.prompt, f"any answer{after} takes {error.needed} tokens, and there is room for {room}"
            ) from error
        name, is_given = question.places.max_tokens, question.options.get("max_tokens") is not None
        given = len(answers.plans[0].prefix) if question.prefill else 0
        most, needed = None if most is None else most - given, error.needed - given
        limit = f"Invalid '{name}': {most} tokens" if is_given else f"The model's {most} tokens"
        raise ApiError(
            f"{limit} are too few for any answer{after} that matches what was asked for; {needed} are enough.",
            param=name,
            code="integer_below_min_value",
        ) from error
    except ModelError as error:
        raise unavailable(str(error)) from error
