"""Results of a generation: the finished answer, and the last event of a stream."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from constrain.engine.captures import captures_object
from constrain.errors import pointer_to
from constrain.generation.logprobs import LEAST_LOGPROB
from constrain.notebooks import cut, shorten, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.engine.captures import Captures
    from constrain.engine.report import Report
    from constrain.generation.checking import Retried
    from constrain.generation.observers.confidence.fields import FieldConfidence
    from constrain.generation.observers.trace import TokenTrace
    from constrain.llama.decoding.answer import EndedBy, FinishReason
    from constrain.llama.decoding.token_logprob import TokenLogprob
    from constrain.quotes.places import QuotePlace

if TYPE_CHECKING:
    import typing_extensions  # TypeVar has a default from Python 3.13 on

    ValueT_co = typing_extensions.TypeVar("ValueT_co", covariant=True, default=Any)
else:
    ValueT_co = TypeVar("ValueT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Usage:
    """The numbers of tokens of a prompt and its answer.

    Attributes:
        prompt_tokens: tokens of the prompt; with a draft, also of the request for the answer behind it; with names of
            tools, also of what shows the called ones.
        cached_tokens: tokens of the prompt that were not evaluated, because an earlier prompt began with them.
        completion_tokens: tokens of the answer and of a draft before it, without the end of generation.
        draft_tokens: tokens of the draft.
        introduced_tokens: tokens of the prompt that were read during the answer, to show tools that it calls.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    draft_tokens: int = 0
    introduced_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """The wall-clock seconds that one answer took, by step.

    Attributes:
        compile: seconds to compile the schema.
        queue: seconds of waiting for the model.
        prompt: seconds to evaluate the prompt.
        generation: seconds to generate the answer.
    """

    compile: float
    queue: float
    prompt: float
    generation: float


class HoldsAnswer:
    """An object around an answer: where people look for the answer's own members in it, errors say where they are.

    ``_cure``: the place, for the messages.
    """

    __slots__ = ()
    _cure: ClassVar[str]

    if not TYPE_CHECKING:  # type checkers would accept any name

        def __getattr__(self, name: str) -> Any:
            message = f"{type(self).__name__!r} object has no attribute {name!r}; {self._cure}"
            raise AttributeError(message, name=name, obj=self)

        def __getitem__(self, key: object) -> Any:
            raise TypeError(f"{type(self).__name__!r} object is not subscriptable; {self._cure}")


