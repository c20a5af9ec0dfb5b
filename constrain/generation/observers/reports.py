"""``Reports``: what observers have told about an answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from constrain.engine.captures import Captures
from constrain.errors import pointer_to
from constrain.generation.logprobs import LEAST_LOGPROB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from constrain.generation.observers.confidence.records import FieldConfidence
    from constrain.generation.observers.trace.records import TokenTrace
    from constrain.llama.decoding.token_logprob import TokenLogprob
    from constrain.quotes.places import QuotePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """The reports on one answer.

    Attributes:
        logprobs: log-probabilities, one entry for each of ``tokens``; ``None`` without the option ``logprobs``.
        text_logprobs: the entries of ``logprobs`` for the tokens that make up ``text``.
        trace: with the option ``trace``, one entry for each of ``tokens``: where it comes from, how many tokens were
            allowed, and which were likely. ``None`` without the option, and for a merged answer.
        captures: parts of ``text`` that the grammar gives names to, with their spans; empty without names, and if the
            answer was cut. ``None`` if they take too long to find; ``MAX_CAPTURE_WORK`` is then in ``limits_met``.
        quotes: places of all quotes (``constrain.Quote``) in ``value`` as JSON and in their sources, in the order of
            the text. With ``tools``, paths begin with ``"content"``, or with ``"calls"``, the number of the call and
            ``"arguments"``; the quotes in the content come first.
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
        reports: reports of further observers, by name.
    """

    logprobs: tuple[TokenLogprob, ...] | None = None
    text_logprobs: tuple[TokenLogprob, ...] | None = None
    trace: tuple[TokenTrace, ...] | None = None
    captures: Captures | None = field(default_factory=Captures)
    quotes: tuple[QuotePlace, ...] = ()
    fields: Mapping[tuple[str | int, ...], FieldConfidence] | None = None
    certificate: dict[str, Any] | None = None
    log_mass: float | None = None
    reports: Mapping[str, Any] = field(default_factory=dict)


_NAMES = frozenset(each.name for each in fields(Reports))
_NONE = Reports()


def report_members(found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns reports by the names that a ``Completion`` has for them; those without a name are in ``reports``."""
    named = {name: report for name, report in found.items() if name in _NAMES}
    return {**named, "reports": {name: report for name, report in found.items() if name not in _NAMES}}


def unknown_reports() -> dict[str, Any]:
    """Returns the reports of an answer that no observer has seen, by name."""
    return {name: getattr(_NONE, name) for name in _NAMES}


def report_objects(reports: Reports) -> dict[str, Any]:
    """Returns the reports that an answer as JSON has: their members are named as the attributes are.

    Paths are JSON Pointers.
    """
    found: dict[str, Any] = {}
    if reports.fields is not None:
        found["fields"] = {pointer_to(path): _field_object(each) for path, each in reports.fields.items()}
    if reports.quotes:
        found["quotes"] = [{**asdict(place), "path": pointer_to(place.path)} for place in reports.quotes]
    if reports.certificate is not None:
        found["certificate"] = reports.certificate
    return {**found, **reports.reports}


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
