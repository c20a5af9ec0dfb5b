"""``Running``: one answer in progress, and its end; ``Run``: one on a model's scheduler, which decodes several.

The core knows tokens, masks and text; all that is told about them comes from the observers of the answer.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from constrain.chat.reading.events import ReasoningDelta
from constrain.chat.reading.places import paths_at
from constrain.chat.reading.text import TextStream
from constrain.generation.checking import FieldChecks, Judges
from constrain.generation.completion import Completion, Timings, Usage, report_members
from constrain.generation.introducing import Introductions
from constrain.generation.observers.observer import Later, Observers, Written
from constrain.llama.decoding.answer import Answer, TokenObserver
from constrain.llama.decoding.draft import Draft
from constrain.llama.scheduling.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.chat.reading.events import StreamEvent
    from constrain.generation.plan import Plan
    from constrain.llama.decoding.answer import Questions
    from constrain.partial.scanner import Path


class Running:
    """One answer in progress.

    Args:
        plan: the request, with its constraint.

    Attributes:
        answer: decides the tokens.
        progress: reads the tokens of the answer.
        draft_text: reads the tokens before them.
        checks: judges the fields of the answer; ``None`` for none.
        observers: watch the answer.
    """

    def __init__(self, plan: Plan) -> None:
        sampling, vocabulary = plan.used_sampling, plan.model.vocabulary
        assert vocabulary.encode is not None
        self.plan = plan
        self.observers = Observers(plan).all()
        text_tokens = next((each.text_tokens for each in self.observers if each.text_tokens is not None), None)
        self.progress = progress = plan.progress(plan.number, text_tokens)
        self.draft_text = TextStream(cuts=False)
        insert = None if plan.insertion is None else plan.insertion(progress)
        settings = plan.settings
        self.checks = checks = None
        if settings.checks or settings.retries:
            judges = Judges(settings.checks, plan.result)
            self.checks = checks = FieldChecks(
                judges, settings.retries, sampling.temperature, progress.feed, vocabulary
            )
        self.answer = Answer(
            plan.tokens,
            plan.chain(sampling),
            plan.starter,
            eos=frozenset(vocabulary.eos),
            encode=vocabulary.encode,
            token_bytes=vocabulary.token_bytes,
            special_tokens=vocabulary.special_tokens,
            max_tokens=plan.settings.max_tokens,
            wants_stop=(
                (lambda token: progress.feed(vocabulary.marked_bytes(token)))
                if checks is None
                else (lambda token: checks.feed(token, vocabulary.marked_bytes(token)))
            ),
            check=checks,
            call_or_content=None if plan.call_or_content is None else plan.call_or_content(sampling),
            observers=[each for each in self.observers if isinstance(each, TokenObserver)],
            questions=self._questions if any(each.asks for each in self.observers) else None,
            prefix=plan.prefix,
            draft=self._draft(),
            insert=insert,
            may_be_cut=plan.may_be_cut,
            about_prompt=partial(plan.describe_shown, "show_schema=False leaves the schema out"),
        )
        self._last: list[StreamEvent] | None = None

    def _draft(self) -> Draft | None:
        """Makes the draft of the answer; None for no draft."""
        plan, text = self.plan, self.draft_text
        if plan.drafts is None:
            return None
        return Draft(
            plan.drafts.matcher,
            plan.chain(plan.used_sampling),
            list(plan.request),
            lambda token: text.feed(plan.model.vocabulary.token_bytes(token)),
            None if plan.settings.draft is True else plan.settings.draft,
        )

    def take(self) -> list[StreamEvent]:
        """Returns the events that are new since the last call."""
        piece = self.draft_text.take()
        told = [event for each in self.observers for event in each.events(self.answer)]
        return [*([ReasoningDelta(piece)] if piece else []), *told, *self.progress.take()]

    def finish(self) -> list[StreamEvent]:
        """Returns the remaining events, after the last token."""
        self._end()
        last, self._last = self._last, []
        return last or []

    def _end(self) -> None:
        """Has the answer read to its end, once."""
        if self._last is None:
            self._last = [*self.take(), *self.progress.finish()]

    def _questions(self) -> Questions[None]:
        """Asks about the finished answer what the observers need to know."""
        self._end()
        for each in self.observers:
            if each.asks:
                yield from each.questions(self.answer, self.progress)

    def completion(self, cached_tokens: int, timings: Timings) -> Completion:
        """Returns the finished answer; call ``finish`` first. Raises ``OutputValidationError``."""
        completion, later = self.without_later(cached_tokens, timings)
        for each in later:
            completion = each.add(completion, each.make(self.plan.model.vocabulary, self.plan.constraint))
        return completion

    def without_later(self, cached_tokens: int, timings: Timings) -> tuple[Completion, list[Later]]:
        """Returns the finished answer, and the reports that are still to be made, which may be done elsewhere.

        Call ``finish`` first. Raises ``OutputValidationError``.
        """
        plan, answer, outcome = self.plan, self.answer, self.progress.outcome()
        inserted = sum(len(tokens) for _, tokens in answer.inserted)
        drafted = 0 if answer.draft is None else len(answer.draft.tokens)
        written, later, reports = Written(answer, self.progress, outcome), list[Later](), dict[str, Any]()
        for each in self.observers:
            report = each.finish(written)
            if isinstance(report, Later):
                later.append(report)
            else:
                reports |= report or {}
        completion = Completion(
            value=outcome.value,
            text=outcome.text,
            tokens=tuple(answer.tokens),
            usage=Usage(plan.prompt_tokens + inserted, cached_tokens, drafted + len(answer.tokens), drafted, inserted),
            timings=timings,
            finish_reason=answer.finish_reason,
            ended_by=answer.ended_by,
            report=None if plan.constraint is None else plan.constraint.report,
            ended_early=self._ended_early(),
            shortened=answer.n_shortened + (0 if answer.matcher is None else answer.matcher.n_shortened),
            limited_masks=answer.limited_masks + (0 if answer.matcher is None else answer.matcher.limited_masks),
            limits_met=answer.limits_met if answer.matcher is None else answer.all_limits_met(answer.matcher),
            reasoning=outcome.reasoning,
            stop=outcome.stop,
            draft=self.draft_text.text,
            introduced=answer.insert.told(answer.inserted) if isinstance(answer.insert, Introductions) else None,
            retried=() if self.checks is None else tuple(self.checks.retried),
            n_masks=answer.n_masks,
            mask_seconds=answer.mask_seconds,
            **report_members(reports),
        )
        return completion, later

    def _ended_early(self) -> tuple[Path, ...]:
        """Returns the paths of the values that ended early."""
        answer, vocabulary = self.answer, self.plan.model.vocabulary
        if not answer.ended_early:
            return ()
        begins = [0, *accumulate(len(vocabulary.marked_bytes(token)) for token in answer.tokens)]
        return paths_at(self.progress.located(), [begins[token] + offset for token, offset in answer.ended_early])


class Run:
    """One answer on a model's scheduler. ``request.done`` is set when the answer is complete.

    Args:
        plan: the request, with its constraint.
        show: function that receives events while the answer is written, in the thread that drives the model.
        partition: name of the prompt cache; requests with the same name share evaluated prompts.
    """

    def __init__(self, plan: Plan, show: Callable[[StreamEvent], None] | None = None, *, partition: str = "") -> None:
        self._running = Running(plan)
        self.vocabulary = plan.model.vocabulary
        self._show = show
        self.request = Request(
            self._running.answer, self._receive, plan.settings.timeout, partition, shared=plan.shared
        )

    def submit(self) -> None:
        """Puts the answer into the scheduler's queue. Raises ``BudgetError`` and ``ModelError``."""
        self._running.plan.model.scheduler.submit(self.request)

    def finish(self) -> tuple[list[StreamEvent], Completion]:
        """Returns the last events and the complete answer. Raises ``OutputValidationError``."""
        last = self._running.finish()
        return last, self._running.completion(self.request.cached_tokens, self._timings())

    def finish_without_later(self) -> tuple[list[StreamEvent], Completion, list[Later]]:
        """Returns the last events, the answer, and the reports on it that are still to be made.

        For callers who have these made elsewhere. Raises ``OutputValidationError``.
        """
        last = self._running.finish()
        return last, *self._running.without_later(self.request.cached_tokens, self._timings())

    def _timings(self) -> Timings:
        request = self.request
        seconds = (request.queue_seconds, request.prompt_seconds, request.generation_seconds)
        return Timings(self._running.plan.compile_seconds, *seconds)

    def _receive(self, _: tuple[int, ...]) -> None:
        if self._show is not None:
            for event in self._running.take():
                self._show(event)
