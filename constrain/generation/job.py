"""The stages of a request: ``Plan`` (checked), ``Job`` (compiled), ``Writing`` (one answer in progress).

A ``Run`` is a ``Writing`` on a model's scheduler, which decodes several at once.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from constrain.chat.reading.events import ReasoningDelta, TraceDelta
from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.reading.text import TextStream
from constrain.chat.reading.text_tokens import TextTokens
from constrain.confidence.alternatives import Replay
from constrain.confidence.fields import Confidence, paths_at, sum_mass
from constrain.engine import compiling as _compiling
from constrain.engine.captures import Captures
from constrain.errors import PrefixError
from constrain.generation.capturing import Capturing, with_captures
from constrain.generation.completion import Completion, Timings, Usage
from constrain.generation.options import WITH_PROMPT
from constrain.generation.proofs.certifying import (
    SOFT_LIMITS,
    Certifying,
    describe_prompt,
    describe_sampling,
    describe_settings,
    versions,
    with_certificate,
)
from constrain.language.policies import CompileOptions
from constrain.llama.decoding.draft import Draft
from constrain.llama.decoding.ranges import SEEDS, seed_of
from constrain.llama.scheduling.request import Request
from constrain.quotes.places import Quotes
from constrain.regex.source import Regex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.reading.progress import Progress
    from constrain.chat.tools.kinds import Tool
    from constrain.confidence.fields import FieldConfidence
    from constrain.engine.constraint import Constraint, Matcher
    from constrain.generation.options import AnswerSettings
    from constrain.language.result import ResultType
    from constrain.llama.decoding.answer import Answer, LogitAdjuster, Questions
    from constrain.llama.decoding.chosen import Choice
    from constrain.llama.decoding.sampler import Chain, Sampling
    from constrain.llama.model import Model
    from constrain.partial.scanner import Path
    from constrain.private_folders import Directory
    from constrain.quotes.places import QuotePlace
    from constrain.vocabulary.vocabulary import Vocabulary

SCHEMA, TOOLS = "the schema of the answer", "the tools"
"""Names, in error messages, of the texts that a prompt shows in addition to the caller's text."""


_ANY_TEXT = Regex("(?s).*")
"""The language of a draft."""


@dataclass(frozen=True, slots=True)
class Language:
    """The language of an answer: the arguments of ``compile``."""

    schema: object
    policies: CompileOptions = field(default_factory=CompileOptions)

    def compile(self, vocabulary: Vocabulary, *, cache: Directory = None) -> Constraint:
        """Compiles the language for a vocabulary."""
        return _compiling.compile_any(self.schema, vocabulary, close_objects=True, cache=cache, **self.policies)