@dataclass(frozen=True, slots=True, repr=False)
class Completion(HoldsAnswer, Generic[ValueT_co]):
    """A complete answer: its value, its text, and facts about its generation.

    Attributes:
        value: instance of the requested type; parsed JSON for a JSON Schema; otherwise the text. With ``tools`` it is a
            ``Reply``; with ``allow_refusal`` it may be a ``Refusal``.
        text: text of the answer as the model wrote it, without calls, reasoning and special tokens.
        tokens: token ids of the answer, without the end of generation.
        usage: numbers of tokens.
        timings: seconds by step.
        finish_reason: ``"stop"`` if the answer ended by itself or at a ``stop`` text; ``"length"`` if ``max_tokens``
            ruled out what the model would have written, or cut free text; ``"timeout"`` if the time was up.
        report: ``Constraint.report`` of the schema; ``None`` without a schema.
        ended_early: paths of the strings that ``max_tokens`` or ``max_string_tokens`` closed after a word, and of the
            other values in which ``max_tokens`` removed what the model would have written, as in ``fields``.
        shortened: number of strings and numbers that ``max_string_tokens`` or ``max_number_tokens`` ended, and of
            lexemes that the ``max_tokens`` of a grammar narrowed. They do not change ``finish_reason``.
        limited_masks: number of masks without some allowed tokens, because a limit of the kernel was met. The answer
            matches and is complete nevertheless.
        limits_met: names of these limits, such as ``"MAX_MASK_WORK"``, and of those on captures and certificates.
        ended_by: the cause of the end: ``"model"``, ``"grammar"`` (nothing could follow), ``"stop"`` (a ``stop`` text,
            or calls that repeat), ``"limit"`` (``max_tokens``), ``"context"`` (it is full) or ``"timeout"``.
        stop: the ``stop`` text before which free text ended; ``None`` for none.
        reasoning: text of the model's reasoning before the answer; ``""`` for none.
        draft: text that the model wrote before its answer, with the option ``draft``; ``""`` for none.
        introduced: with tools shown by name, the called tools that have parameters, and for each whether there was room
            in the context to show the model its definition. ``None`` if the prompt shows all tools.
        retried: values that ``checks`` or validators rejected, in order, and that were written again (``retries``).
        logprobs: log-probabilities, one entry for each of ``tokens``; ``None`` without the option ``logprobs``.
        text_logprobs: the entries of ``logprobs`` for the tokens that make up ``text``.
        trace: with the option ``trace``, one entry for each of ``tokens``: where it comes from, how many tokens were
            allowed, and which were likely. ``None`` without the option, and for a merged answer.
        captures: parts of ``text`` that the grammar gives names to, with their spans; empty without names, and if the
            answer was cut. ``None`` if they take too long to find; ``MAX_CAPTURE_WORK`` is then in ``limits_met``.
        quotes: places of all quotes (``constrain.Quote``) in ``value`` as JSON and in their sources, in the order of
            the text. With ``tools``, paths begin with ``"content"``, or with ``"calls"``, the number of the call and
            ``"arguments"``; the quotes in the content come first.
        agreement: with ``vote``, the share of the samples that have the same value in a place, by the path of the place
            (keys and positions; ``()`` for the whole). Items of lists are lined up by content. ``None`` otherwise.
        fields: with ``confidence``, the parts of a JSON value with their probabilities, by path in ``value`` (keys and
            positions; ``()`` for the whole). With ``tools``, paths begin with ``"content"``, or with ``"calls"``, the
            number of the call and ``"arguments"``, where the model's family writes arguments as JSON. ``None`` without
            the option.
        certificate: with the option ``certificate``, the proof that the answer is one of its schema or grammar, as JSON
            (``constrain verify`` checks it); its member ``grammar`` is shared, so do not change it. ``None`` without
            the option, and if the proof takes too long; ``MAX_CERTIFICATE_WORK`` is then in ``limits_met``.
        log_mass: with ``confidence``, ``trace`` or ``unbias``, logarithm of the share of the model's probability that
            the constraint left, over all tokens: 0 for free text. With ``unbias``, its exponential weights the answer.
            ``None`` without these options, and for a merged answer.
        n_masks: number of masks that choosing tokens took.
        mask_seconds: wall-clock seconds for these masks; those in which the model computed meanwhile included.
        votes: with ``vote``, the samples that voted: all but those that cannot be read as values. ``tokens`` and
            ``draft`` are then empty if no sample is the winner as a whole, and ``usage`` counts the tokens of all these
            samples.
        reports: reports of further observers (docs/explanation/observers.md), by name; ``None`` if there are none.
    """

    value: ValueT_co
    text: str
    tokens: tuple[int, ...]
    usage: Usage
    timings: Timings
    finish_reason: FinishReason
    report: Report | None
    ended_early: tuple[tuple[str | int, ...], ...] = ()
    shortened: int = 0
    limited_masks: int = 0
    limits_met: tuple[str, ...] = ()
    ended_by: EndedBy = "model"
    stop: str | None = None
    reasoning: str = ""
    draft: str = ""
    introduced: Mapping[str, bool] | None = None
    retried: tuple[Retried, ...] = ()
    logprobs: tuple[TokenLogprob, ...] | None = None
    text_logprobs: tuple[TokenLogprob, ...] | None = None
    trace: tuple[TokenTrace, ...] | None = None
    captures: Captures | None = None
    quotes: tuple[QuotePlace, ...] = ()
    agreement: Mapping[tuple[str | int, ...], float] | None = None
    fields: Mapping[tuple[str | int, ...], FieldConfidence] | None = None
    log_mass: float | None = None
    certificate: dict[str, Any] | None = None
    n_masks: int = 0
    mask_seconds: float = 0.0
    votes: tuple[Completion, ...] = ()
    reports: Mapping[str, Any] | None = None
    _cure: ClassVar[str] = "the members of the answer are at .value"

    def __repr__(self) -> str:
        """Returns the value, the cause of the end, and what was spent; the attributes have the rest."""
        seconds = self.timings.prompt + self.timings.generation
        facts = [f"finish_reason={self.finish_reason!r}", f"{self.usage.completion_tokens} tokens in {seconds:.1f} s"]
        facts += [f"{name}={fact!r}" for name, fact in limits_object(self).items()]
        return shorten(f"Completion(value={', '.join([cut(self.value), *facts])})")

    def _repr_html_(self) -> str:
        """Returns a table for notebooks: the facts of ``repr``, and the probabilities of ``fields``."""
        shown = {"value": self.value, "finish_reason": self.finish_reason, "usage": self.usage, "timings": self.timings}
        facts = table([*shown.items(), *limits_object(self).items()])
        if self.fields is None:
            return facts
        rows = (
            (
                pointer_to(path),
                each.value,
                f"{each.probability:.4f}",
                f"{each.mass:.4f}",
                ", ".join(f"{other.value!r} {other.probability:.4f}" for other in each.alternatives),
            )
            for path, each in self.fields.items()
        )
        return facts + table(rows, ("field", "value", "probability", "mass", "alternatives"))

    @property
    def thoughts(self) -> str:
        """Text that the model wrote before its answer: its reasoning, or a draft. An answer never has both."""
        return self.reasoning or self.draft