@dataclass(frozen=True, slots=True)
class Plan:
    """A request whose options are checked and whose prompt is ready; its language is not compiled yet.

    Attributes:
        model: model that answers.
        language: language of the answer; None for free text.
        tokens: token ids of the prompt.
        progress: function that makes the reader of one answer, from the answer's number (among several for the prompt)
            and, if log-probabilities are wanted, the object that finds the tokens of its text.
        sampling: options for choosing tokens.
        shared: function that returns how many tokens at the beginning of the prompt other requests share, for the
            prompt cache on disk; None if the request is private.
        prefix: token ids that the answer begins with.
        may_be_cut: whether free text is an answer, so that a limit may cut it anywhere.
        is_greedy: whether a single answer has the temperature 0 in place of that of ``sampling``.
        settings: the other options.
        result: type of the answer; with tools, type of its content.
        tools: tools of the answer, by name.
        call_or_content: function that makes the object which adjusts logits until one answer has become content or a
            call; None if there is no such choice.
        request: token ids behind a draft that ask for the answer; empty for an answer without a draft.
        shown: function that returns the texts that the prompt adds to the caller's text, by name.
        tool_quotes: finders of the quotes in the arguments of calls, by name of the tool; only for tools with quotes.
    """

    model: Model
    language: Language | None
    tokens: list[int]
    progress: Callable[[int, TextTokens | None], Progress]
    sampling: Sampling
    settings: AnswerSettings
    result: ResultType
    tools: Mapping[str, Tool] = field(default_factory=dict)
    call_or_content: Callable[[Sampling], LogitAdjuster] | None = None
    shown: Callable[[], dict[str, str]] = dict
    request: tuple[int, ...] = ()
    tool_quotes: Mapping[str, Quotes] = field(default_factory=dict)
    shared: Callable[[], int] | None = None
    is_greedy: bool = False
    may_be_cut: bool = False
    prefix: tuple[int, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of the prompt, with the request behind a draft."""
        return len(self.tokens) + len(self.request)

    def job(self, constraint: Constraint | None, compile_seconds: float) -> Job:
        """Returns the job that this plan becomes with a constraint.

        Raises ``ValueError`` for ``unbias`` with a grammar that has temperatures of its own, and for a prefix that no
        answer begins with.
        """
        if len(self.prefix) > self.model.n_ctx:
            raise PrefixError(f"the prefix has {len(self.prefix)} tokens, and the context holds {self.model.n_ctx}")
        if self.settings.unbias and constraint is not None and self.result.document is None:
            tempered = [each.name for each in constraint.grammar.terminals if each.temperature is not None]
            if tempered:
                raise ValueError(
                    f"unbias samples from the model's own distribution, but the grammar gives {tempered[0]} a "
                    "temperature; leave it out"
                )
        if self.sampling.dry_multiplier:  # the first sampler of a kind takes long, and a server begins answers at once
            self.chain(self.sampling).close()
        files = self.model.file_hashes() if self.settings.certificate else []
        drafts = Language(_ANY_TEXT).compile(self.model.vocabulary) if self.settings.draft else None
        job = Job(self, constraint, compile_seconds, drafts=drafts, files=files)
        if self.prefix and constraint is not None:
            job.require_prefix()
        return job

    def chain(self, sampling: Sampling) -> Chain:
        """Returns a new chain of samplers for an answer to the prompt."""
        from constrain.llama.decoding.sampler import Chain

        model = self.model
        return Chain(
            sampling,
            model.vocabulary.n_vocab,
            model.n_ctx,
            prompt=self.tokens,
            dry=lambda: model.context.dry,
        )

    def describe_token(self, token: int) -> tuple[str, bytes]:
        """Returns the text and the bytes of a token; for a special token its name."""
        data = self.model.vocabulary.token_bytes(token)
        return data.decode("utf-8", "backslashreplace") if data else self.model.tokenizer.name(token), data

    def find_quotes(self, text: str, value: object) -> tuple[QuotePlace, ...]:
        """Returns the places of the quotes in a finished answer: in its content, then in the arguments of its calls.

        ``text``: text of the content. A refusal has no quotes.
        """
        found: list[QuotePlace] = []
        quotes, is_reply = self.result.quotes, isinstance(value, Reply)
        if quotes is not None and text and not isinstance(value, Refusal):
            assert isinstance(quotes, Quotes)
            found += quotes.places(text, ("content",) if is_reply else ())
        for number, call in enumerate(value.calls if isinstance(value, Reply) else ()):
            if call.name in self.tool_quotes:
                found += self.tool_quotes[call.name].places(call.text, ("calls", number, "arguments"))
        return tuple(found)

    def describe_shown(self, hint: str) -> str:
        """Describes how many tokens of the prompt are added texts, for an error message; empty if there are none.

        ``hint`` tells the caller how to leave the schema out.
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
    """A plan with its constraint, ready for the model.

    Attributes:
        plan: the checked request.
        constraint: compiled language of the answer; None for free text.
        compile_seconds: wall-clock seconds that compiling took.
        number: number of the answer, among several for one prompt.
        drafts: compiled language of a draft; None for no draft.
        files: names and hashes of the model's files; empty without a certificate.
    """

    plan: Plan
    constraint: Constraint | None
    compile_seconds: float
    number: int = 0
    drafts: Constraint | None = None
    files: Sequence[Mapping[str, str | int]] = ()

    def samples(self, count: int) -> list[Job]:
        """Returns the jobs of so many answers to the prompt; the seed of each, if any, is this seed plus its number."""
        return [self._sample(number) if count > 1 else self for number in range(count)]

    def _sample(self, number: int) -> Job:
        sampling = self.plan.sampling
        own_seed = None if sampling.seed is None else seed_of(sampling.seed, number)
        plan = replace(self.plan, sampling=replace(sampling, seed=own_seed), is_greedy=False)
        return replace(self, plan=plan, number=number)

    @property
    def used_sampling(self) -> Sampling:
        """The options for choosing tokens."""
        return replace(self.plan.sampling, temperature=0.0) if self.plan.is_greedy else self.plan.sampling

    def begin(self) -> Writing:
        """Makes an answer without tokens."""
        from constrain.llama.decoding.answer import Answer
        from constrain.llama.decoding.chosen import Choices
        from constrain.llama.decoding.logprobs import Logprobs
        from constrain.llama.decoding.trace import Trace

        plan, settings = self.plan, self.plan.settings
        sampling = _with_seed(self.used_sampling) if settings.certificate else self.used_sampling
        vocabulary = plan.model.vocabulary
        assert vocabulary.encode is not None
        notes_choices = settings.confidence or settings.unbias or settings.trace
        is_scored = settings.logprobs or notes_choices
        logprobs = Logprobs(settings.top_logprobs, plan.describe_token) if is_scored else None
        text_tokens = TextTokens(logprobs.tokens) if logprobs is not None and settings.logprobs else None
        progress = plan.progress(self.number, text_tokens)
        draft_text = TextStream(cuts=False)
        answer = Answer(
            plan.tokens,
            plan.chain(sampling),
            self._start(),
            eos=frozenset(vocabulary.eos),
            encode=vocabulary.encode,
            token_bytes=vocabulary.token_bytes,
            special_tokens=vocabulary.special_tokens,
            max_tokens=settings.max_tokens,
            wants_stop=lambda token: progress.feed(vocabulary.marked_bytes(token)),
            call_or_content=None if plan.call_or_content is None else plan.call_or_content(sampling),
            logprobs=logprobs,
            choices=Choices() if notes_choices else None,
            trace=Trace(self._start(), plan.describe_token) if settings.trace else None,
            prefix=plan.prefix,
            draft=self._draft(draft_text, sampling),
            may_be_cut=plan.may_be_cut,
            about_prompt=partial(plan.describe_shown, "show_schema=False leaves the schema out"),
        )
        writing = Writing(self, answer, progress, text_tokens, draft_text, self._start(), sampling)
        if settings.confidence:
            answer.questions = writing.field_questions
        return writing

    def _draft(self, text: TextStream, sampling: Sampling) -> Draft | None:
        """Makes the draft of an answer, which adds to ``text``; None for no draft."""
        if self.drafts is None:
            return None
        plan, vocabulary = self.plan, self.plan.model.vocabulary
        return Draft(
            self.drafts.matcher,
            plan.chain(sampling),
            list(plan.request),
            lambda token: text.feed(vocabulary.token_bytes(token)),
            None if plan.settings.draft is True else plan.settings.draft,
        )

    def require_prefix(self) -> None:
        """Raises ``PrefixError`` if no answer begins with the prefix, whatever the budget."""
        matcher, prefix = self.start(None), self.plan.prefix
        known = matcher.accept_many(prefix)
        if known < len(prefix):
            why = matcher.explain(prefix[known])
            raise PrefixError(f"no answer begins with the prefix; {why}, after {known} of its {len(prefix)} tokens")

    def start(self, max_tokens: int | None) -> Matcher:
        """Returns a matcher at the beginning of the answer, with a token budget. Only with a constraint."""
        assert self.constraint is not None
        settings = self.plan.settings
        return self.constraint.matcher(
            max_tokens,
            max_string_tokens=settings.max_string_tokens,
            max_number_tokens=settings.max_number_tokens,
            max_reasoning_tokens=settings.max_reasoning_tokens,
        )

    def _start(self) -> Callable[[int], Matcher] | None:
        """Returns a function from a token budget to a matcher; None for free text."""
        return None if self.constraint is None else self.start


@dataclass(slots=True)
class Writing:
    """One answer in progress: ``progress`` reads the tokens that ``answer`` takes, ``draft_text`` those before them."""

    job: Job
    answer: Answer
    progress: Progress
    text_tokens: TextTokens | None
    draft_text: TextStream
    start: Callable[[int], Matcher] | None
    sampling: Sampling
    _last: list[StreamEvent] | None = None
    _confidence: Confidence | None = None
    _n_traced: int = 0  # tokens whose trace was reported

    def take(self) -> list[StreamEvent]:
        """Returns the events that are new since the last call."""
        piece = self.draft_text.take()
        return [*([ReasoningDelta(piece)] if piece else []), *self._traced(), *self.progress.take()]

    def _traced(self) -> list[StreamEvent]:
        """Returns the trace of the tokens that are new since the last call and that the answer cannot remove."""
        answer = self.answer
        if answer.trace is None:
            return []
        found = answer.trace.tokens[self._n_traced : len(answer.tokens) - answer.n_doubtful]
        self._n_traced += len(found)
        return [TraceDelta(tuple(found))] if found else []

    def finish(self) -> list[StreamEvent]:
        """Returns the remaining events, after the last token."""
        self._end()
        last, self._last = self._last, []
        return last or []

    def _end(self) -> None:
        """Has the answer read to its end, once."""
        if self._last is None:
            self._last = [*self.take(), *self.progress.finish()]

    def field_questions(self) -> Questions[None]:
        """Asks about the finished answer what its fields need to know: see ``Confidence.questions``."""
        self._end()
        self._confidence = self._weigh()
        yield from self._confidence.questions()

    def completion(self, cached_tokens: int, timings: Timings) -> Completion:
        """Returns the finished answer; call ``finish`` first. Raises ``OutputValidationError``."""
        completion, parts = self.without_readings(cached_tokens, timings), self.capturing()
        vocabulary, whole = self.job.plan.model.vocabulary, self.job.plan.language
        completion = with_captures(
            completion,
            [
                (part, part.find(vocabulary, self.job.constraint if whole and part.schema is whole.schema else None))
                for part in parts
            ],
        )
        proof = self.certifying()
        return (
            completion if proof is None else with_certificate(completion, proof.make(vocabulary, self.job.constraint))
        )

    def without_readings(self, cached_tokens: int, timings: Timings) -> Completion:
        """Returns the finished answer as ``completion`` does, but without captures and certificate."""
        job, answer, outcome = self.job, self.answer, self.progress.outcome()
        drafted = 0 if answer.draft is None else len(answer.draft.tokens)
        return Completion(
            value=outcome.value,
            text=outcome.text,
            tokens=tuple(answer.tokens),
            usage=Usage(job.plan.prompt_tokens, cached_tokens, drafted + len(answer.tokens), drafted),
            timings=timings,
            finish_reason=answer.finish_reason,
            ended_by=answer.ended_by,
            report=None if job.constraint is None else job.constraint.report,
            ended_early=self._ended_early(),
            shortened=answer.n_shortened + (0 if answer.matcher is None else answer.matcher.n_shortened),
            limited_masks=0 if answer.matcher is None else answer.matcher.limited_masks,
            limits_met=() if answer.matcher is None else answer.matcher.limits_met,
            reasoning=outcome.reasoning,
            stop=outcome.stop,
            draft=self.draft_text.text,
            logprobs=tuple(answer.logprobs.tokens)
            if answer.logprobs is not None and job.plan.settings.logprobs
            else None,
            text_logprobs=None if self.text_tokens is None else tuple(self.text_tokens.reported),
            trace=None if answer.trace is None else tuple(answer.trace.tokens),
            captures=Captures(),
            fields=self._fields() if job.plan.settings.confidence else None,
            log_mass=None if answer.choices is None else sum_mass(self._logprobs(), self._choices()),
            quotes=job.plan.find_quotes(outcome.text, outcome.value),
            n_masks=answer.n_masks,
            mask_seconds=answer.mask_seconds,
        )

    def _ended_early(self) -> tuple[Path, ...]:
        """Returns the paths of the values that ended early."""
        answer, vocabulary = self.answer, self.job.plan.model.vocabulary
        if not answer.ended_early:
            return ()
        begins = [0, *accumulate(len(vocabulary.marked_bytes(token)) for token in answer.tokens)]
        return paths_at(self.progress.located(), [begins[token] + offset for token, offset in answer.ended_early])

    def _logprobs(self) -> list[float]:
        """Returns the logarithms of the model's own probabilities of the tokens."""
        assert self.answer.logprobs is not None
        return [each.logprob for each in self.answer.logprobs.tokens]

    def _choices(self) -> list[Choice]:
        """Returns the choices of the finished answer. In free text, each token is one, among all tokens."""
        from constrain.llama.decoding.chosen import Choice

        answer = self.answer
        assert answer.choices is not None
        if self.start is not None:
            return answer.choices.made
        return [
            Choice(index, token, logprob, 0.0, ())
            for index, (token, logprob) in enumerate(zip(answer.tokens, self._logprobs(), strict=True))
        ]

    def _fields(self) -> dict[Path, FieldConfidence]:
        """Returns the parts of the finished answer with their probabilities."""
        return (self._confidence or self._weigh()).fields()

    def _weigh(self) -> Confidence:
        """Returns what is known of the finished answer."""
        answer, vocabulary = self.answer, self.job.plan.model.vocabulary
        constraint, replay = self.job.constraint, None
        if self.start is not None and constraint is not None:
            bitmask = partial(lambda made: made.allocate_bitmask()[0], constraint)
            start = partial(self.start, answer.limit)
            known = answer.tokens, vocabulary.token_bytes, frozenset(vocabulary.eos)
            replay = Replay(start, bitmask, *known, answer.follow)
        pieces = [vocabulary.marked_bytes(token) for token in answer.tokens]
        return Confidence(pieces, self._logprobs(), self._choices(), self.progress.located(), replay)

    def capturing(self) -> list[Capturing]:
        """Returns the parts of the finished answer that may have captures; call ``finish`` first."""
        constraint, language = self.job.constraint, self.job.plan.language
        if constraint is None or language is None or not constraint.has_captures:
            return []
        data = b"".join(map(constraint.vocabulary.marked_bytes, self.answer.tokens))
        return [
            Capturing(
                language.schema if part.source is None else part.source,
                language.policies,
                part.text,
                part.call,
                tuple(self.answer.tokens) if part.source is None else None,
            )
            for part in self.progress.parts(data)
        ]

    def certifying(self) -> Certifying | None:
        """Returns the finished answer as its certificate is made of; None for an answer without certificate."""
        job, answer, language = self.job, self.answer, self.job.plan.language
        plan, settings = job.plan, job.plan.settings
        if not settings.certificate or language is None:
            return None
        origins = None if answer.choices is None else [answer.origin(number) for number in range(len(answer.tokens))]
        draft = None if answer.draft is None else {"tokens": answer.draft.tokens, "request": list(plan.request)}
        facts = {
            "prompt": describe_prompt(plan.tokens, with_ids=settings.certificate == WITH_PROMPT),
            "draft": draft,
            "model": {"files": list(job.files), "n_ctx": plan.model.n_ctx},
            "sampling": describe_sampling(self.sampling),
            "settings": describe_settings(settings, plan.prefix),
            "versions": versions(),
            "origins": origins,
            "finish_reason": answer.finish_reason,
        }
        limits = {name: getattr(settings, name) for name in SOFT_LIMITS}
        return Certifying(language.schema, language.policies, tuple(answer.tokens), answer.limit, limits, facts)


def _with_seed(sampling: Sampling) -> Sampling:
    """Returns sampling options with a seed: a new one, if they have none."""
    return replace(sampling, seed=secrets.randbelow(SEEDS)) if sampling.seed is None else sampling


class Run:
    """One answer on a model's scheduler. ``request.done`` is set when the answer is complete.

    Args:
        job: the request.
        show: function that receives events while the answer is written, in the thread that drives the model.
        partition: name of the prompt cache; requests with the same name share evaluated prompts.
    """

    def __init__(self, job: Job, show: Callable[[StreamEvent], None] | None = None, *, partition: str = "") -> None:
        self._writing = job.begin()
        self.vocabulary = job.plan.model.vocabulary
        self._show = show
        plan = job.plan
        self.request = Request(
            self._writing.answer, self._receive, plan.settings.timeout, partition, shared=plan.shared
        )

    def submit(self) -> None:
        """Puts the answer into the scheduler's queue. Raises ``BudgetError`` and ``ModelError``."""
        self._writing.job.plan.model.scheduler.submit(self.request)

    def finish(self) -> tuple[list[StreamEvent], Completion]:
        """Returns the last events and the complete answer. Raises ``OutputValidationError``."""
        last = self._writing.finish()
        return last, self._writing.completion(self.request.cached_tokens, self._timings())

    def finish_without_readings(self) -> tuple[list[StreamEvent], Completion, list[Capturing], Certifying | None]:
        """Returns the last events, the answer without captures and certificate, and what both are made of.

        For callers who have captures found and certificates made elsewhere. Raises ``OutputValidationError``.
        """
        writing = self._writing
        last = writing.finish()
        completion = writing.without_readings(self.request.cached_tokens, self._timings())
        return last, completion, writing.capturing(), writing.certifying()

    def _timings(self) -> Timings:
        request = self.request
        seconds = (request.queue_seconds, request.prompt_seconds, request.generation_seconds)
        return Timings(self._writing.job.compile_seconds, *seconds)

    def _receive(self, _: tuple[int, ...]) -> None:
        if self._show is not None:
            for event in self._writing.take():
                self._show(event)