def limits_object(completion: Completion) -> dict[str, Any]:
    """Returns the members of an answer as JSON that tell of limits; empty if none was met.

    ``early``: JSON Pointers of the values that ended early; ``limited``: limited masks and the limits met.
    """
    found: dict[str, Any] = {}
    if completion.ended_early:
        found["early"] = [pointer_to(path) for path in completion.ended_early]
    if completion.limits_met:
        found["limited"] = {"masks": completion.limited_masks, "limits": list(completion.limits_met)}
    return found


def agreement_object(completion: Completion) -> dict[str, Any]:
    """Returns the member ``agreement`` of an answer as JSON: shares by JSON Pointer; empty without a vote."""
    if completion.agreement is None:
        return {}
    return {"agreement": {pointer_to(path): share for path, share in completion.agreement.items()}}


def facts_object(completion: Completion) -> dict[str, Any]:
    """Returns the members of an answer as JSON that say more than value and text: limits, votes, reports."""
    return {
        **limits_object(completion),
        **captures_object(completion.captures),
        **agreement_object(completion),
        **report_objects(completion),
    }


REPORTS = ("logprobs", "text_logprobs", "trace", "captures", "quotes", "fields", "certificate", "log_mass")
"""Members of a ``Completion`` for reports; those of further observers are in ``reports``."""


def report_members(found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns reports by name as members of a ``Completion``."""
    others = {name: report for name, report in found.items() if name not in REPORTS}
    return {**{name: found[name] for name in REPORTS if name in found}, "reports": others or None}


def report_objects(completion: Completion) -> dict[str, Any]:
    """Returns the reports that an answer as JSON has: their members are named as the attributes are.

    Paths are JSON Pointers.
    """
    found: dict[str, Any] = {}
    if completion.introduced:
        found["introduced"] = dict(completion.introduced)
    if completion.fields is not None:
        found["fields"] = {pointer_to(path): _field_object(each) for path, each in completion.fields.items()}
    if completion.quotes:
        found["quotes"] = [{**asdict(place), "path": pointer_to(place.path)} for place in completion.quotes]
    if completion.certificate is not None:
        found["certificate"] = completion.certificate
    return {**found, **(completion.reports or {})}


def _field_object(field: FieldConfidence) -> dict[str, Any]:
    found: dict[str, Any] = {
        "begin": field.begin,
        "end": field.end,
        "probability": field.probability,
        "logprob": max(field.logprob, LEAST_LOGPROB),
        "mass": field.mass,
        "choices": field.choices,
    }
    if field.alternatives:
        found["alternatives"] = [asdict(each) for each in field.alternatives]
    return found


@dataclass(frozen=True, slots=True)
class Finished(HoldsAnswer):
    """The last event of a stream.

    Attributes:
        completion: the complete answer.
    """

    completion: Completion
    _cure: ClassVar[str] = "the answer is at .completion, and its value at .completion.value"
